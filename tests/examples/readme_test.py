#!/usr/bin/env python3
"""The README's first program is examples/first_steps.cpp, and prints what the README says; it names every example.

usage: readme_test.py README FIRST_STEPS_SOURCE FIRST_STEPS_PROGRAM
"""
import re
import subprocess
import sys
from pathlib import Path


def unnamed_examples(readme_file, examples):
    """The programs of the folder, by their path from the README, that no link of it leads to."""
    root = Path(readme_file).parent
    links = set(re.findall(r"\]\(([^)]+)\)", Path(readme_file).read_text(encoding="utf-8")))
    programs = [path for path in sorted(examples.rglob("*.cpp"))
                if re.search(r"^int main\(", path.read_text(encoding="utf-8"), re.MULTILINE)]
    names = [path.relative_to(root).as_posix() for path in programs]
    return [name for name in names if name not in links]


def main(readme_file, source_file, program):
    with open(readme_file, encoding="utf-8") as file:
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    (language, code), (_, promised) = blocks[0], blocks[1]
    with open(source_file, encoding="utf-8") as file:
        source = file.read()
    lines = len([line for line in code.splitlines() if line.strip()])
    printed = subprocess.run([program], capture_output=True, text=True, timeout=300, check=True).stdout

    faults = []
    if language != "cpp" or code != source:
        faults.append(f"the first program of {readme_file} is not {source_file}")
    if not 15 <= lines <= 25:
        faults.append(f"it has {lines} lines; 15 to 25 were promised")
    if printed != promised:
        faults.append(f"it printed {printed!r}; the README says {promised!r}")
    faults += [f"{readme_file} has no link to {name}" for name in unnamed_examples(readme_file, Path(source_file).parent)]
    for fault in faults:
        print(f"readme_test: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
