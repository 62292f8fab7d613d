#!/usr/bin/env python3
"""Real ranks under Open MPI's mpirun, on the simulated GPU (mpi_rank.c), one with a leak of its own: named with its rank and line by the tree of files, which gives the
same bytes in any grouping, and by memshim-merge-mpi. TEST_RANKS=64 TEST_GROUPINGS=50 is scripts/test-merge ranks."""
import glob
import json
import os
import random
import re
import shutil
import socket
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ["top_srcdir"], "tests", "merge"), os.path.join(os.environ["top_srcdir"], "tests", "hooks")]
from grouping import grouped, memshim, merged  # noqa: E402
from hooklib import MEMSHIM, TMP, fact, plan  # noqa: E402
from openmpi import mpirun  # noqa: E402

BUILD = os.environ["top_builddir"]
PROGRAM, MERGE = os.path.join(BUILD, "tests", "merge", "mpi_rank"), os.path.join(BUILD, "memshim-merge-mpi")
RANKS, GROUPINGS = int(os.environ.get("TEST_RANKS", "4")), int(os.environ.get("TEST_GROUPINGS", "2"))
OUTLIER = RANKS * 5 // 8
MIB = 1 << 20


def content(path):
    """Of a file."""
    with open(path, "rb") as file:
        return file.read()


def main():
    """Its facts."""
    os.chdir(TMP)
    os.environ["TMPDIR"] = TMP
    status, _, error = mpirun(RANKS, PROGRAM, str(OUTLIER), before=[MEMSHIM, "run", "-q", "--sim", "-o", "rank%R.%p.json", "--merge-node", "node.json", "--"])
    paths = sorted(glob.glob("rank.*.json"))
    fact(status == 0 and not error and len(paths) == RANKS, "%d ranks leave a report each" % RANKS, [status, len(paths), *error])
    whole = content("node.json")
    job = json.loads(whole)
    fact([row["rank"] for row in job["ranks"]] == list(range(RANKS)), "and memshim run, a job report of the node", [job["ranks"]])
    stages = 4 if RANKS >= 16 else 1
    fact([row["processes"] for row in job["job"]["groups"]] == [RANKS // stages] * stages, "each stage is a group", job["job"]["groups"])
    out = job["job"]["outliers"]
    place = re.compile(r"stray at .*mpi_rank\.c:\d+")
    fact(out and {row["rank"] for row in out} == {OUTLIER} and all(place.match(job["job"]["sites"][row["site"]]["at"]) for row in out), "one stands out, by its line, and nobody else", out)
    said = memshim("merge", "node.json")[1]
    line = "rank %d on %s: leaked 15.0 MiB, its group's median 0 B; 15.0 MiB, elsewhere 0 B, by stray at " % (OUTLIER, socket.gethostname())
    fact(line in said and job["job"]["figures"]["leaked_bytes"]["max"] == 15 * MIB, "and the text says so", [said])
    dice = random.Random(int(os.environ.get("TEST_SEED", "21")))
    different = [i for i in range(GROUPINGS) if grouped(paths, dice, "g%d" % i) != whole]
    fact(not different and merged(paths, "all.json") == whole, "%d random groupings of files give the same bytes" % GROUPINGS, different)
    status, text, error = mpirun(RANKS, MERGE, "-o", "mpi.json", *paths)
    fact(status == 0 and not error and text == said and content("mpi.json") == whole, "so does memshim-merge-mpi by %d processes" % RANKS, [status, *error])
    plan(7)


if __name__ == "__main__":
    if os.environ.get("TEST_SANITIZE") or not os.access(MERGE, os.X_OK):
        print("1..0 # SKIP memshim-merge-mpi is not built: no MPI (scripts/install-deps --mpi), a sanitizer, or no command")
    elif not shutil.which("mpirun"):
        print("1..0 # SKIP no mpirun")
    else:
        main()
