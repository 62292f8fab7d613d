"""Marks of a program in its allocations, and what it claims of that moment: memory that the program's own allocator counts.

A program says `mark.live("pool", pool.total_bytes())`: at this moment that many bytes of device memory are allocated in this process. The helper allocates and frees a
block of a size that nobody else asks for, which the trace of `memshim run --trace` then has at its place, and prints a line beginning with "figure". The
runner (kit/judge.py) holds every claim against the trace, to the byte, with the marks' own blocks left out. Natively the line is printed just the same.

Needs the driver alone (libcuda.so.1 by ctypes) and whichever context is current, or the primary one of device 0. Threads: one at a time.
"""
import ctypes
import os

FIRST = 77001  # a mark's size is this and two for each before it: odd, so no allocator's rounding arrives at it
_driver = None
_count = 0
_kept = []


def _call(name, *arguments):
    """A call of the driver's; it has to succeed."""
    status = getattr(_driver, name)(*arguments)
    if status != 0:
        raise RuntimeError("%s: %d" % (name, status))


def _ready():
    """The driver, with a context that is current."""
    global _driver
    if _driver is None:
        _driver = ctypes.CDLL("libcuda.so.1")
        _call("cuInit", 0)
    context = ctypes.c_void_p()
    _call("cuCtxGetCurrent", ctypes.byref(context))
    if not context.value:
        _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        _call("cuCtxSetCurrent", context)


def _allocate(size):
    """A block of the driver's."""
    pointer = ctypes.c_uint64()
    _call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
    return pointer


def here():
    """A mark; its number, which later figures can begin at (since=)."""
    global _count
    _ready()
    _call("cuMemFree_v2", _allocate(FIRST + 2 * _count))
    _count += 1
    return _count - 1


def _say(kind, name, value, first, last):
    """One claim: `figure PID KIND NAME VALUE FIRST LAST`, the marks as numbers, - for the process's beginning."""
    print("figure", os.getpid(), kind, name.replace(" ", "_"), int(value), "-" if first is None else first, last, flush=True)


def live(name, value, since=None):
    """Claims that this many bytes are live now (more than at the mark since)."""
    number = here()
    _say("live", name, value, since, number)
    return number


def peak(name, value, since=None):
    """Claims that at most this many bytes were live (since that mark; then counted from what was live there)."""
    number = here()
    _say("peak", name, value, since, number)
    return number


def total(name, value, since=None):
    """Claims that this many bytes were allocated altogether."""
    number = here()
    _say("total", name, value, since, number)
    return number


def count(name, value, since=None):
    """Claims that there were this many allocations."""
    number = here()
    _say("count", name, value, since, number)
    return number


def leaks(name, value):
    """Claims that at its end the process leaves this many bytes unfreed, no more and no less. Without a claim it is none."""
    _say("leaks", name, value, None, "-")


def site(word, value):
    """Claims that of what is left unfreed this many bytes were allocated below a function with this word in its name."""
    _say("site", word, value, None, "-")


def plant(size):
    """Leaves a block of this size unfreed, for the report to find; leaks() says so."""
    _ready()
    _kept.append(_allocate(size))
