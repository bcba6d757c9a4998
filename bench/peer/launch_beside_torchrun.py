#!/usr/bin/env python3
"""How long a gang of programs takes to start and end: `troupe run`, and in turns with it torchrun and Spark's TorchDistributor.

usage: launch_beside_torchrun.py TROUPE [--peer] [--check] [--rounds N] [--json]

Without --peer Troupe's rows alone. torchrun is that of the tests of frameworks (cmake/setup/frameworks_torch.txt), pyspark is
installed into the cache; where one of them is not to be had, this says why, and its rows have no peer. With --check it ends with 1
where a row that has a goal missed it: on a machine that has other work, goals may be missed by that.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from beside_ray import NoPeer, cached, checked

TREE = Path(__file__).resolve().parents[2]
PYSPARK = ["pyspark==4.0.1", "py4j==0.10.9.9", "cloudpickle==3.1.2", "numpy==2.4.6", "setuptools==80.9.0"]
RANKS = 2
GOAL = 0.1  # seconds that starting takes beyond what the program takes
GOAL_OF_ENDING = 2  # seconds, 1.5 of which are the grace
HELLO = "import os, time; print('hello', os.environ.get('RANK'), flush=True)"


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TROUPE_") and name != "PYTHONPATH"}
    return kept | more


class Failed(Exception):
    """A command that was to be timed ended badly."""


def seconds_to_end(command, env):
    began = time.perf_counter()
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env, timeout=120)
    took = time.perf_counter() - began
    if done.returncode != 0:
        raise Failed(f"{command[0]} ended with {done.returncode}: {done.stderr[-400:]}")
    return took


def seconds_to_end_others(command, env):
    """From the moment at which rank 1 may fail to the end of the command, where rank 0 ignores SIGTERM."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = (f"if [ $RANK = 0 ]; then trap '' TERM; echo ready; while :; do sleep 0.05; done; fi; "
                 f"until [ -e {folder}/fail ]; do sleep 0.02; done; exit 7")
        with subprocess.Popen([*map(str, command), "--", "sh", "-c", ranks], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, env=env) as child:
            for line in child.stdout:
                if "ready" in line:
                    break
            began = time.perf_counter()
            Path(folder, "fail").touch()
            child.stdout.read()
            code = child.wait(60)
            took = time.perf_counter() - began
    if code != 7:
        raise Failed(f"{command[0]} ended with {code}")
    return took


def seconds_to_lines(commands, env, count=RANKS):
    """From the start of the commands to the last of `count` lines that say hello."""
    began = time.perf_counter()
    children = [subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, text=True, env=env) for command in commands]
    try:
        seen = 0
        for child in children:
            for line in child.stdout:
                seen += "hello" in line
                if seen * len(children) >= count * (children.index(child) + 1):
                    break
        took = time.perf_counter() - began
        if seen != count:
            raise Failed(f"{commands[0][0]}: {seen} of {count} lines came")
        return took
    finally:
        for child in children:
            child.stdout.close()
            child.wait(60)


# ---- the peers ---------------------------------------------------------------------------------------------------

def torch_environment():
    """The virtual environment with PyTorch that the tests of frameworks have; installed if it is missing."""
    script = 'source cmake/setup/setup.sh; install_list frameworks_torch "3.9 GB" >&2 && packages_path frameworks_torch'
    done = subprocess.run(["bash", "-c", script], cwd=TREE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise NoPeer("PyTorch could not be installed")
    return Path(done.stdout.strip().splitlines()[-1])


def spark_environment():
    if shutil.which("java") is None:
        raise NoPeer("there is no java for pyspark: install default-jre-headless")

    def install(folder):
        print(f"== installing {PYSPARK[0]} into the cache, 0.7 GB", file=sys.stderr)
        checked([sys.executable, "-m", "venv", folder], "no virtual environment")
        checked([folder / "bin/python", "-m", "pip", "install", "--no-input", "--progress-bar", "off",
                 "--disable-pip-version-check", *PYSPARK], "pip cannot install pyspark")

    return cached("peer-spark", PYSPARK, install)


# One driver for both: the second call is timed, once each has loaded what it needs.
DISTRIBUTOR = """
import json, sys, time
which = sys.argv[1]
if which == "spark":
    from pyspark.sql import SparkSession
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate().sparkContext.setLogLevel("OFF")
    from pyspark.ml.torch.distributor import TorchDistributor
else:
    from troupe import TorchDistributor
def train(scale):
    import os
    return scale * int(os.environ["WORLD_SIZE"])
times = []
for _ in range(int(sys.argv[2]) + 1):
    began = time.perf_counter()
    value = TorchDistributor(num_processes=2, local_mode=True, use_gpu=False).run(train, 21)
    times.append(time.perf_counter() - began)
    assert value == 42, value
print("times", json.dumps(times[1:]))
"""


def distributor_times(python, which, rounds, env):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "driver.py")
        file.write_text(DISTRIBUTOR, encoding="utf-8")
        done = subprocess.run([python, file, which, str(rounds)], stdin=subprocess.DEVNULL, capture_output=True, text=True, env=env,
                              cwd=folder, timeout=600)
    found = re.search(r"^times (.*)$", done.stdout, re.MULTILINE)
    if found is None:
        raise NoPeer(f"TorchDistributor of {which}: {(done.stderr or done.stdout).strip()[-600:]}")
    return json.loads(found[1])


