#!/usr/bin/env python3
"""MEMSHIM_LIMIT against every function that allocates of a device, in the five interfaces: counted, refused at the limit with the interface's own status
and an event of that cause, rolled back where the vendor refuses, given back after the free; served and followed alike. Which functions there are is read
from the rows of hooks/table: one that is new and not called by calls.c fails here."""
import concurrent.futures
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
TOP = os.environ["top_srcdir"]
sys.path.insert(0, os.path.join(TOP, "tests", "hooks"))
from hooklib import BUILD, TMP, fact, native_environment, plan, shim_environment  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "limit", "calls")
MIB = 1 << 20
BYTES, LIMIT = 16 * MIB, 64 * MIB
ALLOCATES = {"ALLOC", "ALLOC_ASYNC", "ALLOC_FLAGS", "PITCH", "HANDLE_CREATE", "RECYCLED_CREATE", "BUFFER_ALLOC", "NAME_ALLOC"}
# Memory of the host, memory of others, and nodes of graphs, which have none before a launch.
NONE = re.compile(r"MS_KIND_(PINNED|REGISTERED|IMPORTED)|\"(host memory|the program's own memory|another (process|interface)'s memory|a view of imported memory)"
                  r"|takes it at launch")
STATUS = {"cuda": "2", "hip": "2", "acl": "207001", "nccl": "1"}
# What the simulator is told to refuse: the function itself, and what a runtime's, or the pool, ends in.
IN_ORDER = ("cuMemAllocAsync", "cuMemAllocAsync_ptsz", "cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync_ptsz")
PITCHED = ("cuMemAllocPitch_v2", "cuMemAlloc_v2")
ENDS_IN = {"cudaMalloc": ("cuMemAlloc_v2",), "cudaMalloc3D": PITCHED, "cudaMallocPitch": PITCHED, "cuMemAllocPitch_v2": PITCHED,
           "cudaMallocArray": ("cuArrayCreate_v2",), "cudaMalloc3DArray": ("cuArray3DCreate_v2",), "cudaMallocMipmappedArray": ("cuMipmappedArrayCreate",),
           "cudaMallocManaged": ("cuMemAllocManaged",), "ncclMemAlloc": ("cuMemCreate",), "pncclMemAlloc": ("cuMemCreate",),
           **{name + twin: IN_ORDER for name in ("cudaMallocAsync", "cudaMallocFromPoolAsync", "cuMemAllocAsync", "cuMemAllocFromPoolAsync")
              for twin in ("", "_ptsz")}}
SETTINGS = {"": {}, ", followed": {"MEMSHIM_MODE": "track"}, ", mapped": {"MEMSHIM_BACKING": "vmm"}}


def wanted():
    """Every row that allocates of a device, as the interface and the function."""
    found = set()
    listed = subprocess.run([os.path.join(BUILD, "hooks", "list_rows")], text=True, capture_output=True, check=True).stdout
    for line in listed.splitlines():
        family, symbol, kind = line.split()[:3]
        if kind not in ALLOCATES:
            continue
        with open(os.path.join(TOP, "hooks", "table", family + ".def"), encoding="utf-8") as file:
            text = file.read()
        base = re.sub(r"_ptsz$", "", symbol[1:] if symbol.startswith("pnccl") else symbol)
        row = re.search(r"MS_\w+\([^\n]*\b%s\b.*?(?=\nMS_|\n\n|\Z)" % base, text, re.S).group(0)
        if not NONE.search(row):
            found.add(("cuda" if family.startswith("cuda") or family == "nccl" else family, symbol))
    return found


def run(name, symbol, env):
    done = subprocess.run([PROGRAM, symbol, str(BYTES)], env={**env, "MEMSIM_MEMORY": "1G", "MEMSIM_COUNT": "1"}, text=True, capture_output=True,
                          timeout=120, check=False)
    said = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    said["exit"] = [str(done.returncode)]
    said["name"] = [name]
    return said


