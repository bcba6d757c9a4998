#!/usr/bin/env python3
"""The start of a gang, all-reduce and data-parallel steps, also with ZeRO, and checkpoints: start_bench, collective_bench, ddp_bench,
zero_bench and checkpoint_bench, and in turns with them torch.distributed under torchrun.

usage: train_beside_torch.py FOLDER_OF_BENCHMARKS [--peer] [--only PART]... [--hosts 2] [--ranks N] [--gpus N] [--compressed]
                             [--peak-tflops N] [--rounds N] [--python PYTHON] [--smoke] [--json]

The parts are start, collective, ddp, zero and checkpoint, each of which `--only` names alone; all of them with the peer take more than a
quarter of an hour a round. PyTorch is that of the tests of frameworks, with gloo; `--python` names another one, which `--gpus` needs:
one whose PyTorch can use the GPUs. Where PyTorch is not to be had, this says why, and no row has a peer.

start measures until every rank has its communicator: from the start of a command, and in a running program for the first gang and for
later ones. The peer of the whole command is torchrun; that of the others is torch.multiprocessing in a Python that has imported torch
(torch_start.py), as it starts ranks by default, and in brackets by fork. The part is left out with `--hosts 2` and `--gpus`.

With `--hosts 2` there is a rank on each of two hosts, which are network namespaces of this machine that a veth pair joins, with a node
of `troupe` and one CPU in each (tests/support/host_pair.py: needs root and iproute2). It has the parts collective and ddp, and prints
first what one TCP connection between the hosts does by itself (link.py). `--compressed`, which `--hosts 2` implies: ddp also with
gradients that are sent in bfloat16.

The row of an all-reduce has its algorithm and its bus bandwidth. On GPUs the row of ddp for the GPT has what one GPU computes, and the
share that this is of the GPU's peak in bfloat16, which `--peak-tflops` names where it is not known by the GPU's name (bench/train/rates.hpp
says by which formulas).
"""
import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import link
from beside_ray import NoPeer
from launch_beside_torchrun import environment, torch_environment

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/support"))
from host_pair import ADDRESSES, DEVICE, NoHosts, host_pair  # noqa: E402

PEER = Path(__file__).resolve().parent / "torch_train.py"
PEER_START = PEER.with_name("torch_start.py")
PARTS = "start", "collective", "ddp", "zero", "checkpoint"
PARTS_ON_HOSTS = "collective", "ddp"
PORT_OF_TORCHRUN = 29555
LIMIT_S = 600  # of one program

UNITS = {"all_reduce": ("us", "us"), "checkpoint": ("gb_per_s", "GB/s"), "gang start": ("ms", "ms")}
OTHER_WAYS = {"all_reduce": "not waited for", "gang start": "forked"}  # of the peer, beside its own
WHY_NO_START = "a start is measured on the CPUs of one host, without a cluster that is there before"


class Failed(Exception):
    """A program that was to be timed ended badly."""


def end(child):
    """With its ranks: those of torchrun have sessions of their own, and torchrun ends them on SIGTERM within 30 s."""
    for number in signal.SIGTERM, signal.SIGKILL:
        os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(40)
            return


