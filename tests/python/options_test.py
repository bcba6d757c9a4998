"""RunOptions, which are those of `troupe run`."""

import os
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

import troupe
from support import PROGRAM, cluster, printed, wait_for


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

    def test_ranks_are_started_anew_with_more_where_room_comes(self):
        def train(folder):
            size = int(os.environ["WORLD_SIZE"])
            Path(folder, f"size-{size}").touch()
            while size < 2:
                time.sleep(0.05)
            return size, os.environ["TORCHELASTIC_RESTART_COUNT"]

        with cluster("--cpus", "2"), tempfile.TemporaryDirectory() as folder:
            holder = subprocess.Popen([PROGRAM, "run", "--", "sh", "-c", "echo here; exec sleep 600"], stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT)
            self.addCleanup(holder.wait, 60)
            self.addCleanup(holder.terminate)
            self.addCleanup(holder.stdout.close)
            holder.stdout.readline()

            def make_room():
                wait_for(Path(folder, "size-1").exists)
                holder.terminate()

            thread = threading.Thread(target=make_room)
            thread.start()
            options = troupe.RunOptions(min_ranks=1, max_restarts=1, grow_after=1, timeout=60)
            with printed() as text:
                grown = troupe.TorchDistributor(2, local_mode=False, use_gpu=False, options=options).run(train, folder)
            thread.join()
            self.assertEqual(grown, (2, "0"))
            self.assertIn("room for 2 ranks for 1 s, and 1 run", text.getvalue())

    def test_only_ranks_of_no_fixed_number_that_may_be_restarted_grow(self):
        with cluster("--cpus", "2"):
            for options in ({}, {"min_ranks": 1}, {"max_restarts": 1}, {"min_ranks": 3, "max_restarts": 1}):
                with self.subTest(options), self.assertRaisesRegex(ValueError, "grow_after"):
                    self.ranks(grow_after=5, **options)
            self.assertEqual(self.ranks(min_ranks=1, max_restarts=1, grow_after="never"), 2)

    def test_labels_memory_and_strategies_decide_where_ranks_run(self):
        with cluster("--cpus", "3", "--label", "zone=a"):
            self.assertEqual(self.ranks(labels={"zone": "a"}, memory_gb=0.1, per_node=3, strategy="strict-pack", grace=1), 3)
            for refused in ({"labels": {"zone": "b"}}, {"memory_gb": 1e6}, {"strategy": "strict-spread"}, {"strategy": "everywhere"}):
                with self.subTest(refused), self.assertRaises(troupe.TroupeError):
                    self.ranks(**refused)


if __name__ == "__main__":
    unittest.main()
