#!/usr/bin/env python3
"""MEMSHIM_LIMIT holds for memory in the order of streams as for all other: beyond it the vendor's out-of-memory, which the report explains, and what
is free is said to be no more than it leaves, and all of that once everything was freed."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, TMP, fact, native_environment, plan, shim_environment  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "stream", "limit")
REPORT = os.path.join(TMP, "report.json")
POLICIES = ({}, {"MEMSHIM_KEEP": "0"}, {"MEMSHIM_BACKING": "vmm"})


def run(env):
    """What it printed, by name."""
    done = subprocess.run([PROGRAM], env={**env, "MEMSIM_MEMORY": "256M"}, text=True, capture_output=True, timeout=60, check=False)
    return {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())} if done.returncode == 0 else {}


plan(2 + 3 * len(POLICIES))
native = run(native_environment())
fact(native.get("blocks") == 64 and native["status"] == 2 and native["left_again"] == 256, "natively the device is filled", ["%s" % native])
without = run(shim_environment(REPORT))
fact({**without, "left": 0} == {**native, "left": 0}, "and so it is under memshim without a limit", ["%s" % native, "%s" % without])
for policy in POLICIES:
    name = "".join(", %s=%s" % pair for pair in policy.items())
    said = run(shim_environment(REPORT, MEMSHIM_LIMIT="64M", **policy))
    with open(REPORT, encoding="utf-8") as file:
        report = json.load(file)
    fact(14 <= said.get("blocks", 0) <= 16 and said["status"] == said["last"] == said["too_much"] == 2 and said["cudaMalloc"] == said["again"] == 0,
         "MEMSHIM_LIMIT=64M%s: beyond it there is no memory" % name, ["%s" % said])
    fact(said.get("left", 99) <= 8 and said["left_again"] == said["left_at_last"] == 64, "MEMSHIM_LIMIT=64M%s: free is what it leaves" % name, ["%s" % said])
    fact(report["devices"][0]["peak_reserved_bytes"] <= 64 << 20 and {oom["cause"] for oom in report["oom"]} == {"limit"} and len(report["oom"]) == 2,
         "MEMSHIM_LIMIT=64M%s: the report says why" % name, ["%s" % report["oom"], "%d" % report["devices"][0]["peak_reserved_bytes"]])