def shim(name, symbol, **more):
    report = os.path.join(TMP, "%s%s.json" % (symbol, re.sub(r"\W", "", name)))
    said = run(name, symbol, shim_environment(report, **{"MEMSHIM_LIMIT": str(LIMIT), "MEMSHIM_LOG": "none", "MEMSHIM_OOM_WAIT_MS": "0", **more}))
    try:
        with open(report, encoding="utf-8") as file:
            said["causes"] = sorted({oom.get("cause", "none") for oom in json.load(file)["oom"]})
    except OSError:
        said["causes"] = ["no report"]
    return said


def number(said, what):
    return int(said.get(what, ["-1"])[-1])


def limited(said, interface, symbol, count):
    """What does not hold of a program that took `count` blocks of those that fit, and was refused the next."""
    status = STATUS["nccl" if "nccl" in symbol else interface]
    room = LIMIT - count * BYTES
    padding = 2 * MIB * count if symbol.startswith("aclrtMalloc") else 0 # the vendor's own, which nobody is told of
    facts = {"it ends": said["exit"] == ["0"], "refused at the limit, with the interface's status": said.get("refused") == [status, str(count)],
             "nothing else refused it": said["causes"] == ["limit"], "the device has given no more": number(said, "most") <= LIMIT + padding,
             "total is the limit": {number(said, when + "_total") for when in ("begin", "full", "empty")} == {LIMIT},
             "free is what is left": (number(said, "begin_free"), number(said, "full_free")) == (LIMIT, room),
             "given back": number(said, "empty_free") == LIMIT and said.get("again") == said.get("refused") and said.get("failed") == ["0"]}
    return [fact for fact, holds in facts.items() if not holds]


def main():
    rows = wanted()
    called = {tuple(line.split()) for line in subprocess.run([PROGRAM, "list"], env=native_environment(), text=True, capture_output=True,
                                                             check=True).stdout.splitlines()}
    plan(2 + (3 + len(SETTINGS)) * len(rows & called))
    fact(len(rows) > 40, "the rows that allocate of a device are found", sorted(rows))
    fact(rows == called, "each of them is called here, and nothing else", sorted(rows ^ called))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        jobs = []
        for interface, symbol in sorted(rows & called):
            fails, once = ({"MEMSIM_FAIL": ",".join("%s@1%s=%s" % (name, more, "207001" if interface == "acl" else "2") for name in ENDS_IN.get(symbol, (symbol,)))}
                           for more in ("+2", ""))
            jobs.append((interface, symbol, pool.submit(run, "native", symbol, native_environment()),
                         [pool.submit(shim, name, symbol, **more) for name, more in SETTINGS.items()],
                         pool.submit(shim, "refused by the vendor", symbol, MEMSHIM_MODE="track", **fails),
                         pool.submit(shim, "refused to the pool", symbol, **once)))
        for interface, symbol, native, under, refused, served in jobs:
            native, refused, served = native.result(), refused.result(), served.result()
            has_none = number(native, "refused") == 0 # addresses below 4 GiB, which the simulator has not
            count = 0 if has_none else LIMIT // BYTES
            fact(has_none or number(native, "refused") > count, "%s: natively there is more" % symbol, [native])
            for job in under:
                said = job.result()
                wrong = limited(said, interface, symbol, count)
                if has_none:
                    wrong = [] if number(said, "empty_free") == LIMIT else wrong
                fact(not wrong, "%s%s: within the limit, and no further" % (symbol, said["name"][0]), [wrong, said])
            fact(number(refused, "empty_free") == LIMIT and number(refused, "refused") == count and (has_none or "early_0" in refused),
                 "%s: what the vendor refused is not counted" % symbol, [refused])
            fact(number(served, "empty_free") == LIMIT and number(served, "again") == count,
                 "%s: nor is what it refused to the pool" % symbol, [served])


main()
