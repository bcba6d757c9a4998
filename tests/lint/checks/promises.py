"""Each sentence of docs/promises.md names its test, and other pages name some: each test must be there."""

import re
from pathlib import Path

from checks.tree import Problem

PAGE = Path("docs/promises.md")
OTHER_PAGES = (Path("docs/debugging.md"), Path("docs/what_travels.md"))


def names_of(text):
    """What stands in quotation marks behind "Test:", "Tests:" or "The same tests, and", up to the end of the paragraph."""
    names = []
    for paragraph in re.split(r"\n(?=\* |\n|#)", text):
        found = re.search(r"(Tests?:|The same tests, and)(.*)", " ".join(paragraph.split()))
        if found:
            names += re.findall(r'"([^"]+)"', found.group(2))
    return names


def promises_of(text):
    """The promises that name no test."""
    without = []
    for paragraph in re.split(r"\n(?=\* |\n|#)", text):
        if paragraph.startswith("* ") and not names_of(paragraph):
            without.append(" ".join(paragraph.split())[:80])
    return without


def tests_of(source):
    literals = re.findall(r'TEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)', source)
    return {"".join(re.findall(r'"((?:[^"\\]|\\.)*)"', parts)) for parts in literals}


def check(tree):
    pages = [page for page in (PAGE, *OTHER_PAGES) if page in tree.files]
    if not pages:
        return []
    tests = set()
    for path in tree.cpp_files():
        if path.parts[0] == "tests":
            tests |= tests_of(tree.text(path))
    problems = [Problem(page, 0, f'there is no test "{name}"')
                for page in pages for name in names_of(tree.text(page)) if name not in tests]
    unproven = promises_of(tree.text(PAGE)) if PAGE in pages else []
    return problems + [Problem(PAGE, 0, f"names no test: {promise}") for promise in unproven]
