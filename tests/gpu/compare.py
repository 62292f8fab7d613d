#!/usr/bin/env python3
"""Holds two outputs of tests/gpu/conformance (or facts) against each other, line by line.

Usage: compare.py LEFT RIGHT [--permitted docs/user/hardware.md --where WHERE]

Lines are known by their names. A difference is permitted if the table under "Permitted differences" of the page has a row
| `name` | where | left | right | reason | for it; `*` stands for any value. Exit: 0 equal or permitted, 1 different, 2 usage.
"""

import argparse
import re
import sys

ROW = re.compile(r"^\| `([^`]+)` \| (\S+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|$")


def values(text):
    """The lines of an output by name, in order: "conform a.b 1" and "fact 1.2 name 1" alike."""
    found = {}
    for line in text.splitlines():
        words = line.split(" ", 3 if line.startswith("fact ") else 2)
        if words[0] == "conform" and len(words) == 3:
            found[words[1]] = words[2]
        elif words[0] == "fact" and len(words) == 4:
            found[words[2]] = words[3]
    return found


def permitted(page, where):
    """The rows of the table for one place: name -> list of (left, right, reason)."""
    rows = {}
    inside = False
    for line in page.splitlines():
        if line.startswith("#"):
            inside = line.lstrip("# ").strip() == "Permitted differences"
        match = ROW.match(line) if inside else None
        if match and match[2] == where:
            rows.setdefault(match[1], []).append(tuple(cell.strip().strip("`") for cell in match.groups()[2:]))
    return rows


def differences(left, right, rows):
    """What differs: (name, left, right, reason), the reason None where it is not permitted."""
    found = []
    for name in [*left, *(n for n in right if n not in left)]:
        one, other = left.get(name, "(missing)"), right.get(name, "(missing)")
        if one == other:
            continue
        reason = next((r for a, b, r in rows.get(name, []) if a in ("*", one) and b in ("*", other)), None)
        found.append((name, one, other, reason))
    return found


def main():
    """Compares two files."""
    parser = argparse.ArgumentParser(prog="compare.py", description=__doc__.split("\n", 1)[0])
    parser.add_argument("left")
    parser.add_argument("right")
    parser.add_argument("--permitted", metavar="PAGE", help="a page with a table of permitted differences")
    parser.add_argument("--where", default="hardware", help="which rows of it apply (hardware, or a mode of memshim)")
    options = parser.parse_args()
    texts = []
    for path in (options.left, options.right, options.permitted):
        if path is None:
            texts.append("")
            continue
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    left, right = values(texts[0]), values(texts[1])
    if not left or not right:
        sys.exit("compare.py: a file without a single line of conformance or facts")
    found = differences(left, right, permitted(texts[2], options.where))
    for name, one, other, reason in found:
        print(f"{name}: {one} | {other}" + (f" (permitted: {reason})" if reason else ""))
    worse = sum(1 for difference in found if difference[3] is None)
    print(f"{len(left)} lines, {len(found) - worse} permitted differences, {worse} others")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
