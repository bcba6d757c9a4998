"""Folders for the files of one call, in TMPDIR. A driver that is killed leaves its folder, and the next call removes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

_PREFIX = "troupe-call-"
_LOCK = ".lock"
_BEING_MADE = 3600.0  # seconds that a folder may be without its lock


def parent() -> str:
    return os.path.abspath(tempfile.gettempdir())


def _is_left(folder: Path) -> bool:
    """Whether nobody has it any more: the kernel lets a lock go with its process, however that ends."""
    try:
        if folder.stat().st_uid != os.getuid():
            return False
        with open(folder / _LOCK, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except FileNotFoundError:  # made at this moment, or left so
        with contextlib.suppress(OSError):
            return time.time() - folder.stat().st_mtime > _BEING_MADE
        return False
    except OSError:  # held
        return False


def _remove_left() -> None:
    with contextlib.suppress(OSError):
        for folder in Path(parent()).glob(_PREFIX + "*"):
            if _is_left(folder):
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def folder():
    """-> the path of a new folder, which is removed at the end."""
    _remove_left()
    made = tempfile.mkdtemp(prefix=_PREFIX, dir=parent())
    try:
        # The lock gets its name once it is held, so that no other call takes this folder for one that was left.
        with open(Path(made, _LOCK + ".new"), "wb") as lock:
            with contextlib.suppress(OSError):  # a file system without locks: nobody else can have it either
                fcntl.flock(lock, fcntl.LOCK_EX)
                os.rename(lock.name, Path(made, _LOCK))
            yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
