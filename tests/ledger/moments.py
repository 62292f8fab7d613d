#!/usr/bin/env python3
"""What each site held at the moments of the timeline (sites[].held), against the book that a program keeps itself: each of its
functions is a site, it allocates and frees at times that it writes down, and where no call was made around a moment the
report must say what the book has. Once at the end of the process, once of the ledger of one that was killed."""
import glob
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import MEMSHIM, TMP, WATCHED, fact, plan, skip  # noqa: E402

SLACK_NS = 15 * 10**6  # of the recorder's clock, which extrapolates for a few milliseconds
PROGRAM = """
import ctypes, os, random, signal, sys, time
rt = ctypes.CDLL("libcudart.so.12")
makers = {"cudaMalloc": lambda p, n: rt.cudaMalloc(p, n), "cudaMallocManaged": lambda p, n: rt.cudaMallocManaged(p, n, 1),
          "cudaMallocHost": lambda p, n: rt.cudaMallocHost(p, n)}
frees = {"cudaMallocHost": rt.cudaFreeHost}
chance, live = random.Random(20), []
def note(api, change):
    before = time.time_ns()
    change()
    print(api, before, time.time_ns(), flush=True)
def take(api):
    pointer, size = ctypes.c_void_p(), ctypes.c_size_t(chance.randrange(1, 64) << 16)
    assert makers[api](ctypes.byref(pointer), size) == 0
    live.append((api, pointer, size.value))
    print("+", size.value, end=" ")
def give(k):
    api, pointer, size = live.pop(k)
    assert frees.get(api, rt.cudaFree)(pointer) == 0
    print("-", size, end=" ")
for i in range(14):
    api = list(makers)[i % 3]
    note(api, lambda: take(api))
    time.sleep(0.045)
    if i % 4 == 3:
        k = chance.randrange(len(live))
        note(live[k][0], lambda: give(k))
        time.sleep(0.045)
if sys.argv[1] == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def play(how):
    """The program's book, [(api, before, after, bytes)], and the report."""
    path = os.path.join(TMP, how + ".json")
    done = subprocess.run([MEMSHIM, "run", "--sim", "-q", "-o", path, "--", sys.executable, "-c", PROGRAM, how], text=True, capture_output=True, timeout=120, check=False,
                          env=dict(os.environ, MEMSHIM_STACKS="off"))
    book = []
    for line in done.stdout.splitlines():
        sign, size, api, before, after = line.split()
        book.append((api, int(before), int(after), int(size) if sign == "+" else -int(size)))
    found = glob.glob(path)
    if not book or not found:
        print("#", done.returncode, done.stdout, done.stderr)
        return [], {}
    with open(found[0], encoding="utf-8") as file:
        return book, json.load(file)


def compare(book, report):
    """(moments whose figures the book tells for certain, those that hold something, what differs)"""
    sure, holding, wrong = 0, 0, []
    start = report["run"]["start_unix_ns"]
    for i, moment in enumerate(report["timeline"]["moments"]):
        for site in report["sites"]:
            mine = [row for row in book if row[0] == site["api"]]
            if any(before - start - SLACK_NS <= moment <= after - start + SLACK_NS for _, before, after, _ in mine):
                continue
            wanted = sum(size for _, _, after, size in mine if after - start < moment)
            told = ([0] + [held for at, held in site.get("held", []) if at <= i])[-1]
            sure += 1
            holding += wanted > 0
            if told != wanted:
                wrong.append("%s at %d: %d, and the book has %d" % (site["api"], moment, told, wanted))
    return sure, holding, wrong


plan(6)
for how in ("exits", "killed"):
    if WATCHED:
        for _ in range(3):
            skip(how, "sanitizers watch")
        continue
    book, report = play(how)
    moments = report.get("timeline", {}).get("moments", [])
    fact(8 <= len(moments) < 16 and all(b - a == moments[0] for a, b in zip(moments, moments[1:])), how + ": 8 to 15 moments at equal distances", [str(moments)])
    sure, holding, wrong = compare(book, report) if report else (0, 0, ["no report"])
    fact(sure and holding, how + ": the book tells of some of them for certain", [str((sure, holding))])
    fact(not wrong, how + ": each site held then what the book has", wrong)
