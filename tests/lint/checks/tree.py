"""The files of the tree and what a complaint about one is."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

MODULES = ("scheduler", "runtime", "train", "tune", "cli", "examples", "bench", "tests")
CPP_SUFFIXES = (".hpp", ".cpp", ".h", ".cu", ".cuh")


@dataclass(frozen=True)
class Problem:
    path: Path
    line: int  # 0: the whole file
    message: str

    def __str__(self):
        where = f"{self.path}:{self.line}" if self.line else f"{self.path}"
        return f"{where}: {self.message}"


@dataclass(frozen=True)
class Tree:
    root: Path
    files: tuple  # relative paths, sorted

    def cpp_files(self):
        return [path for path in self.files if path.suffix in CPP_SUFFIXES]

    def public_headers(self):
        return [path for path in self.cpp_files() if len(path.parts) > 2 and path.parts[1] == "include"]

    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8")


def git_tree(root):
    """What git tracks, and what it would: a file is checked before it is committed."""
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, capture_output=True, text=True).stdout
    paths = sorted({Path(name) for name in listed.split("\0") if name})
    return Tree(root, tuple(path for path in paths if (root / path).is_file()))


def find_tool(tool, version):
    """The path of an LLVM tool of this version, by its versioned name or its own; None where neither is it."""
    for name in (f"{tool}-{version}", tool):
        path = shutil.which(name)
        if path and f"version {version}." in subprocess.run([path, "--version"], capture_output=True, text=True).stdout:
            return path
    return None


_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def includes(text):
    """(line number, '<' or '"', what is included) of each #include."""
    for number, line in enumerate(text.splitlines(), start=1):
        found = _INCLUDE.match(line)
        if found:
            yield number, found.group(1), found.group(2)
