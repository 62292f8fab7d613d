"""ncclMemAlloc and ncclMemFree in a loop, through ctypes; prints one JSON object. Usage: nccl_loop.py LIBRARY"""

import ctypes
import json
import statistics
import sys
import time

SIZES = (4 << 10, 1 << 20, 16 << 20, 64 << 20, 256 << 20)
ROUNDS, MOST_SECONDS = 40, 25.0


def main():
    nccl = ctypes.CDLL(sys.argv[1])
    nccl.ncclMemAlloc.argtypes = (ctypes.POINTER(ctypes.c_void_p), ctypes.c_size_t)
    nccl.ncclMemFree.argtypes = (ctypes.c_void_p,)
    taken = {size: [] for size in SIZES}
    begun = time.monotonic()
    for i in range(ROUNDS + 1):
        for size in SIZES:
            p = ctypes.c_void_p()
            before = time.perf_counter_ns()
            status = nccl.ncclMemAlloc(ctypes.byref(p), size) or nccl.ncclMemFree(p)
            after = time.perf_counter_ns()
            if status:
                sys.exit(f"NCCL answers {status} for {size} bytes")
            if i:
                taken[size].append(after - before)
        if i and time.monotonic() - begun > MOST_SECONDS:
            break
    medians = {size: statistics.median(values) for size, values in taken.items()}
    print(json.dumps({"pair_ns": round(statistics.mean(medians.values())), "rounds": len(taken[SIZES[0]]),
                      **{f"pair_ns_{size}": round(value) for size, value in medians.items()}}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
