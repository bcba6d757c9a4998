"""The runners in a cluster of three nodes: where their ranks run, what comes back, and how a rank's failure is told."""

import json
import os
import tempfile
import unittest
from pathlib import Path

import troupe
from support import cluster, entered, printed, variables

NODES = ["head", "w1", "w2"]


def say_where(folder, **more):
    """On a rank: a file of the rank's number with its node's name. -> what rank 0 is to bring back."""
    Path(folder, os.environ["RANK"]).write_text(os.environ.get("MARK_NODE", "no node"))
    return {"rank": int(os.environ["RANK"]), "ranks": int(os.environ["WORLD_SIZE"]), **more}


def fail_on_rank_2(folder):
    say_where(folder)
    if os.environ["RANK"] == "2":
        raise LookupError("no shard for rank 2")
    return "well"


class WorkersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # The workers take a core each, as the head's node does: three ranks fit on no fewer nodes.
        cls.address = entered(cluster("--cpus", "1", workers=NODES[1:]), cls.addClassCleanup)

    def setUp(self):
        self.folder = entered(tempfile.TemporaryDirectory(), self.addCleanup)
        self.output = entered(printed(), self.addCleanup)

    def nodes(self):
        """The nodes' names by the numbers of the ranks that ran there."""
        return {int(file.name): file.read_text() for file in Path(self.folder).iterdir()}

    def check_ran_on_all_nodes(self):
        self.assertEqual(sorted(self.nodes()), [0, 1, 2])
        self.assertEqual(sorted(self.nodes().values()), NODES)

    def test_ranks_of_each_runner_are_spread_over_the_nodes_and_the_value_of_rank_0_comes_back(self):
        runners = (troupe.TorchDistributor(3, local_mode=False, use_gpu=False), troupe.HorovodRunner(np=3, use_gpu=False),
                   troupe.MirroredStrategyRunner(3, use_gpu=False, use_custom_strategy=True))
        for runner in runners:
            name = type(runner).__name__
            with self.subTest(name):
                folder = self.folder = entered(tempfile.TemporaryDirectory(), self.addCleanup)
                self.assertEqual(runner.run(say_where, folder=folder, of=name), {"rank": 0, "ranks": 3, "of": name})
                self.check_ran_on_all_nodes()

    def test_the_address_may_be_an_option_which_goes_before_the_variable(self):
        options = troupe.RunOptions(address=self.address)
        for variable in (None, "127.0.0.1:1"):
            runners = (troupe.TorchDistributor(3, local_mode=False, use_gpu=False, options=options),
                       troupe.HorovodRunner(np=3, use_gpu=False, options=options),
                       troupe.MirroredStrategyRunner(3, use_gpu=False, use_custom_strategy=True, options=options))
            for runner in runners:
                with self.subTest(type(runner).__name__, variable=variable), variables(TROUPE_ADDRESS=variable):
                    folder = self.folder = entered(tempfile.TemporaryDirectory(), self.addCleanup)
                    self.assertEqual(runner.run(say_where, folder=folder), {"rank": 0, "ranks": 3})
                    self.check_ran_on_all_nodes()

    def test_a_file_runs_on_all_nodes_with_its_command_line(self):
        with tempfile.TemporaryDirectory() as scripts:
            file = Path(scripts, "where.py")
            file.write_text("import os, sys\nfrom pathlib import Path\n"
                            "Path(sys.argv[1], os.environ['RANK']).write_text(os.environ['MARK_NODE'])\n"
                            "print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n")
            distributor = troupe.TorchDistributor(3, local_mode=False, use_gpu=False)
            self.assertIsNone(distributor.run(str(file), self.folder))
        self.check_ran_on_all_nodes()
        for rank in range(3):
            self.assertIn(f"[{rank}] rank {rank} of 3\n", self.output.getvalue())

    def test_workers_of_tensorflow_are_named_to_each_other(self):
        def config():
            return json.loads(os.environ["TF_CONFIG"])

        found = troupe.MirroredStrategyRunner(3, use_gpu=False, use_custom_strategy=True).run(config)
        self.assertEqual(found["task"], {"type": "worker", "index": 0})
        self.assertEqual(len(set(found["cluster"]["worker"])), 3)

    def test_np_below_minus_1_stays_on_the_drivers_machine(self):
        self.assertEqual(troupe.HorovodRunner(np=-3, use_gpu=False).run(say_where, folder=self.folder), {"rank": 0, "ranks": 3})
        self.assertEqual(self.nodes(), {rank: "no node" for rank in range(3)})

    def test_the_failure_of_a_rank_is_raised_with_its_rank_its_node_and_its_text(self):
        runners = (troupe.TorchDistributor(3, local_mode=False, use_gpu=False), troupe.HorovodRunner(np=3, use_gpu=False),
                   troupe.MirroredStrategyRunner(3, use_gpu=False, use_custom_strategy=True))
        for runner in runners:
            with self.subTest(type(runner).__name__), self.assertRaises(troupe.RankFailed) as caught:
                runner.run(fail_on_rank_2, folder=self.folder)
            failed = caught.exception
            self.assertEqual((failed.rank, failed.node), (2, self.nodes()[2]))
            self.assertIn(f"rank 2 of 3 on node {failed.node} failed: LookupError: no shard for rank 2\n", str(failed))
            self.assertIn("in fail_on_rank_2", failed.traceback)
            self.assertIsInstance(failed.__cause__, LookupError)


if __name__ == "__main__":
    unittest.main()
