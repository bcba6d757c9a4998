"""PyTorch 2.11, on CPUs with gloo."""

import importlib.util
import json
import os
import sys
import tempfile
import unittest

import troupe
from host_pair import DEVICE
from hosts import two_hosts
from support import ONE_THREAD, PROGRAMS, FrameworkTest, cluster, launched, run


class DataParallelTest(FrameworkTest):
    def test_training_on_2_and_on_4_ranks_is_to_the_bit_that_of_torchrun(self):
        for ranks in (2, 4):
            with self.subTest(ranks=ranks):
                torchrun = run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", ranks,
                                PROGRAMS / "ddp.py"], OMP_NUM_THREADS="1")
                wanted, = self.results(torchrun)
                found, = self.results(launched(ranks, "ddp.py", options=ONE_THREAD))
                self.assertEqual(json.loads(found), json.loads(wanted))
                self.assertEqual(json.loads(found)["world"], ranks)

    def test_training_on_two_hosts_is_to_the_bit_that_of_one(self):
        with two_hosts(self) as hosts:
            # Gloo of PyTorch listens where the machine's own name leads unless it is told the interface.
            done = hosts.launched(*ONE_THREAD, "--env", f"GLOO_SOCKET_IFNAME={DEVICE}", "--", sys.executable, PROGRAMS / "ddp.py")
        found, = self.results(done)
        self.assertIn("2 ranks on 2 nodes", done.text)
        wanted, = self.results(launched(2, "ddp.py", options=ONE_THREAD))
        self.assertEqual(json.loads(found), json.loads(wanted))

    def test_torch_distributor_runs_the_function_of_a_program(self):
        def train(scale):
            import torch
            import torch.distributed as dist

            dist.init_process_group("gloo")
            total = torch.tensor([float(dist.get_rank() + 1)]) * scale
            dist.all_reduce(total)
            dist.destroy_process_group()
            return total

        value = troupe.TorchDistributor(num_processes=2, local_mode=True, use_gpu=False).run(train, 10.0)
        self.assertEqual(value.tolist(), [30.0])

    def test_torch_distributor_runs_a_file(self):
        self.assertIsNone(troupe.TorchDistributor(num_processes=2, use_gpu=False).run(str(PROGRAMS / "ddp.py")))

    def test_fully_sharded_training(self):
        self.assertEqual(self.results(launched(2, "fsdp.py")), ["0 2", "1 2"])


class CheckpointTest(FrameworkTest):
    def test_a_distributed_checkpoint_of_4_ranks_is_loaded_on_2(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.results(launched(4, "checkpoint.py", "save", folder)), [f"save {rank} (6, 5)" for rank in range(4)])
            self.assertEqual(self.results(launched(2, "checkpoint.py", "load", folder)), [f"load {rank} (12, 5)" for rank in range(2)])


class RecordTest(FrameworkTest):
    def test_the_traceback_that_record_writes_is_in_the_summary(self):
        with tempfile.TemporaryDirectory() as folder:
            summary = os.path.join(folder, "summary.json")
            done = launched(2, "recorded.py", options=["--summary", summary])
            with open(summary, encoding="utf-8") as file:
                failure = json.load(file)["failure"]
        self.assertEqual(done.status, 1, done.text)
        self.assertEqual(failure["rank"], 1)
        self.assertIn("in main", failure["traceback"])
        self.assertTrue(failure["traceback"].endswith("ValueError: a shape that does not fit"))
        self.assertIn("its traceback:\n    Traceback (most recent call last):\n", done.text)


class ElasticTest(FrameworkTest):
    def undisturbed(self, ranks):
        with tempfile.TemporaryDirectory() as folder:
            return self.results(launched(ranks, "elastic.py", folder, options=ONE_THREAD))

    def test_after_a_rank_was_killed_training_goes_on_from_its_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            done = launched("2:4", "elastic.py", folder, 5, options=["--max-restarts", 3, *ONE_THREAD])
        self.assertEqual(self.results(done), self.undisturbed(4), done.text)
        self.assertIn("was ended by signal 9", done.text)
        for rank in range(4):
            self.assertIn(f"[{rank}] attempt 1 of 4 ranks begins at step 5\n", done.text)

    def test_after_a_node_was_lost_training_goes_on_with_fewer_ranks(self):
        with tempfile.TemporaryDirectory() as folder, cluster(2) as nodes:
            child = nodes.start_run("-n", "2:4", "--max-restarts", "3", *ONE_THREAD, "--", sys.executable, PROGRAMS / "elastic.py", folder,
                                    -1, 5)
            text = ""
            for line in child.stdout:
                text += line
                if text.count("] waits\n") == 4 and nodes.workers[1].poll() is None:
                    nodes.workers[1].kill()
                    nodes.workers[1].wait()
            child.stdout.close()
            self.assertEqual(child.wait(), 0, text)
        for rank in range(2):
            self.assertRegex(text, rf"\[{rank}\] attempt [123] of 2 ranks begins at step 5\n")


WHY_NO_HOROVOD = ("skipped: Horovod is not installed beside PyTorch: its last release, 0.28.1, compiles as C++14, which the headers of PyTorch 2.11 refuse "
                  "(see the README)")


@unittest.skipUnless(importlib.util.find_spec("horovod"), WHY_NO_HOROVOD)
class HorovodTest(FrameworkTest):
    def test_its_ranks_meet_over_gloo_and_train(self):
        self.assertEqual(self.results(launched(3, "horovod_train.py", options=ONE_THREAD)), [f"{rank} 3 {rank} 3 1 6.0" for rank in range(3)])

    def test_its_ranks_meet_on_two_hosts(self):
        with two_hosts(self) as hosts:
            done = hosts.launched(*ONE_THREAD, "--", sys.executable, PROGRAMS / "horovod_train.py")
        self.assertEqual(self.results(done), [f"{rank} 2 0 1 2 3.0" for rank in range(2)])


class HorovodRunnerTest(FrameworkTest):
    """Without Horovod: a function that finds its ranks by Horovod's variables, and averages with PyTorch."""

    def test_its_function_finds_its_ranks(self):
        def train(lr):
            import torch
            import torch.distributed as dist

            assert os.environ["HOROVOD_RANK"] == os.environ["RANK"]
            dist.init_process_group("gloo", rank=int(os.environ["HOROVOD_RANK"]), world_size=int(os.environ["HOROVOD_SIZE"]))
            weight = torch.tensor([lr * (dist.get_rank() + 1)])
            dist.all_reduce(weight)
            dist.destroy_process_group()
            return (weight / int(os.environ["HOROVOD_SIZE"])).item()

        self.assertAlmostEqual(troupe.HorovodRunner(np=-2, use_gpu=False).run(train, lr=2.0), 3.0)
