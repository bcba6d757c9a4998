"""What tests of the Python package share."""

import contextlib
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

# Ranks that import a test by its name have no variables of this beginning.
PROGRAM = os.environ.get("TROUPE_BINARY", "")
FAKE_NVML = os.environ.get("TROUPE_FAKE_NVML", "")
TREE = Path(os.environ.get("TROUPE_TREE", "."))


@contextlib.contextmanager
def variables(**values):
    """Of this process, for a while; None: not set."""
    before = {name: os.environ.get(name) for name in values}

    def apply(wanted):
        for name, value in wanted.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value

    apply(values)
    try:
        yield
    finally:
        apply(before)


@contextlib.contextmanager
def two_gpus():
    """-> variables of a program that finds two GPUs on this machine: claims, with no device behind them."""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(FAKE_NVML, Path(folder, "libnvidia-ml.so.1"))
        yield dict(os.environ, LD_LIBRARY_PATH=folder)


def entered(context, add_cleanup):
    """-> what the context gives. The clean-up of a test (addCleanup) or of its class (addClassCleanup) leaves it."""
    value = context.__enter__()
    add_cleanup(context.__exit__, None, None, None)
    return value


@contextlib.contextmanager
def printed():
    """-> what is printed meanwhile, the standard error too."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        yield text


@contextlib.contextmanager
def cluster(*arguments, workers=()):
    """A head with a node on this machine, named "head", and a worker of a core for each name: -> the head's address. TROUPE_ADDRESS is
    that address meanwhile. What runs on a node finds the node's name in MARK_NODE, and what runs in no cluster finds no such variable."""
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/out", "wb") as out, variables(XDG_STATE_HOME=folder):
        started = []

        def start(name, *command):
            started.append(subprocess.Popen([PROGRAM, *command, "--name", name], stdout=out, stderr=out,
                                            env=os.environ | {"MARK_NODE": name}))
            wait_for(lambda: re.search(rf"^node .* joined: {name} ", Path(folder, "out").read_text(), re.MULTILINE))

        try:
            start("head", "head", "--port", "0", *arguments)
            address = re.search(r"TROUPE_ADDRESS=(\S+)", Path(folder, "out").read_text())[1]
            for name in workers:
                start(name, "worker", "--head", address, "--cpus", "1")
            with variables(TROUPE_ADDRESS=address):
                yield address
        finally:
            for process in reversed(started):
                process.send_signal(signal.SIGTERM)
                process.wait(60)


def driver(code, **more):
    """A program that uses the package, with its output in a pipe."""
    return subprocess.Popen([sys.executable, "-B", "-u", "-c", textwrap.dedent(code)], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, **more)


def wait_for(condition, seconds=60):
    until = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > until:
            raise AssertionError(f"did not come about within {seconds} s")
        time.sleep(0.02)
    return found


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