# ---- rows --------------------------------------------------------------------------------------------------------

@contextlib.contextmanager
def cluster(troupe):
    with tempfile.TemporaryDirectory() as folder:
        env = environment(XDG_STATE_HOME=folder)
        head = subprocess.Popen([troupe, "head", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
        try:
            address = None
            for line in head.stdout:
                address = address or re.search(r"--head (\S+)", line)
                if address and "joined" in line:
                    break
            if not address:
                raise Failed("the head did not say its address")
            yield environment(XDG_STATE_HOME=folder, TROUPE_ADDRESS=address[1])
        finally:
            head.terminate()
            head.stdout.close()
            head.wait(30)


def in_turns(rounds, **cases):
    """name -> the median of its times; all of a round one after the other."""
    times = {name: [] for name in cases}
    for _ in range(rounds + 1):
        for name, case in cases.items():
            times[name].append(case())
    return {name: statistics.median(each[1:]) for name, each in times.items()}  # the first one loads files


def rows(troupe, torch, spark, rounds):
    """(what, Troupe's seconds, the goal or None, the peer's seconds or None, the peer's name)."""
    run = [troupe, "run", "-n", RANKS]
    env = environment()
    torchrun = [torch / "bin/python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", RANKS] if torch else None

    def beside(**cases):
        peer = cases.pop("peer")
        return in_turns(rounds, **cases, **({"peer": peer} if torchrun else {}))

    found = beside(ours=lambda: seconds_to_end([*run, "--", "true"], env),
                   peer=lambda: seconds_to_end([*torchrun, "--no-python", "true"], env))
    yield "2 ranks of `true`, no cluster", found["ours"], None, found.get("peer"), "torchrun"

    with cluster(troupe) as of_cluster:
        found = in_turns(rounds, ours=lambda: seconds_to_end([*run, "--", "true"], of_cluster))
        yield "2 ranks of `true`, on a running cluster", found["ours"], GOAL, None, ""
        found = in_turns(min(rounds, 3), ours=lambda: seconds_to_end_others(run, of_cluster))
        yield "end of both once one fails and one ignores SIGTERM", found["ours"], GOAL_OF_ENDING, None, ""

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "hello.py")
        file.write_text(HELLO, encoding="utf-8")
        script = [sys.executable, file]
        found = beside(alone=lambda: seconds_to_lines([script] * RANKS, env),
                       ours=lambda: seconds_to_lines([[*run, "--", *script]], env),
                       peer=lambda: seconds_to_lines([[*torchrun, file]], env))
    peer = found["peer"] - found["alone"] if "peer" in found else None
    yield "first lines of a 2-rank Python script, later than without", found["ours"] - found["alone"], GOAL, peer, "torchrun"

    if torch and spark:
        paths = ":".join(str(folder) for folder in torch.glob("lib/python3*/site-packages"))
        python = spark / "bin/python"
        ours = distributor_times(python, "troupe", rounds, environment(TROUPE_BINARY=troupe, PYTHONPATH=f"{TREE}/python"))
        theirs = distributor_times(python, "spark", rounds, environment(PYTHONPATH=paths))
        yield "TorchDistributor(2).run(function), local", statistics.median(ours), None, statistics.median(theirs), "Spark's"


def missed_by(what, ours, goal):
    """For people; None where the row has no goal, or reached it."""
    return f"{what}: {ours:.3f} s, and the goal is {goal} s" if goal is not None and ours > goal else None


def text_of(what, ours, goal, theirs, peer):
    """A row, for people."""
    aim = f"goal {goal} s" + (", missed" if missed_by(what, ours, goal) else "") if goal is not None else ""
    beside = f"{peer} {theirs:.3f} s, {theirs / max(ours, 1e-4):.0f}x" if theirs else ""
    return f"{what:<60}{ours:8.3f} s  {aim:<20}{beside}".rstrip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("troupe")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    troupe = str(Path(given.troupe).resolve())
    torch = spark = None
    if given.peer:
        try:
            torch = torch_environment()
            spark = spark_environment()
        except NoPeer as why:
            print(f"# no peer for some rows: {why}", file=sys.stderr)
    missed = []
    try:
        for what, ours, goal, theirs, peer in rows(troupe, torch, spark, given.rounds):
            if why := missed_by(what, ours, goal):
                missed.append(why)
            if given.json:
                print(json.dumps({"name": what, "troupe_s": ours, "goal_s": goal, "peer": peer, "peer_s": theirs}), flush=True)
            else:
                print(text_of(what, ours, goal, theirs, peer), flush=True)
    except NoPeer as why:
        print(f"# {why}", file=sys.stderr)
    if given.check and missed:
        sys.exit("\n".join(missed))


if __name__ == "__main__":
    main()
