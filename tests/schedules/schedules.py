#!/usr/bin/env python3
"""Programs of the pool and its locks hold under every schedule that is tried; those with a mistake in them are found out.

TEST_SCHEDULES is how many schedules each rule tries of each program (the streams' take a millisecond each), TEST_SEED the
first seed. `scripts/schedules` repeats one, and tries for hours.
"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, SEED, fact, plan  # noqa: E402
import mutants  # noqa: E402
import complete  # noqa: E402
import mutants_ledger  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "schedules", "schedules")
COUNT = os.environ.get("TEST_SCHEDULES", "20")
RANDOM_PROGRAMS = 6
BEGUN = "4"  # of programs that have too many to make them all
SMALL = "1000000"  # more schedules than the small programs have
# Of which all are made with nothing left out, too, with so many preemptions.
COMPARED = [("twice", "1"), ("epoch-ends", "2"), ("small-bias", "2"), ("small-stream-met", "2"), ("small-trim-and-take", "1"), ("small-hit-and-hit", "1")]
QUICK = 2500  # schedules of those that complete.md says are complete, and are made here
OF_WRONG = "2000"  # a mistake shows much earlier, and these take some microseconds each
RULES = ("random", "pct", "weak", "every")
AGAIN = 1000, ("lock", "hits", "served-across", "run")  # programs of each kind, after so many schedules
AGAIN_OTHERS = 10


def run(name, rule, *more):
    done = subprocess.run([PROGRAM, name, rule, *more], text=True, capture_output=True, check=False)
    return done.returncode, done.stdout.splitlines() + done.stderr.splitlines()


def seed_of(rule):
    """`every` has none."""
    return () if rule == "every" else (SEED,)


def lacks(path, text):
    with open(os.path.join(os.environ["top_srcdir"], path), encoding="utf-8") as source:
        return source.read().count(text) != 1


def steps(lines):
    return [line for line in lines if line.startswith("step ")]


listed = [line.split("\t") for line in subprocess.run([PROGRAM, "--list"], text=True, capture_output=True, check=True).stdout.splitlines()]
wrong = [name.split()[0] for name, _ in listed if name.endswith(" wrong")]
wrong_weak = [name.split()[0] for name, _ in listed if name.endswith(" wrong-weak")]
right = [name for name, _ in listed if " " not in name]
reads_old = [name.split()[0] for name, _ in listed if name.endswith(" reads-old")]
done = complete.told(os.environ["top_srcdir"], QUICK)
small = [name for name in right if name.startswith("litmus-") or name == "lock-once"]
compared = [(name, "3") for name in small] + COMPARED
plan((len(wrong) + len(wrong_weak) + len(right) + RANDOM_PROGRAMS) * len(RULES) + len(reads_old) * (len(RULES) - 1) + 6 + len(compared) + len(mutants.KEPT) + len(done))
for name in wrong + wrong_weak:
    for rule in RULES:
        found = name in wrong or rule == "weak"
        status, lines = run(name, rule, OF_WRONG, *seed_of(rule))
        fact(status == found and lines[-1].endswith(": found" if found else ": nothing"), "%s by %s: %s" % (name, rule, lines[0]), lines[-5:])
for name in right + reads_old + ["calls:%d" % (int(SEED) + i) for i in range(RANDOM_PROGRAMS)]:
    for rule in RULES:
        if rule == "weak" and name in reads_old:
            continue
        status, lines = run(name, rule, BEGUN if rule == "every" else COUNT, *seed_of(rule))
        fact(status == 0 and lines[-1].endswith(": nothing"), "%s by %s: %s" % (name, rule, lines[-1].split(": ", 1)[1]), lines[:5] + lines[-5:])
for name, preemptions in compared:
    reduced, whole = (run(name, rule, SMALL, preemptions, "ends")[1] for rule in ("every", "whole"))
    fact(reduced[0].startswith("# all ") and reduced[0].split("; ")[1] == whole[0].split("; ")[1], "%s: %s" % (name, reduced[0][2:]), reduced + whole)
for name, preemptions in done:
    status, lines = run(name, "every", SMALL, preemptions)
    fact(status == 0 and lines[0].startswith("# all "), "%s, with %s preemptions: %s" % (name, preemptions, lines[0][2:]), lines[:5] + lines[-5:])
for name, rule, seed, mistake in mutants.KEPT:
    status, lines = run(name, rule, "1", seed)
    fact(status == 0, "%s by %s, seed %s, which showed %s" % (name, rule, seed, mistake), lines[:5] + lines[-5:])
differs = []
for name in right:
    for rule in ("random", "pct", "weak") if name == AGAIN[1][1] else ("random",):
        status, lines = run(name, rule, "again", str(AGAIN[0] if name in AGAIN[1] else AGAIN_OTHERS))
        differs += [lines] if status else []
fact(not differs, "a schedule does the same after %d others, and leaves the same memory" % AGAIN[0], differs)
missing = [mutant[0] for mutant in mutants.MUTANTS + mutants_ledger.SCHEDULES + mutants_ledger.CRASHES + mutants_ledger.NONE if lacks(*mutant[1:3])]
fact(not missing, "what mutants replace stands in the sources, once", missing)
_, first = run("wrong-both", "random", OF_WRONG, SEED)
_, again = run("wrong-both", "random", OF_WRONG, SEED)
fact(first[:-1] == again[:-1] and steps(first), "a seed makes the same schedule again", first[:3] + again[:3])
fact(any(line.startswith("# 2 switches are enough") for line in first), "what fails is shrunk to the switches that it takes", first)
_, lines = run("wrong-words", "random", OF_WRONG, SEED)
fact([line.strip() for line in lines if line.startswith("# task")] == ["# task 0: x", "# task 1: x"], "... and a program in words to those that matter", lines)
status, lines = run("no-such", "random")
fact(status == 2 and lines[0].startswith("usage: schedules"), "a name that there is not is refused", lines)
