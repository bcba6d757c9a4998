"""Programs without a framework: some that read what Open MPI's mpirun sets, and sweeps over a Python script."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from hosts import two_hosts
from support import PROGRAM, PROGRAMS, FrameworkTest, launched, run

SHELL = "echo result $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE, $OMPI_COMM_WORLD_LOCAL_RANK of $OMPI_COMM_WORLD_LOCAL_SIZE here"
CPP = """
#include <cstdlib>
#include <iostream>
#include <string>
int main() {
  const auto variable = [](const char* name) { return std::stoi(std::getenv(name)); };
  std::cout << "result " << variable("OMPI_COMM_WORLD_RANK") << " of " << variable("OMPI_COMM_WORLD_SIZE") << std::endl;
}
"""


class OpenMpiTest(FrameworkTest):
    def test_a_shell_program(self):
        done = run([PROGRAM, "run", "-n", 3, "--", "sh", "-c", SHELL])
        self.assertEqual(self.results(done), [f"{rank} of 3, {rank} of 3 here" for rank in range(3)])

    @unittest.skipUnless(shutil.which("c++"), "skipped: there is no C++ compiler")
    def test_a_program_in_cpp(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "ranks.cpp").write_text(CPP)
            subprocess.run(["c++", "-o", f"{folder}/ranks", f"{folder}/ranks.cpp"], check=True, env=dict(os.environ))
            done = run([PROGRAM, "run", "-n", 2, "--", f"{folder}/ranks"])
        self.assertEqual(self.results(done), ["0 of 2", "1 of 2"])


class HostsTest(FrameworkTest):
    """Horovod's rendezvous, by its client as the tests of the Python package have it (tests/python)."""

    def test_ranks_on_two_hosts_meet_at_the_rendezvous_of_horovod(self):
        client = PROGRAMS.parents[1] / "python" / "rendezvous_client.py"
        with tempfile.TemporaryDirectory() as folder, two_hosts(self) as hosts:
            shutil.copy(client, folder)
            done = hosts.launched("--workdir", folder, "--", sys.executable, client.name)
        self.assertEqual(self.results(done), sorted(f"| {attempt} | 0:{attempt} 1:{attempt} | {rank}:{attempt} | 0:{attempt} 1:{attempt}"
                                                    for rank in range(2) for attempt in (1, 2)))


class PortsTest(FrameworkTest):
    """The ports that frameworks are told of: a program of the standard library binds them and meets there."""

    def check_meet(self, done, ranks):
        places = (("TF_CONFIG", ranks), ("MASTER_PORT", 1), ("JAX_COORDINATOR_ADDRESS", 1))
        self.assertEqual(self.results(done), sorted(f"{rank} met {list(range(ranks))} at {count} of {name}"
                                                    for rank in range(ranks) for name, count in places))

    def test_ranks_meet_at_the_ports_of_every_framework(self):
        self.check_meet(launched(3, "ports.py"), 3)

    def test_ranks_on_two_hosts_meet_there_too(self):
        with tempfile.TemporaryDirectory() as folder, two_hosts(self) as hosts:
            shutil.copy(PROGRAMS / "ports.py", folder)
            self.check_meet(hosts.launched("--workdir", folder, "--", sys.executable, "ports.py"), 2)


SWEEP = """
command = [{python}, {script}, "--lr={{lr}}", "9"]
metric = "loss"
trials = 6
seed = 4
storage = "runs"
[gang]
cpus = 0.5
[space]
lr = {{ loguniform = [1e-3, 1.0] }}
[scheduler]
"""


class SweepTest(FrameworkTest):
    """Sweeps whose driver is killed in the middle, and that are gone on with."""

    def swept(self, folder, scheduler, until):
        file = Path(folder, "sweep.toml")
        file.write_text(SWEEP.format(python=json.dumps(sys.executable), script=json.dumps(str(PROGRAMS / "sweep_trial.py"))) + scheduler)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("TROUPE_")}
        child = subprocess.Popen([PROGRAM, "tune", "run", file], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
        text = ""
        for line in child.stdout:
            text += line
            if until in line:
                break
        child.kill()
        child.stdout.close()
        child.wait()
        self.assertIn(until, text)
        done = run([PROGRAM, "tune", "resume", file])
        self.assertEqual(done.status, 0, done.text)
        summary = json.loads(Path(folder, "runs", "run-1", "summary.json").read_text())
        self.assertEqual(len(summary["trials"]), 6, done.text)
        return summary, done.text

    def test_asha_over_a_python_script(self):
        with tempfile.TemporaryDirectory() as folder:
            summary, text = self.swept(folder, 'type = "asha"\nmax_t = 9\neta = 3\n', "stopped at rung 0")
        self.assertTrue(any(trial["status"] == "stopped" for trial in summary["trials"]), text)

    def test_a_population_over_a_python_script(self):
        with tempfile.TemporaryDirectory() as folder:
            self.swept(folder, 'type = "pbt"\ninterval = 3\nmax_t = 9\n', "takes over")
            takeovers = [json.loads(line) for line in Path(folder, "runs", "run-1", "pbt.jsonl").read_text().splitlines()]
        self.assertGreater(len(takeovers), 0)
        self.assertTrue(all(takeover["checkpoint"].endswith(f"step-{takeover['from_t']}") for takeover in takeovers), takeovers)
