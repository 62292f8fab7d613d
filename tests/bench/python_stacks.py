"""python_stacks.py LIBRARY MILLISECONDS: what a stack of 28 Python frames costs that was taken a moment ago, by tests/python/probe.so.

Run by the interpreter that is measured (tests/bench/stacks.py). Prints nanoseconds, medians of batches that take turns for so long:
what a hook pays for the stack, what it pays where there is no interpreter, and the same two in a thread that holds no interpreter lock.
"""
import ctypes
import sys
import threading
import time

FRAMES, TIMES, DETACHED_TIMES, SECONDS = 28, 1000, 20, float(sys.argv[2]) / 1000
WHOLE, NATIVE = 0, 2
held, released = ctypes.PyDLL(sys.argv[1]), ctypes.CDLL(sys.argv[1])
held.probe_time.restype = released.probe_time.restype = ctypes.c_double


def nest(count, last):
    """So many different functions, each of which calls the next; the first."""
    names = {"last": last}
    lines = [f"def f{i}(take):\n    return {f'f{i + 1}(take)' if i + 1 < count else 'last(take)'}\n" for i in range(count)]
    exec(compile("\n".join(lines), "nest.py", "exec"), names)
    return names["f0"]


def measure(take):
    """The medians of both ways."""
    times = TIMES if take is held.probe_time else DETACHED_TIMES
    taken, end = [], time.monotonic() + SECONDS
    while not taken or time.monotonic() < end:
        taken.append((take(WHOLE, times), take(NATIVE, times)))
    return [sorted(ways)[len(taken) // 2] for ways in zip(*taken)]


def in_thread(first, figures):
    """As nothing but the process's first thread: its frames may be taken away by another."""
    thread = threading.Thread(target=lambda: figures.extend(first(released.probe_time)))
    thread.start()
    thread.join()


held.probe_start(1)
figures = nest(FRAMES - 2, measure)(held.probe_time)  # beside them this module and measure()
in_thread(nest(FRAMES - 5, measure), figures)  # ... and three of threading's and the lambda
print(*figures)
