#!/usr/bin/env python3
"""tune_bench, and on the same machine the same on Ray Tune; then both figures and their ratio.

usage: tune_beside_ray.py TUNE_BENCH [--json] [--rounds N]
"""
import argparse
import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

from beside_ray import NoPeer, adopt_orphans, cached, end_descendants, install, print_rows, rows_of

PINS = ["ray[tune]==2.60.0"]
SOURCE = Path(__file__).resolve().parent / "ray_tune.py"


def lines_of(command):
    try:
        run = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=1200, env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"})
    except subprocess.TimeoutExpired as late:
        raise NoPeer(str(late)) from late
    finally:
        end_descendants()
    if run.returncode != 0:
        raise NoPeer(f"{command[-1]} ended with {run.returncode}: {(run.stderr or run.stdout).strip()[-600:]}")
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=2, help="of both, in turns")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that Ray is ended too
    adopt_orphans()
    ours, peer, loads = [], [], []
    try:
        venv = cached("peer-ray-tune", PINS, lambda folder: install(folder, PINS))
        for number in range(arguments.rounds):
            loads.append(os.getloadavg()[0])
            print(f"== round {number + 1} of {arguments.rounds}: Ray, then Troupe", file=sys.stderr)
            peer += lines_of([venv / "bin/python", SOURCE])
            ours += lines_of([arguments.program, "--json"])
    except NoPeer as why:
        print(f"skipped: no comparison with Ray: {why}")
        return
    head = f"{PINS[0].split('==')[1]} is Ray's version; {os.cpu_count()} cores, Linux {platform.release()}, load before each " + \
        "round " + ", ".join(f"{load:.1f}" for load in loads)
    for line in ours:
        line.pop("note", None)
    print_rows(rows_of(ours, peer), arguments.json, head)


if __name__ == "__main__":
    main()
