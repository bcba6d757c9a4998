#!/usr/bin/env python3
"""What the conventions ask of the tree and a machine can check. Prints every problem; exit code 1 if there is one."""

import argparse
import sys
import time
from pathlib import Path

from checks import arrows, batches, floors, headers, layout, links, promises, python_blocks, sizes, snippets, tidy, words
from checks.clean import CleanResults, user_folder
from checks.tree import git_tree


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[2])
    parser.add_argument("--build", type=Path, required=True, help="a configured build folder with all modules")
    parser.add_argument("--fix", action="store_true", help="lay out all C++ files first")
    parser.add_argument("--no-cache", action="store_true", help="check also what was found clean before, and remember nothing")
    options = parser.parse_args()

    folder = None if options.no_cache else user_folder()
    clean = {"headers": CleanResults("headers", folder), "tidy": CleanResults("sources", folder)}
    tree = git_tree(options.root.resolve())
    if options.fix:
        print(f"lint: laid out {layout.fix(tree)} files")
    checks = {
        "format": lambda: layout.check(tree),
        "arrows": lambda: arrows.check(tree),
        "floors": lambda: floors.check(tree),
        "sizes": lambda: sizes.check(tree),
        "batches": lambda: batches.check(tree),
        "words": lambda: words.check(tree),
        "promises": lambda: promises.check(tree),
        "snippets": lambda: snippets.check(tree),
        "python": lambda: python_blocks.check(tree),
        "links": lambda: links.check(tree),
        "headers": lambda: headers.check(tree, options.build.resolve(), clean["headers"]),
        "tidy": lambda: tidy.check(tree, options.build.resolve(), clean["tidy"]),
    }
    failed = False
    for name, check in checks.items():
        started = time.monotonic()
        problems = check()
        failed = failed or bool(problems)
        details = f"; {clean[name].summary()}" if name in clean else ""
        print(f"lint: {name:8} {'ok' if not problems else f'{len(problems)} problems'} ({time.monotonic() - started:.1f} s{details})")
        for problem in problems:
            print(f"  {problem}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
