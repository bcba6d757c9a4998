#!/usr/bin/env python3
"""What ./run gate tries and leaves behind, by real runs over a small project with a ./run of its own."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
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
            (self.root / name).mkdir(exist_ok=True)
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


class Starved(unittest.TestCase):
    def starve(self, *command):
        return subprocess.Popen([sys.executable, "-B", FOLDER / "starve.py", *command], stdout=subprocess.PIPE, text=True)

    def test_a_starved_command_has_its_own_exit_code(self):
        for script, code in ("exit 3", 3), ("kill -9 $$", 128 + 9):
            with self.starve("sh", "-c", script) as child:
                self.assertEqual(child.wait(60), code)

    def test_what_was_starved_does_not_stand_still_for_ever_where_starve_is_killed(self):
        with self.starve("--still", "3,3", "sh", "-c", "echo $$; sleep 600") as child:
            line = child.stdout.readline()
            if line.startswith("starve: without a freezer cgroup"):
                child.terminate()
                self.skipTest(line)
            child.kill()
            # The shell that removes the group has the other end of the pipe until then.
            self.assertIn(f"starve: process {line.strip()} was left behind", child.stdout.read())


if __name__ == "__main__":
    unittest.main()
