"""TensorFlow 2 on CPUs."""

import shutil
import sys
import tempfile

import troupe
from hosts import two_hosts
from support import PROGRAMS, FrameworkTest, launched


class StrategyTest(FrameworkTest):
    def test_two_workers_find_each_other_by_tf_config_and_add_their_gradients(self):
        done = launched(2, "tensorflow_train.py", options=["--env", "TF_CPP_MIN_LOG_LEVEL=2"])
        self.assertEqual(self.results(done), [f"worker {rank} 2 10.0 0.9" for rank in range(2)])

    def test_workers_on_two_hosts_run_the_program_of_a_folder_that_is_sent(self):
        with tempfile.TemporaryDirectory() as folder, two_hosts(self) as hosts:
            shutil.copy(PROGRAMS / "tensorflow_train.py", f"{folder}/train.py")
            done = hosts.launched("--env", "TF_CPP_MIN_LOG_LEVEL=2", "--workdir", folder, "--", sys.executable, "train.py")
        self.assertEqual(self.results(done), [f"worker {rank} 2 10.0 0.9" for rank in range(2)])
        self.assertIn("2 ranks on 2 nodes", done.text)

    def test_mirrored_strategy_runner_calls_the_function_in_the_scope_of_a_strategy(self):
        def train(start):
            import tensorflow as tf

            strategy = tf.distribute.get_strategy()
            weight = tf.Variable(start)
            return type(strategy).__name__, strategy.num_replicas_in_sync, type(weight).__name__, float(weight.numpy())

        runner = troupe.MirroredStrategyRunner(num_slots=2, local_mode=True, use_gpu=False)
        self.assertEqual(runner.run(train, start=2.0)[1:], (2, "MirroredVariable", 2.0))
