#!/usr/bin/env python3
"""What the report says of who answered requests in stream order, by pool and stream, for programs whose numbers are known: what a stream had
again, what others freed, what it borrowed or had to wait for on the device, waits of the host, and pools that are no more."""
import glob
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, MEMSHIM, TMP, fact, plan, shim_environment  # noqa: E402

REPORT = os.path.join(TMP, "report.json")
LEDGERS = os.path.join(TMP, "ledgers")
COUNTS = ("hits", "misses", "crossed_frees", "borrowed", "waited", "limbo_waits")


def figures(row):
    """(hits, misses, ...) of a pool or of one of its streams."""
    hits = row["hits"] if "hits" in row else sum(row["tier_hits"].values())
    return (hits,) + tuple(row[key] for key in COUNTS[1:])


def checked(name):
    """The report, which has to be valid; its pools add up to all that was served."""
    done = subprocess.run([os.environ["TEST_VALID"], REPORT], capture_output=True, text=True, check=False)
    with open(REPORT, encoding="utf-8") as file:
        report = json.load(file)
    pools = report["pools"]
    for pool in pools:
        if pool.get("streams") and tuple(map(sum, zip(*map(figures, pool["streams"])))) != figures(pool):
            done.returncode = 99
    fact(done.returncode == 0, "%s: the report is valid, and streams add up to their pools" % name, [done.stdout + done.stderr, "%s" % pools])
    return report


def play(program, *arguments, ends=0, **more):
    done = subprocess.run([os.path.join(BUILD, "tests", "stream", program), *arguments], env=shim_environment(REPORT, **more), capture_output=True,
                          text=True, timeout=60, check=False)
    if done.returncode != ends:
        print("# %s: exit status %d, %s" % (arguments, done.returncode, done.stdout + done.stderr))


def expect(name, report, kind, *rows):
    """The pool of this kind has these figures by stream, in any order."""
    found = [sorted(map(figures, pool["streams"])) for pool in report["pools"] if pool["kind"] == kind]
    fact(found == [sorted(rows)], "%s: %s" % (name, ", ".join(COUNTS)), ["%s" % (report["pools"],), "%s instead of %s" % (found, sorted(rows))])


def summary(name, kind, *words):
    """The row of this kind ends so: limbo, used again, new, freed across, borrowed, behind, limbo waits."""
    said = subprocess.run([MEMSHIM, "summary", "--all", REPORT], capture_output=True, text=True, check=False).stdout
    rows = [line.split() for line in said.splitlines() if line.split()[:1] == [kind]]
    fact([row[-len(words):] for row in rows] == [list(words)], "%s: the summary has them" % name, said.splitlines())


plan(22)
play("reuse", "again")
again = checked("again")
expect("a stream has again what it freed", again, "program", (9, 1, 0, 0, 0, 0))
summary("again", "program", *"0 B 9 1 0 0 0 0".split())

play("reuse", "across")
expect("what another stream freed", checked("across"), "program", (2, 1, 2, 0, 0, 0))

play("reuse", "borrow")
expect("what is idle elsewhere, counted where it was asked for", checked("borrow"), "program", (1, 0, 0, 1, 0, 0), (0, 1, 0, 0, 0, 0))
summary("borrow", "program", *"0 B 1 1 0 1 0 0".split())

play("reuse", "lend")
expect("what is idle beside a block is lent, and freed there used again there", checked("lend"), "program", (3, 0, 0, 1, 0, 0), (1, 1, 3, 0, 0, 0))

play("waits", "111", "device", "freed_while_held", MEMSIM_MEMORY="40M")
expect("a wait on the device", checked("behind"), "program", (0, 0, 0, 0, 1, 0), (0, 1, 1, 0, 0, 0))
summary("behind", "program", *"0 B 0 1 1 0 1 0".split())

play("waits", "000", "device", "freed_on_a_third_for_another", MEMSIM_MEMORY="40M", MEMSHIM_OOM_WAIT_MS="500")
expect("the host waits, in vain", checked("limbo"), "program", (0, 0, 0, 0, 0, 1), (0, 1, 1, 0, 0, 0))
summary("limbo", "program", *"0 B 0 1 1 0 0 1".split())

# In each pool 10 requests of one block and 3 of another scene.
play("reuse", "turns")
turns = checked("five pools one after another")
expect("the last of them has its own figures", turns, "program", (12, 1, 2, 0, 0, 0))
former = [figures(pool) for pool in turns["pools"] if pool["kind"] == "ended"]
fact(former == [(48, 4, 8, 0, 0, 0)], "those of the others are kept", ["%s" % former])
summary("turns", "ended", *"0 B 48 4 8 0 0 0".split())

os.mkdir(LEDGERS)
play("reuse", "killed", ends=-9, MEMSHIM_DIR=LEDGERS)
os.unlink(REPORT)
done = subprocess.run([MEMSHIM, "recover", "--output=" + REPORT, *glob.glob(os.path.join(LEDGERS, "*.ledger"))], capture_output=True, text=True, check=False)
if done.returncode:
    print("# recover: %s" % done.stderr)
expect("a ledger that was left has them", checked("killed"), "program", (2, 1, 2, 0, 0, 0))
