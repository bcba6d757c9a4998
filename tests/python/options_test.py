"""RunOptions, which are those of `troupe run`."""

import os
import unittest

import troupe
from support import cluster, printed


class RunOptionsTest(unittest.TestCase):
    def ranks(self, **options):
        with printed():
            return troupe.TorchDistributor(3, local_mode=False, use_gpu=False, options=troupe.RunOptions(**options)).run(
                lambda: int(os.environ["WORLD_SIZE"]))

    def test_ranks_are_as_many_as_fit(self):
        with cluster("--cpus", "2"):
            self.assertEqual(self.ranks(min_ranks=1), 2)
            with self.assertRaises(troupe.TroupeError):
                self.ranks(min_ranks=3)
            with self.assertRaisesRegex(ValueError, "at most 3 ranks"):
                self.ranks(min_ranks=4)

    def test_labels_memory_and_strategies_decide_where_ranks_run(self):
        with cluster("--cpus", "3", "--label", "zone=a"):
            self.assertEqual(self.ranks(labels={"zone": "a"}, memory_gb=0.1, per_node=3, strategy="strict-pack", grace=1), 3)
            for refused in ({"labels": {"zone": "b"}}, {"memory_gb": 1e6}, {"strategy": "strict-spread"}, {"strategy": "everywhere"}):
                with self.subTest(refused), self.assertRaises(troupe.TroupeError):
                    self.ranks(**refused)


if __name__ == "__main__":
    unittest.main()
