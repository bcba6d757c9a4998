#!/usr/bin/env python3
"""`./run install` says what is wrong with its arguments before it builds anything.

usage: run_install_test.py TREE
"""
import subprocess
import sys
import tempfile
from pathlib import Path


def refusal(run, *arguments):
    done = subprocess.run([run, "install", *arguments], capture_output=True, text=True, timeout=300)
    return f"{'exit code 0' if done.returncode == 0 else 'refused'}: {done.stderr}{done.stdout}"


def main(tree):
    run = Path(tree).resolve() / "run"
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file"
        file.touch()
        wanted = {
            (): "refused: run: install: the folder to install into is missing: ./run install PREFIX [--debug-info]",
            ("",): "refused: run: install: the folder to install into is missing",
            (f"{file}/prefix",): f"refused: run: cannot install into {file}/prefix (cannot create",
            ("one", "two"): "refused: run: install: one folder, not two: one, two",
            ("--debug", "one"): "refused: run: install: no such option: --debug; there is --debug-info",
        }
        wrong = [f"{arguments}: {said!r}, not {text!r}" for arguments, text in wanted.items()
                 if not (said := refusal(run, *arguments)).startswith(text)]
    for line in wrong:
        print(f"run_install_test: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
