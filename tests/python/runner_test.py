"""The parameters of the three runners, and where their ranks run."""

import inspect
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

import troupe
from support import PROGRAM, cluster, driver, printed, two_gpus, variables
from troupe import _binary, _gpus


def parameters(runner):
    """As callers of the original give them."""
    found = inspect.signature(runner).parameters.values()
    return {each.name: None if each.default is each.empty else each.default
            for each in found if each.kind is not each.KEYWORD_ONLY}


def size_and_gpus():
    return int(os.environ["WORLD_SIZE"]), os.environ["CUDA_VISIBLE_DEVICES"]


class SignatureTest(unittest.TestCase):
    def test_parameters_and_defaults_are_those_of_the_originals(self):
        self.assertEqual(parameters(troupe.TorchDistributor), {"num_processes": 1, "local_mode": True, "use_gpu": True})
        self.assertEqual(parameters(troupe.HorovodRunner), {"np": None, "driver_log_verbosity": "log_callback_only"})
        self.assertEqual(parameters(troupe.MirroredStrategyRunner),
                         {"num_slots": None, "local_mode": False, "use_gpu": True, "gpu_resource_name": "gpu", "use_custom_strategy": False})

    def test_values_that_mean_nothing_are_refused(self):
        for make in (lambda: troupe.TorchDistributor(0), lambda: troupe.HorovodRunner(0), lambda: troupe.HorovodRunner(-1, "loud"),
                     lambda: troupe.MirroredStrategyRunner(0), lambda: troupe.MirroredStrategyRunner(1, gpu_resource_name="fpga")):
            self.assertRaises(ValueError, make)

    def test_a_cluster_that_nobody_names_is_asked_for(self):
        with variables(TROUPE_ADDRESS=None):
            for runner in (troupe.TorchDistributor(1, local_mode=False, use_gpu=False), troupe.HorovodRunner(1),
                           troupe.MirroredStrategyRunner(1, use_gpu=False)):
                with self.assertRaisesRegex(troupe.TroupeError, "set TROUPE_ADDRESS"):
                    runner.run(size_and_gpus)

    def test_a_local_run_does_not_go_to_the_cluster(self):
        with variables(TROUPE_ADDRESS="127.0.0.1:1"), printed():
            self.assertEqual(troupe.TorchDistributor(2, use_gpu=False).run(size_and_gpus), (2, ""))


class PathTest(unittest.TestCase):
    def test_the_token_file_and_the_folder_for_files_may_be_relative_to_the_callers_folder(self):
        with cluster("--cpus", "2"), tempfile.TemporaryDirectory() as folder:
            token = next(Path(os.environ["XDG_STATE_HOME"]).rglob("*token*"))
            shutil.copy(token, Path(folder, "own-token"))
            Path(folder, "own-python").write_text(f"#!/bin/sh\nexec {sys.executable} \"$@\"\n")
            Path(folder, "own-python").chmod(0o755)
            with variables(XDG_STATE_HOME=f"{folder}/none", TROUPE_TOKEN_FILE="own-token", TROUPE_TOKEN=None, TMPDIR="."):
                child = driver("""
                    import os, troupe
                    options = troupe.RunOptions(python="./own-python")
                    print(troupe.TorchDistributor(1, local_mode=False, use_gpu=False, options=options).run(os.getcwd))
                """, cwd=folder)
                text = child.communicate(timeout=300)[0]
            self.assertIn(os.path.realpath(folder) + "\n", text)
            self.assertEqual(child.returncode, 0)


