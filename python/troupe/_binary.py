"""Where the program `troupe` is: in this package's wheel, where TROUPE_BINARY says, or in PATH."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ._errors import TroupeError


def _is_program(file: Path) -> bool:
    """Whether it is the program itself, and not the script of its name that pip makes for this package."""
    try:
        with file.open("rb") as opened:
            return os.access(file, os.X_OK) and opened.read(2) != b"#!"
    except OSError:
        return False


def find() -> str:
    own = Path(__file__).parent / "bin" / "troupe"
    if _is_program(own):
        return str(own)
    named = os.environ.get("TROUPE_BINARY")
    if named:
        if _is_program(Path(named)):
            return os.path.abspath(named)
        raise TroupeError(f"TROUPE_BINARY names '{named}', which is no program: set it to the path of the built `troupe`")
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if folder and _is_program(Path(folder, "troupe")):
            return os.path.abspath(os.path.join(folder, "troupe"))
    raise TroupeError(
        "the program `troupe` is not there: this package was installed without it, TROUPE_BINARY is not set, and no folder "
        "of PATH has it. Install the wheel that `./run package` makes, or build it (`./run build`, or `./run install PREFIX`) "
        "and set TROUPE_BINARY to its path"
    )


def main() -> int:
    """The command `troupe` of a virtual environment."""
    try:
        program = find()
    except TroupeError as error:
        print(f"troupe: {error}", file=sys.stderr)
        return 127
    os.execv(program, ["troupe", *sys.argv[1:]])
