"""Horovod's rendezvous, as ranks use it. Without Horovod: its client's requests are made by rendezvous_client.py."""

import contextlib
import http.client
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import rendezvous_client
import troupe
from support import PROGRAM, cluster, printed, variables, wait_for

CLIENT = Path(rendezvous_client.__file__)


def met(text, attempt):
    """Of each rank that printed it: what it found in its three scopes."""
    return sorted(re.findall(rf"\[\d+\] result \| {attempt} \| (.*)", text))


class RendezvousTest(unittest.TestCase):
    def test_ranks_meet_and_meet_anew(self):
        done = subprocess.run([PROGRAM, "run", "-n", "3", "--timeout", "90", "--", sys.executable, CLIENT], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for attempt in (1, 2):
            ranks = " ".join(f"{rank}:{attempt}" for rank in range(3))
            self.assertEqual(met(done.stdout, attempt), [f"{ranks} | {ranks} | {rank}:{attempt}" for rank in range(3)])

    def test_hosts_are_told_apart_where_two_nodes_share_an_address(self):
        with cluster("--cpus", "2"):
            worker = subprocess.Popen([PROGRAM, "worker", "--head", os.environ["TROUPE_ADDRESS"], "--cpus", "2"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                status = [PROGRAM, "status", "--json"]
                wait_for(lambda: subprocess.run(status, capture_output=True, text=True).stdout.count('"total"') >= 2)
                done = subprocess.run([PROGRAM, "run", "-n", "4", "--per-node", "2", "--timeout", "90", "--", sys.executable, CLIENT],
                                      capture_output=True, text=True)
            finally:
                worker.terminate()
                worker.wait(20)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        found = met(done.stdout, 1)
        self.assertEqual(found, sorted(f"0:1 1:1 2:1 3:1 | {hosts} | {cross}" for hosts, cross in (
            ("0:1 1:1", "0:1 2:1"), ("0:1 1:1", "1:1 3:1"), ("2:1 3:1", "0:1 2:1"), ("2:1 3:1", "1:1 3:1"))))

    def test_the_runner_of_horovod_has_it_too_and_it_ends_with_the_run(self):
        def meet():
            import rendezvous_client

            rendezvous_client.main()
            return os.environ["HOROVOD_GLOO_IFACE"], int(os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"])

        with printed(), variables(CUDA_VISIBLE_DEVICES=""):
            interface, port = troupe.HorovodRunner(np=-2).run(meet)
        self.assertEqual(interface, "lo")
        with variables(HOROVOD_GLOO_RENDEZVOUS_ADDR="127.0.0.1", HOROVOD_GLOO_RENDEZVOUS_PORT=str(port)):
            with contextlib.suppress(OSError, http.client.HTTPException):  # another program may have the port by now
                self.assertNotEqual(rendezvous_client.request("GET", "/global/0")[0], 200)

    def test_a_gang_that_is_formed_anew_meets_at_an_empty_rendezvous(self):
        program = """
import os, rendezvous_client
attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
if os.environ["RANK"] == "0":
    assert rendezvous_client.request("GET", "/global/0")[0] == 404
    rendezvous_client.put("global", "0", b"of rank 0, attempt %d" % attempt)
else:
    print("result", rendezvous_client.get("global", "0").decode(), flush=True)
    assert attempt == 1
"""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([PROGRAM, "run", "-n", "2", "--max-restarts", "1", "--timeout", "90", "--", sys.executable, "-c", program],
                                  capture_output=True, text=True, cwd=folder, env=dict(os.environ, PYTHONPATH=str(CLIENT.parent)))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(re.findall("result (.*)", done.stdout), [f"of rank 0, attempt {attempt}" for attempt in (0, 1)])


if __name__ == "__main__":
    unittest.main()
