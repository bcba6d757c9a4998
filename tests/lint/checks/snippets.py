"""Each block of C++ or CMake in a page is text of a file that the build compiles.

A comment right above the block names where it comes from:
  <!-- from PATH -->                the whole file
  <!-- from PATH: NAME, ... -->     its regions, each between "// [NAME]" and "// [/NAME]" ("#" in CMake), with an empty line between
  <!-- plain: REASON -->            from nowhere, and why
"""

import re
import textwrap
from pathlib import Path

from .tree import Problem

_FROM = re.compile(r"<!-- from (?P<path>[^:\s]+)(?:: (?P<names>.+?))? -->$")
_PLAIN = re.compile(r"<!-- plain: \S.* -->$")
_MARK = re.compile(r"^\s*(?://|#) \[/?[\w -]+\]\s*$")
_LANGUAGES = ("cpp", "cmake")


def blocks(text):
    """(line number, the line above, language, text) of each fenced block."""
    lines = text.splitlines()
    found, start = [], None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number
        else:
            above = lines[start - 1] if start > 0 else ""
            found.append((start + 1, above, lines[start][3:].strip(), "\n".join(lines[start + 1:number])))
            start = None
    return found


def region(source, name):
    """The lines between the marks of `name`, as far left as they go and without other marks; None where it is not there once."""
    mark = r"^[ \t]*(?://|#) \[{}\][ \t]*\n"
    found = re.findall(mark.format(re.escape(name)) + r"(.*?)" + mark.format("/" + re.escape(name)), source, re.MULTILINE | re.DOTALL)
    if len(found) != 1:
        return None
    return textwrap.dedent("\n".join(line for line in found[0].splitlines() if not _MARK.match(line)))


def is_built(tree, path):
    """Whether a CMakeLists.txt of its folder or one above names it."""
    if path.name == "CMakeLists.txt":
        return True
    names = re.compile(rf"\b(?:{re.escape(path.name)}|{re.escape(path.stem)})\b")
    lists = [folder / "CMakeLists.txt" for folder in path.parents]
    return any(file in tree.files and names.search(tree.text(file)) for file in lists)


def problem_of(tree, above, code):
    """What is wrong with a block, or None."""
    if _PLAIN.match(above):
        return None
    marked = _FROM.match(above)
    if not marked:
        return "a block of code needs a line above that says where it comes from: <!-- from PATH: NAME -->"
    path = Path(marked["path"])
    if path not in tree.files:
        return f"there is no file {path}"
    if not is_built(tree, path):
        return f"no CMakeLists.txt builds {path}"
    source = tree.text(path)
    if not marked["names"]:
        return None if code == source.rstrip("\n") else f"the block is not the text of {path}"
    parts = []
    for name in marked["names"].split(", "):
        parts.append(region(source, name))
        if parts[-1] is None:
            return f"{path} has not one region [{name}]"
    return None if code == "\n\n".join(parts) else f"the block is not what {path} has in {marked['names']}"


def is_page(path):
    return path.name == "README.md" or (path.suffix == ".md" and path.parts[0] == "docs")


def check(tree):
    problems = []
    for page in filter(is_page, tree.files):
        for line, above, language, code in blocks(tree.text(page)):
            problem = problem_of(tree, above, code) if language in _LANGUAGES else None
            if problem:
                problems.append(Problem(page, line, problem))
    return problems
