"""Vendors' own tests, out of their wheels, a source package or a checkout (units.py, pytests.py): what passes natively on the simulator has to pass under memshim, in every mode.

Each suite is run in one process, natively and in each mode, two at a time; the outcome of every test is compared by its name. What fails natively is the simulator's affair, and only counted.
"""
import concurrent.futures
import os

from . import judge, run
from .play import Fact, tail

HERE = os.path.dirname(os.path.abspath(__file__))
RUNNERS = {"unittest": os.path.join(HERE, "units.py"), "pytest": os.path.join(HERE, "pytests.py")}


def outcomes(path):
    """name -> passed, failed or skipped; a test that began and did not end is absent."""
    found = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            outcome, name = line.split(" ", 1)
            if outcome != "begin":
                found[name.strip()] = outcome
    return found


def words(what, checkout):
    """The tests as their runner takes them: modules, or files of a checkout, without its settings."""
    if checkout is None:
        return what.split()
    paths = [os.path.join(checkout.folder, name) for name in what.split()]
    return ["-c", os.devnull, "--rootdir", checkout.folder, *paths]


def once(bench, mode, what, client, checkout):
    """One run: (outcomes, how it ended)."""
    results = os.path.join(bench.temporary, "suite.%s.%s" % (mode or "natively", what.replace(" ", ".").replace("/", ".")))
    command = [bench.interpreter, RUNNERS[client.runner], results, *words(what, checkout)]
    sources = os.path.join(os.path.dirname(os.path.dirname(bench.interpreter)), "sources")
    variables = {"XDG_CACHE_HOME": os.path.join(bench.temporary, "cache"), **({"PYTHONPATH": sources} if os.path.isdir(sources) else {})}
    outcome = bench.run(mode, command + (["without", *client.deselect] if client.deselect else []), variables, seconds=1800)
    return (outcomes(results) if os.path.exists(results) else {}), outcome


def count(found, outcome):
    """How many of them."""
    return sum(one == outcome for one in found.values())


def play(bench, client, modes=tuple(run.MODES), checkout=None):
    """Every suite of a client, from a checkout if it is given: rows (suite, mode or natively, passed, failed, differences), and facts."""
    rows, facts = [], []
    for what in client.suite:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = list(pool.map(lambda mode: once(bench, mode, what, client, checkout), (None, *modes)))
        native, outcome = runs[0]
        passed = [name for name in native if native[name] == "passed"]
        facts.append(Fact(bool(passed), "%s: %d tests pass natively" % (what, len(passed)), [] if passed else tail(outcome)))
        rows.append((what, "natively", len(passed), count(native, "failed"), 0))
        for mode, (other, outcome) in zip(modes, runs[1:]):
            differ = ["%s: %s" % (name, other.get(name, "did not end")) for name in passed if other.get(name) != "passed"]
            also = ["passes here alone: " + name for name in other if other[name] == "passed" and native.get(name) == "failed"]
            facts.append(Fact(not differ, "%s, %s: what passes natively passes" % (what, mode), differ + tail(outcome) if differ else also))
            rows.append((what, mode, count(other, "passed"), count(other, "failed"), len(differ)))
            facts.append(reports(bench, outcome, what, mode))
    return rows, facts


def reports(bench, outcome, what, mode):
    """Whether what was reported is valid; tests provoke errors on purpose, so nothing more is asked of it."""
    wrong = judge.invalid(bench.memshim, outcome.place)
    found = [] if wrong else judge.reports(outcome.place)
    return Fact(bool(found), "%s, %s: %d reports are valid" % (what, mode, len(found)), wrong)
