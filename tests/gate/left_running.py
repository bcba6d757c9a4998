"""Processes that tests have left behind, found by a variable that what a test starts inherits, unless it is given another environment."""

import os
import signal
import time
from pathlib import Path

VARIABLE = "TROUPE_TEST_RUN"
PATIENCE = 20  # seconds: what a test has told to end, and has not waited for, ends meanwhile


class Marked:
    """The processes that are started with environment(), directly or by one of them."""

    def __init__(self):
        self._entry = f"{VARIABLE}={os.getpid()}-{time.time_ns()}"

    def environment(self):
        name, value = self._entry.split("=", 1)
        return {**os.environ, name: value}

    def end(self):
        """Waits until none runs, and kills those that run on. -> a line for each of these"""
        left = self._running_after(PATIENCE)
        lines = "".join(f"STILL RUNNING after all tests: {described(process)}\n" for process in left)
        for process in left:
            kill(process)
        if left:
            self._running_after(PATIENCE)
        return lines

    def _running_after(self, seconds):
        """-> those that run on for so long"""
        until = time.monotonic() + seconds
        while (running := self._running()) and time.monotonic() < until:
            time.sleep(0.1)
        return running

    def _running(self):
        return [process for process in Path("/proc").glob("[0-9]*") if self._entry.encode() in read(process / "environ").split(b"\0")]


def read(file):
    """What is in a file of /proc. Of a process that has ended, or is another user's: nothing."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


def described(process):
    command = read(process / "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
    try:
        folder = os.readlink(process / "cwd")
    except OSError:
        folder = "a folder that is gone"
    return f"process {process.name}, begun {age_of(process):.0f} s ago in {folder}: {command}"


def age_of(process):
    """Seconds; 0 for a process that has ended."""
    words = read(process / "stat").rpartition(b")")[2].split()
    if len(words) < 20:
        return 0
    up = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    return up - int(words[19]) / os.sysconf("SC_CLK_TCK")


def kill(process):
    try:
        os.kill(int(process.name), signal.SIGKILL)
    except OSError:
        pass  # it has just ended, or is another user's
