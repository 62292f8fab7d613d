"""Array arithmetic in CuPy with its pool off, so that every temporary is a cudaMalloc; prints one JSON object."""

import json
import statistics
import sys
import time

import cupy

ROUNDS, WARM, MOST_SECONDS = 60, 5, 25.0


def work(size):
    """A few temporaries of one size and one matrix product."""
    a = cupy.arange(size * size, dtype=cupy.float32).reshape(size, size)
    b = a * 2 + 1
    c = (a @ b) / (cupy.abs(b) + 1)
    return float((c - c.mean(axis=0)).std())


def main():
    cupy.cuda.set_allocator(None)
    cupy.cuda.set_pinned_memory_allocator(None)
    taken = []
    begun = time.monotonic()
    for i in range(WARM + ROUNDS):
        before = time.perf_counter()
        for size in (64, 256, 1024, 2048):
            work(size)
        if i >= WARM:
            taken.append((time.perf_counter() - before) * 1e3)
        if time.monotonic() - begun > MOST_SECONDS and len(taken) >= 5:
            break
    taken.sort()
    print(json.dumps({"median_ms": round(statistics.median(taken), 3), "p90_ms": round(taken[len(taken) * 9 // 10], 3),
                      "rounds": len(taken)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
