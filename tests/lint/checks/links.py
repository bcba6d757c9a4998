"""Each relative link of a page leads to a file, a folder or a heading of this tree."""

import posixpath
import re
from pathlib import Path

from .tree import Problem

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(<?([^()\s<>]+)>?(?: \"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")


def _blank(text, pattern):
    """What the pattern finds becomes blanks, so that lines stay where they are."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def links(text):
    """(line number, target) of each link that is no code."""
    prose = _blank(_blank(text, _FENCED), _CODE)
    return [(prose.count("\n", 0, found.start()) + 1, found.group(1)) for found in _LINK.finditer(prose)]


def anchors(text):
    """The names that a web host of the repository gives to the headings of a page."""
    found = {}
    for heading in _HEADING.findall(_blank(text, _FENCED)):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return {f"{name}-{number}" if number else name for name, count in found.items() for number in range(count + 1)}


def problem_of(tree, there, page, target):
    """What is wrong with a link, or None. `there`: the files of the tree and their folders."""
    if _ELSEWHERE.match(target):
        return None
    path, _, anchor = target.partition("#")
    file = Path(posixpath.normpath(posixpath.join(page.parent.as_posix(), path))) if path else page
    if file not in there:
        return f"the link leads to {file}, which is not there"
    if anchor and file.suffix == ".md" and anchor not in anchors(tree.text(file)):
        return f"the link leads to #{anchor}, and {file} has no such heading"
    return None


def check(tree):
    there = set(tree.files) | {folder for path in tree.files for folder in path.parents}
    problems = []
    for page in tree.files:
        if page.suffix != ".md":
            continue
        for line, target in links(tree.text(page)):
            problem = problem_of(tree, there, page, target)
            if problem:
                problems.append(Problem(page, line, problem))
    return problems
