#!/usr/bin/env python3
"""What the compiler must refuse, and in which words: each .cpp of a folder, against the comment with which it begins.

  // refused: TEXT         it must not compile, and its only error must be "static assertion failed: troupe: TEXT..."
  // refused first: TEXT   the same, but the compiler may add others behind that error
  // refused second: TEXT  the same, behind one error in the compiler's own words
  // refused by: TEXT      it must not compile, and its only error has TEXT among the compiler's own words
  // compiles: ...         it must

usage: check_refused.py COMPILER FOLDER --root TREE --scratch FOLDER --header HEADER --include FOLDER...

HEADER is what most sources include first, as it stands in their #include: g++ parses it once for all of them. A program that was
right is not compiled again while its text and that of its headers stay the same (tests/lint/checks/inputs.py). Where git does not
list the tree, all are compiled.
"""
import argparse
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lint"))
from checks.clean import CleanResults, user_folder  # noqa: E402
from checks.inputs import Inputs  # noqa: E402
from checks.tree import git_tree  # noqa: E402

FEW = 3  # sources for which it is not worth the while to parse the header before
FIRST_LINE = re.compile(r"// (?:compiles|refused(?P<place> first| second| by)?: (?P<text>.+))")


def what_is_wrong(first_line, failed, said):
    """`said`: by the compiler, which `failed` or not. -> a text; None: it is right"""
    promised = FIRST_LINE.match(first_line)
    if not promised:
        return "does not begin with '// refused: TEXT' or '// compiles'"
    if not promised["text"]:
        return f"does not compile:\n{said}" if failed else None
    is_part = promised["place"] == " by"
    expected = promised["text"] if is_part else f"static assertion failed: troupe: {promised['text']}"
    if not failed:
        return f"compiles, but should be refused with '{expected}'"
    errors = re.findall(r" error: ([^\n]*)", said)
    ours = 1 if promised["place"] == " second" else 0
    if len(errors) <= ours or not (expected in errors[ours] if is_part else errors[ours].startswith(expected)):
        return f"is not refused with '{expected}' as error {ours + 1}:\n{said}"
    if len(errors) > ours + 1 and promised["place"] != " first":
        return f"is refused with {len(errors)} errors, of which '{expected}' is error {ours + 1}:\n{said}"
    return None


class Sources:
    def __init__(self, options):
        self._compiler, self._header, self._root = options.compiler, options.header, options.root
        self._scratch = options.scratch
        self._flags = ["-std=c++20", *(word for folder in options.include for word in ("-I", str(folder)))]
        self._all = sorted(options.folder.rglob("*.cpp"))
        try:
            tree = git_tree(self._root)
        except (OSError, subprocess.CalledProcessError):
            tree = None
        # Of a file that git ignores nobody knows the text.
        is_known = tree is not None and {self._name(source) for source in self._all} <= {path.as_posix() for path in tree.files}
        self._inputs = Inputs(tree, options.scratch, [], __file__, [self._compiler]) if is_known else None
        self._right = CleanResults("programs", user_folder() if is_known else None)

    def check(self):
        """-> a text for each that is wrong"""
        unknown = self._right.unknown(self._all, self._key)
        with tempfile.TemporaryDirectory(dir=self._scratch) as parsed, ThreadPoolExecutor(2) as pool:
            if len(unknown) > FEW:
                self._parse_header(Path(parsed))
            wrong = [text for text in pool.map(lambda source: self._check_one(source, parsed), unknown) if text]
        print(self._right.summary())
        return wrong if self._all else ["there is no program to check"]

    def _name(self, source):
        return source.relative_to(self._root).as_posix()

    def _key(self, source):
        return self._inputs.key(self._name(source), [self._compiler, *self._flags]) if self._inputs else ""

    def _parse_header(self, folder):
        """g++ looks for HEADER.gch in each folder first. Without that file the sources parse the header by themselves."""
        parsed = folder / f"{self._header}.gch"
        parsed.parent.mkdir(parents=True)
        where = next((folder / self._header for folder in map(Path, self._flags[2::2]) if (folder / self._header).exists()), None)
        done = where and subprocess.run([self._compiler, *self._flags, "-w", "-x", "c++-header", where, "-o", parsed], capture_output=True)
        if not done or done.returncode != 0:
            parsed.unlink(missing_ok=True)

    def _check_one(self, source, parsed):
        words = [self._compiler, self._flags[0], "-I", parsed, *self._flags[1:], "-fsyntax-only", source]
        done = subprocess.run(words, capture_output=True, text=True)
        with open(source, encoding="utf-8") as lines:
            wrong = what_is_wrong(lines.readline().rstrip("\n"), done.returncode != 0, done.stderr)
        if wrong:
            return f"{self._name(source)} {wrong}"
        if self._inputs and self._inputs.is_unchanged(self._name(source)):
            self._right.remember(self._key(source))
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("compiler")
    for name in ("folder", "--root", "--scratch"):
        parser.add_argument(name, type=lambda text: Path(text).resolve(), **({"required": True} if name[0] == "-" else {}))
    parser.add_argument("--header", required=True)
    parser.add_argument("--include", type=lambda text: Path(text).resolve(), nargs="+", required=True)
    wrong = Sources(parser.parse_args()).check()
    for text in wrong:
        print(text, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
