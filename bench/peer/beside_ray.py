#!/usr/bin/env python3
"""core_bench and the same cases on Ray's C++ API, in turns on one machine; then both figures and their ratio.

usage: beside_ray.py CORE_BENCH [--json] [--rounds N] [--seconds S] [--only PATTERN]

Ray is installed into a virtual environment in the cache, outside the tree. Where that cannot be done, this says why and
ends with success: there is no peer to compare with.
"""
import argparse
import contextlib
import ctypes
import fcntl
import fnmatch
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PINS = ["ray[default,cpp]==2.60.0"]
SOURCE = Path(__file__).resolve().parent / "ray_core.cc"
LESS_IS_BETTER = {"us", "ms", "s", "B", "KiB", "MiB", ""}


class NoPeer(Exception):
    """The peer cannot be installed, built or run here."""


# ---- Ray, installed and built ------------------------------------------------------------------------------------

def cached(name, texts, make):
    """The folder in the cache that `make(folder)` has filled; its name tells what went into it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "troupe"
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"{name}-{hashlib.sha256(''.join(texts).encode()).hexdigest()[:12]}"
    with open(cache / "peer.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            (folder / "complete").touch()
    return folder


def checked(command, doing):
    run = subprocess.run([str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if run.returncode != 0:
        raise NoPeer(f"{doing}: {(run.stderr or run.stdout).strip()[-600:]}")


def install(folder, pins):
    print(f"== installing {' '.join(pins)} into the cache, 0.5 GB", file=sys.stderr)
    checked([sys.executable, "-m", "venv", folder], "no virtual environment")
    checked([folder / "bin/python", "-m", "pip", "install", "--no-input", "--progress-bar", "off",
             "--disable-pip-version-check", *pins], "pip cannot install Ray")


def build(venv, folder):
    """Ray's wheel is built with the old ABI of std::string. One program, and the library that its workers load."""
    folder.mkdir()
    ray = next(venv.glob("lib/python3*/site-packages/ray/cpp"))
    for name, kind in (("ray_core", []), ("libray_core.so", ["-shared", "-fPIC"])):
        checked(["g++", "-O2", "-std=c++17", "-D_GLIBCXX_USE_CXX11_ABI=0", f"-I{ray}/include", SOURCE, *kind,
                 "-o", folder / name, f"-L{ray}/lib", "-lray_api", f"-Wl,-rpath,{ray}/lib", "-pthread"],
                "the peer's program does not build")


# ---- its processes -----------------------------------------------------------------------------------------------

def adopt_orphans():
    """Ray's processes leave their parents; this makes them children of this process then."""
    ctypes.CDLL(None, use_errno=True).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def descendants():
    children = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it may end while it is looked at
            after_name = (entry / "stat").read_text().rpartition(")")[2].split()
            if after_name[0] != "Z":
                children.setdefault(int(after_name[1]), []).append(int(entry.name))
    found = list(children.get(os.getpid(), []))
    for pid in found:
        found += children.get(pid, [])
    return found


def pss_mib(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
            total += int(re.search(r"^Pss: +(\d+)", rollup, re.MULTILINE)[1])
    return total / 1024


def end_descendants():
    for sent in (signal.SIGTERM, signal.SIGKILL):
        for pid in descendants():
            with contextlib.suppress(OSError):
                os.kill(pid, sent)
        deadline = time.monotonic() + 5
        while descendants() and time.monotonic() < deadline:
            time.sleep(0.05)
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


class RayCluster:
    """`ray start --head`, and the end of all that came of it. Never `ray stop`: that ends every Ray of the machine."""

    def __init__(self, venv, program):
        self.venv = venv
        self.program = program
        self.folder = tempfile.mkdtemp(prefix="ray-")
        self.environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled",
                            "RAY_raylet_start_wait_time_s": "120", "PATH": f"{venv}/bin:{os.environ['PATH']}"}
        self.address = ""

    def __enter__(self):
        with socket.socket() as probe:
            probe.bind(("", 0))
            port = probe.getsockname()[1]
        try:
            said = self.run([f"{self.venv}/bin/ray", "start", "--head", f"--port={port}", f"--temp-dir={self.folder}"])
            address = re.search(rf"[\w.]+:{port}", said)
            if address is None:
                raise NoPeer(f"`ray start` did not say its address: {said[-600:]}")
            self.address = address[0]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        end_descendants()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, command):
        try:
            run = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                 timeout=900)
        except subprocess.TimeoutExpired as late:
            raise NoPeer(str(late)) from late
        if run.returncode != 0:
            raise NoPeer(f"{command[0]} {command[1]}: {(run.stderr or run.stdout).strip()[-600:]}")
        return run.stdout

    def drive(self, what, *more):
        return self.run([str(self.program / "ray_core"), what, str(self.program / "libray_core.so"), self.address, *more])


