#!/usr/bin/env python3
"""Runs a command on a machine that stands still now and then, as one does whose processors others share.

The command, and all that it starts, are in a cgroup that is frozen and let go in turn, each time for SHORTEST to LONGEST
seconds (0.2 to 0.9), so about half of the time. That needs root and a freezer cgroup, of version 1 or 2. Without them, a
busy process on each processor takes turns with the command instead, which is milder; the first line says so. A quota of
processor time is no substitute: a node offers fewer processors under one.

The exit code is the command's, and 128 + N where signal N ended it. Where starve.py itself is killed, the command in its cgroup is
let go, and has ten seconds to end.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path


# A shell with this script, whose $0 is the folder of the group, waits for the end of starve.py, however that comes. Then it lets
# all processes of the group go, and of groups within it; kills, from the hundredth round on, those that have not ended; and
# removes the groups.
KEEPER = r"""
trap "" INT TERM HUP PIPE
cat > /dev/null
for i in $(seq 150); do
  find "$0" -name freezer.state -exec sh -c 'echo THAWED > "$1"' - {} \; -o -name cgroup.freeze -exec sh -c 'echo 0 > "$1"' - {} \;
  find "$0" -depth -type d -exec rmdir {} \; 2> /dev/null
  [ -d "$0" ] || exit
  if [ $i -ge 100 ]; then
    for pid in $(find "$0" -name cgroup.procs -exec cat {} +); do
      what=$(tr '\0' ' ' < /proc/$pid/cmdline | cut -c 1-300)
      kill -9 $pid && echo "starve: process $pid was left behind, and is killed: $what"
    done
  fi
  sleep 0.1
done
echo "starve: the group $0 could not be removed"
"""


# PR_SET_PDEATHSIG
SPINNER = "import ctypes; ctypes.CDLL(None).prctl(1, 9)\nwhile True: pass"


class Freezer:
    """A cgroup of its own below the one of this process, which may stand still too. A shell removes it at the end."""

    def __init__(self):
        version_1 = Path("/sys/fs/cgroup/freezer")
        if version_1.is_dir():
            top, self._state, self._words = version_1, "freezer.state", ("THAWED", "FROZEN")
        else:
            top, self._state, self._words = Path("/sys/fs/cgroup"), "cgroup.freeze", ("0", "1")
        own = top / own_group("freezer" if version_1.is_dir() else "")
        # Inside a container the name may be the one that its host knows.
        self._folder = (own if own.is_dir() else top) / f"troupe-starved-{os.getpid()}"
        self._folder.mkdir()
        if not (self._folder / self._state).exists():
            self._folder.rmdir()
            raise OSError(f"{self._folder.parent} has no freezer")
        # In a session of its own: whoever ends the whole group of starve.py does not end this shell.
        self._keeper = subprocess.Popen(["sh", "-c", KEEPER, self._folder], stdin=subprocess.PIPE, start_new_session=True)

    def enter(self):
        (self._folder / "cgroup.procs").write_text(str(os.getpid()))

    def hold(self, still):
        (self._folder / self._state).write_text(self._words[still])

    def close(self):
        self._keeper.stdin.close()
        self._keeper.wait()


def own_group(kind):
    """The group of this process below the top, from lines such as "6:freezer:/a" or "0::/a"."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, kinds, group = line.split(":", 2)
        if kind in kinds.split(","):
            return group.lstrip("/")
    return ""


class BusyProcessors:
    """A process for each processor, which does nothing but be in the way. They end with this one."""

    def __init__(self):
        self._spinning = [subprocess.Popen([sys.executable, "-c", SPINNER]) for _ in os.sched_getaffinity(0)]
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
        brake = BusyProcessors()
        print(f"starve: without a freezer cgroup ({error}), busy processes take turns with the command", flush=True)
        return brake


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
        try:
            while not ended.is_set():
                brake.hold(still)
                ended.wait(rhythm.uniform(shortest, longest))
                still = not still
        finally:
            brake.hold(False)

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
    try:
        shortest, longest = (float(seconds) for seconds in options.still.split(","))
    except ValueError:
        shortest = longest = 0
    if not 0 < shortest <= longest <= 3600:
        parser.error(f"--still {options.still}: two numbers of seconds up to 3600 are needed, as in 0.2,0.9")
    return starve(options.command, random.Random(options.seed), shortest, longest)


if __name__ == "__main__":
    sys.exit(main())
