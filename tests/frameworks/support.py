"""What tests of frameworks share: programs/ run through `troupe run` with this Python."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PROGRAM = os.environ.get("TROUPE_BINARY", "")
PROGRAMS = Path(__file__).resolve().parent / "programs"
ONE_THREAD = ["--env", "OMP_NUM_THREADS=1"]  # as torchrun sets it; sums of several threads round in another way
LIMIT = 240  # seconds, of one run: frameworks take long to import where there are few cores


class Done:
    """How a program ended, and what it printed."""

    def __init__(self, status, text):
        self.status = status
        self.text = text
        # What the ranks told behind "result", in no order.
        self.results = re.findall(r"^(?:\[\d+\] )?result (.*)$", text, re.MULTILINE)


def run(command, **more):
    """Runs it to its end, and not longer than LIMIT."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TROUPE_")}
    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                             start_new_session=True, env=environment | more)
    try:
        text = child.communicate(timeout=LIMIT)[0]
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        text = child.communicate()[0] + f"\nwas ended after {LIMIT} s"
    return Done(child.returncode, text)


def launched(ranks, program, *arguments, options=()):
    return run([PROGRAM, "run", "-n", ranks, "--timeout", LIMIT - 20, *options, "--", sys.executable, PROGRAMS / program, *arguments])


class FrameworkTest(unittest.TestCase):
    def results(self, done):
        self.assertEqual(done.status, 0, done.text)
        return sorted(done.results)


class Cluster:
    """A head, and workers of two cores each on this machine."""

    def __init__(self, folder, workers):
        self._folder = Path(folder)
        self._environment = dict(os.environ, XDG_STATE_HOME=str(folder))
        self.children = []
        head = self._start("head", "--port", "0", "--no-node")
        self.address = self._wait_for(head, r"--head (\S+)")
        self.workers = [self._start("worker", "--head", self.address, "--cpus", "2", "--name", f"worker-{i}") for i in range(workers)]
        for i in range(workers):
            self._wait_for(head, rf"joined: worker-{i}")

    def _start(self, *arguments):
        log = self._folder / f"{len(self.children)}.log"
        with open(log, "wb") as out:
            child = subprocess.Popen([PROGRAM, *arguments], stdout=out, stderr=out, env=self._environment)
        child.log = log
        self.children.append(child)
        return child

    def _wait_for(self, child, pattern):
        until = time.monotonic() + 60
        while not (found := re.search(pattern, child.log.read_text())):
            if time.monotonic() > until:
                raise AssertionError(f"{pattern!r} did not come:\n{child.log.read_text()}")
            time.sleep(0.05)
        return found[1] if found.groups() else found[0]

    def start_run(self, *arguments):
        return subprocess.Popen([str(word) for word in (PROGRAM, "run", "--address", self.address, "--timeout", LIMIT - 20, *arguments)],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=self._environment)

    def stop(self):
        for child in reversed(self.children):
            with contextlib.suppress(ProcessLookupError):
                child.terminate()
        for child in reversed(self.children):
            child.wait(30)


@contextlib.contextmanager
def cluster(workers):
    with tempfile.TemporaryDirectory() as folder:
        made = Cluster(folder, workers)
        try:
            yield made
        finally:
            made.stop()
