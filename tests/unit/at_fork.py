"""Each file of the library that has a lock says what becomes of it in a child of fork, and says so by MS_AT_FORK. Speaks TAP."""

import glob
import os
import re
import sys

TOP = os.environ.get("top_srcdir", ".")
ROOMS = ("hooks", "src/base", "src/quota", "src/vendor", "src/record", "src/pool", "src/unwind")
# The lock of lookups lies in libraries.c and begins anew with what resolve.c keeps.
ELSEWHERE = {"hooks/lookup/libraries.c": "hooks/lookup/resolve.c"}
# Called by a function that is named.
PARTS = {"ms_lock_reset", "ms_objects_index_reset", "ms_phase_figures_reset", "ms_rules_reset", "ms_trace_events_reset"}


def forgotten(path, read):
    """The locks of a file that nobody begins anew, and the functions that would but are called by nobody."""
    text = read(path)
    where = read(ELSEWHERE[path]) if path in ELSEWHERE else text
    locks = re.findall(r"^(?:static )?struct ms_lock (\w+)", text, re.M)
    wrong = [name for name in locks if not re.search(r"ms_lock_reset\(&%s\)" % name, where)]
    functions = re.findall(r"^static void (\w+_reset)\(void\)|^void (ms_\w+_reset)\(void\)", where, re.M)
    named = set(re.findall(r"^MS_AT_FORK\(\w+, (\w+)\);", where, re.M))
    return wrong + [one for pair in functions for one in pair if one and one not in named | PARTS], len(locks)


def files():
    """The sources of the library, by their names from the top."""
    return sorted(os.path.relpath(path, TOP) for room in ROOMS for path in glob.glob(os.path.join(TOP, room, "**", "*.c"), recursive=True))


def from_tree(path):
    """The text of a file."""
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def main():
    found = {path: forgotten(path, from_tree) for path in files()}
    locks = sum(count for _, count in found.values())
    wrong = {path: names for path, (names, _) in found.items() if names}
    print("%sok 1 - %d locks and what lies beside them begin anew in a child of fork" % ("not " if wrong or locks < 20 else "", locks))
    for path, names in wrong.items():
        print("# %s: %s" % (path, ", ".join(names)))
    missed = []
    lines = [(path, line) for path in files() for line in re.findall(r"^MS_AT_FORK\(.*\n", from_tree(path), re.M)]
    for path, line in lines:
        without = lambda name, path=path, line=line: from_tree(name).replace(line, "") if name == path else from_tree(name)  # noqa: E731
        if not forgotten(path, without)[0]:
            missed.append(path + ": " + line.strip())
    print("%sok 2 - each of the %d lines is missed where it is left out" % ("not " if missed or len(lines) < 40 else "", len(lines)))
    for line in missed:
        print("# " + line)
    print("1..2")
    return bool(wrong or missed)


sys.exit(main())
