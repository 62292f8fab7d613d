#!/usr/bin/env python3
"""TVM's CUDA IPC memory (tvm.c): 2, 4 and 8 workers reduce through each other's pointers with right sums, blocks packed, single and mixed;
many rounds of creating and destroying leak nothing; a worker without memshim is refused, and never reads wrong bytes, and works where nothing is
packed. TEST_ROUNDS=1000 is a full run."""
import glob
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "systems"))
from systems import HERE, MEMSHIM, TMP, Run  # noqa: E402
from hooklib import fact, plan  # noqa: E402

ROUNDS = os.environ.get("TEST_ROUNDS", "12")
SIZES = {"packed": ["65536", "4096"], "single": [str(20 << 20)], "mixed": ["65536", str(17 << 20), str(1 << 20)]}
SIMULATED = {"MEMSIM_DEVICES": "8", "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def run(name, workers, rounds, plain, sizes, report=True, **environment):
    return Run([os.path.join(HERE, "tvm"), str(workers), rounds, str(plain), *sizes], report and "%s-%%p" % name,
               **SIMULATED, **environment)


def lines(output):
    return sorted(output.splitlines())


def right(workers):
    """What all workers print: all sums right, and nobody refused."""
    return ["worker %d: 0 wrong, 0 refused" % rank for rank in range(workers)]


def unsound(name):
    """What does not hold of the workers' reports."""
    wrong, found = [], sorted(glob.glob(os.path.join(TMP, name + "-*.json")))
    for path in found:
        valid = subprocess.run([os.environ["TEST_VALID"], path], capture_output=True, text=True, check=False)
        if valid.returncode:
            wrong.append(valid.stderr)
            continue
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        wrong += ["%s: leaked %s" % (path, leak) for leak in report["leaks"]]
        if report["coverage"]["unseen_frees"]:
            wrong.append("%s: %d frees of something never seen" % (path, report["coverage"]["unseen_frees"]))
    return wrong or ([] if found else ["no report at all"])


CASES = ((2, "packed"), (2, "single"), (2, "mixed"), (4, "mixed"), (8, "packed"), (8, "mixed"))
if os.environ["TEST_SANITIZE"]:  # each process is many times slower there
    CASES = CASES[:1] + CASES[3:4]
plan(2 * len(CASES) + 3 + 4)
for workers, kind in CASES:
    name = "%d-%s" % (workers, kind)
    native = run(name, workers, "2", -1, SIZES[kind], report=False)
    served = run(name, workers, "2", -1, SIZES[kind])
    fact(native.status == 0 and lines(native.output) == right(workers), "%d workers, %s: right natively" % (workers, kind), native.shown())
    wrong = [] if served.status == 0 and served.output and lines(served.output) == lines(native.output) else served.shown()
    fact(not wrong and not (wrong := unsound(name)), "%d workers, %s: the same under memshim, and nothing is left" % (workers, kind), wrong)

long = run("rounds", 2, ROUNDS, -1, ["65536", str(1 << 20)])
fact(long.status == 0 and lines(long.output) == right(2), "%s rounds: every sum is right" % ROUNDS, long.shown())
wrong = unsound("rounds")
fact(not wrong, "%s rounds: nothing leaks" % ROUNDS, wrong)
peaks, asked = [], []
for path in glob.glob(os.path.join(TMP, "rounds-*.json")):
    with open(path, encoding="utf-8") as file:
        for pool in json.load(file)["pools"]:
            peaks.append(pool["vendor_allocs"])
fact(peaks and max(peaks) <= 8, "%s rounds: what the driver is asked for does not grow with them" % ROUNDS, [peaks])

# The last of three workers runs without memshim.
for kind in ("packed", "mixed"):
    plain = run("plain-" + kind, 3, "1", 2, SIZES[kind])
    count = len([line for line in plain.output.splitlines() if " 0 wrong" in line])
    refused = [int(line.split()[-2]) for line in lines(plain.output)]
    fact(plain.status == 0 and count == 3 and refused[:2] == [0, 0] and refused[2] > 0,
         "%s, one without memshim: it is refused what is packed, and nobody reads wrong bytes" % kind, plain.shown())
    native = run("native-" + kind, 3, "2", 2, SIZES[kind], MEMSHIM_IPC="native")
    fact(native.status == 0 and lines(native.output) == right(3), "%s, one without memshim: all is right with MEMSHIM_IPC=native" % kind,
         native.shown())