class GpuTest(unittest.TestCase):
    def test_a_machine_without_gpus_says_what_to_change(self):
        with variables(CUDA_VISIBLE_DEVICES=""):
            with self.assertRaisesRegex(troupe.TroupeError, "say use_gpu=False, or local_mode=False"):
                troupe.TorchDistributor(2)
            with self.assertRaisesRegex(ValueError, "0 GPUs .*say use_gpu=False"):
                troupe.MirroredStrategyRunner(1, local_mode=True).run(size_and_gpus)
            with printed(), self.assertRaisesRegex(troupe.TroupeError, "gpu.*say use_gpu=False"):
                troupe.HorovodRunner(-2, use_gpu=True).run(size_and_gpus)

    def test_more_processes_than_gpus_become_as_many(self):
        with mock.patch.object(_gpus, "count_here", return_value=2), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.assertEqual(troupe.TorchDistributor(5).num_processes, 2)
            self.assertEqual(troupe.DeepspeedTorchDistributor(5).num_processes, 2)
        self.assertIn("num_processes is 5 and this machine has 2 GPUs: there are 2 ranks now", str(caught[0].message))
        self.assertIn("numGpus * nnodes is 5 and this machine has 2 GPUs", str(caught[1].message))
        self.assertEqual([each.filename for each in caught], [__file__, __file__])

    def test_visible_devices_are_counted_as_cuda_does(self):
        for visible, count in (("0,1", 2), ("3,-1,2", 1), ("", 0), ("GPU-1a", 1)):
            with variables(CUDA_VISIBLE_DEVICES=visible):
                self.assertEqual(len(_gpus._named()), count, visible)

    def test_ranks_in_a_cluster_see_their_nodes_gpus_and_workers_of_tensorflow_their_own(self):
        def gpus():
            return os.environ["CUDA_VISIBLE_DEVICES"]

        with cluster("--cpus", "2", "--gpus", "2"), printed():
            self.assertEqual(troupe.TorchDistributor(2, local_mode=False).run(gpus), "0,1")
            self.assertEqual(troupe.HorovodRunner(2).run(gpus), "0,1")
            self.assertEqual(troupe.MirroredStrategyRunner(2, use_custom_strategy=True).run(gpus), "0")
            self.assertEqual(troupe.TorchDistributor(2, local_mode=False, use_gpu=False).run(gpus), "")
            with self.assertRaisesRegex(troupe.TroupeError, "3 ranks of cpu 1, gpu 1.*say use_gpu=False"):
                troupe.TorchDistributor(3, local_mode=False).run(gpus)

    def test_n_gpus_is_a_rank_for_each_gpu_of_the_cluster(self):
        show = "echo $RANK of $WORLD_SIZE sees $CUDA_VISIBLE_DEVICES"
        with cluster("--cpus", "2", "--gpus", "2"):
            done = subprocess.run([PROGRAM, "run", "-n", "gpus", "--", "sh", "-c", show], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), [f"[{rank}] {rank} of 2 sees 0,1" for rank in range(2)])


    def test_n_gpus_is_a_rank_on_each_gpu_of_this_machine_and_they_share_its_cores(self):
        def ranks(size, cores, show="$WORLD_SIZE $CUDA_VISIBLE_DEVICES", **more):
            done = subprocess.run([PROGRAM, "run", "-n", size, "--", "sh", "-c", f"echo {show}"], capture_output=True, text=True,
                                  env=environment | more, preexec_fn=lambda: os.sched_setaffinity(0, cores))
            self.assertEqual(done.returncode, 0, done.stderr)
            return sorted(done.stdout.splitlines())

        all_cores = os.sched_getaffinity(0)
        with two_gpus() as environment:
            environment.pop("OMP_NUM_THREADS", None)
            for cores in (all_cores, {min(all_cores)}):  # with fewer cores than GPUs, too
                self.assertEqual(ranks("gpus", cores), [f"[{rank}] 2 GPU-00,GPU-22" for rank in range(2)])
            one_gpu = {"CUDA_VISIBLE_DEVICES": "GPU-00"}
            threads = [ranks(size, all_cores, "$WORLD_SIZE $OMP_NUM_THREADS", **one_gpu) for size in ("gpus", "1")]
            self.assertEqual(threads[0], threads[1])


