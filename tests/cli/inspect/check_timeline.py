"""Checks what holds of every file of `troupe timeline`: check_timeline.py FILE. Says what does not."""

import json
import sys
from collections import defaultdict


def nesting_errors(spans):
    """Spans of a track lie one behind the other or one within the other. Times have nanoseconds."""
    errors = []
    stack = []
    for begin, end, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        while stack and stack[-1][1] <= begin:
            stack.pop()
        if stack and end > stack[-1][1]:
            errors.append(f"{name} at {begin} is cut by the end of {stack[-1][2]}")
        stack.append((begin, end, name))
    return errors


def nanoseconds(micros):
    return round(micros * 1000)


def check(trace):
    errors = []
    tracks, groups = set(), set()
    spans, starts, ends = defaultdict(list), {}, {}
    for event in trace["traceEvents"]:
        place = (event["pid"], event["tid"])
        if event["name"] == "thread_name":
            tracks.add(place)
        elif event["name"] == "process_name":
            groups.add(event["pid"])
        elif event["ph"] == "X":
            if event["dur"] < 0 or event["ts"] < 0:
                errors.append(f"{event['name']} has a time below 0")
            begin = nanoseconds(event["ts"])
            spans[place].append((begin, begin + nanoseconds(event["dur"]), event["name"]))
        elif event["ph"] in "sf":
            (starts if event["ph"] == "s" else ends)[event["id"]] = (place, nanoseconds(event["ts"]))
    for place, found in spans.items():
        if place not in tracks or place[0] not in groups:
            errors.append(f"track {place} has no name")
        errors += nesting_errors(found)
    if starts.keys() != ends.keys():
        errors.append("an arrow has one end")
    begins = {(place, span[0]) for place, found in spans.items() for span in found}
    for arrow, start in starts.items():
        if start not in begins or ends[arrow] not in begins:
            errors.append(f"arrow {arrow} ends at no span")
        if start[1] > ends[arrow][1]:
            errors.append(f"arrow {arrow} goes back in time")
    return errors


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        found = check(json.load(file))
    print("\n".join(found[:20]))
    sys.exit(1 if found else 0)
