#!/usr/bin/env python3
"""A benchmark runs through with small sizes, and prints JSON lines: those that were promised, and no figure that is none.

usage: smoke_test.py BENCHMARK [NAME...]
"""
import json
import subprocess
import sys

# Differences of memory before and after, which may come to nothing.
DIFFERENCES = "_KiB", "_MiB", "_kib_per_trial", "_bytes"


def faults_of(output, promised):
    lines = [json.loads(line) for line in output.splitlines()]
    if not lines:
        yield "it printed nothing"
    if not promised:
        return
    names = [line["name"] for line in lines]
    if sorted(names) != sorted(promised):
        yield f"missing: {set(promised) - set(names)}; not promised, or twice: {[n for n in names if n not in promised or names.count(n) > 1]}"
    for line in lines:
        value = line["value"]
        if value is None and not line.get("note", "").startswith("cannot run here: "):
            yield f"{line['name']} has no value and no reason"
        may_be_nothing = line["name"].endswith(DIFFERENCES)
        if value is not None and not (value > 0 or (value == value and may_be_nothing)):
            yield f"{line['name']} is {value}"


def main(benchmark, *promised):
    run = subprocess.run([benchmark, "--smoke", "--json"], capture_output=True, text=True, timeout=500)
    if run.returncode != 0:
        print(f"{benchmark} ended with {run.returncode}:\n{run.stderr}", file=sys.stderr)
        return 1
    faults = list(faults_of(run.stdout, promised))
    for fault in faults:
        print(f"smoke_test: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
