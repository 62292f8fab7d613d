#!/usr/bin/env python3
"""The driver refuses the n-th call, for every n: the program sees the driver's codes alone, its memory stays its own, and the
report is true.

consistent.c runs under memshim with MEMSIM_FAIL naming the n-th call of one driver function, for n from 1 until two runs in a row
show that there is no such call any more, and with all calls refused from the n-th on. Functions that the program itself does
not call (fences, questions) must never show. TEST_FAULTS is the largest n.
"""
import concurrent.futures
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, TMP, fact, native_environment, plan, preload  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "faults", "consistent")
MOST = int(os.environ.get("TEST_FAULTS", "16"))
# What the program's own calls end in: it may see the code.
SEEN = (("cuMemAlloc_v2", 2), ("cuMemAlloc_v2", 999), ("cuMemAllocPitch_v2", 2), ("cuMemFree_v2", 1), ("cuMemFree_v2", 999), ("cuMemGetInfo_v2", 999),
        ("cuStreamCreate", 999))
# What only memshim asks: the program must not notice.
UNSEEN = (("cuCtxRecordEvent", 999), ("cuCtxRecordEvent", 801), ("cuEventCreate", 2), ("cuEventCreate", 999), ("cuEventRecord", 999),
          ("cuEventQuery", 999), ("cuEventSynchronize", 999), ("cuEventDestroy_v2", 999), ("cuThreadExchangeStreamCaptureMode", 999),
          ("cuMemGetAddressRange_v2", 999), ("cuPointerGetAttribute", 999), ("cuStreamGetCtx", 999), ("cuStreamIsCapturing", 999), ("cuCtxGetId", 999),
          ("cuDeviceGetAttribute", 999), ("cuDeviceTotalMem_v2", 999), ("cuStreamGetId", 999))


