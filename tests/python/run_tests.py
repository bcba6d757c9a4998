#!/usr/bin/env python3
"""Runs one file of tests of the Python package with the Python that has cloudpickle; skips it where that was not installed.

usage: run_tests.py PYTHON TREE PROGRAM FILE FAKE_NVML

FAKE_NVML is a library in the place of NVIDIA's, with two GPUs (tests/runtime/node/fake_nvml.cpp).
"""
import os
import subprocess
import sys
from pathlib import Path


def main(python, tree, program, file, fake_nvml):
    if not Path(python).exists():
        print(f"skipped: the packages of cmake/setup/python.txt are not installed: {python} is not there")
        return 0
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TROUPE_")}
    environment |= {"PYTHONPATH": f"{tree}/python:{tree}/tests/python", "TROUPE_BINARY": program, "TROUPE_TREE": tree,
                    "TROUPE_FAKE_NVML": fake_nvml}
    return subprocess.run([python, "-B", "-m", "unittest", "-v", file], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
