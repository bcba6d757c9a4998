#!/usr/bin/env python3
"""Each command for a benchmark that a page names is one that the benchmarks take, and each row of docs/performance.md names one.

usage: commands_test.py TREE BUILD

A command's benchmark is known to bench/run_bench, its options are in the help of the program that it leads to, and each of its
patterns matches the name of a case of core_bench. Nothing is measured.
"""
import fnmatch
import re
import shlex
import subprocess
import sys
from pathlib import Path

TABLE = "docs/performance.md"
NAMES = ("core", "launch", "store", "collective", "ddp", "zero", "train", "tune")


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300)


def commands_of_rows(text):
    """(line number, last cell) of each row of a table whose last column is headed "command", but for rows that head others."""
    found, has_commands = [], False
    for number, line in enumerate(text.splitlines(), start=1):
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if cells and cells[-1] == "command":
            has_commands = True
        elif not cells:
            has_commands = False
        elif has_commands and not re.fullmatch(r":?-+:?", cells[-1]) and not cells[0].startswith("**"):
            found.append((number, cells[-1]))
    return found


def commands_of_page(page, text):
    """(line number, command) of each `./run bench ...`, and in the table's page of each benchmark with options."""
    shown = r"`\./run bench ([^`\n]+)`"
    if page == TABLE:
        shown += rf"|`((?:{'|'.join(NAMES)})(?: \w+)? --[^`\n]+)`"
    return [(text.count("\n", 0, found.start()) + 1, found.group(1) or found.group(2)) for found in re.finditer(shown, text)]


class Benchmarks:
    def __init__(self, tree, build):
        self.script, self.build = tree / "bench/run_bench", build
        told = run(build / "bench/core_bench", "--smoke", "--only", "no such case").stderr
        self.cases = told.partition("there are: ")[2].split(", ")
        self.cases[-1] = self.cases[-1].strip()
        self.helps = {}

    def help_of(self, selecting):
        """What the program says of itself that these words lead to; None where they lead to none."""
        if selecting not in self.helps:
            asked = run(self.script, self.build, *selecting, "--help")
            self.helps[selecting] = asked.stdout if asked.returncode == 0 else None
        return self.helps[selecting]

    def fault_of(self, command):
        words = shlex.split(command)
        if not words or words[0] not in NAMES:
            return f"there is no benchmark '{command}'"
        names = [word for word in words[1:2] if not word.startswith("-")]
        options = words[1 + len(names):]
        selecting = (words[0], *names, *(["--peer"] if "--peer" in options else []))
        told = self.help_of(selecting)
        # The scripts that compare with a peer are Python; a benchmark alone would pass over --peer where it is asked for help.
        if told is None or ("--peer" in selecting and not told.startswith("usage: ")):
            return f"bench/run_bench does not take '{' '.join(selecting)}'"
        for option in options:
            if option.startswith("--") and option != "--peer" and not re.search(rf"(?<![\w-]){option}(?![\w-])", told):
                return f"the benchmark of '{command}' has no option {option}"
        if words[0] == "core" and "--only" in options:
            for pattern in options[options.index("--only") + 1].split(","):
                if not fnmatch.filter(self.cases, pattern):
                    return f"core_bench has no case '{pattern}'"
        return None


def faults_of(tree, benchmarks):
    pages = ["README.md", *sorted(path.relative_to(tree).as_posix() for path in (tree / "docs").rglob("*.md"))]
    commands = 0
    for page in pages:
        text = (tree / page).read_text(encoding="utf-8")
        for line, command in commands_of_page(page, text):
            commands += 1
            if fault := benchmarks.fault_of(command):
                yield f"{page}:{line}: {fault}"
        if page != TABLE:
            continue
        for line, cell in commands_of_rows(text):
            commands += 1
            shown = re.fullmatch(r"`([^`]+)`", cell)
            if shown is None:
                if cell != "the same":
                    yield f"{page}:{line}: the row names no command, but '{cell}'"
            elif fault := benchmarks.fault_of(shown.group(1)):
                yield f"{page}:{line}: {fault}"
    if commands < 50:
        yield f"only {commands} commands were found: is {TABLE} written otherwise?"


def self_faults(benchmarks):
    """What must be refused, or this test shows nothing."""
    refused = {
        "nosuch": "there is no benchmark", "core --nosuch": "has no option --nosuch", "tune nosuch --peer": "does not take",
        "core --only 'growth*,nosuch*'": "has no case 'nosuch*'", "collective --peer": "does not take",
    }
    for command, text in refused.items():
        if text not in (benchmarks.fault_of(command) or ""):
            yield f"'{command}' was taken, or refused otherwise: {benchmarks.fault_of(command)}"
    if commands_of_rows("| a | command |\n|---|---|\n| **b** | |\n| c | |\n| d | `e` |\n") != [(4, ""), (5, "`e`")]:
        yield "rows without a command are not seen"


def main(tree, build):
    tree, build = Path(tree).resolve(), Path(build).resolve()
    benchmarks = Benchmarks(tree, build)
    # A command in the table is seen as one of its page too.
    faults = list(dict.fromkeys([*self_faults(benchmarks), *faults_of(tree, benchmarks)]))
    for fault in faults:
        print(f"commands_test: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
