"""Two hosts on one machine (tests/support/host_pair.py), for a test."""

import contextlib

from host_pair import NoHosts, host_pair
from support import LIMIT, PROGRAM, run


class Hosts:
    """A head with a node on the first, and a worker on the second."""

    def __init__(self, pair):
        self._pair = pair

    def launched(self, *arguments):
        """`troupe run` on the first host, a rank on each."""
        pair = self._pair
        return run(pair.on(0, PROGRAM, "run", "--address", pair.address, "-n", "2", "--per-node", "1", "--timeout", LIMIT - 20, *arguments),
                   XDG_STATE_HOME=pair.state_home(0))


@contextlib.contextmanager
def two_hosts(test, cpus=1):
    """Skips the test where the machine has no root or no iproute2."""
    with contextlib.ExitStack() as stack:
        try:
            pair = stack.enter_context(host_pair(PROGRAM, cpus))
        except NoHosts as why:
            test.skipTest(f"skipped: {why}")
        yield Hosts(pair)
