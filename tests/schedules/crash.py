#!/usr/bin/env python3
"""The ledger's programs, killed after their stores: what is left is recovered, true, and a valid report.

TEST_CRASHES is how many points are looked at in each program (some milliseconds each). Of some the file is kept, and
recovered by the command as well. `scripts/schedules --crash` looks at many more.
"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, SEED, fact, plan  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "schedules", "crash")
MEMSHIM = os.path.join(BUILD, "memshim")
COUNT = int(os.environ.get("TEST_CRASHES", "60"))
SHARE = 20  # one point of so many, so that they are spread over the run
SKIPPED = 77
NOT_YET = ("is not a ledger", "is the beginning of a ledger")


def recovers(path):
    """What is wrong with what the command makes of a file that was kept; None if nothing is."""
    report = path + ".json"
    said = subprocess.run([MEMSHIM, "recover", "-o", report, path], text=True, capture_output=True, check=False)
    if said.returncode != 0:
        return None if any(words in said.stderr for words in NOT_YET) else said.stderr
    checked = subprocess.run([os.environ["TEST_VALID"], report], text=True, capture_output=True, check=False)
    return None if checked.returncode == 0 else checked.stdout + checked.stderr


names = [line.split("\t")[0] for line in subprocess.run([PROGRAM, "--list"], text=True, capture_output=True, check=True).stdout.splitlines()]
kept = os.path.join(os.environ["TEST_TMP"], "kept")
os.makedirs(kept)
done = subprocess.run([PROGRAM, names[0], "1"], text=True, capture_output=True, check=False)
if done.returncode == SKIPPED:
    print("1..0 # SKIP " + done.stdout.strip())
    sys.exit(0)
plan(len(names) + 3)
for name in names:
    done = subprocess.run([PROGRAM, name, str(COUNT * SHARE), SEED, str(SHARE), kept], text=True, capture_output=True, check=False)
    lines = done.stdout.splitlines() + done.stderr.splitlines()
    fact(done.returncode == 0 and lines[-1].endswith(": nothing"), "killed in %s: %d points" % (name, COUNT), lines)
files = sorted(os.listdir(kept))
complaints = [file + ": " + complaint for file in files for complaint in [recovers(os.path.join(kept, file))] if complaint]
fact(len(files) >= len(names), "files of killed processes are kept", [str(len(files))])
fact(not complaints, "memshim recover makes valid reports of them", complaints[:10])
done = subprocess.run([PROGRAM, "no-such", "1"], text=True, capture_output=True, check=False)
fact(done.returncode == 2 and done.stderr.startswith("usage: crash"), "a name that there is not is refused", done.stderr.splitlines())
