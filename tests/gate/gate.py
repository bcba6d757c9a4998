#!/usr/bin/env python3
"""Tries the commit that is HEAD as CI does, under worse conditions: in a fresh clone, on a machine that stands still.

  (nothing)  builds release, runs the lint, runs the tests of release starved (tests/gate/starve.py), and those of asan and
             tsan, not starved, in folders of tests/ that differ from the commit that passed last
  --all      runs the whole of .ci/run, starved
  --quick    builds release and runs, starved, the tests of those folders that differ from the commit that passed last
  --calm     starves nothing
  --seed     of the rhythm in which the machine stands still

The clone has a copy of ../shared beside it, without write bits, where that exists, and is removed at the end. The commit
that passed, in full or with --all, is the first line of .git/gate.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NEEDED_GB = {"all": 20, "full": 14, "quick": 8}
LABELS = {"scheduler", "runtime", "train", "tune", "launch", "cli", "examples", "bench", "python", "package", "lint", "gate", "compilers"}
ROOT = Path(__file__).resolve().parents[2]


def git(*arguments, root=ROOT):
    return subprocess.run(["git", "-C", root, *arguments], check=True, capture_output=True, text=True).stdout.strip()


def gate_file(root=ROOT):
    return Path(git("rev-parse", "--absolute-git-dir", root=root), "gate")


def last_passed(tried, root=ROOT):
    """The commit that passed last, or None where there is none in the history of the one that is tried."""
    try:
        commit = gate_file(root).read_text().split()[0]
        git("merge-base", "--is-ancestor", commit, tried, root=root)
        return commit
    except (OSError, IndexError, subprocess.CalledProcessError):
        return None


def labels_of_changes(tried, root=ROOT):
    """The labels of the tests of all folders that changed since; None where all tests have to run."""
    commit = last_passed(tried, root)
    if commit is None:
        return None
    labels = set()
    for name in git("diff", "--name-only", "--no-renames", f"{commit}..{tried}", root=root).splitlines():
        parts = Path(name).parts
        label = parts[1] if parts[0] == "tests" and len(parts) > 2 else parts[0]
        if label in LABELS:
            labels.add(label)
        elif not name.endswith(".md"):
            return None  # what all are built with, for example
    return labels


def remove(folder):
    """With folders in it that nobody may write. Something may still be ending that writes into it."""
    for _ in range(20):
        for path, folders, _ in os.walk(folder):
            for name in (".", *folders):
                if not Path(path, name).is_symlink():
                    with contextlib.suppress(OSError):
                        Path(path, name).chmod(0o755)
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
        time.sleep(0.5)
    print(f"gate: {folder} could not be removed", flush=True)


def sanitized_folders(clone, tried, root=ROOT):
    """The folders with tests that have a changed source file in them or below, none of them below another; none where no
    commit has passed before. What the tests are of changed, too, mostly: --all tries the rest of it sanitized."""
    commit = last_passed(tried, root)
    if commit is None:
        return []
    folders = set()
    for name in git("diff", "--name-only", "--no-renames", f"{commit}..{tried}", "--", "tests", root=root).splitlines():
        if name.endswith((".cpp", ".hpp")):
            has_tests = (folder for folder in Path(name).parents if (clone / folder / "CMakeLists.txt").exists())
            folders.add(next(has_tests, Path()))
    folders.discard(Path())  # what tests of many folders share
    return sorted(str(folder) for folder in folders if not folders.intersection(folder.parents))


@contextlib.contextmanager
def fresh_clone(commit, root=ROOT):
    """-> the folder of a clone of this commit, with what CI has beside it"""
    around = Path(tempfile.mkdtemp(prefix="troupe-gate-"))
    try:
        clone = around / "troupe"
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", root, clone], check=True)
        git("checkout", "--quiet", "--detach", commit, root=clone)
        shared = root.parent / "shared"
        if shared.is_dir():
            shutil.copytree(shared, around / "shared", symlinks=True)
            subprocess.run(["chmod", "-R", "a-w", around / "shared"], check=True)
        yield clone
    finally:
        remove(around)


class Stages:
    """Commands in the clone, one after the other. What they start is ended with them, but for what makes a session of its own."""

    def __init__(self, clone, brake):
        self._clone = clone
        self._brake = brake
        self.summary = []
        self.passed = True

    def run(self, *command, starved):
        started = time.monotonic()
        words = [*self._brake, *command] if starved else command
        with subprocess.Popen(words, cwd=self._clone, stdin=subprocess.DEVNULL, start_new_session=True,
                              env={**os.environ, "CI": "true"}) as child:
            try:
                code = child.wait()
            except BaseException:
                for number in (signal.SIGTERM, signal.SIGKILL):
                    with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                        os.killpg(child.pid, number)
                        child.wait(timeout=30)
                raise
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        took = time.monotonic() - started
        self.passed = self.passed and code == 0
        name = " ".join(command) + (", starved" if starved and self._brake else "")
        self.summary.append(f"  {name:42} {'passed' if code == 0 else 'FAILED'} {took:6.0f} s")
        return code == 0


def run_stages(stages, kind, commit, clone):
    if kind == "all":
        stages.run(".ci/run", starved=True)
        return
    if not stages.run("./run", "build", starved=False):
        return
    labels = labels_of_changes(commit) if kind == "quick" else None
    if kind == "full":
        stages.run("./run", "lint", starved=False)
    if labels is None:
        stages.run("./run", "test", starved=True)
    elif labels:
        stages.run("./run", "test", "release", "--", "-L", f"^({'|'.join(sorted(labels))})$", starved=True)
    else:
        print("gate: no folder with tests changed", flush=True)
    folders = sanitized_folders(clone, commit) if kind == "full" else []
    if folders:
        stages.run("./run", "test", *(word for folder in folders for word in ("--in", folder)), "asan", "tsan", starved=False)


def show_free_disk():
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free // 2**30
    print(f"gate: {free} GB of disk are free in {folder}", flush=True)
    return free


ENDING = signal.SIGINT, signal.SIGTERM, signal.SIGHUP


def end_by_signal(number, frame):
    """Once: what is removed then is removed wholly."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(usage="./run gate [--all | --quick] [--calm] [--seed N]", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--all", dest="kind", action="store_const", const="all", default="full")
    kinds.add_argument("--quick", dest="kind", action="store_const", const="quick")
    parser.add_argument("--calm", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    for number in ENDING:
        signal.signal(number, end_by_signal)
    # Within a hook of git they name another folder than that of the clone.
    for name in git("rev-parse", "--local-env-vars").split():
        os.environ.pop(name, None)

    commit = git("rev-parse", "HEAD")
    if git("status", "--porcelain"):
        print("gate: what is not committed is not tried", flush=True)
    if show_free_disk() < NEEDED_GB[options.kind]:
        sys.exit(f"gate: {NEEDED_GB[options.kind]} GB are needed; remove old clones and builds, or name another folder in TMPDIR")
    brake = [] if options.calm else [sys.executable, "-B", "tests/gate/starve.py", "--seed", str(options.seed)]
    print(f"gate: {commit}{'' if options.calm else f', starved with --seed {options.seed}'}", flush=True)
    started = time.monotonic()
    with fresh_clone(commit) as clone:
        stages = Stages(clone, brake)
        run_stages(stages, options.kind, commit, clone)
    if stages.passed and options.kind != "quick":
        gate_file().write_text(f"{commit}\n" + "\n".join(stages.summary) + "\n")
    print("== gate: " + ("passed" if stages.passed else "FAILED") + f" after {time.monotonic() - started:.0f} s")
    print("\n".join(stages.summary))
    show_free_disk()
    return 0 if stages.passed else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("gate: interrupted")
