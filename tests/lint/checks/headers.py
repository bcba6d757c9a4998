"""Each public header compiles alone, with what a user of its module has: flags are those of one of the module's own sources
in compile_commands.json, less the private include folders."""

import json
import os
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .tree import Problem

_TAKES_FOLDER = ("-I", "-isystem", "-idirafter", "-iquote")


def module_flags(build, root):
    """Module -> (compiler, flags) from the compilation database of `build`."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = Path(entry["file"])
        try:
            relative = source.relative_to(root)
        except ValueError:
            continue
        if len(relative.parts) > 2 and relative.parts[1] == "src" and relative.parts[0] not in found:
            found[relative.parts[0]] = public_flags(shlex.split(entry["command"]), root, build)
    return found


def public_flags(command, root, build):
    """(compiler, flags) of a command line without its files and without private include folders."""
    if "ccache" in Path(command[0]).name:
        command = command[1:]
    flags, arguments = [], iter(command[1:])
    for argument in arguments:
        if argument in ("-o", "-MF", "-MT", "-c"):
            next(arguments, None)
        elif argument.startswith(_TAKES_FOLDER):
            name = next(name for name in _TAKES_FOLDER if argument.startswith(name))
            folder = argument[len(name):] or next(arguments)
            if not _is_private(Path(folder), root, build):
                flags += [name, folder]
        elif argument.startswith(("-std", "-f", "-D", "-m", "-W", "-pthread")):
            flags.append(argument)
    return command[0], flags


def _is_private(folder, root, build):
    return build in folder.parents or (root in folder.parents and folder.name == "src")


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
