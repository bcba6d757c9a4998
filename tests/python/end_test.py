"""How runs end: by Ctrl-C, with their driver, by a time limit, and by starting anew."""

import contextlib
import io
import os
import re
import signal
import tempfile
import unittest
from pathlib import Path

import troupe
from support import driver, is_alive, printed, variables, wait_for

LONG = """
    import troupe

    def wait():
        import os, time
        print("pid", os.getpid())
        while True:
            time.sleep(0.1)
            print("still here")

    try:
        troupe.TorchDistributor(2, use_gpu=False).run(wait)
    except KeyboardInterrupt:
        print("interrupted")
"""


def start():
    """-> a driver, and the pids of its two ranks."""
    child = driver(LONG, start_new_session=True)
    pids = []
    while len(pids) < 2:
        line = child.stdout.readline()
        if found := re.search(r"\] pid (\d+)", line):
            pids.append(int(found[1]))
        elif not line:
            raise AssertionError("the driver ended")
    return child, pids


class EndTest(unittest.TestCase):
    def test_ctrl_c_ends_all_ranks_before_the_exception_goes_on(self):
        child, pids = start()
        child.send_signal(signal.SIGINT)
        text = child.communicate(timeout=60)[0]
        self.assertIn("SIGINT ended all ranks", text)
        self.assertIn("interrupted", text)
        self.assertEqual(child.returncode, 0)
        self.assertFalse(any(map(is_alive, pids)))

    def test_ctrl_c_that_another_thread_was_given_ends_all_ranks_too(self):
        child = driver("""
            import signal, threading, troupe

            class Output:
                # A thread of the package writes what the ranks print.
                def write(self, text):
                    if "is there" in text:
                        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
                def flush(self):
                    pass

            def wait():
                import time
                print("is there")
                time.sleep(100)

            import contextlib
            try:
                with contextlib.redirect_stdout(Output()):
                    troupe.TorchDistributor(2, use_gpu=False).run(wait)
            except KeyboardInterrupt:
                print("interrupted")
            """)
        self.assertIn("interrupted", child.communicate(timeout=60)[0])
        self.assertEqual(child.returncode, 0)

    def test_a_driver_that_is_killed_takes_its_ranks_along(self):
        child, pids = start()
        child.kill()
        child.communicate(timeout=60)
        wait_for(lambda: not any(map(is_alive, pids)))

    def test_the_next_run_removes_what_a_driver_that_was_killed_has_left(self):
        with tempfile.TemporaryDirectory() as folder, variables(TMPDIR=folder):
            child, pids = start()
            left = list(Path(folder).glob("troupe-call-*"))
            self.assertEqual(len(left), 1)
            other, other_pids = start()
            self.assertTrue(left[0].exists())  # of a driver that runs
            child.kill()
            child.communicate(timeout=60)
            wait_for(lambda: not any(map(is_alive, pids)))
            third, third_pids = start()
            self.assertFalse(left[0].exists())
            for running in (other, third):
                running.send_signal(signal.SIGINT)
                running.communicate(timeout=60)
            self.assertFalse(any(map(is_alive, other_pids + third_pids)))
            self.assertEqual(list(Path(folder).glob("troupe-call-*")), [])

    def test_output_that_cannot_be_written_is_told_as_that(self):
        class Full(io.StringIO):
            def write(self, text):
                raise OSError(28, "No space left on device")

        def speak():
            import time

            while True:
                print("still here")
                time.sleep(0.1)

        with printed(), contextlib.redirect_stdout(Full()):
            with self.assertRaisesRegex(troupe.TroupeError, r"cannot be written \(standard output: .*No space left on device"):
                troupe.TorchDistributor(use_gpu=False).run(speak)

    def test_a_time_limit_is_an_exception_of_its_own(self):
        def wait():
            import time

            time.sleep(100)

        with printed(), self.assertRaisesRegex(TimeoutError, "longer than 0.5 s"):
            troupe.TorchDistributor(use_gpu=False, options=troupe.RunOptions(timeout=0.5)).run(wait)

    def test_with_restarts_the_ranks_are_started_anew_and_logs_are_kept(self):
        def train():
            attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
            print("attempt", attempt)
            if attempt < 2 and os.environ["RANK"] == "1":
                raise RuntimeError("not yet")
            return attempt

        with tempfile.TemporaryDirectory() as folder:
            options = troupe.RunOptions(max_restarts=2, log_dir=folder)
            with printed():
                self.assertEqual(troupe.TorchDistributor(2, use_gpu=False, options=options).run(train), 2)
            self.assertIn("attempt 2", Path(folder, "restart-2", "rank-0.log").read_text())

    def test_who_reads_the_output_and_goes_ends_the_ranks(self):
        child, pids = start()
        child.stdout.close()
        self.assertNotEqual(child.wait(20), 0)
        self.assertFalse(any(map(is_alive, pids)))


if __name__ == "__main__":
    unittest.main()
