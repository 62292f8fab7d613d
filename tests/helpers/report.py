"""Prints a Python expression over a report: report.py FILE EXPRESSION. The report is r; site(r, id) is a site,
frames(r, stack) the frames of a stack, innermost first, innermost(r, leak, file) the function of that source file nearest to
a leak, and grouped(pairs) a sorted list of (key, [value...]). Used by json in common.bash."""

import json
import sys


def site(report, number):
    """The site with this id."""
    return next(s for s in report["sites"] if s["id"] == number)


def frames(report, stack):
    """A stack's frames, innermost first. stacks[] holds [parent, frame] and id 0 is the root."""
    found = []
    while stack:
        parent, frame = report["stacks"][stack]
        found.append(report["frames"][frame])
        stack = parent
    return found


def innermost(report, leak, file):
    """The function nearest to a leak whose source file has this name."""
    stack = frames(report, site(report, leak["site"])["stack"])
    return next(frame["function"] for frame in stack if frame.get("file", "").endswith(file))


def grouped(pairs):
    """The values of equal keys together."""
    groups = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return sorted(groups.items(), key=lambda group: group[0])


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    print(eval(" ".join(sys.argv[2].split("\n")), {"r": report, **HELPERS}))


HELPERS = {helper.__name__: helper for helper in (site, frames, innermost, grouped)}

main()
