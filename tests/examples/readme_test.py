#!/usr/bin/env python3
"""The README's first program is examples/first_steps.cpp, and prints what the README says.

usage: readme_test.py README FIRST_STEPS_SOURCE FIRST_STEPS_PROGRAM
"""
import re
import subprocess
import sys


def main(readme_file, source_file, program):
    with open(readme_file, encoding="utf-8") as file:
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    (language, code), (_, promised) = blocks[0], blocks[1]
    with open(source_file, encoding="utf-8") as file:
        source = file.read()
    lines = len([line for line in code.splitlines() if line.strip()])
    printed = subprocess.run([program], capture_output=True, text=True, timeout=60, check=True).stdout

    faults = []
    if language != "cpp" or code != source:
        faults.append(f"the first program of {readme_file} is not {source_file}")
    if not 15 <= lines <= 25:
        faults.append(f"it has {lines} lines; 15 to 25 were promised")
    if printed != promised:
        faults.append(f"it printed {printed!r}; the README says {promised!r}")
    for fault in faults:
        print(f"readme_test: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
