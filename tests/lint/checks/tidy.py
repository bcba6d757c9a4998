"""clang-tidy 14 finds nothing with the short list of checks in .clang-tidy. Another version checks otherwise, so it is not asked.

To parse the headers of Asio and Cap'n Proto costs more than to check a file that includes them. Sources are therefore checked
eight at a time, in files that include them, with the flags of the first; what LibTorch is needed for is left out. A source is
known to be clean once a batch with it gave no finding and no error. Where clang 14 meets an error, as it does in a few sources
that g++ compiles, the batch is checked again without the sources that the output names, and those are checked in every run.
"""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .clean import CleanResults
from .commands import compile_commands
from .inputs import Inputs
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


@dataclass(frozen=True)
class _Job:
    flags: tuple
    source: Path  # relative to the root
    key: str


def _jobs(tree, commands, inputs):
    """Each source with the flags of each of its commands."""
    checked = {path for path in tree.cpp_files() if path.parts[0] in MODULES and "src" in path.parts}
    jobs = []
    for command in commands:
        source = command.source.relative_to(tree.root) if tree.root in command.source.parents else None
        if source in checked:
            flags = tuple(_flags(command))
            jobs.append(_Job(flags, source, inputs.key(source.as_posix(), flags)))
    return jobs


def _batches(jobs):
    """[jobs]: those of one folder of flags, eight at a time."""
    groups = {}
    for job in jobs:
        groups.setdefault(job.flags, []).append(job)
    return [group[at:at + BATCH] for group in groups.values() for at in range(0, len(group), BATCH)]


def _findings(root, output):
    """(path, line, message) -> the problem; once, where several sources include the file."""
    problems = {}
    for found in _FINDING.finditer(output):
        if "[clang-diagnostic-" in found["message"]:
            continue  # g++ compiles it; clang 14 does not know all of its library
        path = Path(found["path"])
        path = path.relative_to(root) if root in path.parents else path
        problems[(path, found["line"], found["message"])] = Problem(path, int(found["line"]), found["message"])
    return problems


def _check_batch(tool, folder, root, number, batch):
    """The findings in one batch, and which of its jobs are clean."""
    source = folder / f"batch_{number}.cpp"
    source.write_text("".join(f'#include "{root / job.source}"\n' for job in batch), encoding="utf-8")
    run = subprocess.run([tool, "--quiet", str(source), "--", *batch[0].flags, "-Wno-everything"], capture_output=True, text=True)
    problems = _findings(root, run.stdout + (run.stderr if run.returncode != 0 else ""))
    if run.returncode < 0 or run.returncode > 128:
        names = ", ".join(job.source.name for job in batch)
        problems[batch[0]] = Problem(batch[0].source, 0, f"clang-tidy crashed (exit code {run.returncode}) on {names}")
    if problems:
        return problems, []
    if run.returncode == 0:
        return {}, batch
    others = [job for job in batch if str(root / job.source) not in run.stdout]
    return _check_batch(tool, folder, root, number, others) if 0 < len(others) < len(batch) else ({}, [])


def _remember(jobs, inputs, clean):
    for job in jobs:
        if inputs.is_unchanged(job.source.as_posix()):
            clean.remember(job.key)


def check(tree, build, clean=None):
    clean = clean or CleanResults("sources")
    tool = find_tool("clang-tidy", VERSION)
    if not tool:
        return [Problem(Path(".clang-tidy"), 0, f"clang-tidy {VERSION} is not there: ./run setup installs it")]
    folder = build / "tidy"
    folder.mkdir(exist_ok=True)
    shutil.copy(tree.root / ".clang-tidy", folder / ".clang-tidy")
    commands = compile_commands(build)
    inputs = Inputs(tree, build, commands, __file__, [tool], [tree.text(".clang-tidy")])
    jobs = _jobs(tree, commands, inputs)
    if not jobs:
        return [Problem(Path(".clang-tidy"), 0, f"{build} compiles no source of {tree.root}, so none was checked")]
    batches = _batches(clean.unknown(jobs, lambda job: job.key))
    problems = {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for found, clean_jobs in pool.map(lambda batch: _check_batch(tool, folder, tree.root, *batch), enumerate(batches)):
            problems.update(found)
            _remember(clean_jobs, inputs, clean)
    return list(problems.values())