def measure_ray(venv, program, seconds):
    """-> lines as core_bench prints them."""
    with RayCluster(venv, program) as cluster:
        time.sleep(5)  # its helpers come up one after the other
        idle = descendants()
        lines = [{"name": "idle_processes", "value": len(idle), "unit": ""},
                 {"name": "idle_pss_MiB", "value": pss_mib(idle), "unit": "MiB"}]
        lines += [json.loads(line) for line in cluster.drive("cases", str(seconds)).splitlines() if line.startswith("{")]
    started = time.monotonic()
    with RayCluster(venv, program) as cluster:
        cluster.drive("first")
        lines.append({"name": "cluster_first_result_s", "value": time.monotonic() - started, "unit": "s"})
    return lines


# ---- both --------------------------------------------------------------------------------------------------------

def measure_ours(program, seconds, only):
    """What Ray was measured at; the rest has no peer, and is core_bench's own."""
    run = subprocess.run([program, "--json", "--seconds", str(seconds), "--only", only], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, timeout=1800)
    if run.returncode != 0:
        sys.exit(f"beside_ray: {program} ended with {run.returncode}: {run.stderr.strip()}")
    return [json.loads(line) for line in run.stdout.splitlines()]


def rows_of(ours, peer):
    """Means over the rounds; the ratio says how many times better ours is."""
    figures = {}
    for side, lines in (("value", ours), ("peer", peer)):
        for line in lines:
            row = figures.setdefault(line["name"], {"name": line["name"], "unit": line["unit"], "value": [], "peer": []})
            if line["value"] is not None:
                row[side].append(line["value"])
            if side == "value" and line.get("note"):
                row["note"] = line["note"]
    for row in figures.values():
        for side in ("value", "peer"):
            row[side] = statistics.mean(row[side]) if row[side] else None
        row["ratio"] = None
        if row["value"] and row["peer"]:
            less = row["unit"] in LESS_IS_BETTER
            row["ratio"] = row["peer"] / row["value"] if less else row["value"] / row["peer"]
    return [row for row in figures.values() if row["value"] is not None or row.get("note")]


def readable(number):
    if number is None:
        return "-"
    return f"{number:,.{0 if number >= 100 else 1 if number >= 10 else 2 if number >= 1 else 3}f}"


def print_rows(rows, as_json, head):
    if as_json:
        for row in rows:
            print(json.dumps({**row, "at": head}))
        return
    print(f"# {head}")
    print(f"{'':<28} {'Troupe':>14} {'Ray':>14} {'ratio':>9}  unit")
    for row in rows:
        ratio = f"{readable(row['ratio'])}x" if row["ratio"] else "-"
        note = row.get("note", "") if row["value"] is None else ""
        print(f"{row['name']:<28} {readable(row['value']):>14} {readable(row['peer']):>14} {ratio:>9}  {row['unit']} {note}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=2, help="of both, in turns")
    parser.add_argument("--seconds", type=float, default=1, help="of each case that repeats")
    parser.add_argument("--only", default="*")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as an exception, so that Ray is ended too
    adopt_orphans()
    try:
        venv = cached("peer-ray", PINS, lambda folder: install(folder, PINS))
        program = cached("peer-ray-program", [*PINS, SOURCE.read_text(encoding="utf-8")], lambda folder: build(venv, folder))
        ours, peer, loads = [], [], []
        for number in range(arguments.rounds):
            loads.append(os.getloadavg()[0])
            print(f"== round {number + 1} of {arguments.rounds}: Ray", file=sys.stderr)
            peer += measure_ray(venv, program, arguments.seconds)
            print(f"== round {number + 1} of {arguments.rounds}: Troupe", file=sys.stderr)
            names = {line["name"] for line in peer if fnmatch.fnmatch(line["name"], arguments.only)}
            ours += measure_ours(arguments.program, arguments.seconds, ",".join(sorted(names)))
    except NoPeer as why:
        print(f"skipped: no comparison with Ray: {why}")
        return
    peer = [line for line in peer if fnmatch.fnmatch(line["name"], arguments.only)]
    head = f"{PINS[0].split('==')[1]} is Ray's version; {os.cpu_count()} cores, Linux {platform.release()}, load before each round " + \
        ", ".join(f"{load:.1f}" for load in loads)
    print_rows(rows_of(ours, peer), arguments.json, head)


if __name__ == "__main__":
    main()
