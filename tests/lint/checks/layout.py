"""clang-format 14 leaves every C++ file as it is. Another version lays out otherwise, so it is not asked."""

import re
import subprocess
from pathlib import Path

from .tree import Problem, find_tool

VERSION = "14"
_ERROR = re.compile(r"^(?P<path>[^:\n]+):(?P<line>\d+):\d+: error: ")


def fix(tree):
    """Lays out every file where it lies. Returns how many there are."""
    tool = find_tool("clang-format", VERSION)
    files = [str(path) for path in tree.cpp_files()]
    if tool and files:
        subprocess.run([tool, "-i", *files], cwd=tree.root, check=True)
    return len(files) if tool else 0


def check(tree):
    tool = find_tool("clang-format", VERSION)
    if not tool:
        return [Problem(Path(".clang-format"), 0, f"clang-format {VERSION} is not there: ./run setup installs it")]
    files = [str(path) for path in tree.cpp_files()]
    if not files:
        return []
    output = subprocess.run([tool, "--dry-run", "-Werror", "--ferror-limit=1", *files], cwd=tree.root,
                            capture_output=True, text=True)
    problems = {}
    for line in output.stderr.splitlines():
        found = _ERROR.match(line)
        if found and found["path"] not in problems:
            problems[found["path"]] = Problem(Path(found["path"]), int(found["line"]), "laid out otherwise; ./run lint --fix does it")
    if output.returncode != 0 and not problems:
        problems[""] = Problem(Path(".clang-format"), 0, output.stderr.strip())
    return list(problems.values())
