#!/usr/bin/env python3
"""searchers_bench and the same algorithms of Optuna, one after the other; then the median regrets side by side.

usage: searchers_beside_optuna.py SEARCHERS_BENCH [--json] [--seeds N] [--only PATTERN,...]

Optuna is installed into a virtual environment in the cache, outside the tree. Where that cannot be done, this says why and
ends with success: there is no peer to compare with.
"""
import argparse
import hashlib
import json
import math
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from beside_ray import NoPeer, cached, checked

PINS = ["optuna==5.0.0", "scipy", "cmaes==0.13.1"]
SOURCE = Path(__file__).resolve().parent / "optuna_searchers.py"
TORCH = SOURCE.parents[2] / "cmake/setup/frameworks_torch.txt"


def install(folder):
    print(f"== installing {' '.join(PINS)} into the cache", file=sys.stderr)
    checked([sys.executable, "-m", "venv", folder], "no virtual environment")
    checked([folder / "bin/python", "-m", "pip", "install", "--no-input", "--progress-bar", "off",
             "--disable-pip-version-check", *PINS], "pip cannot install Optuna")


def with_torch():
    """The environment for Optuna's GPSampler, which needs PyTorch: the one that `./run test frameworks -- torch` has
    installed, as 4 GB are too much for one row. Where it is not there, that row has no peer."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "troupe"
    folder = cache / f"frameworks_torch-{hashlib.sha256(TORCH.read_bytes()).hexdigest()[:12]}"
    packages = next(folder.glob("lib/python3*/site-packages"), None)
    # A thread each, as seeds run in processes of their own.
    return {**os.environ, "OMP_NUM_THREADS": "1", **({"PYTHONPATH": str(packages)} if packages else {})}


def figures_of(command, environment=None):
    """name -> (value, unit)."""
    run = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                         env=environment)
    if run.returncode != 0:
        raise NoPeer(f"{command[0]} ended with {run.returncode}")
    lines = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]
    return {line["name"]: (line["value"], line["unit"]) for line in lines}


def readable(value):
    return f"{value:.3g}" if value is not None else "-"


def above_beyond_error(ours, peer):
    """algorithm -> in how many cells our median is above the peer's by more than twice the standard error of their difference."""
    count = {}
    for name, (our, _) in ours.items():
        error = f"{name}/error"
        if error not in ours or error not in peer:
            continue
        algorithm = re.search(r"/([^@]+)@", name).group(1)
        count[algorithm] = count.get(algorithm, 0) + (our - peer[name][0] > 2 * math.hypot(ours[error][0], peer[error][0]))
    return count


def print_table(ours, peer):
    """A row for each function and algorithm: ours and the peer's at each number of trials; then the times."""
    rows = {}
    for name in (name for name in ours if not name.endswith("/error")):
        what, algorithm, at = re.fullmatch(r"([^/]+)/([^@]+)@(\d+)", name).groups()
        rows.setdefault((what, algorithm), []).append((int(at), ours[name][0], peer.get(name, (None, ""))[0]))
    at_most, heads = {}, None
    above = above_beyond_error(ours, peer)
    fronts = {name.split("/")[0] for name, (_, unit) in ours.items() if unit == "hypervolume"}
    for (what, algorithm), cells in sorted(rows.items(), key=lambda row: row[0][0] in fronts):
        if what == "suggestion":
            continue
        if heads != [at for at, _, _ in cells]:
            heads = [at for at, _, _ in cells]
            head = "hypervolume that is lacking" if what in fronts else "median regret: Troupe / Optuna"
            print(f"{head:<34}" + "".join(f"{'@' + str(at):>22}" for at in heads))
        print(f"{what + ', ' + algorithm:<34}" + "".join(f"{readable(our) + ' / ' + readable(their):>22}" for _, our, their in cells))
        wins = at_most.setdefault(algorithm, [0, 0])
        wins[0] += sum(our <= their for _, our, their in cells if their is not None)
        wins[1] += sum(their is not None for _, _, their in cells)
    for (what, algorithm), cells in rows.items():
        if what == "suggestion":
            at, our, their = cells[0]
            print(f"{algorithm}: a suggestion after {at} trials {readable(our)} ms, Optuna {readable(their)} ms; "
                  f"median at most Optuna's in {at_most[algorithm][0]} of {at_most[algorithm][1]} cells, "
                  f"above it by more than twice the standard error in {above.get(algorithm, 0)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--only", default="*", help="algorithms, as shell patterns separated by commas")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    try:
        venv = cached("peer-optuna", PINS, install)
        ours = figures_of([arguments.program, "--json", "--seeds", arguments.seeds, "--only", arguments.only])
        peer = figures_of([venv / "bin/python", SOURCE, arguments.seeds, arguments.only], with_torch())
    except NoPeer as why:
        print(f"skipped: no comparison with Optuna: {why}")
        return
    head = f"{PINS[0].split('==')[1]} is Optuna's version; {arguments.seeds} seeds; {os.cpu_count()} cores, " + \
        f"Linux {platform.release()}, load before it {load:.1f}"
    if arguments.json:
        for name, (value, unit) in ours.items():
            print(json.dumps({"name": name, "unit": unit, "value": value, "peer": peer.get(name, (None, ""))[0], "at": head}))
        return
    print(f"# {head}")
    print_table(ours, peer)


if __name__ == "__main__":
    main()
