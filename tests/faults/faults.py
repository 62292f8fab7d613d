#!/usr/bin/env python3
"""The driver refuses the n-th call, for every n: the program sees the driver's codes alone, its memory stays its own, and the
report is true.

consistent.c runs under memshim with MEMSIM_FAIL naming the n-th call of one driver function, for n from 1 until there
is no such call any more, and with all calls refused from the n-th on. Functions that the program itself does
not call (fences, questions) must never show. TEST_FAULTS is the largest n.
"""
import concurrent.futures
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "faults"))
from judge import Program, judge, untrue  # noqa: E402
from hooklib import WATCHED, fact, plan  # noqa: E402

PROGRAM = Program("consistent")
MOST = int(os.environ.get("TEST_FAULTS", "8" if WATCHED else "16"))
# What the program's own calls end in: it may see the code.
SEEN = (("cuMemAlloc_v2", 2), ("cuMemAlloc_v2", 999), ("cuMemAllocPitch_v2", 2), ("cuMemFree_v2", 1), ("cuMemFree_v2", 999), ("cuMemGetInfo_v2", 999),
        ("cuStreamCreate", 999))
# What only memshim asks: the program must not notice.
UNSEEN = (("cuCtxRecordEvent", 999), ("cuCtxRecordEvent", 801), ("cuEventCreate", 2), ("cuEventCreate", 999), ("cuEventRecord", 999),
          ("cuEventQuery", 999), ("cuEventSynchronize", 999), ("cuEventDestroy_v2", 999), ("cuThreadExchangeStreamCaptureMode", 999),
          ("cuMemGetAddressRange_v2", 999), ("cuPointerGetAttribute", 999), ("cuStreamGetCtx", 999), ("cuStreamIsCapturing", 999), ("cuCtxGetId", 999),
          ("cuDeviceGetAttribute", 999), ("cuDeviceTotalMem_v2", 999), ("cuStreamGetId", 999))


def attempts(function, code, seen, plain, executor, more=None, most=MOST):
    """(what is wrong, whether a refusal was noticed) over every n."""
    most = min(most, COUNTS[bool(more)].get(function, most))
    fails = [form % (function, n, code) for n in range(1, most + 1) for form in ("%s@%d=%d", "%s@%d+=%d") if form.count("+") == 0 or n in (1, 2, 5)]
    jobs = [(fail, executor.submit(PROGRAM.run, fail, more or {})) for fail in fails]
    problems, noticed = [], False
    for fail, job in jobs:
        outcome = job.result()
        noticed = noticed or outcome[1] != plain
        problems += judge(fail, lambda pair: seen and pair[1] == str(code), outcome, plain)
    return problems, noticed


# What memory that is mapped by handle takes: an allocation of the driver's does as well.
MAPPED = (("cuMemAddressReserve", 2), ("cuMemGetAllocationGranularity", 999), ("cuMemCreate", 801), ("cuMemMap", 2), ("cuMemMap", 999), ("cuMemSetAccess", 801),
          ("cuMemUnmap", 1), ("cuMemUnmap", 999), ("cuMemRelease", 1), ("cuMemAddressFree", 1))
BACKING = {"MEMSHIM_BACKING": "vmm", "MEMSHIM_KEEP": "0"}

plan(4 + len(SEEN) + len(UNSEEN) + len(MAPPED))
native = PROGRAM.run("")
fact(native[0] == 0 and native[1][-2] == "wrong 0", "natively nothing is wrong", native[1])
status, plain, report = PROGRAM.run("", {})
fact(plain == native[1] and not untrue(plain, report), "nothing is refused", plain[-8:] + untrue(plain, report))
status, lines, report = PROGRAM.run("", BACKING)
fact(lines == plain and not untrue(lines, report), "nothing is refused of what is mapped by handle", lines[-8:] + untrue(lines, report))
NAMES = [function for function, _ in SEEN + UNSEEN + MAPPED]
COUNTS = {True: PROGRAM.counts(NAMES, BACKING), False: PROGRAM.counts(NAMES, {})}
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for function, code in MAPPED:
        problems, _ = attempts(function, code, False, plain, pool, BACKING, MOST)
        fact(not problems, "%s refuses with %d, and an allocation takes its place" % (function, code), problems)
    problems, noticed = attempts("cuMemCreate", 2, True, plain, pool, BACKING, MOST)
    fact(not problems and noticed, "cuMemCreate refuses with 2, and the program sees that there is no memory", problems or ["nobody noticed"])
    for function, code in SEEN:
        problems, noticed = attempts(function, code, True, plain, pool)
        if not noticed and function in ("cuMemAlloc_v2", "cuMemGetInfo_v2"):
            problems.append("the refusals did not reach the program: the test is blind")
        fact(not problems, "%s refuses with %d" % (function, code), problems)
    for function, code in UNSEEN:
        problems, _ = attempts(function, code, False, plain, pool)
        fact(not problems, "%s refuses with %d, and nobody notices" % (function, code), problems)
