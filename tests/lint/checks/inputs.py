"""Keys of sources: two sources with the same key give a check the same result, in any clone.

A key is a SHA-256 of the text of the check, of the versions of its tools and of the Debian packages with headers, of the flags, and
of the text of the source and of all project files that it includes. Which those are is read from the text: an #include stands for
every file of the tree, and every generated one, whose path ends with what it names. So a key changes too often rather than too
seldom. It is the same, and what was found clean may not be, only where

* headers outside the tree changed by hand: of a Debian package the version is in the key, of a wheel's environment the name is in the
  flags, and of anything else (/usr/local, CMAKE_PREFIX_PATH, other systems) only the path is;
* an #include names a macro, or `__has_include` asks for a file of the tree, which no file does today;
* a result depends on the sources that were checked along with one (tidy.py), which the key does not name.

`./run lint --no-cache` relies on no earlier result.
"""

import hashlib
import json
import os
import posixpath
import re
import subprocess
from pathlib import Path

from .commands import folders_within
from .tree import includes

_CHECKS = Path(__file__).parent
_OF_ALL_CHECKS = ("commands.py", "inputs.py", "tree.py")
_SEARCHED_BY_COMPILERS = ("CPATH", "CPLUS_INCLUDE_PATH")


def version_line(tool):
    """The line of `tool --version` that has the version; other lines may name the processor."""
    lines = subprocess.run([tool, "--version"], capture_output=True, text=True).stdout.splitlines()
    return next((line for line in lines if re.search(r"\d+\.\d+", line)), "")


def installed_packages():
    """Name and version of each Debian package that has headers or is a compiler; nothing on other systems."""
    try:
        return subprocess.run(["dpkg-query", "-W", "*-dev*", "g++*", "clang*", "catch2"], capture_output=True, text=True).stdout
    except OSError:
        return ""


class Inputs:
    """The files of a tree and of its build folder, each of which is read once."""

    def __init__(self, tree, build, commands, check, tools, context=()):
        """`check`: the file of the check. `tools`: the programs that it runs. `context`: what else all of its results depend on."""
        self._places = ((str(build), "<build>"), (str(tree.root), "<root>"))
        own = [path.read_text(encoding="utf-8") for path in (Path(check), *(_CHECKS / name for name in _OF_ALL_CHECKS))]
        self._context = [own, [version_line(tool) for tool in tools], installed_packages(),
                         [os.environ.get(name) for name in _SEARCHED_BY_COMPILERS], list(context)]
        self._files = {}  # last part of the path -> [(path as it is in keys, where the file is)]
        for path in tree.files:
            self._add(path.as_posix(), tree.root / path)
        for folder in folders_within(commands, build):
            for path in sorted(folder.rglob("*.h*")):
                self._add("<build>/" + path.relative_to(build.resolve()).as_posix(), path)
        self._read = {}  # where the file is -> (its stamp, the digest of its text, the files that it includes)

    def key(self, name, flags):
        """The key of the file that is `name`, by its path or as an #include names it, with these words for the compiler."""
        files = sorted((path, self._text(where)[1]) for path, where in self._closure(name))
        what = [self._context, [self._in_any_clone(flag) for flag in flags], name, files]
        return hashlib.sha256(json.dumps(what).encode()).hexdigest()

    def is_unchanged(self, name):
        """False where a file was written after the key of `name` was made, so that the check may have seen another text."""
        return all(_stamp(where) == self._text(where)[0] for _, where in self._closure(name))

    def _add(self, path, where):
        self._files.setdefault(path.rpartition("/")[2], []).append((path, where))

    def _named(self, name):
        """All files that an #include of `name` may mean."""
        tail = re.sub(r"^(\.\./)+", "", posixpath.normpath(name))
        return [(path, where) for path, where in self._files.get(tail.rpartition("/")[2], ())
                if path == tail or path.endswith("/" + tail)]

    def _text(self, where):
        if where not in self._read:
            stamp = _stamp(where)  # before the file is read: a later write is noticed
            text = where.read_bytes()
            named = {name for _, _, name in includes(text.decode("utf-8", "replace"))}
            included = [file for name in sorted(named) for file in self._named(name)]
            self._read[where] = (stamp, hashlib.sha256(text).hexdigest(), included)
        return self._read[where]

    def _closure(self, name):
        found, ahead = set(), self._named(name)
        while ahead:
            file = ahead.pop()
            if file not in found:
                found.add(file)
                ahead += self._text(file[1])[2]
        return found

    def _in_any_clone(self, flag):
        for place, mark in self._places:
            flag = re.sub(re.escape(place) + r"(?![\w.-])", mark, flag)
        return flag


def _stamp(where):
    try:
        status = where.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino)
