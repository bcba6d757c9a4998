"""DeepspeedTorchDistributor, without DeepSpeed: what its ranks are given."""

import inspect
import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

import troupe
from support import cluster, printed

CONFIG = {"train_batch_size": 8, "zero_optimization": {"stage": 1}}


def told():
    """-> the arguments of DeepSpeed, and its configuration."""
    arguments = sys.argv[1:]
    config = json.loads(Path(arguments[2]).read_text()) if len(arguments) > 1 else None
    return arguments[:2], config, os.environ["LOCAL_WORLD_SIZE"]


class DeepspeedTest(unittest.TestCase):
    def run_function(self, **named):
        with printed():
            return troupe.DeepspeedTorchDistributor(2, useGpu=False, **named).run(told)

    def test_parameters_and_defaults_are_those_of_the_original(self):
        found = inspect.signature(troupe.DeepspeedTorchDistributor).parameters.values()
        self.assertEqual({each.name: each.default for each in found if each.kind is not each.KEYWORD_ONLY},
                         {"numGpus": 1, "nnodes": 1, "localMode": True, "useGpu": True, "deepspeedConfig": None})

    def test_a_function_has_the_arguments_and_the_configuration(self):
        self.assertEqual(self.run_function(), (["--deepspeed"], None, "2"))
        expected = (["--deepspeed", "--deepspeed_config"], CONFIG, "2")
        self.assertEqual(self.run_function(deepspeedConfig=CONFIG), expected)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "ds.json")
            file.write_text(json.dumps(CONFIG))
            self.assertEqual(self.run_function(deepspeedConfig=str(file)), expected)
            self.assertEqual(self.run_function(deepspeedConfig=file), expected)

    def test_a_file_has_them_behind_its_own_arguments(self):
        with tempfile.TemporaryDirectory() as folder, printed() as text:
            file = Path(folder, "train.py")
            file.write_text("import json, sys\nprint(sys.argv[1:-1], json.load(open(sys.argv[-1]))['train_batch_size'])\n")
            troupe.DeepspeedTorchDistributor(2, useGpu=False, deepspeedConfig=CONFIG).run(str(file), "--lr", 0.1)
        for rank in (0, 1):
            self.assertIn(f"[{rank}] ['--lr', '0.1', '--deepspeed', '--deepspeed_config'] 8\n", text.getvalue())

    def test_in_a_cluster_each_node_has_as_many_ranks(self):
        with cluster("--cpus", "4"):
            self.assertEqual(self.run_function(localMode=False)[2], "2")
            with printed(), self.assertRaises(troupe.TroupeError):  # there is one node
                troupe.DeepspeedTorchDistributor(2, nnodes=2, localMode=False, useGpu=False).run(told)

    def test_configurations_that_cannot_be_are_refused(self):
        make = troupe.DeepspeedTorchDistributor
        with self.assertRaisesRegex(FileNotFoundError, "'/no/ds.json' cannot be read"):
            make(useGpu=False, deepspeedConfig="/no/ds.json")
        with self.assertRaisesRegex(TypeError, "deepspeedConfig cannot be written as JSON"):
            make(useGpu=False, deepspeedConfig={"a": object()})
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write("{train_batch_size: 8}")
            file.flush()
            with self.assertRaisesRegex(ValueError, "is no JSON"):
                make(useGpu=False, deepspeedConfig=file.name)
        for numbers in ((0,), (1, 0), (2.0,)):
            with self.assertRaisesRegex(ValueError, "has to be a positive integer"):
                make(*numbers, useGpu=False)
        with self.assertRaisesRegex(ValueError, "min_ranks is 3, and has to be a multiple of the 2 ranks of each node"):
            make(2, 2, localMode=False, useGpu=False, options=troupe.RunOptions(min_ranks=3))


if __name__ == "__main__":
    unittest.main()
