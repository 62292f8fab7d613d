#!/usr/bin/env python3
"""After a rest of a second the device has back what the program does not need: no more stays than a quarter of what is live and 64 MiB, and
what MEMSHIM_KEEP allows where it is set, whatever the program calls next and however it allocates. What is on its way back counts as free as soon
as it is over, whichever answer of cudaMemGetInfo's is asked for."""
import concurrent.futures
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, TMP, fact, plan, shim_environment  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "stream", "rest")
ROUNDING = 32  # of the driver's own pools; of contexts it is less
RUNS = [(how, what, {}) for how in ("plain", "ordered", "pool") for what in ("alloc", "free", "device", "stream", "event")]
RUNS += [("plain", "free", {"MEMSHIM_BACKING": "vmm"}), ("plain", "device", {"MEMSHIM_KEEP": "300M"}), ("ordered", "free", {"MEMSHIM_KEEP": "300M"})]


def spare(more):
    return 64 + ROUNDING + (300 if "MEMSHIM_KEEP" in more else 0)


def run(how, what, more):
    """What it printed, by name; or what went wrong."""
    env = shim_environment(os.path.join(TMP, "report.json"), MEMSHIM_REPORT="none", MEMSHIM_MEMINFO="real", MEMSIM_MEMORY="4G", **more)
    done = subprocess.run([PROGRAM, how, what, str(spare(more))], env=env, text=True, capture_output=True, timeout=60, check=False)
    if done.returncode:
        return {"said": done.stdout + done.stderr, "status": done.returncode}
    return {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())}


plan(len(RUNS) + 2)
with concurrent.futures.ThreadPoolExecutor(6) as threads:
    for (how, what, more), said in zip(RUNS, threads.map(lambda job: run(*job), RUNS)):
        most = said.get("live", 0) * 5 // 4 + spare(more)
        fact(said.get("live", 0) <= said.get("used", -1) <= most, "%s, then %s%s: the device has the rest" % (how, what, "".join(", %s=%s" % pair for pair in more.items())),
             ["%s, at most %d" % (said, most)])
for kind in ("adjusted", "real"):
    env = shim_environment(os.path.join(TMP, "report.json"), MEMSHIM_REPORT="none", MEMSHIM_MEMINFO=kind, MEMSIM_MEMORY="4G")
    done = subprocess.run([os.path.join(BUILD, "tests", "stream", "given_back")], env=env, text=True, capture_output=True, timeout=60, check=False)
    before, after = [int(line.split()[1]) for line in done.stdout.splitlines()] if done.returncode == 0 else (1, 0)
    fact(after >= before, "MEMSHIM_MEMINFO=%s: what a pool left in a stream that was only asked is free" % kind, [done.stdout + done.stderr])