def run(fail, number, more):
    """(exit status, lines, report) of one run under memshim; natively if there is no number."""
    path = os.path.join(TMP, "report.%s.json" % number)
    if number is None:
        env = native_environment(MEMSIM_FAIL=fail)
    else:
        env = native_environment(MEMSIM_FAIL=fail, LD_PRELOAD=preload(), MEMSHIM_REPORT=path, MEMSHIM_LOG="none", MEMSHIM_OOM_WAIT_MS="20",
                                 **dict({"MEMSHIM_MODE": "pool"}, **more))
    try:
        done = subprocess.run([PROGRAM], env=env, text=True, capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return 124, ["it hangs"], None
    report = None
    if number is not None and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        os.remove(path)
    return done.returncode, done.stdout.splitlines() + done.stderr.splitlines(), report


def untrue(lines, report):
    """What the report says otherwise than the program."""
    if report is None:
        return ["there is no report"]
    found = []
    apis = {a["name"]: a for a in report["apis"]}
    for line in lines:
        words = line.split()
        if words[0] == "tally":
            got = apis.get(words[1], {"calls": 0, "failures": 0})
            if (got["calls"], got["failures"]) != (int(words[2]), int(words[3])):
                found.append("%s; the report has %d and %d" % (line, got["calls"], got["failures"]))
        elif words[0] == "live" and sum(d["live_bytes"] for d in report["devices"]) != int(words[1]):
            found.append("%s; the report has %d" % (line, sum(d["live_bytes"] for d in report["devices"])))
    for device in report["devices"]:
        for total, parts in (("reserved_bytes", "reserved_parts"), ("peak_reserved_bytes", "peak_parts")):
            if device.get(total, 0) != sum(device.get(parts, {}).values()):
                found.append("%s is %d, its parts %s" % (total, device[total], device[parts]))
    return found


def judge(fail, code, seen, outcome, plain):
    status, lines, report = outcome
    if not lines or lines[-1].split()[0] != "live":
        return ["%s: exit status %d, %s" % (fail, status, lines[-3:])]
    found = [line for line in lines if "overlap" in line or "instead of" in line]
    if seen:
        found += [line for line in lines if line.startswith("round ") and line.split()[-1] != str(code)]
    elif lines != plain:
        found += [line for line in lines if line not in plain]
    return ["%s: %s" % (fail, line) for line in found + untrue(lines, report)]


def attempts(function, code, seen, plain, executor, more=None, most=MOST):
    """(what is wrong, whether a refusal was noticed) over every n."""
    fails = [form % (function, n, code) for n in range(1, most + 1) for form in ("%s@%d=%d", "%s@%d+=%d") if form.count("+") == 0 or n in (1, 2, 5)]
    jobs = [(fail, executor.submit(run, fail, "%s.%d.%d" % (function, code, i), more or {})) for i, fail in enumerate(fails)]
    problems, noticed = [], False
    for fail, job in jobs:
        outcome = job.result()
        noticed = noticed or outcome[1] != plain
        problems += judge(fail, code, seen, outcome, plain)
    return problems, noticed


# What memshim asks of the driver to order work of several streams.
ORDERED = (("cuEventCreate", 2), ("cuEventRecord", 999), ("cuStreamWaitEvent", 999), ("cuStreamGetId", 999), ("cuStreamGetCtx", 999),
           ("cuStreamIsCapturing", 999), ("cuCtxRecordEvent", 999))
FREE = {"MEMSHIM_FREE": "ordered"}
# What memory that is mapped by handle takes: an allocation of the driver's does as well.
MAPPED = (("cuMemAddressReserve", 2), ("cuMemGetAllocationGranularity", 999), ("cuMemCreate", 801), ("cuMemMap", 2), ("cuMemMap", 999), ("cuMemSetAccess", 801),
          ("cuMemUnmap", 1), ("cuMemUnmap", 999), ("cuMemRelease", 1), ("cuMemAddressFree", 1))
BACKING = {"MEMSHIM_BACKING": "vmm", "MEMSHIM_KEEP": "0"}

plan(5 + len(SEEN) + len(UNSEEN) + len(ORDERED) + len(MAPPED))
native = run("", None, {})
fact(native[0] == 0 and native[1][-2] == "wrong 0", "natively nothing is wrong", native[1])
status, plain, report = run("", "plain", {})
fact(plain == native[1] and not untrue(plain, report), "nothing is refused", plain[-8:] + untrue(plain, report))
status, lines, report = run("", "ordered", FREE)
fact(lines == plain and not untrue(lines, report), "nothing is refused under ordered", lines[-8:] + untrue(lines, report))
status, lines, report = run("", "mapped", BACKING)
fact(lines == plain and not untrue(lines, report), "nothing is refused of what is mapped by handle", lines[-8:] + untrue(lines, report))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    for function, code in MAPPED:
        problems, _ = attempts(function, code, False, plain, pool, BACKING, MOST)
        fact(not problems, "%s refuses with %d, and an allocation takes its place" % (function, code), problems)
    problems, noticed = attempts("cuMemCreate", 2, True, plain, pool, BACKING, MOST)
    fact(not problems and noticed, "cuMemCreate refuses with 2, and the program sees that there is no memory", problems or ["nobody noticed"])
    for function, code in ORDERED:
        problems, _ = attempts(function, code, False, plain, pool, FREE, MOST // 2)
        fact(not problems, "%s refuses with %d under ordered, and nobody notices" % (function, code), problems)
    for function, code in SEEN:
        problems, noticed = attempts(function, code, True, plain, pool)
        if not noticed and function in ("cuMemAlloc_v2", "cuMemGetInfo_v2"):
            problems.append("the refusals did not reach the program: the test is blind")
        fact(not problems, "%s refuses with %d" % (function, code), problems)
    for function, code in UNSEEN:
        problems, _ = attempts(function, code, False, plain, pool)
        fact(not problems, "%s refuses with %d, and nobody notices" % (function, code), problems)
