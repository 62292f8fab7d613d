"""Prints a Python expression over a report: report.py FILE EXPRESSION. The report is r; site(r, id) is a site, and
frames(r, stack) the frames of a stack, innermost first. Used by json in common.bash."""

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


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    print(eval(" ".join(sys.argv[2].split("\n")), {"r": report, "site": site, "frames": frames}))


main()
