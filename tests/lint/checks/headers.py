"""Each public header compiles alone, with what a user of its module has: flags are those of one of the module's own sources
in compile_commands.json, less the private include folders."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .commands import compile_commands, public_flags
from .tree import Problem


def module_flags(build, root):
    """Module -> (compiler, flags) from the compilation database of `build`."""
    found = {}
    for command in compile_commands(build):
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


def _compile(compiler, flags, root, header, scratch):
    source = scratch / (str(header).replace("/", "_") + ".cpp")
    name = Path(*header.parts[2:]).as_posix()
    # Twice: it must also guard itself.
    source.write_text(f"#include <{name}>\n#include <{name}>\n")
    launcher = [shutil.which("ccache")] if shutil.which("ccache") else []
    result = subprocess.run([*launcher, compiler, *flags, "-O0", "-c", str(source), "-o", str(source) + ".o"], cwd=root,
                            capture_output=True, text=True)
    if result.returncode == 0:
        return None
    errors = [line for line in result.stderr.splitlines() if "error" in line]
    return Problem(header, 0, "does not compile alone: " + (errors or [result.stderr.strip()])[0])


def check(tree, build):
    flags = module_flags(build, tree.root)
    jobs, problems = [], []
    # A place that stays the same, as the compiler cache keys on it.
    scratch = build / "lint"
    scratch.mkdir(exist_ok=True)
    for header in tree.public_headers():
        if header.parts[0] in flags:
            jobs.append((*flags[header.parts[0]], tree.root, header, scratch))
        else:
            problems.append(Problem(header, 0, f"module {header.parts[0]} is not part of {build}, so it was not compiled"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        problems += [problem for problem in pool.map(lambda job: _compile(*job), jobs) if problem]
    return problems
