"""scripts/bench uses: what MEMSHIM_USES costs. docs/internals/bench.md says what it measures.

The program takes MILLISECONDS and a case, and prints nanoseconds of time, of processor time and of the calling thread's per round, and how many
rounds there were. caller_over_native is what a call costs its thread more than without memshim; the ways take turns, and the least of the rounds
of each is compared, since others on the machine only add.
"""

import os
import statistics
import subprocess

PROGRAM = "tests/bench/uses"
CASES = ["block", "fill", "launch", "step"]


def run(options, case, environment):
    """One run: four figures."""
    command = [os.path.join(options.build, PROGRAM), str(options.milliseconds), case]
    done = subprocess.run(command, env={**options.environment, **environment}, capture_output=True, text=True, timeout=120, check=True)
    return [float(word) for word in done.stdout.split()]


def bench_uses(options):
    """A row for each case and way; the ways take turns, so that a slow minute hits them all."""
    shim = {"LD_PRELOAD": os.path.join(options.build, "libmemshim.so"), "MEMSHIM_REPORT": "none"}
    ways = [("native", {}), ("memshim", shim), ("memshim-uses", {**shim, "MEMSHIM_USES": "on"})]
    rows = []
    for case in CASES:
        taken = {name: [] for name, _ in ways}
        for _ in range(options.rounds):
            for name, more in ways:
                taken[name].append(run(options, case, more))
        off = statistics.median(figures[1] for figures in taken["memshim"])
        for name, _ in ways:
            ns, cpu_ns, _, rounds = (statistics.median(figures) for figures in zip(*taken[name]))
            caller = min(figures[2] for figures in taken[name])
            native = min(figures[2] for figures in taken["native"])
            rows.append({"case": case, "allocator": name, "ns_per_round": round(ns, 1), "cpu_ns_per_round": round(cpu_ns, 1),
                         "cpu_over_off": round(cpu_ns / off, 3), "added_ns": round(cpu_ns - off, 1),
                         "caller_ns": round(caller, 1), "caller_over_native": round(caller - native, 1), "rounds": int(rounds)})
    return rows
