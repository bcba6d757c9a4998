"""What is unfinished is an issue, not a comment."""

import re

from .tree import Problem

WORDS = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")
_PATTERN = re.compile(r"\b(" + "|".join(WORDS) + r")\b")
_SUFFIXES = {".cpp", ".hpp", ".h", ".cu", ".cuh", ".py", ".sh", ".cmake", ".capnp", ".md", ".txt", ".in", ""}


def check(tree):
    problems = []
    for path in tree.files:
        if path.suffix not in _SUFFIXES or "data" in path.parts:
            continue
        try:
            text = tree.text(path)
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            found = _PATTERN.search(line)
            if found:
                problems.append(Problem(path, number, f"the word {found.group()}"))
    return problems
