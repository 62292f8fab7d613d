#!/usr/bin/env python3
"""Whether the judge of tests/clients can fail: each thing that a program may do otherwise under memshim (judged.py, judged_suite.py) makes the facts fail that are about it, and no other.

Needs nothing but the build and this python3.
"""
import glob
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from kit import checkout, holder, install, judge, page, play, run, session, suite, table  # noqa: E402

PRINTS, SOUND, FIGURES = "prints", "sound", "figures"
PROGRAMS = {
    "nothing": set(),
    "line": {PRINTS},
    "missing line": {PRINTS},
    "further line": {PRINTS},
    "order": {PRINTS},
    "status": {PRINTS},
    "leak": {SOUND, FIGURES},
    "planted": {SOUND, FIGURES},
    "double free": {SOUND},
    "figure": {FIGURES},
    "claim": {FIGURES},
    "blind": {SOUND, FIGURES},
}
SUITES = {"Sound": set(), "Fails": {"passes"}, "Skips": {"passes"}, "Ends": {"passes"}, "Blind": {"valid"}, "Nothing": {"natively", "valid"}}


def skip_all(reason):
    """Says why, and ends."""
    print("1..0 # SKIP " + reason)
    sys.exit(0)


def client(**values):
    """A section of a table."""
    return table.Client("judged", {"kind": "large", **values})


def failed(facts, kinds):
    """The kinds of the facts that do not hold."""
    return {next((kind for kind in kinds if kind in fact.name), fact.name) for fact in facts if not fact.holds}


def played(bench, wrong, **values):
    """What failed of the program with this wrong, in one mode."""
    facts = play.play(bench, client(runs="judged.py '%s'" % wrong, **values), modes=("pool",)).facts
    return failed(facts, ("runs natively", PRINTS, SOUND, FIGURES)), [line for fact in facts for line in (fact.details if not fact.holds else ())]


class Bench(run.Bench):
    """Runs a program natively once, if it does nothing wrong there."""

    natively = {}

    def run(self, mode, words, variables, seconds=600):
        if mode is not None or words[1].endswith("units.py"):
            return super().run(mode, words, variables, seconds)
        wrong = words[2] if words[2] in ("natively", "figure", "planted") else "nothing"
        if wrong not in self.natively:
            self.natively[wrong] = super().run(mode, [*words[:2], wrong], variables, seconds)
        return self.natively[wrong]


class Spoiling(Bench):
    """Spoils each report, or trace, once it is written."""

    def __init__(self, spoil, *words, files="*.json"):
        super().__init__(*words)
        self.spoil, self.files = spoil, files

    def run(self, mode, words, variables, seconds=600):
        outcome = super().run(mode, words, variables, seconds)
        for path in glob.glob(os.path.join(outcome.place, self.files)) if outcome.place else ():
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read()
            if path.endswith(".trace"):  # its lines, which are a trace, too
                text = subprocess.run([self.memshim, "trace", "--text", path], capture_output=True, text=True, check=True).stdout
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.spoil(text))
        return outcome


def check_programs(tap, bench):
    """Programs that do one thing wrong."""
    for wrong, expected in PROGRAMS.items():
        found, details = played(bench, wrong)
        tap.line(found == expected, "%s: %s" % (wrong, ", ".join(sorted(expected)) or "all holds"), ["what failed: %s" % sorted(found), *details] if found != expected else ())
    tap.line(played(bench, "natively")[0] == {"runs natively"}, "what fails natively is told, and not run further")
    tap.line(played(bench, "nothing", module="no such module")[0] == {SOUND}, "a module that is to be named and is not fails")
    tap.line(played(bench, "nothing", processes="2")[0] == {SOUND}, "a process without a report fails")


