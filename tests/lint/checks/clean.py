"""Remembers, across runs and clones, which keys were found clean, so that a check need not repeat what it has found before.

A key says all that a result depends on (inputs.py). It is the name of an empty file in one of 256 folders; a file that nobody has
used for 30 days is removed when another one comes into its folder. A folder that cannot be read or written knows nothing.
"""

import os
import time
from pathlib import Path

UNUSED_DAYS = 30


def user_folder():
    """Beside the wheels of ./run setup, so that all clones of one user share it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "troupe" / "lint"


class CleanResults:
    """What one check has found clean, and how much of it. Threads may call it at once: each call is about files of its own."""

    def __init__(self, noun, folder=None):
        """`noun`: what the check counts, in the plural. Without a folder everything is checked and nothing is remembered."""
        self._noun = noun
        self._folder = folder
        self._checked = self._known = 0

    def unknown(self, jobs, key_of):
        """Those of `jobs` that have to be checked."""
        unknown = [job for job in jobs if not self._is_known(key_of(job))]
        self._checked += len(unknown)
        self._known += len(jobs) - len(unknown)
        return unknown

    def remember(self, key):
        if self._folder is None:
            return
        try:
            path = self._path(key)
            path.parent.mkdir(parents=True, exist_ok=True)
            _remove_unused(path.parent)
            path.touch()
        except OSError:
            pass  # it is checked again the next time

    def summary(self):
        return f"{self._checked} {self._noun} checked, {self._known} known to be clean"

    def _path(self, key):
        return self._folder / key[:2] / key

    def _is_known(self, key):
        if self._folder is None:
            return False
        try:
            os.utime(self._path(key))
            return True
        except OSError:
            return False


def _remove_unused(folder):
    oldest = time.time() - UNUSED_DAYS * 24 * 3600
    for entry in os.scandir(folder):
        if entry.stat().st_mtime < oldest:
            Path(entry.path).unlink(missing_ok=True)
