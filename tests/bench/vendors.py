"""scripts/bench vendors: what memshim serves of other vendors' interfaces. docs/internals/bench.md says what it measures.

A program takes MILLISECONDS and a case, and prints nanoseconds of time and of processor time per pair, the vendor's allocations and
frees in 1000 pairs, and how many pairs there were; HIP's also how often the device was waited for in 1000 pairs.
"""

import os
import statistics
import subprocess

# interface, its program, its cases, and what the program needs of the environment
PROGRAMS = [
    ("aclrtMallocPhysical", "tests/bench/acl", ["pair", "segment"], {"MEMSIM_COUNT": "1"}),
    ("ncclMemAlloc", "tests/bench/nccl", ["buffer"], {"MEMSIM_COUNT": "1"}),
    ("TVM", "tests/bench/nccl", ["tvm"], {"MEMSIM_COUNT": "1"}),
    ("cuDecomp", "tests/bench/nccl", ["autotune"], {"MEMSIM_COUNT": "1"}),
    ("hipMalloc", "tests/bench/hip", ["pair", "workspace", "busy"], {"MEMSIM_COUNT": "1"}),
    ("hipMallocAsync", "tests/bench/hip", ["ordered"], {"MEMSIM_COUNT": "1"}),
]


def run(options, program, case, environment):
    """One run: four figures, or five."""
    command = [os.path.join(options.build, program), str(options.milliseconds), case]
    done = subprocess.run(command, env={**options.environment, **environment}, capture_output=True, text=True, timeout=120, check=True)
    return [float(word) for word in done.stdout.split()]


def bench_vendors(options):
    """A row for each interface, case and way; the ways take turns, so that a slow minute hits them all."""
    shim = {"LD_PRELOAD": os.path.join(options.build, "libmemshim.so"), "MEMSHIM_REPORT": "none"}
    ways = [("native", {}), ("memshim", shim), ("memshim-track", {**shim, "MEMSHIM_MODE": "track"})]
    ways += [("memshim-" + name, {**shim, **variables}) for name, variables in options.variant]
    rows = []
    for interface, program, cases, environment in PROGRAMS:
        for case in cases:
            taken = {name: [] for name, _ in ways}
            for _ in range(options.rounds):
                for name, more in ways:
                    taken[name].append(run(options, program, case, {**environment, **more}))
            native = statistics.median(figures[1] for figures in taken["native"])
            for name, _ in ways:
                ns, cpu_ns, calls, pairs, *waits = (statistics.median(figures) for figures in zip(*taken[name]))
                rows.append({"interface": interface, "case": case, "allocator": name, "ns_per_pair": round(ns, 1),
                             "cpu_ns_per_pair": round(cpu_ns, 1), "cpu_over_native": round(cpu_ns / native, 3),
                             "vendor_calls_per_1000": round(calls, 1), "device_syncs_per_1000": round(waits[0], 1) if waits else None, "pairs": int(pairs)})
    return rows
