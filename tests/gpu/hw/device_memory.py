"""What is taken of the device while a program runs, by NVML's word, and stages that hold memshim to what is taken natively."""

import ctypes
import threading

from context import Skip

MIB = 1 << 20
SHAPES = [("plain", 2), ("plain", 4), ("plain", 8), ("plain", 16), ("short", 8), ("large", 4), ("large", 16), ("mixed", 4),
          ("mixed", 16), ("grow", 4), ("grow", 8), ("turns", 8), ("random", 8), ("random", 16)]
# Programs that keep, free and wait, and then print what NVML says is taken: kept COUNT MIB [LIVE].
KEPT = [("1", "7000"), ("1", "7000", "20"), ("16", "600"), ("60", "33", "64")]


class MemoryInfo(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


def used_bytes():
    """A function that says how many bytes of the first device are taken, by whomever; None without NVML."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    device, info = ctypes.c_void_p(), MemoryInfo()
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)):
        return None

    def used():
        return 0 if nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(info)) else info.used

    return used


class Watched:
    """The most that is taken of the device inside a `with`, beyond what was taken before. It looks as often as it can, so what is
    there for some microseconds can be missed."""

    def __init__(self):
        self.used, self.peak, self.over = used_bytes(), 0, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.before = 0

    def look(self):
        """Looks until told that it is over."""
        while not self.over.is_set():
            self.peak = max(self.peak, self.used() - self.before)

    def __enter__(self):
        if self.used:
            self.before = self.used()
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        if self.used:
            self.thread.join()

    @property
    def mib(self):
        """The most, in MiB; None without NVML."""
        return self.peak // MIB if self.used else None


def one_run(context, command, env):
    """What a program printed, and the most that was taken of the device meanwhile."""
    with Watched() as watched:
        text = context.run(command, env=env)
    return text, watched.mib


def together(context):
    """Threads that allocate at the same time. What may be taken is a tenth and 32 MiB more than natively, or than was live by the
    program's own book where its threads met more often than natively; the context's own memory is left out."""
    if context.dry_run or not used_bytes():
        raise Skip("NVML tells what is taken of a device; the simulator's own count is asked by scripts/bench together")
    program, rows = context.program("together"), []
    pool = context.preload({"MEMSHIM_MODE": "pool"})
    own = one_run(context, [program, "plain", "1", "1"], None)[1] - 20
    for shape, threads in SHAPES:
        command = [program, shape, str(threads), "60"]
        text, native = one_run(context, command, None)
        live = int(text.split()[1])
        text, shimmed = one_run(context, command, pool)
        live = max(live, int(text.split()[1]))
        allowed = int(max(native - own, live) * 1.1 + 32)
        rows.append({"shape": shape, "threads": threads, "live_mib": live, "native_mib": native - own, "memshim_mib": shimmed - own,
                     "allowed_mib": allowed})
    worse = [f"{row['shape']} {row['threads']}" for row in rows if row["memshim_mib"] > row["allowed_mib"]]
    if worse:
        context.verdict = "more than may be taken: " + ", ".join(worse)
    context.note(f"the context itself takes {own} MiB, which is left out")
    return rows


def kept(context):
    """What stays taken after frees and a wait: natively, and under memshim at most MEMSHIM_KEEP (256 MiB) more."""
    if context.dry_run or not used_bytes():
        raise Skip("NVML tells what is taken of a device; on the simulator tests/cases asks its own count")
    rows = []
    for arguments in KEPT:
        found = [int(context.run([context.program("kept"), *arguments], env=env).split()[1])
                 for env in (None, context.preload({"MEMSHIM_MODE": "pool"}))]
        rows.append({"program": "kept " + " ".join(arguments), "native_mib": found[0], "memshim_mib": found[1]})
    worse = [row["program"] for row in rows if row["memshim_mib"] > row["native_mib"] + 256 + 34]
    if worse:
        context.verdict = "more stays than may: " + ", ".join(worse)
    return rows


STAGES = [
    ("memory-together", "What threads that allocate together take of the device", together),
    ("memory-kept", "What stays taken after frees and a wait", kept),
]
