#!/usr/bin/env python3
"""As faults.py, of memory in the order of streams: the driver refuses the n-th call of all, and of each function, for every n, and several in a row.

streams.c runs under each of MODES. Natively the same calls are refused, and what a function ends in then is all that it may end in under memshim. TEST_FAULTS is how
many of all calls are refused one after another in each mode, chosen by TEST_SEED, 0 for every one; and how many of each function.
"""
import concurrent.futures
import os
import random
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "faults"))
from judge import Program, judge, pairs, untrue  # noqa: E402
from hooklib import SEED, WATCHED, fact, plan  # noqa: E402

PROGRAM = Program("streams")
OTHER_KIND = Program("other_kind")
SHARE = int(os.environ.get("TEST_FAULTS", "16" if WATCHED else "40"))
MOST = SHARE // 4 or 40
CHANCE = random.Random(int(SEED))
CODES = (999, 2)
FORMS = ("%s@%d=%d", "%s@%d+2=%d", "%s@%d+20=%d")
MODES = {"the defaults": {}, "MEMSHIM_BACKING=vmm": {"MEMSHIM_BACKING": "vmm"},
         "MEMSHIM_KEEP=0": {"MEMSHIM_KEEP": "0"}}
# What the program calls: it may be told. Then what memshim alone asks, and in which mode.
TOLD = ("cuMemAllocAsync", "cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuMemFree_v2", "cuMemAlloc_v2", "cuMemPoolCreate", "cuMemPoolDestroy",
        "cuMemPoolTrimTo", "cuMemPoolGetAttribute", "cuMemPoolSetAttribute", "cuDeviceSetMemPool", "cuStreamCreate", "cuStreamDestroy_v2", "cuEventRecord",
        "cuStreamWaitEvent", "cuStreamSynchronize", "cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphInstantiateWithFlags", "cuGraphLaunch",
        "cuGraphDestroy", "cuGraphExecDestroy", "cuEventCreate", "cuLaunchHostFunc", "cuMemsetD8Async", "cuMemcpyAsync",
        "cuCtxGetCurrent", "cuCtxGetDevice")
UNTOLD = ("cuStreamGetId", "cuStreamGetCtx", "cuEventQuery", "cuEventDestroy_v2", "cuCtxRecordEvent", "cuStreamIsCapturing", "cuThreadExchangeStreamCaptureMode",
          "cuDeviceGetMemPool", "cuDeviceGetDefaultMemPool", "cuCtxGetId", "cuMemGetAddressRange_v2", "cuPointerGetAttribute")


def calls(more):
    """How many calls of the driver's one run makes: from the first behind them on nothing is refused."""
    low, high = 0, 1 << 14
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if pairs(PROGRAM.run("any@%d+=999" % middle, more)[1]) else (low, middle)
    return high


def chosen(count):
    return list(range(1, count + 1)) if not SHARE else sorted(CHANCE.sample(range(1, count + 1), min(SHARE, count)))


def refuse_any(more, executor):
    """(fail, job) for calls of every function."""
    count = calls(more)
    fails = [FORMS[(n + i) % len(FORMS)] % ("any", n, CODES[(n // 2 + i) % len(CODES)]) for n in chosen(count) for i in range(1 if SHARE else 3)]
    return count, [(fail, executor.submit(PROGRAM.run, fail, more)) for fail in fails]


def refuse(function, code, more, executor):
    most = min(MOST, COUNTS[str(more)].get(function, MOST))
    fails = [form % (function, n, code) for n in range(1, most + 1) for form in (FORMS[:1] if n % 3 else FORMS[:2])]
    return [(fail, executor.submit(PROGRAM.run, fail, more)) for fail in fails]


plan(2 + len(MODES) * 2 + len(TOLD) + len(UNTOLD))
native = PROGRAM.run("")
plain = native[1]
COUNTS = {str(more): PROGRAM.counts(TOLD + UNTOLD, more) for more in MODES.values()}
fact(native[0] == 0 and plain[-2:] == ["wrong 0", "live 0"], "natively nothing is wrong", plain)
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    _, jobs = refuse_any(None, pool)
    possible = {"801", "35"}  # of a function that the runtime could not look up, of a driver that it could not start
    for _, job in jobs:
        possible |= {code for _, code in pairs(job.result()[1])} - {"999", "2"}
    for name, more in MODES.items():
        status, lines, report = PROGRAM.run("", more)
        fact(lines == plain and not untrue(lines, report), "nothing is refused, %s" % name, lines[-8:] + untrue(lines, report))
        count, jobs = refuse_any(more, pool)
        problems = []
        for fail, job in jobs:
            code = fail.rsplit("=", 1)[1]
            problems += judge(fail, lambda pair, code=code: pair[1] == code or pair[1] in possible, job.result(), plain)
        fact(not problems, "%d times of %d calls some are refused, %s; natively also %s" % (len(jobs), count, name, sorted(possible)), problems)
    for i, function in enumerate(TOLD):
        problems = []
        modes = list(MODES.values())
        for more in [modes[i % len(modes)]] if SHARE else modes:
            for fail, job in refuse(function, 2 if "Alloc" in function else 999, more, pool):
                code = fail.rsplit("=", 1)[1]
                problems += judge(fail, lambda pair, code=code: pair[1] == code or pair[1] in possible, job.result(), plain)
        fact(not problems, "%s is refused" % function, problems)
    for i, function in enumerate(UNTOLD):
        problems = []
        modes = list(MODES.values())
        for more in [modes[i % len(modes)]] if SHARE else modes:
            for fail, job in refuse(function, 999, more, pool):
                problems += judge(fail, lambda pair: False, job.result(), plain)
        fact(not problems, "%s is refused, and nobody notices" % function, problems)
    runs = [pool.submit(OTHER_KIND.run, "cuCtxGetCurrent@%d=999" % n, more) for n in range(1, 60) for more in (MODES["MEMSHIM_BACKING=vmm"], {})]
    told = {line for job in runs for line in job.result()[1]}
    fact(told <= {"cudaMalloc 999", "cudaFreeAsync 999"}, "cudaMalloc's memory is freed in a stream, and the driver does not say which context is current", told)
