"""What stands on PyTorch 2.11: Accelerate, Lightning, Transformers, DeepSpeed, safetensors; on CPUs with gloo."""

import json
import re
import sys
import tempfile
from pathlib import Path

from support import ONE_THREAD, PROGRAM, PROGRAMS, FrameworkTest, launched, run


class FindingTest(FrameworkTest):
    """Libraries that ask their surroundings for the ranks."""

    def test_accelerate(self):
        self.assertEqual(self.results(launched(2, "accelerate_train.py")), ["MULTI_CPU 2 DistributedDataParallel [0, 1] 2"] * 2)

    def test_lightning(self):
        self.assertEqual(self.results(launched(2, "lightning_train.py")), [f"TorchElasticEnvironment {rank} 2 gloo 4" for rank in range(2)])

    def test_the_trainer_of_hugging_face(self):
        options = ["--env", "HF_HUB_OFFLINE=1"]
        self.assertEqual(self.results(launched(2, "trainer.py", options=options)), [f"{rank} 2 distributed 3" for rank in range(2)])


class DeepSpeedScheduleTest(FrameworkTest):
    """The numbers that tests/train/deepspeed compares Troupe's schedules with are those of the DeepSpeed that is installed."""

    def test_the_numbers_are_those_of_deepspeed(self):
        committed = Path(__file__).resolve().parents[1] / "train" / "deepspeed" / "schedule_vectors.hpp"
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder, "made.hpp")
            done = run([sys.executable, PROGRAMS / "deepspeed_schedules.py", made])
            self.assertEqual(done.status, 0, done.text)
            self.assertEqual(made.read_text(), committed.read_text())


class SafetensorsTest(FrameworkTest):
    """A net that an example trained and wrote is the same net in PyTorch."""

    def test_pytorch_reads_what_the_example_wrote(self):
        tree = Path(__file__).resolve().parents[2]
        data = tree / "examples/data/digits/digits.csv.gz"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "net.safetensors")
            trained = run([Path(PROGRAM).parents[1] / "examples/train/fine_tune", "--data", data, "--file", file])
            self.assertEqual(trained.status, 0, trained.text)
            wanted = re.match(r"958 rows .*: (\d+ %)", trained.text)
            self.assertTrue(wanted, trained.text)
            read = run(["env", "-C", folder, sys.executable, PROGRAMS / "safetensors_read.py", file, data])
            self.assertEqual(self.results(read), [wanted[1]])


class DeepSpeedTest(FrameworkTest):
    """DeepSpeed finds its ranks by the variables of torchrun. It compiles what it uses of shared memory, once in each environment."""

    COMPILE = "from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder; ShareMemCommBuilder().load(verbose=False)"

    @classmethod
    def setUpClass(cls):
        made = Path(sys.prefix, "torch_extensions")
        if not any(made.glob("*/*.so")):  # in a run of its own: it takes minutes of the limit where cores are busy
            run([sys.executable, "-c", cls.COMPILE], TORCH_EXTENSIONS_DIR=str(made))
        cls.done = launched(2, "deepspeed_zero.py", options=["--env", f"TORCH_EXTENSIONS_DIR={made}", *ONE_THREAD])
        cls.told = sorted((json.loads(result) for result in cls.done.results), key=lambda told: told["rank"])

    def setUp(self):
        self.assertEqual((self.done.status, len(self.told)), (0, 2), self.done.text)

    def test_it_finds_its_ranks(self):
        self.assertEqual([(told["rank"], told["ranks"], told["local_rank"]) for told in self.told], [(0, 2, 0), (1, 2, 1)])

    def test_each_stage_of_zero_has_the_losses_of_a_run_without_it(self):
        for told in self.told:
            wanted = told["alone"]["losses"]
            self.assertNotAlmostEqual(wanted[0], wanted[-1], places=2)  # it trains
            for stage in (1, 2, 3):
                for found, expected in zip(told[f"stage {stage}"]["losses"], wanted, strict=True):
                    self.assertAlmostEqual(found, expected, delta=1e-4, msg=f"stage {stage} of rank {told['rank']}")

    def test_ranks_share_the_optimizers_state_and_in_stage_3_the_parameters(self):
        for told in self.told:
            alone = told["alone"]
            for stage in (1, 2, 3):
                found = told[f"stage {stage}"]
                self.assertTrue(alone["moments"] / 2 <= found["moments"] < alone["moments"] * 0.6, (stage, found["moments"]))
                self.assertEqual(found["parameters"], 0 if stage == 3 else alone["parameters"], stage)
