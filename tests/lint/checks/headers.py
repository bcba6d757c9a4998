"""Each public header compiles alone, with what a user of its module has: flags are those of one of the module's own sources
in compile_commands.json, less the private include folders. A header that compiled is known to be clean."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .clean import CleanResults
from .commands import compile_commands, public_flags
from .inputs import Inputs
from .tree import Problem


@dataclass(frozen=True)
class _Job:
    header: Path  # relative to the root
    compiler: str
    flags: list
    key: str


def _name(header):
    """As a user's #include names it."""
    return Path(*header.parts[2:]).as_posix()


def module_flags(commands, build, root):
    """Module -> (compiler, flags) from the commands of `build`."""
    found = {}
    for command in commands:
        try:
            relative = command.source.relative_to(root)
        except ValueError:
            continue
        if len(relative.parts) <= 2 or relative.parts[1] != "src":
            continue
        module, flags = relative.parts[0], public_flags(command, root, build)
        # A module of several libraries has the headers of the one that stands on the others.
        if module not in found or len(flags) > len(found[module][1]):
            found[module] = (command.words[0], flags)
    return found


def _compile(job, root, scratch):
    source = scratch / (str(job.header).replace("/", "_") + ".cpp")
    # Twice: it must also guard itself.
    source.write_text(f"#include <{_name(job.header)}>\n" * 2)
    launcher = [shutil.which("ccache")] if shutil.which("ccache") else []
    result = subprocess.run([*launcher, job.compiler, *job.flags, "-O0", "-c", str(source), "-o", str(source) + ".o"], cwd=root,
                            capture_output=True, text=True)
    if result.returncode == 0:
        return None
    errors = [line for line in result.stderr.splitlines() if "error" in line]
    return Problem(job.header, 0, "does not compile alone: " + (errors or [result.stderr.strip()])[0])


def _jobs(tree, modules, inputs):
    jobs = []
    for header in tree.public_headers():
        if header.parts[0] in modules:
            compiler, flags = modules[header.parts[0]]
            jobs.append(_Job(header, compiler, flags, inputs.key(_name(header), [compiler, *flags])))
    return jobs


def check(tree, build, clean=None):
    clean = clean or CleanResults("headers")
    commands = compile_commands(build)
    modules = module_flags(commands, build, tree.root)
    problems = [Problem(header, 0, f"module {header.parts[0]} is not part of {build}, so it was not compiled")
                for header in tree.public_headers() if header.parts[0] not in modules]
    inputs = Inputs(tree, build, commands, __file__, sorted({compiler for compiler, _ in modules.values()}))
    jobs = clean.unknown(_jobs(tree, modules, inputs), lambda job: job.key)
    # A place that stays the same, as the compiler cache keys on it.
    scratch = build / "lint"
    scratch.mkdir(exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for job, problem in zip(jobs, pool.map(lambda job: _compile(job, tree.root, scratch), jobs)):
            if problem:
                problems.append(problem)
            elif inputs.is_unchanged(_name(job.header)):
                clean.remember(job.key)
    return problems
