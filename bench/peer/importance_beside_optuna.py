#!/usr/bin/env python3
"""The importances of importance_bench and those that Optuna finds in the same trials, side by side, and the largest gap.

usage: importance_beside_optuna.py IMPORTANCE_BENCH [--json] [--seed N]

Optuna is installed into a virtual environment in the cache, outside the tree. Where that cannot be done, this says why and
ends with success: there is no peer to compare with. It ends with 1 where a gap of fANOVA reaches a tenth.
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path

from beside_ray import NoPeer, cached, checked

PINS = ["optuna==5.0.0", "scikit-learn==1.9.1"]
SOURCE = Path(__file__).resolve().parent / "optuna_importance.py"
KINDS = ("fanova", "ped_anova")
MOST = 0.1  # of fANOVA's gaps


def install(folder):
    print(f"== installing {' '.join(PINS)} into the cache", file=sys.stderr)
    checked([sys.executable, "-m", "venv", folder], "no virtual environment")
    checked([folder / "bin/python", "-m", "pip", "install", "--no-input", "--progress-bar", "off",
             "--disable-pip-version-check", *PINS], "pip cannot install Optuna")


def output_of(command, given=None):
    return subprocess.run([str(part) for part in command], input=given, stdout=subprocess.PIPE, text=True, check=True).stdout


def figures_of(output):
    """name -> value."""
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return {line["name"]: line["value"] for line in lines}


def gaps_of(ours, peer, kind):
    """Of fields with log=True those from both of Optuna's figures."""
    for name in (name for name in ours if name.endswith("/" + kind)):
        yield from (abs(ours[name] - peer[each]) for each in (name, f"{name}_not_log") if each in peer)


def print_table(ours, peer):
    head = ["known", "fANOVA: Troupe", "Optuna", "gap", "not by log", "PED-ANOVA: Troupe", "Optuna", "gap"]
    widths = [8, 16, 8, 8, 12, 19, 8, 8]
    print(f"{'':<20}" + "".join(f"{text:>{width}}" for text, width in zip(head, widths)))
    for field in (name.removesuffix("/known") for name in ours if name.endswith("/known")):
        row = [ours[f"{field}/known"]]
        for kind in KINDS:
            our, their = ours[f"{field}/{kind}"], peer[f"{field}/{kind}"]
            row += [our, their, our - their]
            if kind == "fanova":
                row.append(peer.get(f"{field}/fanova_not_log"))
        cells = ["-" if value is None else f"{value:.3f}" for value in row]
        print(f"{field:<20}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seed", type=int, default=1, help="of the trials")
    arguments = parser.parse_args()
    program = [arguments.program, "--seed", arguments.seed]
    ours, trials = figures_of(output_of([*program, "--json"])), output_of([*program, "--trials"])
    try:
        venv = cached("peer-optuna-importance", PINS, install)
    except NoPeer as why:
        print(f"skipped: no comparison with Optuna: {why}")
        return 0
    peer = figures_of(output_of([venv / "bin/python", SOURCE], trials))
    gaps = {kind: max(gaps_of(ours, peer, kind)) for kind in KINDS}
    if arguments.json:
        for name, value in ours.items():
            print(json.dumps({"name": name, "unit": "part", "value": value, "peer": peer.get(name)}))
    else:
        print(f"# {', '.join(PINS)}; the seed of the trials is {arguments.seed}; not by log: Optuna's fANOVA on a field with log=True")
        print_table(ours, peer)
        print(f"largest gap: fANOVA {gaps['fanova']:.3f}, PED-ANOVA {gaps['ped_anova']:.3f}")
    return 0 if gaps["fanova"] < MOST else 1


if __name__ == "__main__":
    sys.exit(main())
