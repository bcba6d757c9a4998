#!/usr/bin/env python3
"""check_refused.py tells what is wrong, and checks again what has changed."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent / "check_refused.py"
HEADER = 'template <class T> void take(T) { static_assert(sizeof(T) > 1, "troupe: a T is larger than a char"); }\n'
RIGHT = {"accepted": "// compiles: an int\n#include <troupe/take.hpp>\nvoid f() { take(1); }\n",
         "refused": "// refused: a T is larger\n#include <troupe/take.hpp>\nvoid f() { take('a'); }\n",
         "first": "// refused first: a T is larger\n#include <troupe/take.hpp>\nvoid f() { take('a'); }\nvoid g() { take(true); }\n",
         "by": "// refused by: T is larger\n#include <troupe/take.hpp>\nvoid f() { take('a'); }\n",
         "second": "// refused second: a T is larger\n#include <troupe/take.hpp>\nvoid g() { take(); }\nvoid f() { take('a'); }\n"}
WRONG = {"accepted": ("// refused: a T\n#include <troupe/take.hpp>\nvoid f() { take(1); }\n", "compiles, but should be refused with"),
         "words": ("// refused: another\n#include <troupe/take.hpp>\nvoid f() { take('a'); }\n", "is not refused with"),
         "place": ("// refused: a T\n#include <troupe/take.hpp>\nvoid g() { take(); }\nvoid f() { take('a'); }\n", "is not refused with"),
         "by": ("// refused by: T is smaller\n#include <troupe/take.hpp>\nvoid f() { take('a'); }\n", "is not refused with"),
         "more": ("// refused: a T\n#include <troupe/take.hpp>\nvoid f() { take('a'); }\nvoid g() { take(true); }\n", "is refused with 2 errors"),
         "fails": ("// compiles: no\n#include <troupe/take.hpp>\nvoid f() { take('a'); }\n", "does not compile"),
         "comment": ("#include <troupe/take.hpp>\n", "does not begin with")}


class Refused(unittest.TestCase):
    def setUp(self):
        self._root = Path(tempfile.mkdtemp(prefix="troupe-refused-test-"))
        self.addCleanup(shutil.rmtree, self._root)
        subprocess.run(["git", "init", "-q", self._root], check=True)
        (self._root / "scratch").mkdir()
        self.write("include/troupe/take.hpp", HEADER)

    def write(self, path, text):
        file = self._root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run_script(self):
        words = [sys.executable, "-B", SCRIPT, "g++", self._root / "refused", "--root", self._root, "--scratch", self._root / "scratch",
                 "--header", "troupe/take.hpp", "--include", self._root / "include"]
        return subprocess.run(words, capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": str(self._root / "cache")})

    def test_right_ones_are_known_until_the_header_changes(self):
        for name, text in RIGHT.items():
            self.write(f"refused/{name}.cpp", text)
        for checked, known in (5, 0), (0, 5):
            done = self.run_script()
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn(f"{checked} programs checked, {known} known", done.stdout)
        self.write("include/troupe/take.hpp", HEADER.replace("larger", "smaller"))
        done = self.run_script()
        self.assertEqual(done.returncode, 1)
        self.assertIn("5 programs checked, 0 known", done.stdout)
        self.assertEqual(done.stderr.count("is not refused with"), 4)

    def test_each_wrong_one_is_told_and_tried_again(self):
        for name, (text, _) in WRONG.items():
            self.write(f"refused/{name}.cpp", text)
        for _ in range(2):
            done = self.run_script()
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"{len(WRONG)} programs checked", done.stdout)
            for name, (_, wrong) in WRONG.items():
                self.assertIn(f"refused/{name}.cpp {wrong}", done.stderr)

    def test_without_git_all_are_checked(self):
        for name, text in RIGHT.items():
            self.write(f"refused/{name}.cpp", text)
        shutil.rmtree(self._root / ".git")
        for _ in range(2):
            done = self.run_script()
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("5 programs checked, 0 known", done.stdout)

    def test_no_program_is_no_success(self):
        (self._root / "refused").mkdir()
        self.assertEqual(self.run_script().returncode, 1)


if __name__ == "__main__":
    unittest.main()
