"""Two hosts on one machine: network namespaces that a veth pair joins, 10.77.0.1 and 10.77.0.2, with a node of Troupe in each."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from support import LIMIT, PROGRAM, run

DEVICE = "veth0"  # on both
ADDRESSES = "10.77.0.1", "10.77.0.2"


def _ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True).returncode == 0


class Hosts:
    """A head with a node on the first, and a worker on the second, which know nothing of each other but the token and the address."""

    def __init__(self, names, folder):
        self._names = names
        self._states = [Path(folder, "first"), Path(folder, "second")]
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("TROUPE_")}
        self._children = []
        self._log = Path(folder, "log")

    def _on(self, host, *command):
        return ["ip", "netns", "exec", self._names[host], *map(str, command)]

    def _start(self, host, *arguments):
        with open(self._log, "ab") as out:
            self._children.append(subprocess.Popen(self._on(host, PROGRAM, *arguments), stdout=out, stderr=out,
                                                   env=dict(self._environment, XDG_STATE_HOME=str(self._states[host]))))

    def _wait_for(self, pattern):
        until = time.monotonic() + 30
        while not (found := re.search(pattern, self._log.read_text())):
            if time.monotonic() > until:
                raise AssertionError(f"{pattern!r} did not come:\n{self._log.read_text()}")
            time.sleep(0.05)
        return found

    def start(self, cpus):
        self._start(0, "head", "--host", ADDRESSES[0], "--port", "0", "--cpus", cpus)
        self._address = self._wait_for(r"--head (\S+)")[1]
        there = self._states[1] / "troupe"
        there.mkdir(parents=True)
        shutil.copy2(self._states[0] / "troupe" / "token", there / "token")
        self._start(1, "worker", "--head", self._address, "--cpus", cpus, "--name", "second")
        self._wait_for("joined: second")

    def launched(self, *arguments):
        """`troupe run` on the first host, a rank on each."""
        return run(self._on(0, PROGRAM, "run", "--address", self._address, "-n", "2", "--per-node", "1", "--timeout", LIMIT - 20, *arguments),
                   XDG_STATE_HOME=str(self._states[0]))

    def stop(self):
        for child in reversed(self._children):
            child.terminate()
        for child in reversed(self._children):
            child.wait(30)


def _make_network(names):
    first, second = names
    made = all(_ip("netns", "add", name) for name in names)
    made = made and _ip("link", "add", DEVICE, "netns", first, "type", "veth", "peer", "name", DEVICE, "netns", second)
    for name, address in zip(names, ADDRESSES):
        made = made and _ip("-n", name, "addr", "add", f"{address}/24", "dev", DEVICE)
        made = made and all(_ip("-n", name, "link", "set", device, "up") for device in (DEVICE, "lo"))
    return made


@contextlib.contextmanager
def two_hosts(test, cpus=1):
    """Skips the test where the machine has no root or no iproute2."""
    names = [f"troupe-{host}-{os.getpid()}" for host in "ab"]
    if os.geteuid() != 0 or shutil.which("ip") is None:
        test.skipTest("skipped: network namespaces need root and iproute2")
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.callback(_ip, "netns", "delete", name)
        if not _make_network(names):
            test.skipTest("skipped: this machine makes no network namespaces")
        hosts = Hosts(names, stack.enter_context(tempfile.TemporaryDirectory()))
        stack.callback(hosts.stop)
        hosts.start(cpus)
        yield hosts
