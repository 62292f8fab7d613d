#!/usr/bin/env python3
"""The table of systems in docs/user/clients.md is true: a row is green only with tests that exist and that `make check` runs.

With --results FILE, the results of a whole run ("TEST STATUS" a line, as scripts/test keeps them), it says of each green row whether its tests
passed here, and ends with 1 if those of one did not: a test that was skipped as a whole has shown nothing.
"""
import glob
import os
import re
import sys

TOP = os.environ.get("top_srcdir") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SYSTEMS = ("ncclMemAlloc", "TVM", "rocBLAS", "aclrtMallocPhysical", "cudaMemPoolCreate")
STATES = ("green", "not yet")


def rows(text):
    """(system, tests, state) of each row below the heading."""
    section = re.search(r"^## Systems$(.*?)(?=^## |\Z)", text, re.M | re.S)
    lines = [line for line in (section.group(1) if section else "").splitlines() if line.startswith("|")]
    found = []
    for line in lines[2:]:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        found.append((cells[0], re.findall(r"`(tests/[^`]+)`", cells[-2]), cells[-1]) if len(cells) == 4 else (line, [], "?"))
    return found


def listed():
    """Every test that make check runs."""
    names = set()
    for path in glob.glob(os.path.join(TOP, "**", "*.mk"), recursive=True):
        with open(path, encoding="utf-8") as file:
            for line in re.findall(r"^(?:TESTS|ms_test_programs|dist_check_SCRIPTS) \+= ((?:.*\\\n)*.*)$", file.read(), re.M):
                names.update(line.replace("\\\n", " ").split())
    return names


def wrong_with(row, known):
    system, tests, state = row
    if state not in STATES:
        return ["%s: the state is '%s', not one of %s" % (system, state, ", ".join(STATES))]
    if state == "green" and not tests:
        return ["%s: is green and names no test" % system]
    return ["%s: %s is no test that make check runs" % (system, test) for test in tests if test not in known or
            not glob.glob(os.path.join(TOP, re.sub(r"\.\w+$", "", test) + ".*"))]


def read():
    with open(os.path.join(TOP, "docs", "user", "clients.md"), encoding="utf-8") as file:
        return rows(file.read())


def check():
    found, known = read(), listed()
    facts = [("every system has its row", [name for name in SYSTEMS if sum(name in row[0] for row in found) != 1])]
    facts += [("%s" % row[0], wrong_with(row, known)) for row in found]
    bad = wrong_with(("made up", ["tests/systems/of_nobody.py"], "green"), known)
    facts.append(("a row with a test that is none would be found", [] if bad and wrong_with(("empty", [], "green"), known) else ["it is not"]))
    print("1..%d" % len(facts))
    for number, (name, lines) in enumerate(facts, 1):
        print("%s %d - %s" % ("not ok" if lines else "ok", number, name))
        for line in lines:
            print("# %s" % line)


def tell(path):
    """One line for each green row; 1 if a test of one failed, was not run, or passed nothing."""
    results = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            test, status = line.split()[:2]
            results.setdefault(test, []).append(status)
    failed = False
    for system, tests, state in read():
        if state != "green":
            continue
        states = {status for test in tests for status in results.get(test, [])}
        shown = all("PASS" in results.get(test, []) for test in tests)
        bad = states & {"FAIL", "ERROR", "XPASS"} or any(test not in results for test in tests)
        failed |= bool(bad) or not shown
        print("system %s: %s" % (system, "FAILED" if bad else "passed" if shown else "FAILED, its test was skipped"))
    sys.exit(1 if failed else 0)


if len(sys.argv) == 3 and sys.argv[1] == "--results":
    tell(sys.argv[2])
check()
