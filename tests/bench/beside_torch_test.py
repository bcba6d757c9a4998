#!/usr/bin/env python3
"""The comparison with torch.distributed runs through with small sizes, and prints what was promised.

usage: beside_torch_test.py PATTERN SCRIPT FOLDER [ARGUMENT...]
"""
import re
import subprocess
import sys

# Of a machine that cannot have two hosts (tests/support/host_pair.py), after which nothing was run.
NO_HOSTS = re.compile(r"train_beside_torch: (network namespaces need root and iproute2|this machine makes no network namespaces)\n")


def main(pattern, script, *arguments):
    command = [sys.executable, "-B", script, *arguments, "--smoke", "--rounds", "1"]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=550)
    print(run.stdout, end="")
    # There may be a note before it, that there is no torch.distributed to compare with.
    refusal = NO_HOSTS.fullmatch("".join(line for line in run.stdout.splitlines(keepends=True) if not line.startswith("# ")))
    if refusal and run.returncode == 1:
        print(f"skipped: {refusal[1]}")
        return 0
    if run.returncode != 0:
        print(f"beside_torch_test: it ended with {run.returncode}")
        return 1
    if not re.search(pattern, run.stdout, re.DOTALL):
        print(f"beside_torch_test: it did not print: {pattern}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
