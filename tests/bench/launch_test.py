#!/usr/bin/env python3
"""launch_beside_torchrun.py measures Troupe's rows, and prints them with their goals; of recorded rows, what it prints of a peer too.

usage: launch_test.py TREE TROUPE
"""
import contextlib
import io
import json
import sys
from pathlib import Path
from unittest import mock

ALONE = ["2 ranks of `true`, no cluster", "2 ranks of `true`, on a running cluster",
         "end of both once one fails and one ignores SIGTERM", "first lines of a 2-rank Python script, later than without"]
GOALS = [None, 0.1, 2, 0.1]  # seconds
# What was measured once; no peer has every row.
RECORDED = [("both", 0.038, None, 5.09, "torchrun"), ("reached", 0.024, 0.1, None, ""), ("missed", 0.25, 0.1, 5.0, "torchrun")]
# But for the width of columns.
TEXTS = ["both 0.038 s torchrun 5.090 s, 134x", "reached 0.024 s goal 0.1 s", "missed 0.250 s goal 0.1 s, missed torchrun 5.000 s, 20x"]


def printed_by(beside, *arguments, rows=None):
    """-> what it prints, and the text with which it ends where it does not end well."""
    with contextlib.ExitStack() as stack:
        text = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(mock.patch.object(sys, "argv", ["launch_beside_torchrun.py", *arguments]))
        if rows is not None:
            stack.enter_context(mock.patch.object(beside, "rows", lambda *_: iter(rows)))
        why = ""
        try:
            beside.main()
        except SystemExit as end:
            why = end.code
    return text.getvalue().splitlines(), why


def faults_of_recorded(beside, troupe):
    lines, why = printed_by(beside, troupe, rows=RECORDED)
    if [" ".join(line.split()) for line in lines] != TEXTS or why:
        yield f"of recorded rows it printed {lines} and ended with {why!r}; expected {TEXTS}"
    lines, why = printed_by(beside, troupe, "--check", "--json", rows=RECORDED)
    found = [[json.loads(line)[name] for name in ("name", "troupe_s", "goal_s", "peer_s", "peer")] for line in lines]
    if [tuple(row) for row in found] != RECORDED:
        yield f"of recorded rows its JSON lines are {found}; expected {RECORDED}"
    if why != "missed: 0.250 s, and the goal is 0.1 s":
        yield f"with --check it ended with {why!r} where one row has missed its goal"


def faults_of_measured(beside, troupe):
    """One round of each, without a peer."""
    lines, why = printed_by(beside, troupe, "--rounds", "1", "--json")
    found = [json.loads(line) for line in lines]
    if why or [row["name"] for row in found] != ALONE or [row["goal_s"] for row in found] != GOALS:
        yield f"measured, it printed {found} and ended with {why!r}"
    for row in found[:-1]:  # the last one is a difference, which chance makes negative
        if not row["troupe_s"] > 0:
            yield f"{row['name']} took {row['troupe_s']} s"


def main(tree, troupe):
    sys.path.insert(0, str(Path(tree) / "bench/peer"))
    import launch_beside_torchrun as beside

    faults = [*faults_of_recorded(beside, troupe), *faults_of_measured(beside, troupe)]
    for fault in faults:
        print(f"launch_test: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
