#!/usr/bin/env python3
"""Wrong arguments of core_bench end it with 2 and a text that names what is wrong.

usage: refusal_test.py CORE_BENCH
"""
import subprocess
import sys

REFUSED = [  # arguments, and what the text must hold
    (["--only", "nosuchcase"], ["'nosuchcase'", "task_sync", "growth", "transfer_1GiB_GBps"]),
    (["--only", ""], ["''", "task_sync"]),
    (["--seconds", "-1"], ["--seconds", "'-1'"]),
    (["--seconds", "nan"], ["--seconds", "'nan'"]),
    (["--nosuchoption"], ["--nosuchoption"]),
]


def main(benchmark):
    faults = 0
    for arguments, named in REFUSED:
        run = subprocess.run([benchmark, "--smoke", *arguments], capture_output=True, text=True, timeout=300)
        missing = [text for text in named if text not in run.stderr]
        if run.returncode != 2 or missing or run.stdout:
            print(f"{arguments}: exit code {run.returncode}, without {missing}:\n{run.stderr}", file=sys.stderr)
            faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
