#!/usr/bin/env python3
"""NCCL's buffers print the same natively and under memshim, in every mode; served, a second round asks the library for nothing; and
the report is valid, counts each allocation once, and has nothing left over."""
import concurrent.futures
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
TOP = os.environ["top_srcdir"]
sys.path.insert(0, os.path.join(TOP, "tests", "hooks"))
from hooklib import BUILD, MEMSHIM, TMP, fact, native_environment, plan, shim_environment  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "nccl", "buffers")
SIMULATED = {"MEMSIM_DEVICES": "2", "MEMSIM_MEMORY": "128M", "MEMSIM_COUNT": "1",
             "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
MODES = {"pool": {}, "track": {"MEMSHIM_MODE": "track"}, "strict": {"MEMSHIM_FREE": "strict"},
         "immediate": {"MEMSHIM_FREE": "immediate"}, "nothing kept": {"MEMSHIM_KEEP": "0"}}
# What a sanitizer can find more of lies where buffers are kept, and where they are given back.
if os.environ["TEST_SANITIZE"]:
    MODES = {mode: MODES[mode] for mode in ("pool", "nothing kept")}
# Where NCCL's buffers are ordinary memory, they are served as that.
PLAIN = {"NCCL_CUMEM_ENABLE": "0"}
PLAIN_PARTS = ("autotune", "statuses", "late", "threads", "devices", "short", "granules")
# What the driver makes in each round: natively, under the pool.
MADE = {"autotune": ([6, 6, 6], [4, 0, 0]), "apart": ([6], [4]), "alone": ([2], [1]),
        "reenter": ([2, 1], [2, 0]), "registered": ([1, 1, 0, 2, 2], [1, 1, 0, 0, 0]),
        "grouped": ([1, 1, 2], [1, 1, 0])}
# The n-th call of the driver's fails: the library says so, and what the program sees is the same.
FAULTS = ("cuMemCreate@2=2", "cuMemMap@1=2", "cuMemAddressReserve@3=2", "cuMemUnmap@1=999", "cuMemCreate@1+=2")


def run(part, environment):
    done = subprocess.run([PROGRAM, part], env={**environment, **SIMULATED}, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, [int(n) for n in re.findall(r"^made .* (-?\d+)$", done.stderr, re.M)], done.stderr


def compare(part, mode, report):
    # It looks at what it has read for longer than a second, on a busy machine: a rest, after which 64 MiB of its 104 would stay.
    kept = {"MEMSHIM_KEEP": "128M"} if part == "autotune" else {}
    environment = shim_environment(report, **{**kept, **MODES[mode]})
    return run(part, environment)


def parts():
    return subprocess.run([PROGRAM], capture_output=True, text=True, check=True, env=native_environment()).stdout.split()


def report_of(path):
    subprocess.run([os.environ["TEST_VALID"], path], check=True, capture_output=True)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def left_over(path):
    report = report_of(path)
    return report["leaks"] + [report["coverage"]["unseen_frees"]] * bool(report["coverage"]["unseen_frees"])


def by_api(report, kind, *keys):
    """Sums over the sites of each function: a compiler may make several calls of one."""
    sums = {}
    for site in report["sites"]:
        if kind in (None, site["kind"]):
            sums[site["api"]] = [a + site[key] for a, key in zip(sums.get(site["api"], [0] * len(keys)), keys)]
    return sums


def sound(part, mode, path):
    """What does not hold of the report."""
    try:
        report = report_of(path)
    except (subprocess.CalledProcessError, OSError, ValueError) as error:
        return ["%s: %s" % (error, getattr(error, "stderr", ""))]
    wrong = []
    if report["coverage"]["unseen_frees"]:
        wrong.append("%d frees of something never seen" % report["coverage"]["unseen_frees"])
    live = sum(site["live_bytes"] for site in report["sites"])
    if live != (4 << 20 if part == "alone" else 0):
        wrong.append("%d bytes live" % live)
    if part == "autotune":
        seen = by_api(report, None, "total_count", "total_bytes")
        if seen != {"ncclMemAlloc": [9, 3 * (6 + 64 + 34) << 20], "pncclMemAlloc": [9, 9 * 2 << 20]}:
            wrong.append("sites: %s" % seen)
        if mode == "pool" and report["pools"][0]["vendor_allocs"] != 4:
            wrong.append("vendor_allocs: %s" % report["pools"][0]["vendor_allocs"])
    if part == "reenter":
        seen = by_api(report, "handle", "total_count", "live_count")
        if seen != {"ncclCommWindowRegister": [1, 0], "ncclMemAlloc": [2, 0]}:
            wrong.append("sites: %s" % seen)
        calls = {row["name"]: row["calls"] for row in report["apis"]}
        if calls.get("ncclMemAlloc") != 2 or calls.get("ncclMemFree") != 2 or "pncclMemAlloc" in calls:
            wrong.append("calls: %s" % calls)
    if part == "granules":
        site, found = report["sites"][0], [f for f in report["findings"] if f["rule"] == "granularity_rounding"]
        if (site["requested_bytes"], site["total_bytes"]) != (40000, 80 << 20):
            wrong.append("asked and given: %s" % site)
        if [(f["site"], f["bytes"]) for f in found] != [(0, (80 << 20) - 40000)]:
            wrong.append("findings: %s" % found)
    return wrong


def main():
    names = parts()
    plan(len(names) * len(MODES) + len(MADE) * 2 + len(FAULTS) + len(PLAIN_PARTS))
    jobs, native = {}, {}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for part in names:
            native[part] = pool.submit(run, part, native_environment())
            for mode in MODES:
                path = os.path.join(TMP, "%s-%s.json" % (part, mode.replace(" ", "-")))
                jobs[part, mode] = (path, pool.submit(compare, part, mode, path))
    for (part, mode), (path, job) in jobs.items():
        want, got = native[part].result(), job.result()
        wrong = [] if got[:2] == want[:2] and got[0] == 0 else ["native:", *want[1].splitlines(), "here:", *got[1].splitlines(),
                                                               *got[3].splitlines()[-5:], "status %d" % got[0]]
        wrong += sound(part, mode, path)
        fact(not wrong, "%s, %s: as natively, and the report is true" % (part, mode), wrong)
    for part, (natively, served) in MADE.items():
        fact(native[part].result()[2] == natively, "%s: natively the driver makes %s" % (part, natively), [native[part].result()[2]])
        made = jobs[part, "pool"][1].result()[2]
        fact(made == served, "%s: served, it makes %s" % (part, served), [made])
    for part in PLAIN_PARTS:
        want, path = run(part, native_environment(**PLAIN)), os.path.join(TMP, "plain.json")
        got = run(part, shim_environment(path, **PLAIN))
        wrong = [] if got[:2] == want[:2] else [*want[1].splitlines(), "---", *got[1].splitlines()]
        fact(not wrong and not (wrong := left_over(path)), "%s, ordinary memory: as natively, and nothing is left" % part, wrong)
    for rule in FAULTS:
        want = run("statuses", native_environment(MEMSIM_FAIL=rule))
        got = run("statuses", shim_environment(os.path.join(TMP, "fault.json"), MEMSIM_FAIL=rule))
        calm = [line for line in got[1].splitlines() if line.startswith(("nowhere", "nothing", "free nothing", "too much"))]
        fact(got[0] == want[0] == 0 and calm == [line for line in want[1].splitlines() if line in calm],
             "%s: no more than that goes wrong" % rule, [*want[1].splitlines(), "---", *got[1].splitlines(), got[3][-300:]])


main()
