#!/usr/bin/env python3
"""Reuse between streams on a device that has no more memory: each combination of the pool's three rules, natively and under memshim.

The statuses must be equal and nobody's memory may show what another stream still did. PERMITTED is what docs/user/differences.md and docs/internals/pool.md
permit: where the rules let the driver follow order that the program made, and nothing else, it has memory where memshim has none.
"""
import concurrent.futures
import itertools
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, TMP, fact, native_environment, plan, shim_environment  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "stream", "waits")
SANITIZED = bool(os.environ["TEST_SANITIZE"])
RULES = ["".join(digits) for digits in itertools.product("01", repeat=3)][::5 if SANITIZED else 1]
ENDS = {"device": "40M"} if SANITIZED else {"device": "40M", "most": "1G"}
PERMITTED = {("put_behind_by_the_program.b", "100"), ("put_behind_by_the_program.b", "110"),
             ("put_behind_by_way_of_a_third.b", "100"), ("put_behind_by_way_of_a_third.b", "110"),
             ("for_the_legacy_stream.legacy", "100"), ("for_the_legacy_stream.legacy", "110")}


def run(rules, end, shim=None, **more):
    """{what: value}, or what went wrong; and how many requests were served."""
    more["MEMSIM_MEMORY"] = ENDS[end]
    report = os.path.join(TMP, "%s.json" % shim)
    env = shim_environment(report, MEMSHIM_MODE="pool", MEMSHIM_OOM_WAIT_MS="100", **more) if shim else native_environment(**more)
    try:
        done = subprocess.run([PROGRAM, rules, end], env=env, text=True, capture_output=True, timeout=240, check=False)
    except subprocess.TimeoutExpired as late:
        return {"it hangs after": (late.stdout or b"").decode().splitlines()[-3:]}, 0
    lines = dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())
    if done.returncode:
        return {"exit status": done.returncode, "said": done.stdout[-200:] + done.stderr}, 0
    return lines, served_requests(report) if shim else 0


def differences(rules, native, other):
    """Statuses that are not the same, and data that is wrong."""
    wrong = ["%s: %s" % (what, value) for side in (native, other) for what, value in side.items() if what.endswith("_wrong") and value != "0"]
    return wrong + ["%s: %s natively, %s served" % (what, native.get(what), other.get(what)) for what in sorted(set(native) | set(other))
                    if native.get(what) != other.get(what) and not what.endswith("_wrong") and (what, rules) not in PERMITTED]


def served_requests(path):
    """How many memshim answered."""
    with open(path, encoding="utf-8") as file:
        return {api["name"]: api["served"] for api in json.load(file)["apis"]}.get("cudaMallocFromPoolAsync", 0)


# Each combination with the defaults; the others in turn.
MORE = ({"MEMSHIM_KEEP": "0"}, {"MEMSHIM_FREE": "strict"}, {"MEMSHIM_PACK": "none"}, {"MEMSHIM_POISON": "both"})
plan((2 * len(ENDS) + 1) * len(RULES))
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    jobs = []
    for turn, rules in enumerate(RULES):
        for end in ENDS:
            jobs.append((rules, end, {}, pool.submit(run, rules, end), pool.submit(run, rules, end, "%s-%s" % (rules, end))))
        jobs.append((rules, end, MORE[turn % len(MORE)], jobs[-1][3], pool.submit(run, rules, end, rules + "-more", **MORE[turn % len(MORE)])))
    for rules, end, more, left, right in jobs:
        native, (served, count) = left.result()[0], right.result()
        differ = differences(rules, native, served)
        fact(len(native) > 25 and not differ, "rules %s, the %s ends, %s: %d answers are as natively" % (rules, end, more or "defaults", len(native)),
             differ + ["%s" % native])
        if not more:
            fact(count >= (40 if rules[2] == "1" else 20), "and %d of the requests were served" % count)