def rows_of(name, command, env):
    """A row with `at_s`, a time of the monotonic clock, gets the milliseconds since the start of the command."""
    words = [str(word) for word in command]
    began = time.monotonic()
    child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
                             start_new_session=True)
    try:
        out, errors = child.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(words)} had not ended after {LIMIT_S} s") from None
    finally:
        if child.poll() is None:
            end(child)
    if child.returncode != 0:
        raise Failed(f"{' '.join(words)} ended with {child.returncode}: {errors.strip()[-2000:]}")
    print(f"# {name} {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return [row | {"ms": 1e3 * (row["at_s"] - began)} if "at_s" in row else row for row in rows]


def rows_of_peer(ranks, part):
    """No rows where it has failed: this round has no peer then, and the rounds before stay."""
    try:
        return ranks.theirs(part)
    except Failed as why:
        print(f"# a round without a peer: {why}", file=sys.stderr, flush=True)
        return []


# ---- where the ranks are -----------------------------------------------------------------------------------------

def benchmark(given, part):
    return [given.folder / f"{part}_bench", given.ranks, "--json", *(["--gpus", given.gpus] if given.gpus else []),
            *(["--smoke"] if given.smoke else []), *(["--compressed"] if given.compressed and part == "ddp" else []),
            *(["--peak-tflops", given.peak_tflops] if given.peak_tflops and part == "ddp" else [])]


def torchrun(given, part, *options):
    run = [given.python, "-m", "torch.distributed.run", *options]
    if part == "start":
        return [*run, PEER_START]
    return [*run, PEER, part, *(["--gpu"] if given.gpus else []), *(["--smoke"] if given.smoke else []),
            *(["--compressed"] if given.compressed else [])]


class OneHost:
    """The ranks are on this machine."""

    def __init__(self, given):
        self._given = given

    def links(self):
        return []

    def ours(self, part):
        env = environment() if part == "start" else os.environ  # a start is that of a private cluster, whatever TROUPE_ADDRESS says
        return rows_of(f"{part}_bench", benchmark(self._given, part), env)

    def theirs(self, part):
        ranks, env = self._given.ranks, environment(OMP_NUM_THREADS="1")
        command = torchrun(self._given, part, "--standalone", "--nproc-per-node", ranks)
        if part != "start":
            return rows_of(f"torch {part}", command, env)
        from_one = [self._given.python, PEER_START, "--ranks", ranks, *(["--smoke"] if self._given.smoke else [])]
        return rows_of("torchrun", command, env) + rows_of("torch.multiprocessing", from_one, env)


class OnHostPair:
    """A rank is on each of two hosts. The driver of a benchmark is on host 0, and so is torchrun's master."""

    def __init__(self, given, hosts):
        self._given = given
        self._hosts = hosts

    def links(self):
        return [link.between(self._hosts, ADDRESSES)]

    def ours(self, part):
        env = environment(XDG_STATE_HOME=self._hosts.state_home(0), TROUPE_ADDRESS=self._hosts.address)
        return rows_of(f"{part}_bench", self._hosts.on(0, *benchmark(self._given, part)), env)

    def theirs(self, part):
        master = "--master-addr", ADDRESSES[0], "--master-port", PORT_OF_TORCHRUN
        first, second = (self._hosts.on(host, *torchrun(self._given, part, "--nnodes", 2, "--nproc-per-node", 1, "--node-rank", host, *master))
                         for host in (0, 1))
        env = environment(OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME=DEVICE)
        with subprocess.Popen(second, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env) as child:
            try:
                rows = rows_of(f"torch {part}", first, env)
                child.wait(60)
                return rows
            finally:
                child.terminate()


@contextlib.contextmanager
def ranks_of(given):
    if given.hosts == 1:
        yield OneHost(given)
        return
    with host_pair(given.folder.parent / "cli/troupe") as hosts:
        yield OnHostPair(given, hosts)


# ---- rows --------------------------------------------------------------------------------------------------------

def key_of(row):
    return row["bench"], row.get("bytes") or row.get("model", ""), row.get("how", "")


def add(times, rows):
    for row in rows:
        times.setdefault(key_of(row), []).append(row)


def median_of(rows, field):
    return statistics.median(row[field] for row in rows)


def peer_of(peers, key):
    """The peer has one way of reducing where Troupe has two."""
    bench, what, _ = key
    return peers.get(key) or (peers.get((bench, what, "")) if bench.startswith("all_reduce") else None)


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


def computing_of(rows, row):
    """What one GPU computes, and the share of its peak, where that is known. The peer's steps are of the same model."""
    if "tflops" not in rows[0]:
        return {}
    found = {"tflops": median_of(rows, "tflops"), "gpu": rows[0]["gpu"]}
    found["peer_tflops"] = found["tflops"] * row["peer"] / row["troupe"] if row["peer"] else None
    if "peak_tflops" in rows[0]:
        peak = rows[0]["peak_tflops"]
        found |= {"peak_tflops": peak, "share_of_peak": found["tflops"] / peak}
    return found


def computing_text(row, tflops):
    if "peak_tflops" not in row:
        return f"{tflops:.0f} TFLOP/s, peak of '{row['gpu']}' unknown: name it with --peak-tflops"
    return f"{tflops:.0f} TFLOP/s, {100 * tflops / row['peak_tflops']:.0f} % of {row['peak_tflops']:.0f}"


def row_of(key, rows, theirs):
    bench, what, how = key
    peer = peer_of(theirs, key)
    field, unit = UNITS.get(bench, ("steps_per_s", "steps/s"))
    row = {"name": " ".join(str(word) for word in key if word), "unit": unit, "troupe": median_of(rows, field),
           "peer": median_of(peer, field) if peer else None}
    if bench == "ddp":
        row |= {"floor": median_of(rows, "floor"), "peer_floor": median_of(peer, "floor") if peer else None}
        row |= {f"{whose}step_ms": 1e3 / row[of] if row[of] else None for whose, of in (("", "troupe"), ("peer_", "peer"))}
    row |= memory_of(rows, peer)
    if "bus_gb_per_s" in rows[0]:
        row |= {field: median_of(rows, field) for field in ("gb_per_s", "bus_gb_per_s")}
    row |= computing_of(rows, row)
    way = OTHER_WAYS.get(bench)
    other = peer_of(theirs, (f"{bench}, {way}", what, how))
    if other:
        row[f"peer_{way}".replace(" ", "_")] = median_of(other, field)
    return row


def text_of(row):
    unit = row["unit"]
    text = f"{row['name']:<40}{row['troupe']:12.2f} {unit}"
    if "step_ms" in row:
        text += f", {row['step_ms']:.3f} ms each"
    if "bus_gb_per_s" in row:
        text += f"  {row['gb_per_s']:.2f} GB/s, bus {row['bus_gb_per_s']:.2f} GB/s"
    if "tflops" in row:
        text += f"  {computing_text(row, row['tflops'])}"
    if "floor" in row:
        text += f"  {100 * row['troupe'] / row['floor']:3.0f} % of {row['floor']:.1f} without communication"
    if row["peer"]:
        factor = row["peer"] / row["troupe"] if unit in ("us", "ms") else row["troupe"] / row["peer"]
        text += f"  torch {row['peer']:.2f} {unit}, {factor:.2f}x"
        if row.get("peer_step_ms"):
            text += f", {row['peer_step_ms']:.3f} ms each"
        if row.get("peer_tflops"):
            text += f", {row['peer_tflops']:.0f} TFLOP/s"
    for way in OTHER_WAYS.values():
        other = row.get(f"peer_{way}".replace(" ", "_"))
        if other:
            text += f" ({way} {other:.2f})"
    return text + memory_text(row)


def show_link(links, as_json):
    round_trip, rate = median_of(links, "round_trip_us"), median_of(links, "gb_per_s")
    if as_json:
        print(json.dumps({"name": "link", "round_trip_us": round_trip, "gb_per_s": rate}), flush=True)
    else:
        print(f"between the hosts: one byte there and back {round_trip:.1f} us, one TCP connection {rate:.2f} GB/s", flush=True)


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--only", action="append", choices=PARTS, metavar="PART", help=f"any number of times, of: {', '.join(PARTS)}")
    parser.add_argument("--hosts", type=int, default=1, choices=(1, 2), help="2: network namespaces of this machine with a rank in each")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("--compressed", action="store_true", help="ddp also with gradients in bfloat16; --hosts 2 implies it")
    parser.add_argument("--peak-tflops", type=float, default=0, help="the GPU's dense peak in bfloat16; 0: by the GPU's name")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", type=Path)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    mode, parts = ("--hosts 2", PARTS_ON_HOSTS) if given.hosts == 2 else ("--gpus", PARTS[1:]) if given.gpus else ("", PARTS)
    for part in given.only or []:
        if part not in parts:
            parser.error(f"{mode} has the parts {', '.join(parts)}, not {part}{f': {WHY_NO_START}' if part == 'start' else ''}")
    if "start" not in parts and not given.only:
        print(f"# no row of start: {WHY_NO_START}", file=sys.stderr)
    if given.hosts == 2 and (given.ranks != 2 or given.gpus):
        parser.error("--hosts 2 has one rank on each host, on its CPU: neither other --ranks nor --gpus")
    if given.peer and given.gpus and not given.python:
        parser.error("--gpus needs --python, the Python whose PyTorch can use them")
    given.parts = [part for part in parts if part in (given.only or parts)]
    given.compressed |= given.hosts == 2
    return given


def find_peer(given):
    """Sets the Python of the peer where none is named, and that there is no peer where it cannot be had."""
    if given.peer and given.python is None:
        try:
            given.python = torch_environment() / "bin/python"
        except NoPeer as why:
            print(f"# no row has a peer: {why}", file=sys.stderr)
    given.peer = given.peer and given.python is not None


def main():
    given = arguments()
    find_peer(given)
    ours, theirs, links = {}, {}, []
    with ranks_of(given) as ranks:
        for _ in range(given.rounds):
            links += ranks.links()
            for part in given.parts:
                add(ours, ranks.ours(part))
                if given.peer:
                    add(theirs, rows_of_peer(ranks, part))
    if links:
        show_link(links, given.json)
    for key, rows in ours.items():
        row = row_of(key, rows, theirs)
        print(json.dumps(row) if given.json else text_of(row), flush=True)


if __name__ == "__main__":
    try:
        main()
    except (Failed, NoHosts) as why:
        sys.exit(f"train_beside_torch: {why}")
