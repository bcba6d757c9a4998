#!/usr/bin/env python3
"""Runs the tests of one build folder with ctest, and what failed once more by itself.

1. ctest runs all tests, N at a time; those with the property RUN_SERIAL (the label `timing` among them) come last, alone.
   With --extended-until, a time in seconds since 1970, tests with the label `extended` run among the others where that
   time is AMPLE seconds away, and else after them, and only if it has not passed by then.
2. A test that failed runs again, alone, at most twice: a machine that others share stands still now and then, and a test
   may meet that. A test that ran into its limit of time runs again once. A test that then passes is *unsteady*: it is
   printed with the output of its first failure, and does not fail the run.
3. Never forgiven, and not run again: of a test that failed, a failed assertion and a crash (signal), of the test or of a
   program that the test has started; a report of a sanitizer, also in a test that passed; and more than six failed tests
   in all.
4. A test says by its exit code alone whether it failed. Where a test has a pattern by which ctest takes what it printed for
   the word that it passed, or that it was skipped, ctest does not look at the exit code: the run fails then.
5. No process that a test has started, however indirectly, runs on once all tests have ended. One that does is named with its
   command line and folder, and killed, and the run fails; but not where a test has failed that passed when it ran again, as
   that one may have left it.

With --in, given any number of times, only the tests of those folders of the build run, and their count is each one's own.
What failed stands in FOLDER/failed_tests.txt, what was unsteady in FOLDER/unsteady_tests.txt, and what was left out for want
of time in FOLDER/left_out_tests.txt. Tests that took more than a fifth of their limit of time are named at the end: on a quiet
machine there is none. Exit code 1 if a test failed for good, or if ctest could not run.
"""

import argparse
import json
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from left_running import Marked

AMPLE = 1800  # all tests of a preset take less; in one run they pack better
MOST_FAILURES = 6
MOST_RERUNS = 2
LINES_SHOWN = 60

# The ends of a test that a slow machine may bring about; every other one is a signal or a program that is not there.
FORGIVABLE_ENDINGS = "Failed", "Timeout"
# Properties with which ctest does not look at the exit code of a test.
OVERRULING = "PASS_REGULAR_EXPRESSION", "SKIP_REGULAR_EXPRESSION"
# What the sanitizers print, in a test that passed too. Some tests that pass have a program write where it must not.
REPORT = re.compile(r"(?:WARNING|ERROR|FATAL|SUMMARY): \w*Sanitizer(?!: SEGV)|: (?:\x1b\[\d*m)*runtime error: ")
# What the sanitizers, glibc, libstdc++'s checks and Catch2 print of what no slow machine excuses in a test that failed. 99 is
# the exit code of a program in which a sanitizer found something (cmake/TroupeTests.cmake).
UNFORGIVABLE = re.compile(
    REPORT.pattern +
    r"|Sanitizer: SEGV"
    r"|exit (?:code|status) 99\b"
    r"|Assertion [`'].*' failed"
    r"|(?:free|malloc|realloc|munmap_chunk|malloc_consolidate)\(\): |double free|stack smashing|corrupted (?:size|double-linked)"
    r"|fatal error condition"
    r"|a program that this test has started was ended by SIG(?:SEGV|ABRT|BUS|FPE|ILL|TRAP)"  # tests/cli/support/child.cpp
    r"|This part of the test output was removed")


@dataclass
class Result:
    name: str
    output: str
    ending: str = ""  # of one that failed, as ctest words it, for example "Failed" or "Timeout"
    number: int = 0  # ctest's, of one that failed
    seconds: float = 0

    @property
    def passed(self):
        return not self.ending

    def is_forgivable(self):
        return self.ending in FORGIVABLE_ENDINGS and not UNFORGIVABLE.search(self.output)


class Ctest:
    """The tests of one build folder."""

    def __init__(self, build, marked):
        self._build = build
        self._marked = marked

    def run(self, arguments):
        """Prints what ctest prints. -> its exit code, and a Result for each test that ran or could not be run."""
        report = self._build / "Testing" / "junit.xml"
        report.unlink(missing_ok=True)
        # What tests print is hardly cut, as reports of sanitizers and reasons of skipped tests are looked for in it.
        command = ["ctest", "--test-dir", self._build, "--output-on-failure", "--output-junit", report.resolve(),
                   "--test-output-size-passed", "1000000", "--test-output-size-failed", "1000000",
                   "--test-output-truncation", "middle", *arguments]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, encoding="utf-8", errors="replace",
                              env=self._marked.environment()) as child:
            endings = read_endings(echoed(child.stdout))
        results = read_report(report) if report.exists() else []
        for result in results:
            result.number, result.ending = endings.get(result.name, (0, ""))
            if result.passed and REPORT.search(result.output):
                result.ending = "Passed, with a report of a sanitizer"
        return child.returncode, results

    def listed(self, arguments):
        """Of the tests that these arguments choose -> name: its properties, as ctest names them"""
        command = ["ctest", "--test-dir", self._build, "--show-only=json-v1", *arguments]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
        tests = json.loads(done.stdout)["tests"] if done.returncode == 0 else []
        return {test["name"]: {each["name"]: each["value"] for each in test.get("properties", [])} for test in tests}

    def run_alone(self, failure):
        """A test that failed, with nothing beside it. -> its new Result"""
        _, results = self.run(["-I", f"{failure.number},{failure.number}"])
        return next((result for result in results if result.name == failure.name),
                    Result(failure.name, "ctest did not run this test again", "Not Run", failure.number))


def echoed(lines):
    for line in lines:
        print(line, end="", flush=True)
        yield line


