#!/usr/bin/env python3
"""Makes the wheel of this folder that carries the program `troupe`. Its Python needs pip and setuptools 70.1 or later."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--binary", type=Path, required=True, help="a built `troupe`")
    parser.add_argument("--out", type=Path, required=True, help="the folder for the wheel")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="troupe-wheel-") as scratch:
        # Of a copy: setuptools writes into the folder that it builds.
        source = Path(scratch, "python")
        shutil.copytree(Path(__file__).resolve().parent, source, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        program = Path(scratch, "troupe")
        subprocess.run(["strip", "-o", program, options.binary], check=True)
        environment = dict(os.environ, TROUPE_WHEEL_BINARY=str(program))
        subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation",
                        "--wheel-dir", options.out.resolve(), source], env=environment, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
