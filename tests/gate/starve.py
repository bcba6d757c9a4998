#!/usr/bin/env python3
"""Runs a command on a machine that stands still now and then, as one does whose processors others share.

The command, and all that it starts, are in a cgroup that is frozen and let go in turn, each time for SHORTEST to LONGEST
seconds (0.2 to 0.9), so about half of the time. That needs root and a freezer cgroup, of version 1 or 2. Without them, a
busy process on each processor takes turns with the command instead, which is milder; the first line says so. A quota of
processor time is no substitute: a node offers fewer processors under one.

The exit code is the command's, and 128 + N where signal N ended it.
"""

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path


class Freezer:
    """A cgroup of its own, which is removed at the end."""

    def __init__(self):
        name = f"troupe-starved-{os.getpid()}"
        version_1 = Path("/sys/fs/cgroup/freezer")
        if version_1.is_dir():
            self._folder, self._state, self._words = version_1 / name, "freezer.state", ("THAWED", "FROZEN")
        else:
            self._folder, self._state, self._words = Path("/sys/fs/cgroup") / name, "cgroup.freeze", ("0", "1")
        self._folder.mkdir()
        if not (self._folder / self._state).exists():
            self._folder.rmdir()
            raise OSError(f"{self._folder.parent} has no freezer")

    def enter(self):
        (self._folder / "cgroup.procs").write_text(str(os.getpid()))

    def hold(self, still):
        (self._folder / self._state).write_text(self._words[still])

    def close(self):
        """Ends what the command has left behind, after ten seconds."""
        self.hold(False)
        for patience in (10, 5):
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline:
                try:
                    return self._folder.rmdir()
                except OSError:  # processes of the command are still ending
                    time.sleep(0.1)
            for pid in (self._folder / "cgroup.procs").read_text().split():
                print(f"starve: process {pid} was left behind, and is killed", flush=True)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)


class BusyProcessors:
    """A process for each processor, which does nothing but be in the way."""

    def __init__(self):
        self._spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
        self.hold(False)

    def enter(self):
        pass

    def hold(self, still):
        for child in self._spinning:
            child.send_signal(signal.SIGCONT if still else signal.SIGSTOP)

    def close(self):
        for child in self._spinning:
            child.kill()
            child.wait()


def make_brake():
    try:
        return Freezer()
    except OSError as error:
        print(f"starve: without a freezer cgroup ({error}), busy processes take turns with the command", flush=True)
        return BusyProcessors()


def starve(command, rhythm, shortest, longest):
    """-> the exit code of `command`"""
    brake = make_brake()
    try:
        child = subprocess.Popen(command, preexec_fn=brake.enter)
    except OSError as error:
        brake.close()
        sys.exit(f"starve: {command[0]} could not be started: {error}")
    ended = threading.Event()

    def take_turns():
        still = True
        while not ended.is_set():
            brake.hold(still)
            ended.wait(rhythm.uniform(shortest, longest))
            still = not still

    # A process that is frozen takes a signal once it is let go, at the end of that turn.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, frame: child.send_signal(number))
    turns = threading.Thread(target=take_turns)
    turns.start()
    try:
        code = child.wait()
    finally:
        ended.set()
        turns.join()
        brake.close()
    return code if code >= 0 else 128 - code


def main():
    parser = argparse.ArgumentParser(usage="starve.py [--seed N] [--still SHORTEST,LONGEST] COMMAND [ARGUMENT...]", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the rhythm")
    parser.add_argument("--still", default="0.2,0.9", metavar="SHORTEST,LONGEST")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if not options.command:
        parser.error("a command to run is missing")
    shortest, longest = (float(seconds) for seconds in options.still.split(","))
    return starve(options.command, random.Random(options.seed), shortest, longest)


if __name__ == "__main__":
    sys.exit(main())