class HorovodRunnerTest(unittest.TestCase):
    def test_negative_numbers_are_processes_on_this_machine(self):
        def ranks():
            names = ("HOROVOD_RANK", "HOROVOD_SIZE", "HOROVOD_LOCAL_SIZE", "HOROVOD_CROSS_SIZE")
            return [int(os.environ[name]) for name in names]

        with variables(CUDA_VISIBLE_DEVICES=""), printed():
            self.assertEqual(troupe.HorovodRunner(np=-3).run(ranks), [0, 3, 3, 1])
            self.assertEqual(troupe.HorovodRunner(np=-1).run(ranks), [0, 1, 1, 1])  # no GPU here

    def test_minus_1_is_a_process_for_each_gpu_of_this_machine(self):
        with two_gpus() as environment:  # of three that NVML counts one is off the bus
            child = driver("""
                import os, troupe
                def place():
                    return os.environ["HOROVOD_SIZE"], os.environ["CUDA_VISIBLE_DEVICES"]
                print(troupe.HorovodRunner(np=-1).run(place), troupe.HorovodRunner(np=-1, use_gpu=False).run(place))
            """, env=environment)
            text = child.communicate(timeout=300)[0]
        self.assertIn("('2', 'GPU-00,GPU-22') ('1', '')\n", text)

    def test_minus_1_stays_on_this_machine_where_a_cluster_with_gpus_is_named(self):
        with cluster("--cpus", "2", "--gpus", "2"), variables(CUDA_VISIBLE_DEVICES=""), printed():
            self.assertEqual(troupe.HorovodRunner(np=-1).run(size_and_gpus), (1, ""))

    def test_in_a_cluster_only_log_to_driver_is_shown_unless_all_is_asked_for(self):
        def speak(lr):
            print("loud")
            troupe.log_to_driver(f"epoch\n1 {lr}")
            return lr

        with cluster("--cpus", "2"):
            for verbosity in ("log_callback_only", "all"):
                with printed() as text:
                    self.assertEqual(troupe.HorovodRunner(np=2, driver_log_verbosity=verbosity).run(speak, lr=3), 3)
                self.assertEqual(text.getvalue().count("epoch\n1 3\n"), 2)
                self.assertEqual("loud" in text.getvalue(), verbosity == "all")


class MirroredStrategyRunnerTest(unittest.TestCase):
    """With a module in the place of TensorFlow: tests/frameworks has the real one."""

    TENSORFLOW = """
import contextlib, types
active = []
class MultiWorkerMirroredStrategy:
    @contextlib.contextmanager
    def scope(self):
        active.append(1)
        yield
distribute = types.SimpleNamespace(MultiWorkerMirroredStrategy=MultiWorkerMirroredStrategy)
"""

    def test_the_function_is_called_in_the_scope_of_a_strategy_unless_it_makes_its_own(self):
        def train(words):
            import json

            import tensorflow

            config = json.loads(os.environ["TF_CONFIG"])
            return words, len(tensorflow.active), len(config["cluster"]["worker"]), config["task"]

        with tempfile.TemporaryDirectory() as folder, printed(), mock.patch.object(sys, "path", [*sys.path, folder]):
            Path(folder, "tensorflow.py").write_text(self.TENSORFLOW)
            for custom in (False, True):
                runner = troupe.MirroredStrategyRunner(num_slots=2, local_mode=True, use_gpu=False, use_custom_strategy=custom)
                self.assertEqual(runner.run(train, words="x"), ("x", 0 if custom else 1, 2, {"type": "worker", "index": 0}))


class BinaryTest(unittest.TestCase):
    def test_a_program_that_is_not_there_is_told_with_what_to_do(self):
        with variables(TROUPE_BINARY=None, PATH="/nowhere"), self.assertRaisesRegex(troupe.TroupeError, "./run package.*TROUPE_BINARY"):
            _binary.find()
        with variables(TROUPE_BINARY="/nowhere/troupe"), self.assertRaisesRegex(troupe.TroupeError, "names '/nowhere/troupe'"):
            _binary.find()

    def test_path_is_searched_for_the_program_and_not_for_a_script_of_its_name(self):
        program = os.environ["TROUPE_BINARY"]
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as script:
            os.symlink(program, Path(folder, "troupe"))
            Path(script, "troupe").write_text("#!/bin/sh\n")
            Path(script, "troupe").chmod(0o755)
            with variables(TROUPE_BINARY=None, PATH=f"{script}:{folder}"):
                self.assertEqual(_binary.find(), f"{folder}/troupe")


if __name__ == "__main__":
    unittest.main()
