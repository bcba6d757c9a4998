#!/usr/bin/env python3
"""All-reduce and data-parallel steps, also with ZeRO, and checkpoints: collective_bench, ddp_bench, zero_bench and checkpoint_bench,
and in turns with them torch.distributed under torchrun.

usage: train_beside_torch.py FOLDER_OF_BENCHMARKS [--peer] [--ranks N] [--gpus N] [--rounds N] [--python PYTHON] [--smoke] [--json]

PyTorch is that of the tests of frameworks, with gloo; `--python` names another one, which `--gpus` needs: one whose PyTorch can use
the GPUs. Where PyTorch is not to be had, this says why, and no row has a peer.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from beside_ray import NoPeer
from launch_beside_torchrun import environment, torch_environment

PEER = Path(__file__).resolve().parent / "torch_train.py"


UNITS = {"all_reduce": ("us", "us"), "checkpoint": ("gb_per_s", "GB/s")}


class Failed(Exception):
    """A program that was to be timed ended badly."""


def rows_of(command, env):
    began = time.perf_counter()
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, timeout=900)
    if done.returncode != 0:
        raise Failed(f"{' '.join(str(word) for word in command)} ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    print(f"# {Path(command[0]).name} {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def key_of(row):
    return row["bench"], row.get("bytes") or row["model"], row.get("how", "")


def add(times, rows):
    for row in rows:
        times.setdefault(key_of(row), []).append(row)


def median_of(rows, field):
    return statistics.median(row[field] for row in rows)


def peer_of(peers, key):
    """The peer has one way of reducing where Troupe has two."""
    return peers.get(key) or peers.get((key[0], key[1], ""))


def memory_of(rows, peer):
    """The bytes of the rank that has most, as fields of a result."""
    fields = [field for field in ("state_bytes", "peak_bytes", "held_bytes") if field in rows[0]]
    return {field: median_of(rows, field) for field in fields} | {f"peer_{field}": median_of(peer, field) if peer and field in peer[0] else None for field in fields}


def memory_text(row):
    text = ""
    for field, what in ("state_bytes", "state"), ("peak_bytes", "peak"), ("held_bytes", "memory before a step"):
        if field in row:
            text += f"  {what} of a rank {row[field] / 1e6:.2f} MB"
            if row[f"peer_{field}"]:
                text += f", torch {row[f'peer_{field}'] / 1e6:.2f} MB"
    return text


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", type=Path)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.peer and given.gpus and not given.python:
        parser.error("--gpus needs --python, the Python whose PyTorch can use them")
    python = given.python
    if given.peer and python is None:
        try:
            python = torch_environment() / "bin/python"
        except NoPeer as why:
            print(f"# no row has a peer: {why}", file=sys.stderr)
    smoke = ["--smoke"] if given.smoke else []
    ours, theirs = {}, {}
    for _ in range(given.rounds):
        for what in ("collective", "ddp", "zero", "checkpoint"):
            add(ours, rows_of([given.folder / f"{what}_bench", given.ranks, "--gpus", given.gpus, "--json", *smoke], os.environ))
            if not (given.peer and python):
                continue
            add(theirs, rows_of([python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", given.ranks, PEER, what,
                                 *(["--gpu"] if given.gpus else []), *smoke], environment(OMP_NUM_THREADS="1")))
    for key, rows in ours.items():
        bench, what, how = key
        peer = peer_of(theirs, key)
        field, unit = UNITS.get(bench, ("steps_per_s", "steps/s"))
        row = {"name": f"{bench} {what} {how}".strip(), "unit": unit, "troupe": median_of(rows, field),
               "peer": median_of(peer, field) if peer else None}
        if bench == "ddp":
            row |= {"floor": median_of(rows, "floor"), "peer_floor": median_of(peer, "floor") if peer else None}
        row |= memory_of(rows, peer)
        if "tflops" in rows[0]:
            row["tflops"] = median_of(rows, "tflops")
        unwaited = theirs.get(("all_reduce, not waited for", what, "")) if bench == "all_reduce" else None
        if unwaited:
            row["peer_not_waited_for"] = median_of(unwaited, "us")
        if given.json:
            print(json.dumps(row), flush=True)
            continue
        text = f"{row['name']:<40}{row['troupe']:12.2f} {unit}"
        if "tflops" in row:
            text += f"  {row['tflops']:.0f} TFLOP/s"
        if "floor" in row:
            text += f"  {100 * row['troupe'] / row['floor']:3.0f} % of {row['floor']:.1f} without communication"
        if row["peer"]:
            factor = row["peer"] / row["troupe"] if bench == "all_reduce" else row["troupe"] / row["peer"]
            text += f"  torch {row['peer']:.2f} {unit}, {factor:.2f}x"
        if unwaited:
            text += f" (not waited for {row['peer_not_waited_for']:.2f})"
        text += memory_text(row)
        print(text, flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failed as why:
        sys.exit(f"train_beside_torch: {why}")
