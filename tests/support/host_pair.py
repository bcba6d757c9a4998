"""Two hosts on one machine: network namespaces that a veth pair joins, 10.77.0.1 and 10.77.0.2, with a node of Troupe in each.

The tests of frameworks and the benchmarks use it. It needs root and iproute2.
"""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

DEVICE = "veth0"  # on both
ADDRESSES = "10.77.0.1", "10.77.0.2"


class NoHosts(Exception):
    """This machine makes no two hosts; the text says why."""


def _ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True).returncode == 0


class HostPair:
    """A head with a node on host 0, and a worker on host 1, which know nothing of each other but the token and the address."""

    def __init__(self, program, names, folder):
        self.address = ""  # of the head
        self._program = program
        self._names = names
        self._states = [Path(folder, "first"), Path(folder, "second")]
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("TROUPE_")}
        self._children = []
        self._log = Path(folder, "log")

    def on(self, host, *command):
        """The command as words, to be run on host 0 or 1."""
        return ["ip", "netns", "exec", self._names[host], *map(str, command)]

    def state_home(self, host):
        """XDG_STATE_HOME of a program on that host: the cluster's token is there."""
        return str(self._states[host])

    def _start(self, host, *arguments):
        with open(self._log, "ab") as out:
            self._children.append(subprocess.Popen(self.on(host, self._program, *arguments), stdout=out, stderr=out,
                                                   env=dict(self._environment, XDG_STATE_HOME=self.state_home(host))))

    def _wait_for(self, pattern):
        until = time.monotonic() + 60
        while not (found := re.search(pattern, self._log.read_text())):
            if time.monotonic() > until:
                raise TimeoutError(f"{pattern!r} did not come:\n{self._log.read_text()}")
            time.sleep(0.05)
        return found

    def start(self, cpus):
        self._start(0, "head", "--host", ADDRESSES[0], "--port", "0", "--cpus", cpus)
        self.address = self._wait_for(r"--head (\S+)")[1]
        there = self._states[1] / "troupe"
        there.mkdir(parents=True)
        shutil.copy2(self._states[0] / "troupe" / "token", there / "token")
        self._start(1, "worker", "--head", self.address, "--cpus", cpus, "--name", "second")
        self._wait_for("joined: second")

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
def host_pair(program, cpus=1):
    """Each node of `program`, which is `troupe`, has that many CPUs. Raises NoHosts where the machine has no root or no iproute2."""
    names = [f"troupe-{host}-{os.getpid()}" for host in "ab"]
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise NoHosts("network namespaces need root and iproute2")
    with contextlib.ExitStack() as stack:
        for name in names:
            stack.callback(_ip, "netns", "delete", name)
        if not _make_network(names):
            raise NoHosts("this machine makes no network namespaces")
        hosts = HostPair(program, names, stack.enter_context(tempfile.TemporaryDirectory()))
        stack.callback(hosts.stop)
        hosts.start(cpus)
        yield hosts
