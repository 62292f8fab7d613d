#!/usr/bin/env python3
"""The record of lives (MEMSHIM_USES) of eight threads that allocate, copy and free at once: at the end of the process, after a SIGKILL
at a random moment, in a child of fork, before and after an exec. TEST_KILLS says how often one is killed; TEST_LIVES=full fills the table too."""
import glob
import json
import os
import random
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, MEMSHIM, TMP, WATCHED, fact, plan, preload, shim_environment  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "ledger", "lives_user")
THREADS, ROUNDS, LARGE = 8, 200, 16 << 20
KILLS = int(os.environ.get("TEST_KILLS", "2" if WATCHED else "6"))
FULL = os.environ.get("TEST_LIVES") == "full"
USES = {"MEMSHIM_USES": "on", "MEMSHIM_DIR": TMP, "MEMSHIM_LOG": "none",
        "LD_PRELOAD": os.path.join(BUILD, "libmemshim-uses.so") + ":" + preload()}


def environment():
    return shim_environment(os.path.join(TMP, "%p.json"), **USES)


def reports():
    """Those that there are, which are taken away."""
    found = []
    for path in glob.glob(os.path.join(TMP, "[0-9]*.json")):
        with open(path, encoding="utf-8") as file:
            found.append(json.load(file))
        os.unlink(path)
    return found


def recovered():
    """Of the one ledger that was left."""
    ledgers = glob.glob(os.path.join(TMP, "*.ledger"))
    path = os.path.join(TMP, "recovered.json")
    done = subprocess.run([MEMSHIM, "recover", "-f", "-o", path, *ledgers], capture_output=True, text=True, check=False)
    checked = subprocess.run([os.environ["TEST_VALID"], path], capture_output=True, text=True, check=False)
    if len(ledgers) != 1 or done.returncode or checked.returncode:
        print("#", ledgers, done.stdout, done.stderr, checked.stdout, checked.stderr)
        return None
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def wrong_in(report, lives):
    """What is wrong; `lives` None: as many as there were calls, but for one a thread, which may have been in it."""
    uses = report and report.get("uses")
    if not uses:
        return ["there is no `uses`"]
    calls = next(api["calls"] for api in report["apis"] if api["name"] == "cudaMalloc")
    never = [(row["bytes"], row["count"], row["falls_bytes"], row["confidence"]) for row in uses["idle"]
             if row["idle"] == "never" and row["bytes"] >= LARGE]
    wrong = []
    if uses["state"] != "told" or uses["left_out"] or uses["unread_launches"]:
        wrong.append({key: value for key, value in uses.items() if key not in ("idle", "pinned")})
    if abs(uses["lives"] - calls) > (THREADS if lives is None else 0) or lives not in (None, uses["lives"]):
        wrong.append("%d lives, %d calls, %s expected" % (uses["lives"], calls, lives))
    if never != [(THREADS * LARGE, THREADS, THREADS * LARGE, "exact")]:
        wrong.append(uses["idle"])
    if lives is not None and any(row["bytes"] >= LARGE and row["idle"] != "never" for row in uses["idle"]):
        wrong.append(uses["idle"])
    return wrong


def play(how):
    done = subprocess.run([PROGRAM, how], text=True, capture_output=True, timeout=300, check=False, env=environment())
    if done.returncode:
        print("# %s: %d %s" % (how, done.returncode, done.stdout + done.stderr))
    return reports()


def killed():
    """The report of one that was killed, at some moment after all threads had their large blocks."""
    with subprocess.Popen([PROGRAM, "kill"], env=environment(), stdout=subprocess.PIPE, text=True) as child:
        child.stdout.readline()
        time.sleep(random.random() ** 2 * 0.1)
        child.kill()
        child.wait()
    return recovered()


def check_full():
    """With more lives than there is room for nothing is told, and so it is said."""
    found = [report["uses"] for report in play("full")]
    fact([(uses["state"], uses["lives"], uses["left_out"], uses["idle"]) for uses in found] == [("left_out", 1 << 21, EACH, [])],
         "a full table: nothing is told, and it is said what found no room", found)


EACH = THREADS * (2 + ROUNDS)
plan(4 + FULL)
ended = [wrong_in(report, EACH) for report in play("end")]
fact(ended == [[]], "eight threads: each block has its life, and what was never used is exactly known", ended)
forked = [wrong_in(report, EACH) for report in play("fork")]
fact(forked == [[], []], "a child of fork and its parent have lives of their own", forked)
after = [wrong_in(report, EACH) for report in play("exec")]
before = wrong_in(recovered(), EACH)
fact(after == [[]] and not before, "so have the program before an exec and the one after it", [after, before])
seed = int(os.environ.get("TEST_SEED", random.randrange(1 << 30)))
random.seed(seed)
kills = [wrong_in(killed(), None) for _ in range(KILLS)]
fact(not any(kills), "killed at %d random moments, seed %d: the lives are whole" % (KILLS, seed), kills)
if FULL:
    check_full()
