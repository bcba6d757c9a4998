#!/usr/bin/env python3
"""What the gate forgives and what it does not, by real runs of ctest over small folders of tests."""

import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from left_running import read

SCRIPT = Path(__file__).resolve().parent / "run_ctest.py"

# A shell's test that fails the first N times: what it prints then, and with which code it ends, follows.
FAILING = 'echo x >> "{log}"; [ $(wc -l < "{log}") -gt {times} ] || {{ {then}; }}'


class Gate(unittest.TestCase):
    def setUp(self):
        self._folder = tempfile.TemporaryDirectory()
        self.addCleanup(self._folder.cleanup)
        self.build = Path(self._folder.name)
        self._tests = ""

    def add(self, name, script, **properties):
        self._tests += f'add_test([==[{name}]==] "sh" "-c" [==[{script}]==])\n'
        for key, value in properties.items():
            self._tests += f'set_tests_properties([==[{name}]==] PROPERTIES {key} "{value}")\n'

    def add_failing(self, name, times, then="echo why; exit 1", **properties):
        self.add(name, FAILING.format(log=self._log(name), times=times, then=then), **properties)

    def _log(self, name):
        return self.build / f"{name.split()[0]}.log"

    def runs_of(self, name):
        return len(self._log(name).read_text().splitlines())

    def run_gate(self, *arguments):
        (self.build / "CTestTestfile.cmake").write_text(self._tests)
        done = subprocess.run([sys.executable, "-B", SCRIPT, "--build", self.build, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout

    def file(self, name):
        return (self.build / name).read_text()

    def test_what_fails_once_is_unsteady_and_passes(self):
        self.add("good", "true")
        self.add_failing("once: of 2 [a+b] (c)", 1)
        code, printed = self.run_gate("--parallel", "2")
        self.assertEqual(code, 0, printed)
        self.assertIn("UNSTEADY: once: of 2 [a+b] (c) (Failed)\n  why\n", self.file("unsteady_tests.txt"))
        self.assertEqual(self.file("failed_tests.txt"), "")
        self.assertIn("1 unsteady\n2 passed, 0 failed\n", printed)
        self.assertEqual(self.runs_of("once: of 2 [a+b] (c)"), 2)

    def test_a_process_that_runs_on_is_named_and_killed_and_fails_the_run(self):
        self.add("leaver", f"(cd /; setsid sleep 471 < /dev/null > /dev/null 2>&1 &) ; setsid sh -c 'sleep 1' > /dev/null 2>&1 &")
        code, printed = self.run_gate()
        self.assertEqual(code, 1, printed)
        found = re.fullmatch(r"STILL RUNNING after all tests: process (\d+), begun \d+ s ago in /: sleep 471\n", self.file("failed_tests.txt"))
        self.assertTrue(found, printed)
        self.assertIn("1 passed, 0 failed\n", printed)
        self.assertEqual(read(Path("/proc") / found[1] / "cmdline"), b"")

    def test_a_process_that_runs_on_fails_no_run_in_which_a_test_was_unsteady(self):
        self.add_failing("once", 1, "setsid sleep 471 > /dev/null 2>&1 & echo why; exit 1")
        code, printed = self.run_gate()
        self.assertEqual(code, 0, printed)
        self.assertIn("STILL RUNNING after all tests: process", self.file("unsteady_tests.txt"))

    def test_only_the_folders_that_are_named_run(self):
        self.add("of none", "exit 1")
        for name in "a", "b", "c":
            folder = self.build / name
            folder.mkdir()
            code = 1 if name == "b" else 0
            (folder / "CTestTestfile.cmake").write_text(f'add_test([==[of {name}]==] "sh" "-c" "exit {code}")\n')
        code, printed = self.run_gate("--in", "a", "--in", "c")
        self.assertEqual(code, 0, printed)
        self.assertIn("2 passed, 0 failed\n", printed)
        code, printed = self.run_gate("--in", "b", "--in", "c")
        self.assertEqual(code, 1, printed)
        self.assertIn("1 passed, 1 failed\n", printed)
        self.assertEqual(self.file("failed_tests.txt"), "FAILED: of b (Failed)\n")

    def test_what_fails_three_times_is_failed(self):
        self.add_failing("twice", 2)
        self.add_failing("always", 9)
        code, printed = self.run_gate()
        self.assertEqual(code, 1, printed)
        self.assertIn("FAILED: always (Failed)\n  why\n", self.file("failed_tests.txt"))
        self.assertIn("UNSTEADY: twice (Failed)", self.file("unsteady_tests.txt"))
        self.assertEqual((self.runs_of("twice"), self.runs_of("always")), (3, 3))

    def test_reports_of_sanitizers_assertions_and_crashes_are_never_forgiven(self):
        lines = [
            "WARNING: ThreadSanitizer: data race (pid=7)",
            "==7==ERROR: AddressSanitizer: heap-use-after-free",
            "==7==ERROR: AddressSanitizer: SEGV on unknown address 0x7f",
            "FATAL: ThreadSanitizer: unexpected memory mapping",
            "SUMMARY: UndefinedBehaviorSanitizer: undefined-behavior a.cpp:1:2",
            "a.cpp:1:2: runtime error: index 3 out of bounds",
            "a.cpp:1:2: \x1b[1m\x1b[31mruntime error: \x1b[0mindex 3 out of bounds",
            "the worker process ended with exit code 99",
            "exit status 99",
            "t: a.cpp:1: int f(): Assertion `x > 0' failed.",
            "stl_vector.h:1123: reference vector::operator[](size_type): Assertion '__n < this->size()' failed.",
            "double free or corruption (out)",
            "free(): invalid pointer",
            "realloc(): invalid next size",
            "malloc(): invalid size (unsorted)",
            "munmap_chunk(): invalid pointer",
            "malloc_consolidate(): invalid chunk size",
            "*** stack smashing detected ***: terminated",
            "corrupted size vs. prev_size",
            "corrupted double-linked list",
            "due to a fatal error condition:",
            *(f"a program that this test has started was ended by SIG{name}: troupe" for name in ("SEGV", "ABRT", "BUS", "FPE", "ILL", "TRAP")),
        ]
        endings = [f"cat <<'END'\n{text}\nEND\nexit 1" for text in lines]
        endings += [f"kill -{name} $$" for name in ("SEGV", "ABRT", "BUS", "FPE", "ILL", "TRAP", "KILL", "TERM")]
        # ctest cuts the middle out of what is so long.
        much = "head -c 1500000 /dev/zero | tr '\\0' x"
        endings += [f"{much}; echo 'WARNING: ThreadSanitizer: data race'; exit 1", f"{much}; echo WARNING: ThreadSanitizer; {much}; exit 1"]
        for number, then in enumerate(endings):
            name = f"ending{number}"
            with self.subTest(then):
                self._tests = ""
                self.add_failing(name, 1, then)
                code, printed = self.run_gate()
                self.assertEqual(code, 1, printed)
                self.assertEqual(self.runs_of(name), 1)
                self.assertIn(f"FAILED: {name} (", self.file("failed_tests.txt"))

    def test_a_report_of_a_sanitizer_fails_a_test_that_passed(self):
        for report in ("WARNING: ThreadSanitizer: data race (pid=7)", "==7==ERROR: LeakSanitizer: detected memory leaks",
                       "a.cpp:1:2: runtime error: index 3 out of bounds", "SUMMARY: AddressSanitizer: ILL a.cpp:1 in f"):
            self._tests = ""
            self.add("reports", f"echo '{report}'")
            code, printed = self.run_gate()
            self.assertEqual(code, 1, printed)
            self.assertIn(f"FAILED: reports (Passed, with a report of a sanitizer)\n  {report}\n", self.file("failed_tests.txt"))
        self._tests = ""
        self.add("has a program write where it must not",
                 "echo '==7==ERROR: AddressSanitizer: SEGV on unknown address 0x7f'; echo 'SUMMARY: AddressSanitizer: SEGV a.cpp:1 in f'")
        code, printed = self.run_gate()
        self.assertEqual(code, 0, printed)

    def test_what_is_printed_at_length_is_read(self):
        def much(count):
            return f"head -c {count} /dev/zero | tr '\\0' x"

        self.add_failing("harmless", 1, f"{much(100_000)}; exit 1")
        code, printed = self.run_gate()
        self.assertEqual(code, 0, printed)
        self.assertIn("1 unsteady\n1 passed, 0 failed\n", printed)
        report = "echo WARNING: ThreadSanitizer: data race"
        for script in f"{much(50_000)}; {report}; {much(50_000)}", f"{much(1_500_000)}; {report}":
            self._tests = ""
            self.add("reports", script)
            code, printed = self.run_gate()
            self.assertEqual(code, 1, printed[-1000:])
            self.assertIn("FAILED: reports (Passed, with a report of a sanitizer)\n", self.file("failed_tests.txt"))

    def test_what_takes_more_than_a_fifth_of_its_limit_is_named(self):
        self.add("slow", "sleep 5", TIMEOUT=24)
        self.add("quick", "true", TIMEOUT=600)
        self.add("without a limit", "sleep 1")
        code, printed = self.run_gate()
        self.assertEqual(code, 0, printed)
        self.assertRegex(printed, r"\n  more than a fifth of its limit, \d+ of 24 s: slow\n")  # longer where the machine stands still
        self.assertEqual(printed.count("a fifth"), 1, printed)

    def test_a_report_in_the_second_run_is_not_forgiven(self):
        log = self.build / "late.log"
        self.add("late", f'echo x >> "{log}"; case $(wc -l < "{log}") in 1) exit 1 ;; 2) echo "SUMMARY: ThreadSanitizer: race"; exit 1 ;; esac')
        code, printed = self.run_gate()
        self.assertEqual(code, 1, printed)
        self.assertIn("SUMMARY: ThreadSanitizer", self.file("failed_tests.txt"))
        self.assertEqual(self.runs_of("late"), 2)

    def test_tests_of_one_name_that_fail_are_not_told_apart_and_not_forgiven(self):
        self.add("twin", "exit 1")
        self.add_failing("twin", 1)
        code, printed = self.run_gate()
        self.assertEqual(code, 1, printed)
        self.assertIn("FAILED: twin (Failed, as another test of this name)\n", self.file("failed_tests.txt"))

    def test_what_does_not_run_again_is_failed(self):
        self.add("gone", f'echo "this is no list" > "{self.build}/CTestTestfile.cmake"; exit 1')
        code, printed = self.run_gate()
        self.assertEqual(code, 1, printed)
        self.assertIn("FAILED: gone (Not Run)\n", self.file("failed_tests.txt"))

    def test_more_than_six_failures_are_not_run_again(self):
        for count, runs in (6, 2), (7, 1):
            self._tests = ""
            for number in range(count):
                self.add_failing(f"chance{number}of{count}", 1)
            code, printed = self.run_gate()
            self.assertEqual(code, 0 if runs == 2 else 1, printed)
            self.assertEqual([self.runs_of(f"chance{number}of{count}") for number in range(count)], [runs] * count)
        self.assertEqual(self.file("failed_tests.txt").count("FAILED: "), 7)

    def test_what_runs_into_its_limit_runs_once_more(self):
        self.add_failing("slow", 9, "exec sleep 30", TIMEOUT=1)
        code, printed = self.run_gate()
        self.assertEqual(code, 1, printed)
        self.assertEqual(self.runs_of("slow"), 2)
        self.assertIn("FAILED: slow (Timeout", self.file("failed_tests.txt"))

    def test_a_program_that_is_not_built_is_a_failure(self):
        self._tests = 'add_test(gone "test_gone_is_not_built")\n'
        code, printed = self.run_gate()
        self.assertEqual(code, 1, printed)
        self.assertIn("FAILED: gone", self.file("failed_tests.txt"))

    def test_a_broken_or_empty_list_of_tests_is_no_success(self):
        for self._tests in "this is no list\n", "":
            code, printed = self.run_gate()
            self.assertEqual(code, 1, printed)
            self.assertNotEqual(self.file("failed_tests.txt"), "")
        self.add("there", "true")
        code, printed = self.run_gate("--", "-R", "misspelt")
        self.assertEqual(code, 1, printed)
        self.assertIn("no test ran", printed)

    def test_a_folder_whose_list_is_broken_is_no_success_beside_another(self):
        for name, text in ("good", 'add_test(good "true")\n'), ("broken", "this is no list\n"):
            (self.build / name).mkdir()
            (self.build / name / "CTestTestfile.cmake").write_text(text)
        code, printed = self.run_gate("--in", "good", "--in", "broken")
        self.assertEqual(code, 1, printed)
        self.assertIn("ctest ended with ", self.file("failed_tests.txt"))

    def test_a_failure_that_is_not_found_in_what_ctest_prints_is_no_success(self):
        self.add("a name of\ntwo lines", "exit 1")
        code, printed = self.run_gate()
        self.assertEqual(code, 1, printed)
        self.assertIn("ctest ended with 8, and names no test that failed", self.file("failed_tests.txt"))

    def test_a_test_that_is_disabled_did_not_pass(self):
        self.add("good", "true")
        self.add("left out", "exit 1", DISABLED="TRUE")
        code, printed = self.run_gate()
        self.assertEqual(code, 0, printed)
        self.assertIn("1 passed, 0 failed\n", printed)

    def test_what_says_itself_that_it_skips_passes(self):
        self.add("skips", "exit 77", SKIP_RETURN_CODE=77)
        code, printed = self.run_gate()
        self.assertEqual(code, 0, printed)

    def test_what_a_test_prints_is_not_taken_for_its_exit_code(self):
        for word, text in ("SKIP_REGULAR_EXPRESSION", "skipped: no GPU"), ("PASS_REGULAR_EXPRESSION", "42 ms"):
            self._tests = ""
            self.add("prints", f"echo '{text}'; exit 1", **{word: text})
            code, printed = self.run_gate()
            self.assertEqual(code, 1, printed)
            self.assertIn(f"prints has the property {word}, with which", self.file("failed_tests.txt"))

    def test_extended_tests_come_last_where_time_is_short_and_only_in_time(self):
        order = self.build / "order"
        self.add("long", f'echo long >> "{order}"', LABELS="extended;tune")
        self.add("short", f'echo short >> "{order}"', LABELS="tune")
        code, printed = self.run_gate("--extended-until", str(time.time() + 600))
        self.assertEqual((code, order.read_text()), (0, "short\nlong\n"), printed)
        code, printed = self.run_gate("--extended-until", str(time.time() - 1))
        self.assertEqual((code, order.read_text()), (0, "short\nlong\nshort\n"), printed)
        self.assertTrue(printed.endswith("LEFT OUT, for want of time: long\n0 unsteady\n1 passed, 0 failed\n"), printed)
        self.assertEqual(self.file("left_out_tests.txt"), "LEFT OUT, for want of time: long\n")
        order.unlink()
        code, printed = self.run_gate("--extended-until", str(time.time() + 7200))
        self.assertEqual((code, order.read_text()), (0, "long\nshort\n"), printed)
        self.assertEqual(self.file("left_out_tests.txt"), "")

    def test_arguments_of_ctest_choose_and_reasons_of_skipped_tests_are_counted(self):
        self.add("chosen", "echo '  skipped: no GPU here'")
        self.add("other", "exit 1")
        code, printed = self.run_gate("--", "-R", "^chosen$")
        self.assertEqual(code, 0, printed)
        self.assertIn("      1 skipped: no GPU here\n", printed)


if __name__ == "__main__":
    unittest.main()
