#!/usr/bin/env python3
"""What allocators of other people's do with HIP, by their calls: PyTorch's two backends (torch_allocator.c), and rocBLAS's handle by its four
schemes (rocblas.c), in one thread and in eight. Natively and under memshim they compute the same; memshim reserves little more, and calls the
vendor no more often. Prints TAP.
"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, TMP, fact, native_environment, plan, shim_environment  # noqa: E402

HIP = os.path.join(BUILD, "tests", "hip")
MIB = 1 << 20
MANAGED, PREALLOCATED, ORDERED = {}, {"ROCBLAS_DEVICE_MEMORY_SIZE": str(64 * MIB)}, {"ROCBLAS_STREAM_ORDER_ALLOC": "1"}
# The vendor gives and takes memory, and waits for the device in the latter two.
CALLS = ("hipMalloc", "hipMallocAsync", "hipMallocFromPoolAsync", "hipFreeAsync", "hipFree", "hipDeviceSynchronize")
WAITS = CALLS[-2:]
# A stream has memory of its own in units of 32 MiB, one of which may lie behind another stream, and one be in pieces: each takes up to that much
# more, the more the further the device is behind. And a workspace that grew is pending while the device is at work, up to the bound of
# MEMSHIM_LIMBO, or waits for the device to go back to it.
UNITS, GROWN = 2 * 32 * MIB, 32 * MIB
RUNS = [("PyTorch, native", ["torch_allocator", "native"], {}, 0), ("PyTorch, cudaMallocAsync", ["torch_allocator", "async"], {}, UNITS),
        ("rocBLAS, managed", ["rocblas", "threads", "managed"], MANAGED, GROWN), ("rocBLAS, preallocated", ["rocblas", "threads", "preallocated"], PREALLOCATED, 0),
        ("rocBLAS, user-owned", ["rocblas", "threads", "user_owned"], MANAGED, 0), ("rocBLAS, in stream order", ["rocblas", "threads", "ordered"], ORDERED, UNITS)]


def run(command, environment):
    """What it printed, its exit status, and its figures."""
    done = subprocess.run([os.path.join(HIP, command[0]), *command[1:]], env=environment, capture_output=True, text=True, timeout=120, check=False)
    figures = dict(line.split() for line in done.stderr.splitlines() if len(line.split()) == 2)
    return done.stdout, done.returncode, {name: int(value) for name, value in figures.items() if value.lstrip("-").isdigit()}


def main():
    plan(4 * 2 * len(RUNS))
    for name, command, more, for_each in RUNS:
        for threads in (1, 8):
            words = command + [str(threads)] if len(command) == 2 else command[:2] + [str(threads)] + command[2:]
            more = {**more, "MEMSIM_COUNT": "1"}
            native, was, before = run(words, {**native_environment(), **more})
            shimmed, ended, after = run(words, shim_environment(os.path.join(TMP, "report.json"), **more))
            title = "%s, threads: %d" % (name, threads)
            fact(was == ended == 0 and native == shimmed and " 0 wrong bytes" in native, title + ": the results are the same", (native + shimmed).splitlines())
            most = before.get("peak_bytes", 0) * 110 // 100 + 32 * MIB + for_each * threads
            fact(0 < after.get("peak_bytes", 0) <= most, "... reserved: %d MiB beside %d natively" % (after.get("peak_bytes", 0) >> 20, before.get("peak_bytes", 0) >> 20))
            calls, natively = (sum(figures.get(call, 0) for call in CALLS) for figures in (after, before))
            fact(calls <= natively, "... the vendor is called no more often: %d times beside %d" % (calls, natively))
            waits, natively = (sum(figures.get(call, 0) for call in WAITS) for figures in (after, before))
            fact(waits <= natively, "... the device is waited for no more often: %d times beside %d" % (waits, natively))


main()
