"""Vendors' own tests, out of their wheels, by pytest: what passes natively on the simulator has to pass under memshim, in every mode.

Each suite is run in one process, natively and in each mode; the outcome of every test is compared by its name. What fails natively is the simulator's affair, and only counted.
"""
import os
import xml.etree.ElementTree

from . import judge, run
from .play import Fact, tail


def outcomes(path):
    """name -> passed, failed or skipped, of a JUnit file."""
    found = {}
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        kinds = {child.tag for child in case}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        name = "%s::%s" % (case.get("classname"), case.get("name"))
        # A test that fails in itself and in what takes it down has two rows.
        found[name] = "failed" if found.get(name) == "failed" else outcome
    return found


def once(bench, mode, what, client, number):
    """One run: (outcomes, how it ended)."""
    results = os.path.join(bench.temporary, "suite.%s.%d.xml" % (mode or "native", number))
    words = [bench.interpreter, "-m", "pytest", "-q", "-rN", "-p", "no:cacheprovider", "--junitxml", results]
    for name in client.deselect:
        words += ["--deselect", name] if "::" in name else ["-k", name]
    words += [word.replace("{site}", bench.packages()) for word in what.split()]
    outcome = bench.run(mode, words, {}, seconds=1800)
    return (outcomes(results) if os.path.exists(results) else None), outcome


def play(bench, client):
    """Every suite of a client: rows (suite, mode or natively, passed, differences), and facts."""
    rows, facts = [], []
    for number, what in enumerate(client.suite):
        native, outcome = once(bench, None, what, client, number)
        passed = [name for name in native or {} if native[name] == "passed"]
        facts.append(Fact(bool(passed), "%s: %d tests pass natively" % (what, len(passed)), [] if passed else tail(outcome)))
        rows.append((what, "natively", len(passed), 0))
        for mode in run.MODES:
            other, outcome = once(bench, mode, what, client, number)
            differ = [name for name in passed if not other or other.get(name) != "passed"]
            also = [name for name in other or {} if other[name] == "passed" and (native or {}).get(name) == "failed"]
            facts.append(Fact(bool(other) and not differ, "%s, %s: what passes natively passes" % (what, mode),
                              (differ + tail(outcome)) if differ or not other else also and ["passes here alone: " + name for name in also]))
            rows.append((what, mode, sum(outcome == "passed" for outcome in (other or {}).values()), len(differ)))
            facts += reports(bench, outcome, what, mode)
    return rows, facts


def reports(bench, outcome, what, mode):
    """Whether what was reported is valid; tests provoke errors on purpose, so nothing more is asked of it."""
    found = judge.reports(outcome.place)
    wrong = judge.invalid(bench.memshim, outcome.place)
    return [Fact(bool(found) and not wrong, "%s, %s: %d reports are valid" % (what, mode, len(found)), wrong)]