def read_endings(lines):
    """The list that ctest prints last. Its report for JUnit leaves out how a test ended. -> name: (number, ending)"""
    endings = {}
    is_list = False
    for line in lines:
        is_list = is_list or line.startswith("The following tests FAILED:")
        match = re.match(r"\s+(\d+) - (.*) \(([^()]*)\)(?:\s{2,}.*)?$", line) if is_list else None
        if match:
            is_double = match[2] in endings
            endings[match[2]] = int(match[1]), "Failed, as another test of this name" if is_double else match[3]
    return endings


def read_report(path):
    # XML has no escape character, with which colours begin.
    return [Result(case.get("name").strip(), (case.findtext("system-out") or "").replace("[NON-XML-CHAR-0x1B]", "\x1b"), seconds=float(case.get("time") or 0))
            for case in ElementTree.parse(path).getroot().iter("testcase") if case.get("status") != "disabled"]


def forgive(ctest, failures):
    """Runs each failure again, as the head of this file says. -> those that stay failed, those that were unsteady"""
    if len(failures) > MOST_FAILURES:
        print(f"{len(failures)} tests failed, more than {MOST_FAILURES}: none of them is run again", flush=True)
        return failures, []
    failed, unsteady = [], []
    for first in failures:
        last = first
        tries = 1 if first.ending == "Timeout" else MOST_RERUNS
        while not last.passed and last.is_forgivable() and tries > 0:
            print(f"again, alone: {first.name}", flush=True)
            last = ctest.run_alone(first)
            tries -= 1
        if last.passed:
            unsteady.append(first)
        else:
            failed.append(last)
    return failed, unsteady


def described(word, results):
    text = ""
    for result in results:
        text += f"{word}: {result.name} ({result.ending})\n"
        text += "".join(f"  {line}\n" for line in result.output.rstrip().splitlines()[-LINES_SHOWN:])
    return text


def skip_reasons(results):
    """What tests did not do on this machine, and why, each reason once with its count."""
    lines = Counter(line.strip() for result in results for line in result.output.splitlines() if "skipped:" in line)
    return "".join(f"{count:7} {line}\n" for line, count in sorted(lines.items()))


def judged_by_output(tests):
    """What is said of each test, of those in `tests` with their properties, whose exit code ctest does not look at."""
    return "".join(f"{name} has the property {word}, with which ctest does not look at its exit code\n"
                   for name, properties in tests.items() for word in OVERRULING if word in properties)


def slow_tests(results, tests):
    """Those that took more than a fifth of their limit of time, the slowest first."""
    limits = {name: properties.get("TIMEOUT") for name, properties in tests.items()}
    slow = [(result.seconds, result.name) for result in results if limits.get(result.name) and 5 * result.seconds > limits[result.name]]
    return "".join(f"  more than a fifth of its limit, {seconds:.0f} of {limits[name]:.0f} s: {name}\n" for seconds, name in sorted(slow, reverse=True))


def run_all(ctest, arguments, extended_until):
    """-> what ctest itself could not do, or an empty text; all results; the names of the tests that were left out"""
    has_time = extended_until is None or time.time() + AMPLE < extended_until
    passes = [arguments] if has_time else [["-LE", "extended", *arguments], ["-L", "extended", *arguments]]
    results, broken, left_out = [], "", []
    for number, words in enumerate(passes):
        if number == 1 and time.time() > extended_until:
            left_out = sorted(ctest.listed(words))
            break
        code, more = ctest.run(words)
        # ctest's 8 says that tests failed, which the results say too.
        if code not in (0, 8) or (code == 8 and all(result.passed for result in more)):
            broken = f"ctest ended with {code}, and names no test that failed (see above)\n"
        results += more
    return broken, results, left_out


def main():
    own, theirs = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, theirs = own[:at], own[at + 1:]
    parser = argparse.ArgumentParser(usage="run_ctest.py --build FOLDER [--in FOLDER] [--parallel N] [--extended-until EPOCH] [-- ARGUMENTS OF CTEST]", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--in", dest="folders", action="append", metavar="FOLDER", help="within the build folder")
    parser.add_argument("--parallel", type=int, default=1)
    parser.add_argument("--extended-until", type=float)
    options = parser.parse_args(own)

    sys.stdout.reconfigure(errors="replace")
    broken, results, failed, unsteady, left_out, slow = "", [], [], [], [], ""
    marked = Marked()
    try:
        for folder in options.folders or ["."]:
            ctest = Ctest(options.build / folder, marked)
            more_broken, more, more_left_out = run_all(ctest, ["--parallel", str(options.parallel), *theirs], options.extended_until)
            tests = ctest.listed([])
            slow += slow_tests(more, tests)
            more_failed, more_unsteady = forgive(ctest, [result for result in more if not result.passed])
            broken += more_broken + judged_by_output(tests)
            results += more
            failed += more_failed
            unsteady += more_unsteady
            left_out += more_left_out
    finally:
        left = marked.end()
    if not unsteady:
        broken += left
    if not results and not broken:
        broken = "no test ran: none is built, or none has such a name or label\n"
    failures = broken + described("FAILED", failed)
    (options.build / "failed_tests.txt").write_text(failures, encoding="utf-8")
    doubtful = described("UNSTEADY", unsteady) + (left if unsteady else "")
    (options.build / "unsteady_tests.txt").write_text(doubtful, encoding="utf-8")
    omissions = "".join(f"LEFT OUT, for want of time: {name}\n" for name in left_out)
    (options.build / "left_out_tests.txt").write_text(omissions, encoding="utf-8")
    print(skip_reasons(results) + slow + failures + doubtful + omissions, end="")
    print(f"{len(unsteady)} unsteady")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or broken else 0


if __name__ == "__main__":
    sys.exit(main())
