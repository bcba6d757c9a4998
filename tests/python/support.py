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


@contextlib.contextmanager
def printed():
    """-> what is printed meanwhile, the standard error too."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        yield text


@contextlib.contextmanager
def cluster(*arguments):
    """A head with a node on this machine; TROUPE_ADDRESS names it meanwhile."""
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/out", "wb") as out, variables(XDG_STATE_HOME=folder):
        head = subprocess.Popen([PROGRAM, "head", "--port", "0", *arguments], stdout=out, stderr=out)
        try:
            wait_for(lambda: "joined" in Path(folder, "out").read_text())
            address = re.search(r"TROUPE_ADDRESS=(\S+)", Path(folder, "out").read_text())[1]
            with variables(TROUPE_ADDRESS=address):
                yield
        finally:
            head.send_signal(signal.SIGTERM)
            head.wait(60)


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
