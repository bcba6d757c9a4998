"""Functions that are carried to ranks, and what comes back."""

import contextlib
import io
import os
import pickle
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import troupe
from support import printed, variables


def on_cpus(ranks, options=None):
    return troupe.TorchDistributor(num_processes=ranks, local_mode=True, use_gpu=False, options=options)


class FunctionTest(unittest.TestCase):
    def test_the_value_of_rank_0_comes_back_and_arguments_go_there(self):
        def where(a, *rest, b=0):
            return {name: os.environ[name] for name in ("RANK", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES")}, a, rest, b

        with printed():
            self.assertEqual(on_cpus(3).run(where, 1, 2, b="x"),
                             ({"RANK": "0", "WORLD_SIZE": "3", "CUDA_VISIBLE_DEVICES": ""}, 1, (2,), "x"))

    def test_a_result_that_cannot_be_fetched_is_told_as_that(self):
        def leave_a_folder():
            os.mkdir(os.environ.pop("TROUPE_RESULT_FILE"))

        with printed(), self.assertRaisesRegex(troupe.TroupeError, "what the function returned on rank 0 cannot be brought here") as raised:
            on_cpus(1).run(leave_a_folder)
        self.assertNotIn("could not be started", str(raised.exception))

    def test_a_message_to_the_driver_has_at_most_4000_characters(self):
        def speak():
            troupe.log_to_driver("x" * 3_000_000)

        with printed() as text:
            on_cpus(1).run(speak)
        self.assertIn("[0] " + "x" * 4000 + "\n", text.getvalue())
        self.assertNotIn("x" * 4001, text.getvalue())

    def test_what_ranks_print_appears_with_their_numbers(self):
        def speak():
            print("from", os.environ["RANK"])

        with printed() as text:
            self.assertIsNone(on_cpus(2).run(speak))
        self.assertIn("[0] from 0\n", text.getvalue())
        self.assertIn("[1] from 1\n", text.getvalue())

    def test_an_exception_on_any_rank_comes_back_with_rank_node_and_traceback(self):
        class OwnError(Exception):
            pass

        def fail(rank):
            if int(os.environ["RANK"]) == rank:
                raise OwnError("no such batch")
            threading.Event().wait(60)

        for rank in (0, 1):
            with self.subTest(rank=rank), printed() as text, self.assertRaises(troupe.RankFailed) as raised:
                on_cpus(2).run(fail, rank)
            error = raised.exception
            self.assertEqual((error.rank, error.exit_code, error.signal), (rank, 1, 0))
            self.assertRegex(str(error), rf"^rank {rank} of 2 on node \S+ failed: .*OwnError: no such batch\n")
            self.assertIn("in fail\n", error.traceback)
            self.assertNotIn("_rank.py", error.traceback)
            self.assertEqual(type(error.__cause__).__name__, "OwnError")
            self.assertIn(f"[{rank}] Traceback (most recent call last):\n", text.getvalue())
            self.assertNotIn("troupe-rank-failure", text.getvalue() + str(error))

    def test_a_failure_travels_to_other_processes(self):
        with printed(), self.assertRaises(troupe.RankFailed) as raised:
            on_cpus(2).run(lambda: os._exit(3 if os.environ["RANK"] == "1" else 0))
        error, copy = raised.exception, pickle.loads(pickle.dumps(raised.exception))
        self.assertEqual(str(copy), str(error))
        self.assertEqual((copy.rank, copy.node, copy.exit_code), (1, error.node, 3))

    def test_a_carriage_return_stands_within_a_line(self):
        with printed() as text:
            on_cpus(1).run(lambda: print("10 %\r20 %\rdone"))
        self.assertIn("[0] 10 %\r20 %\rdone\n", text.getvalue())

    def test_characters_that_a_terminal_lacks_end_nothing(self):
        terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        with contextlib.redirect_stdout(terminal), contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(on_cpus(1).run(lambda: print("naïve") or 5), 5)
        self.assertIn(b"[0] na?ve\n", terminal.buffer.getvalue())

    def test_a_rank_that_says_no_exception_is_told_with_its_last_lines(self):
        def end(how):
            print("last words")
            if how == "exit":
                os._exit(7)
            os.kill(os.getpid(), 11)

        with printed(), self.assertRaisesRegex(troupe.RankFailed, "(?s)ended with exit code 7; its last lines:.*last words"):
            on_cpus(1).run(end, "exit")
        with printed(), self.assertRaises(troupe.RankFailed) as raised:
            on_cpus(1).run(end, "signal")
        self.assertEqual(raised.exception.signal, 11)

    def test_an_exception_that_cannot_be_pickled_still_has_its_text(self):
        def fail():
            error = ValueError("has a lock")
            error.lock = threading.Lock()
            raise error

        with printed(), self.assertRaisesRegex(troupe.RankFailed, "ValueError: has a lock") as raised:
            on_cpus(1).run(fail)
        self.assertIsNone(raised.exception.__cause__)

    def test_sys_exit_0_is_a_return_and_another_status_a_failure(self):
        import sys

        with printed():
            self.assertIsNone(on_cpus(1).run(lambda: sys.exit()))
        with printed(), self.assertRaises(troupe.RankFailed) as raised:
            on_cpus(1).run(lambda: sys.exit(5))
        self.assertEqual(raised.exception.exit_code, 5)

    def test_what_cannot_be_pickled_is_told_either_way(self):
        lock = threading.Lock()
        with self.assertRaisesRegex(TypeError, "cannot be pickled .*make what cannot travel"):
            on_cpus(1).run(lambda: lock)
        with printed(), self.assertRaisesRegex(troupe.RankFailed, "returned on rank 0, a lock, cannot be pickled"):
            on_cpus(1).run(lambda: threading.Lock())

    def test_large_values_travel(self):
        with printed():
            self.assertEqual(on_cpus(2).run(lambda data: data[::-1], bytes(20_000_000) + b"end")[:3], b"dne")

    def test_ranks_need_neither_this_package_nor_cloudpickle(self):
        with tempfile.TemporaryDirectory() as folder:
            bare = Path(folder, "bare")
            subprocess.run(["python3", "-m", "venv", "--without-pip", bare], check=True)
            python = str(bare / "bin" / "python")

            def look():
                import sys

                import cloudpickle

                return sys.prefix, troupe.__file__, cloudpickle.__file__

            with printed(), variables(PYTHONPATH=None):
                prefix, *files = on_cpus(1, troupe.RunOptions(python=python, env={"PYTHONPATH": ""})).run(look)
        self.assertEqual(prefix, str(bare))
        for file in files:
            self.assertIn("/attached/", file)

    def test_modules_beside_the_program_are_found_and_the_directory_is_its_own(self):
        import support  # by its name: it is a module, and no part of the function

        with printed():
            file, directory = on_cpus(1).run(lambda: (support.__file__, os.getcwd()))
        self.assertEqual((file, directory), (support.__file__, os.getcwd()))

    def test_a_sent_folder_is_the_working_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "data.txt").write_text("here")
            with printed():
                self.assertEqual(on_cpus(2, troupe.RunOptions(workdir=folder)).run(lambda: Path("data.txt").read_text()), "here")


if __name__ == "__main__":
    unittest.main()
