"""The folders of runtime/src stand one above the other, and a file includes only folders below its own.

What a folder is for stands in docs/architecture.md. A folder with many files is split into rooms (folders of its own), which count as
their folder here: rooms of one folder may include each other.
"""

from pathlib import Path

from .tree import Problem, includes

SOURCES = Path("runtime/src")
FLOORS = ("os", "ids", "config", "log", "api", "wire", "transport", "ring", "store", "transfer", "objects", "calls", "tasks",
          "actors", "gangs", "node", "head", "session")
MOST_FILES = 20
# Modules whose folders are held to MOST_FILES.
MODULES = ("scheduler", "runtime", "train", "tune", "cli")


def check(tree):
    return _upward_includes(tree) + _full_folders(tree)


def _upward_includes(tree):
    problems = []
    for path in tree.cpp_files():
        if SOURCES not in path.parents or path.parent == SOURCES:
            continue
        here = path.relative_to(SOURCES).parts[0]
        if here not in FLOORS:
            problems.append(Problem(path, 0, f"runtime/src/{here} has no place in the order of floors.py"))
            continue
        for line, kind, included in includes(tree.text(path)):
            there = Path(included).parts[0]
            if kind == '"' and there in FLOORS and FLOORS.index(there) > FLOORS.index(here):
                problems.append(Problem(path, line, f"{here} may not include \"{included}\": {there} stands above it"))
    return problems


def _full_folders(tree):
    counts = {}
    for path in tree.cpp_files():
        if path.parts[0] in MODULES:
            counts[path.parent] = counts.get(path.parent, 0) + 1
    return [Problem(folder, 0, f"{count} files; more than {MOST_FILES} in one folder are split into rooms")
            for folder, count in sorted(counts.items()) if count > MOST_FILES]
