#!/usr/bin/env python3
"""The pool API, captures, and bindings: what a program prints natively is what it prints under memshim.

For the pool API that is one table of every status and attribute, natively beside served, which is written to pools.txt in the build
directory. TEST_LAUNCHES is how often each captured graph is launched (60 without).
"""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, TMP, fact, native_environment, plan, shim_environment  # noqa: E402

HERE = os.path.join(BUILD, "tests", "stream")
LAUNCHES = os.environ.get("TEST_LAUNCHES", "60")
# Memory is taken from a pool in steps of 2 MiB: 5 MiB and 3 MiB do not fit into 8 MiB when each is taken anew.
ROUNDED = ("most.the_rest",)
# Under HIP no vendor is asked to refuse a free beside a capture, since up to 6 the question ends it: the refusal is memshim's (docs/user/differences.md).
BESIDE_CAPTURE = tuple("legacy_%s.%s" % (mode, what) for mode in ("global", "thread_local", "relaxed") for what in ("free", "end_again"))
REPORT = os.path.join(TMP, "report.json")


def run(program, arguments, mode=None, **more):
    """(exit status, [(what, value)])."""
    more["MEMSIM_DEVICES"] = "2"
    env = shim_environment(REPORT, MEMSHIM_MODE=mode, **more) if mode else native_environment(**more)
    done = subprocess.run([os.path.join(HERE, program), *arguments], env=env, text=True, capture_output=True, timeout=100, check=False)
    return done.returncode, [tuple(line.rsplit(" ", 1)) for line in done.stdout.splitlines()], done.stderr


def compare(name, program, arguments=(), least=10, permitted=(), **more):
    """What differs, if anything, and what was served."""
    native, other = run(program, arguments), run(program, arguments, "pool", **more)
    differ = ["%s natively, %s served" % (a, b) for a, b in zip(native[1], other[1]) if a != b and a[0] not in permitted]
    fact(native[0] == other[0] == 0 and len(native[1]) == len(other[1]) >= least and not differ, "%s: %d answers are as natively" % (name, len(native[1])),
         differ + ["exit status %d, %d" % (native[0], other[0]), "%d lines, %d" % (len(native[1]), len(other[1])), other[2]])
    return native[1], other[1]


def served():
    """How many calls in stream order were answered by memshim, by name."""
    with open(REPORT, encoding="utf-8") as file:
        return {api["name"]: api["served"] for api in json.load(file)["apis"]}


plan(33)
left, right = compare("the pool API", "pools", least=200)
with open(os.path.join(BUILD, "tests", "stream", "pools.txt"), "w", encoding="utf-8") as table:
    for (what, value), (_, shown) in zip(left, right):
        table.write("%-32s %22s %22s\n" % (what, value, shown))
calls = served()
fact(calls.get("cudaMallocFromPoolAsync", 0) >= 15 and calls.get("cudaMallocAsync", 0) >= 8, "they were served",
     ["%s" % calls])
left, right = compare("HIP's pool API", "pools_hip", least=190)
with open(os.path.join(BUILD, "tests", "stream", "pools_hip.txt"), "w", encoding="utf-8") as table:
    for (what, value), (_, shown) in zip(left, right):
        table.write("%-32s %22s %22s\n" % (what, value, shown))
calls = served()
fact(calls.get("hipMallocFromPoolAsync", 0) >= 15 and calls.get("hipMallocAsync", 0) >= 8, "they were served", ["%s" % calls])
compare("HIP's pool API, keeping nothing", "pools_hip", MEMSHIM_KEEP="0", permitted=ROUNDED)
compare("the pool API, keeping nothing", "pools", MEMSHIM_KEEP="0", permitted=ROUNDED)
compare("pools by where they come from", "origins")
calls = served()
fact(calls.get("cudaMallocFromPoolAsync", 0) == 10 + 1 + 100 + 10000, "all are served but what can be shared", ["%s" % calls])
compare("pools by where they come from, poisoned", "origins", MEMSHIM_POISON="both")
for policy in ({}, {"MEMSHIM_FREE": "strict"}):
    compare("corners%s" % "".join(", %s=%s" % pair for pair in policy.items()), "corners", least=110, permitted=("attribute.memory_block.differs",), **policy)
compare("captures", "captures", [LAUNCHES], least=200)
fact(served().get("cudaMallocAsync", 0) > 3 * int(LAUNCHES), "and beside them requests were served", ["%s" % served()])
with open(REPORT, encoding="utf-8") as file:
    pools = [pool for pool in json.load(file)["pools"] if pool["kind"] == "default"]
fact(len(pools) == 1 and len(pools[0]["streams"]) >= 8 and all(sum(stream[key] for stream in pools[0]["streams"]) == pools[0][key] for key in
                                                               ("reserved_bytes", "live_bytes", "limbo_bytes", "misses", "crossed_frees", "borrowed")),
     "the report has the device's pool, and its streams add up to it", ["%s" % pools])
compare("captures, keeping nothing", "captures", ["5"], MEMSHIM_KEEP="0")
compare("HIP: captures", "captures_hip", [LAUNCHES], least=200)
fact(served().get("hipMallocAsync", 0) > 3 * int(LAUNCHES), "and beside them requests were served", ["%s" % served()])
compare("HIP: captures, keeping nothing", "captures_hip", ["5"], MEMSHIM_KEEP="0")
compare("HIP: pools by where they come from", "origins_hip")
calls = served()
fact(calls.get("hipMallocFromPoolAsync", 0) == 10 + 100 + 10000, "all of the stream's device are served but what can be shared", ["%s" % calls])
compare("HIP: pools by where they come from, poisoned", "origins_hip", MEMSHIM_POISON="both")
for policy in ({}, {"MEMSHIM_FREE": "strict"}, {"MEMSHIM_KEEP": "0"}):
    compare("HIP: corners%s" % "".join(", %s=%s" % pair for pair in policy.items()), "corners_hip", least=110, permitted=BESIDE_CAPTURE, **policy)
for way, create in (("runtime", "cudaMallocFromPoolAsync"), ("driver", "cuMemAllocFromPoolAsync"), ("lookup", "cuMemAllocFromPoolAsync"),
                    ("runtime12", "cudaMallocFromPoolAsync"), ("runtime_ptsz", "cudaMallocFromPoolAsync_ptsz"),
                    ("runtime12_ptsz", "cudaMallocFromPoolAsync_ptsz"), ("driver_ptsz", "cuMemAllocFromPoolAsync_ptsz"),
                    ("lookup_ptsz", "cuMemAllocFromPoolAsync_ptsz"), ("hip", "hipMallocFromPoolAsync")):
    compare("cudaMemPoolCreate as a binding calls it, by %s" % way, "binding", [way])
    if served().get(create) != 64:
        print("# %s" % served())
        sys.exit(1)
