#!/usr/bin/env python3
"""What ./run gate tries and leaves behind, by real runs over a small project with a ./run of its own."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

# A ./run that writes down how it was called, and where.
RUN = """#!/bin/sh
echo "$@" >> "{log}"
[ "$CI" = true ] && [ ! -t 0 ] || exit 9
pwd > "{log}.folder"
cat ../shared/data > "{log}.shared"
[ ! -e broken ] || [ "$1" != test ]
"""


class Project(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.temporary = Path(folder.name, "tmp")
        self.root = Path(folder.name, "project")
        self.log = Path(folder.name, "log")
        for made in self.temporary, self.root / "tests" / "gate", Path(folder.name, "shared"):
            made.mkdir(parents=True)
        Path(folder.name, "shared", "data").write_text("beside")
        for name in "gate.py", "starve.py":
            shutil.copy(FOLDER / name, self.root / "tests" / "gate")
        (self.root / "run").write_text(RUN.format(log=self.log))
        (self.root / "run").chmod(0o755)
        self.git("init", "--quiet")
        self.commit()

    def git(self, *arguments):
        done = subprocess.run(["git", "-C", self.root, "-c", "user.name=t", "-c", "user.email=t@t", *arguments], check=True,
                              capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, **files):
        for name, text in files.items():
            (self.root / name).mkdir(parents=True, exist_ok=True)
            (self.root / name / "file").write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "a change")
        return self.git("rev-parse", "HEAD")

    def gate(self, *arguments):
        self.log.unlink(missing_ok=True)
        done = subprocess.run([sys.executable, "-B", self.root / "tests" / "gate" / "gate.py", *arguments], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, env={**os.environ, "TMPDIR": str(self.temporary)})
        self.assertEqual(list(self.temporary.iterdir()), [], "the clone was not removed")
        self.calls = self.log.read_text().splitlines() if self.log.exists() else []
        return done.returncode, done.stdout + done.stderr

    def passed(self):
        file = self.root / ".git" / "gate"
        return file.read_text().split()[0] if file.exists() else None

    def test_a_commit_that_passes_is_written_down(self):
        (self.root / "run").write_text("not committed")
        code, printed = self.gate()
        self.assertEqual(code, 0, printed)
        self.assertEqual(self.calls, ["build", "lint", "test"])
        self.assertEqual(self.passed(), self.git("rev-parse", "HEAD"))
        self.assertEqual(Path(f"{self.log}.shared").read_text(), "beside")
        self.assertNotEqual(Path(f"{self.log}.folder").read_text().strip(), str(self.root))
        self.assertIn("what is not committed is not tried", printed)

    def test_a_commit_that_fails_is_not(self):
        self.commit(broken="")
        code, printed = self.gate("--calm")
        self.assertEqual(code, 1, printed)
        self.assertIsNone(self.passed())
        self.assertRegex(printed, r"\./run test +FAILED")

    def test_quick_runs_the_tests_of_folders_that_changed(self):
        code, printed = self.gate("--quick", "--calm")
        self.assertEqual((code, self.calls), (0, ["build", "test"]), printed)  # nothing has passed before
        self.assertIsNone(self.passed())
        self.gate("--calm")
        self.commit(tune="x", scheduler="y")
        code, printed = self.gate("--quick", "--calm")
        self.assertEqual((code, self.calls), (0, ["build", "test release -- -L ^(scheduler|tune)$"]), printed)
        self.commit(cmake="z")
        self.gate("--quick", "--calm")
        self.assertEqual(self.calls, ["build", "test"])

    def test_folders_with_changed_tests_are_tried_sanitized(self):
        self.commit(**{"tests/tune": "", "tests/runtime/node": "", "tests/runtime": ""})
        for name in "tune", "runtime", "runtime/node":
            (self.root / "tests" / name / "CMakeLists.txt").touch()
        self.commit()
        self.gate("--calm")
        self.assertEqual(self.calls, ["build", "lint", "test"])  # nothing has passed before
        self.commit(**{"tests/tune": "x"})
        for name in "runtime/node/deep/a_test.cpp", "tune/a.hpp", "b.cpp":
            (self.root / "tests" / name).parent.mkdir(exist_ok=True)
            (self.root / "tests" / name).touch()
        self.commit()
        self.gate("--calm", "--quick")
        self.assertEqual(self.calls, ["build", "test"])
        self.gate("--calm")
        self.assertEqual(self.calls, ["build", "lint", "test", "test --in tests/runtime/node --in tests/tune asan tsan"])
        for name in "runtime/a_test.cpp", "runtime/node/deep/a_test.cpp":
            (self.root / "tests" / name).write_text("y")
        self.commit()
        self.gate("--calm")
        self.assertEqual(self.calls[3:], ["test --in tests/runtime asan tsan"])
        self.commit(**{"tests/tune": "y"})
        self.gate("--calm")
        self.assertEqual(self.calls, ["build", "lint", "test"])

    def test_git_variables_of_a_hook_are_not_for_the_clone(self):
        self.git("checkout", "--quiet", "-b", "side")
        with unittest.mock.patch.dict(os.environ, {"GIT_DIR": str(self.root / ".git")}):
            code, printed = self.gate("--calm")
        self.assertEqual(code, 0, printed)
        self.assertEqual(self.git("symbolic-ref", "HEAD"), "refs/heads/side")

    def test_what_a_stage_leaves_running_is_ended(self):
        (self.root / "run").write_text(f"#!/bin/sh\nsleep 600 &\necho $! >> {self.log}\n")
        self.commit()
        code, printed = self.gate("--calm")
        self.assertEqual((code, len(self.calls)), (0, 3), printed)
        for pid in self.calls:
            wait_for(lambda: not is_alive(pid))


def wait_for(found):
    """-> what it finds"""
    deadline = time.monotonic() + 60
    while not (result := found()):
        if time.monotonic() > deadline:
            raise AssertionError("it did not come in time")
        time.sleep(0.01)
    return result


def is_alive(pid):
    try:
        return Path("/proc", pid, "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Starved(unittest.TestCase):
    def starve(self, *command):
        child = subprocess.Popen([sys.executable, "-B", FOLDER / "starve.py", *command], stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.wait)
        self.addCleanup(child.stdout.close)
        self.addCleanup(child.kill)
        return child

    def test_a_starved_command_has_its_own_exit_code(self):
        for script, code in ("exit 3", 3), ("kill -9 $$", 128 + 9):
            self.assertEqual(self.starve("sh", "-c", script).wait(60), code)

    def test_what_was_starved_does_not_stand_still_for_ever_where_starve_is_killed(self):
        printed = self.starve("true").stdout.read()
        if printed.startswith("starve: without a freezer cgroup"):
            self.skipTest(printed)
        # Both stand still for longer than the test lasts.
        nested = self.starve("--still", "900,900", sys.executable, "-B", FOLDER / "starve.py", "--still", "900,900", "sleep", "600")
        single = self.starve("--still", "900,900", "sleep", "600")
        for child in nested, single:
            folder = wait_for(lambda: self.frozen_group_of(child.pid))
            left = (folder / "cgroup.procs").read_text().split()
            self.assertNotEqual(left, [])
            child.kill()
            # The shell that removes the group has the other end of the pipe until then.
            printed = child.stdout.read()
            for pid in left:
                self.assertFalse(is_alive(pid))
                # A starve.py that had just made its group, which is removed, ends by itself.
                if child is single:
                    self.assertRegex(printed, rf"starve: process {pid} was left behind, and is killed: \S")
            self.assertFalse(folder.exists())

    def test_a_rhythm_that_cannot_be_is_refused(self):
        for still in "1", "x,y", "nan,nan", "0.9,0.2", "1e12,1e12":
            self.assertEqual(self.starve("--still", still, "true").wait(60), 2)

    @staticmethod
    def frozen_group_of(pid):
        for folder in Path("/sys/fs/cgroup").rglob(f"troupe-starved-{pid}"):
            for file, text in ("freezer.state", "FROZEN"), ("cgroup.events", "frozen 1"):
                if (folder / file).exists() and text in (folder / file).read_text():
                    return folder
        return None


if __name__ == "__main__":
    unittest.main()