def check_reports(tap, words):
    """Reports that are not valid, or do not say what the trace says."""
    spoils = {
        "a report that is cut short": lambda text: text[: len(text) // 2],
        "a report without a key": lambda text: text.replace('"sites"', '"sights"', 1),
        "a report of another schema": lambda text: text.replace('"schema_version"', '"schema"', 1),
        "an empty report": lambda text: "",
    }
    for name, spoil in spoils.items():
        found = played(Spoiling(spoil, *words), "nothing")[0]
        tap.line(found == {SOUND}, name + " fails", ["what failed: %s" % sorted(found)] if found != {SOUND} else ())
    counted = {
        "a report that counts otherwise than its histogram": Spoiling(lambda text: text.replace('"total_count":1,', '"total_count":2,'), *words),
        "a trace with a line less than the report": Spoiling(lambda text: "".join(text.splitlines(True)[:-1]), *words, files="*.trace"),
    }
    for (name, spoilt), kind in zip(counted.items(), (SOUND, FIGURES)):
        found = played(spoilt, "nothing")[0]
        tap.line(found == {kind}, name + " fails", ["what failed: %s" % sorted(found)] if found != {kind} else ())


def check_suites(tap, bench):
    """Suites with one test that is otherwise."""
    for name, expected in SUITES.items():
        facts = suite.play(bench, client(suite="judged_suite." + name), modes=("pool",))[1]
        found = failed(facts, ("natively passes", "pass natively", "valid"))
        found = {"passes" if kind == "natively passes" else "natively" if kind == "pass natively" else kind for kind in found}
        tap.line(found == expected, "suite %s: %s" % (name, ", ".join(sorted(expected)) or "all holds"), ["what failed: %s" % sorted(found)] if found != expected else ())


HOLDER = "holds (/p.py:7)"
LEAKS = "shows the tensors of PyTorch, each\n12.0 MiB leaked in 3 blocks at 1 site\n\n12.0 MiB in 3 blocks, at_exit, cudaMalloc, device 0, by libc10.so, in holds (/p.py:7)\n    frame\n"
SUMMARY = (
    "p.py\n  process 1\n  r.json\n  shows the tensors of PyTorch, each\n\nCall sites by their share of the peak, 2 of 2\n"
    "  12.0 MiB at peak, 0 B live, 12.0 MiB in 3 calls of cudaMalloc, device 0, in holds (/p.py:7)\n      frame\n"
    "  8.0 MiB at peak, 0 B live, 24.0 MiB in 3 calls of cudaMalloc, device 0, in gives_back (/p.py:9)\n"
)
OOM = "\nOut of memory\n  after 1 ms: cudaMalloc of 1.0 PiB\n    held most then:\n      12.0 MiB by cudaMalloc, in holds (/p.py:7)\n          frame\n\nCoverage\n"


def check_holders(tap):
    """What people are told of a holder, and what is wrong with it."""
    tap.line(not holder.wrong_in_leaks(LEAKS, HOLDER) and not holder.wrong_in_summary(SUMMARY, HOLDER, "end"), "a holder that is told is found")
    tap.line(not holder.wrong_in_summary(SUMMARY + OOM, HOLDER, "oom") and not judge.wrong_top("tensors", LEAKS, SUMMARY), "out of memory too, and the view at the top")
    other = LEAKS.replace("holds", "gives_back")
    for name, wrong in (
        ("another line", holder.wrong_in_leaks(LEAKS.replace(":7", ":8"), HOLDER)),
        ("fewer blocks", holder.wrong_in_leaks(LEAKS.replace("12.0 MiB in 3 blocks, ", "8.0 MiB in 2 blocks, "), HOLDER)),
        ("a leak of who gave back", holder.wrong_in_leaks(LEAKS + other, HOLDER)),
        ("no site", holder.wrong_in_summary(SUMMARY.replace(":7", ":8"), HOLDER, "end")),
        ("a finding", holder.wrong_in_summary(SUMMARY + "\nFindings\n  warning: much\n", HOLDER, "end")),
        ("no memory where there was", holder.wrong_in_summary(SUMMARY + OOM, HOLDER, "end")),
        ("memory where there was none", holder.wrong_in_summary(SUMMARY, HOLDER, "oom")),
        ("another holder then", holder.wrong_in_summary(SUMMARY + OOM.replace("holds", "gives_back"), HOLDER, "oom")),
        ("no view at the top", judge.wrong_top("tensors", LEAKS.replace("shows", "has"), SUMMARY)),
        ("another view", judge.wrong_top("segments", LEAKS, SUMMARY)),
    ):
        tap.line(bool(wrong), "a listing with %s fails" % name)


def put(place, name, text):
    """A file, with the folders that it needs."""
    path = os.path.join(place, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def found(one, place):
    """What a checkout is of, or why it is none."""
    try:
        return checkout.find(one, {} if place is None else checkout.read(["judged=" + place], [one])).origin
    except (install.Missing, SystemExit) as reason:
        return str(reason)


def check_checkouts(tap, place):
    """Checkouts that the user names: what they are not is said, and what they are of stands in the row."""
    one = client(suite="test_a.py\ndeep", runner="pytest", checkout="their/tests their.module")
    good, other, outer = (os.path.join(place, name) for name in ("good", "other", "outer"))
    for top in (good, os.path.join(outer, "inner")):
        put(top, "their/tests/conftest.py", "import their.module\n")
        put(top, "their/tests/test_a.py", "")
        put(top, "their/tests/deep/test_b.py", "")
    shutil.copytree(good, other)
    put(other, "their/tests/conftest.py", "import their\n")
    before = found(one, good)
    put(good, "their/tests/deep/test_b.py", "pass\n")
    after = found(one, good)
    for holds, name in (
        ("names a checkout" in found(one, None), "none: the client is skipped, and the option told"),
        ("has no their/tests/conftest.py" in found(one, place), "a folder that is none"),
        ("is of another version" in found(one, other), "another version"),
        ("it is NAME=DIR" in found(one, ""), "no directory"),
        (before.startswith("files sha256:") and after != before, "files without git, told apart by a hash"),
    ):
        tap.line(holds, "checkout: " + name)
    shutil.rmtree(os.path.join(good, "their/tests/deep"))
    tap.line("has no their/tests/deep" in found(one, good), "checkout: a suite that is not in it")
    check_commits(tap, one, outer)


def check_commits(tap, one, outer):
    """The commit, where it is git's: of this folder, not of one that it lies in."""
    inner = os.path.join(outer, "inner")
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C"]
    if shutil.which("git") is None:
        return tap.line(True, "checkout: its commit", reason="git is not installed")
    subprocess.run([*words, outer, "init", "--quiet"], check=True)
    apart = found(one, inner)
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "all"]):
        subprocess.run([*words, inner, *command], check=True)
    clean = found(one, inner)
    put(inner, "their/tests/test_a.py", "pass\n")
    changed = found(one, inner)
    tap.line(apart.startswith("files "), "checkout: a folder in another one has not its commit", [apart])
    tap.line(clean.startswith("commit ") and changed == clean + ", changed", "checkout: its commit", [clean, changed])
    result = session.Result(one)
    result.version, result.origin = "1.0", clean
    result.suites = [("deep", mode, 1, 0, 0) for mode in ("natively", *run.MODES)]
    tap.line(list(page.suite_rows([result])) == ["judged 1.0, %s: `deep`" % clean], "checkout: the row says it")
    return None


def main():
    """The test."""
    if os.environ.get("TEST_SANITIZE"):
        skip_all("a sanitizer's library cannot be preloaded into python3")
    if not os.path.exists(os.environ["TEST_BIN"]) or not os.path.exists(os.environ["TEST_LIB"]):
        skip_all("the memshim command is not built")
    place = os.environ["TEST_TMP"]
    environment = os.path.join(place, "environment")
    os.makedirs(os.path.join(environment, "sources"))
    os.makedirs(os.path.join(environment, "bin"))
    os.symlink(sys.executable, os.path.join(environment, "bin", "python"))
    shutil.copy(os.path.join(HERE, "judged_suite.py"), os.path.join(environment, "sources"))
    words = (os.path.abspath(os.environ["top_builddir"]), os.path.join(environment, "bin", "python"), place, os.path.join(place, "runs"))
    os.makedirs(words[3])
    bench = Bench(*words)
    tap = session.Tap()
    check_programs(tap, bench)
    check_reports(tap, words)
    check_suites(tap, bench)
    check_holders(tap)
    check_checkouts(tap, os.path.join(place, "checkouts"))
    tap.plan()


main()
