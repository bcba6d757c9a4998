"""clang-tidy 14 finds nothing with the short list of checks in .clang-tidy. Another version checks otherwise, so it is not asked.

To parse the headers of Asio and Cap'n Proto costs more than to check a file that includes them. Sources are therefore checked
eight at a time, in files that include them, with the flags of the first; what LibTorch is needed for is left out.
"""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .commands import compile_commands
from .tree import Problem, find_tool

VERSION = "14"
MODULES = ("scheduler", "runtime", "tune", "cli")
BATCH = 8
_FINDING = re.compile(r"^(?P<path>/[^:\n]+):(?P<line>\d+):\d+: (?:warning|error): (?P<message>.*)$", re.MULTILINE)
# Of g++ alone, and what makes or uses precompiled headers.
_DROPPED = ("-fpch-preprocess", "-Winvalid-pch", "-fno-sanitize-recover=all", "-Wno-tsan")


def _flags(command):
    """What follows the compiler, without precompiled headers, output and source."""
    flags = []
    words = iter(command.words[1:])
    for word in words:
        if word in ("-o", "-c", "-include"):
            next(words)
        elif word not in _DROPPED and not word.startswith("--param="):
            flags.append(word)
    return flags


def _batches(tree, commands):
    """[(flags, sources)]: sources of one folder of flags, eight at a time."""
    known = {(tree.root / path).as_posix() for path in tree.cpp_files() if path.parts[0] in MODULES and "src" in path.parts}
    groups = {}
    for command in commands:
        source = command.source.as_posix()
        if source in known:
            groups.setdefault(tuple(_flags(command)), []).append(source)
    return [(flags, files[at:at + BATCH]) for flags, files in groups.items() for at in range(0, len(files), BATCH)]


def _check_batch(tool, folder, number, flags, files):
    source = folder / f"batch_{number}.cpp"
    source.write_text("".join(f'#include "{file}"\n' for file in files), encoding="utf-8")
    run = subprocess.run([tool, "--quiet", str(source), "--", *flags, "-Wno-everything"], capture_output=True, text=True)
    return run.stdout + (run.stderr if run.returncode != 0 else "")


def check(tree, build):
    tool = find_tool("clang-tidy", VERSION)
    if not tool:
        return [Problem(Path(".clang-tidy"), 0, f"clang-tidy {VERSION} is not there: ./run setup installs it")]
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    shutil.copy(tree.root / ".clang-tidy", folder / ".clang-tidy")
    batches = _batches(tree, compile_commands(build))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        outputs = list(pool.map(lambda job: _check_batch(tool, folder, job[0], *job[1]), enumerate(batches)))
    problems = {}
    for output in outputs:
        for found in _FINDING.finditer(output):
            path = Path(found["path"])
            if "[clang-diagnostic-" in found["message"]:
                continue  # g++ compiles it; clang 14 does not know all of its library
            path = path.relative_to(tree.root) if tree.root in path.parents else path
            problems[(path, found["line"], found["message"])] = Problem(path, int(found["line"]), found["message"])
    return list(problems.values())
