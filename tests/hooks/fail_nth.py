#!/usr/bin/env python3
"""The driver refuses one call after another, on every path; nothing changes for the program, and the report stays right.

refused.c runs natively and under memshim with MEMSIM_FAIL naming the n-th call of one driver function. Every status must be
the same, and the report's calls, failures and live bytes must be those that the program counted. Then the functions
that only memshim asks fail throughout: it must do without the answers. All calls are followed here: what the pool makes of
a refusal is tests/faults' matter. Run by the harness.
"""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from hooklib import HERE, TMP, fact, native_environment, plan, shim_environment  # noqa: E402

PROGRAM = os.path.join(HERE, "refused")
# Driver functions that refused.c's calls end in.
ALLOCATING = ("cuMemAlloc_v2", "cuMemAllocPitch_v2", "cuMemAllocManaged", "cuArrayCreate_v2", "cuArray3DCreate_v2",
              "cuMipmappedArrayCreate", "cuMemAllocAsync", "cuMemHostAlloc", "cuMemAllocHost_v2", "cuMemHostRegister_v2", "cuMemCreate")
FREEING = ("cuMemFree_v2", "cuArrayDestroy", "cuMipmappedArrayDestroy", "cuMemFreeAsync", "cuMemFreeHost", "cuMemHostUnregister",
           "cuMemRelease", "cuMemMap", "cuMemUnmap")
ASKED = ("cuCtxGetCurrent", "cuCtxGetDevice", "cuDeviceGetName", "cuDeviceGetUuid", "cuDeviceTotalMem_v2", "cuPointerGetAttribute",
         "cuMemGetAddressRange_v2", "cuDevicePrimaryCtxGetState", "cuDeviceGet")


def run(fail, shimmed):
    """(exit status, lines, report) of one run."""
    path = os.path.join(TMP, "report.json")
    if os.path.exists(path):
        os.remove(path)
    env = shim_environment(path, MEMSIM_FAIL=fail, MEMSHIM_MODE="track") if shimmed else native_environment(MEMSIM_FAIL=fail)
    done = subprocess.run([PROGRAM], env=env, text=True, capture_output=True, timeout=30, check=False)
    report = None
    if shimmed and os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    return done.returncode, done.stdout.splitlines() + done.stderr.splitlines(), report


def wrong(lines, report, counts_bytes=True):
    """What the report says otherwise than the program."""
    found = []
    if report is None:
        return ["there is no report"]
    apis = {a["name"]: a for a in report["apis"]}
    for line in lines:
        if line.startswith("tally "):
            _, api, calls, refused = line.split()
            got = apis.get(api, {"calls": 0, "failures": 0})
            if (got["calls"], got["failures"]) != (int(calls), int(refused)):
                found.append("%s: %s calls, %s refused; the report has %d and %d" % (api, calls, refused, got["calls"], got["failures"]))
        elif line.startswith("live ") and counts_bytes:
            live = sum(d["live_bytes"] for d in report["devices"])
            if live != int(line.split()[1]):
                found.append("%s, the report has %d" % (line, live))
    return found


def attempt(fail, counts_bytes=True):
    """(whether the rule made a difference to the program, what is wrong)."""
    status, native, _ = run(fail, False)
    other_status, lines, report = run(fail, True)
    found = []
    if (status, native) != (other_status, lines):
        found = ["%s: natively: %s; under memshim: %s" % (fail, a, b) for a, b in zip(native, lines) if a != b] or \
            ["%s: exit status %d, natively %d" % (fail, other_status, status)]
    found += ["%s: %s" % (fail, w) for w in wrong(lines, report, counts_bytes)]
    return native, found


plan(1 + len(ALLOCATING) + len(FREEING) + len(ASKED))
plain, problems = attempt("")
fact(not problems, "nothing is refused", problems)
for function in ALLOCATING + FREEING:
    problems, mattered = [], False
    for nth in (1, 2, 3):
        output, found = attempt("%s@%d=%d" % (function, nth, 2 if function in ALLOCATING else 1))
        problems += found
        mattered = mattered or output != plain
    if not mattered:
        problems.append("the refusals did not reach the program: the test is blind")
    fact(not problems, "%s refuses its first, second and third call" % function, problems)
for function in ASKED:
    output, problems = attempt("%s@1+=999" % function, counts_bytes=False)
    fact(not problems, "%s never answers" % function, problems)
