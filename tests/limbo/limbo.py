#!/usr/bin/env python3
"""A free over the bound waits, and no longer than it should: every program of limbo.c ends in every mode, and prints what it has to. A wait in
vain is told in the report. And what programs whose host never waits reserve (tests/bench/alloc, shapes) is bounded, whatever is freed behind work.
"""
import concurrent.futures
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, TMP, fact, native_environment, plan, shim_environment, skip  # noqa: E402

# The vendor's library allocates in the handler, as it may.
os.environ["TSAN_OPTIONS"] = os.environ.get("TSAN_OPTIONS", "") + ":report_signal_unsafe=0"
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
PROGRAM = os.path.join(BUILD, "tests", "limbo", "limbo")
SHAPES = os.path.join(BUILD, "tests", "bench", "alloc", "alloc")
SANITIZED = bool(os.environ["TEST_SANITIZE"])
MIB = 1 << 20
UNIT = 32 * MIB
END = ["device 0", "the end"]
SAYS = {"vain": ["refused 0", "refused again 0", "device 0"] + 3 * ["refused 0"] + ["the end"], "vain-driver": ["refused 0"] + END,
        "function": ["refused in a host function: 0"] + END, "handler": ["refused 0", "handled 1"] + END,
        "fork": ["refused 0", "the child ended with 7"] + END, "endless": 4 * ["refused 0"] + END,
        "green": ["refused 0"] + END, "green-elsewhere": ["refused 0"] + END,
        "capture": ["refused 0", "broken captures 0"] + END, "destroyed": ["destroyed 0", "refused 0"] + END}
VAIN = ("vain", "vain-driver", "function", "green-elsewhere")
MODES = ({}, {"MEMSHIM_KEEP": "0"}, {"MEMSHIM_BACKING": "vmm"}, {"MEMSHIM_PACK": "none"}, {"MEMSHIM_LIMBO": "0"}, {"MEMSHIM_LIMBO": "none"},
         {"MEMSHIM_FREE": "immediate"}, {"MEMSHIM_MODE": "track"})
# Natively, and so where nothing is served, the free itself waits; or the driver refuses it.
TRACKED = ("endless", "destroyed")
LIMBO_ONLY = [more for more in MODES if "MEMSHIM_FREE" not in more and more.get("MEMSHIM_LIMBO") != "none" and "MEMSHIM_MODE" not in more]


# Where a free waits as the vendor's does, what holds the device ends by itself: then each program ends natively, too. A host function's frees
# are refused as natively, and a child that was forked inside the vendor's wait never leaves it.
RELEASED = ({"MEMSHIM_FREE": "strict"}, {"MEMSHIM_MODE": "track"}, {})
HELD_MS = "200"
OTHERWISE = {"function": ["refused in a host function: 8"] + END}
HANGS_NATIVELY = ("fork",)


def title(more):
    return " ".join("%s=%s" % pair for pair in more.items()) or "defaults"


def play(name, more, *words):
    """What it printed, what it ended with, and whether the report tells of a wait in vain."""
    if name in VAIN and not words:  # so long a wait in vain takes; where a signal comes during the wait it is a second
        more = dict({"MEMSHIM_OOM_WAIT_MS": "150"}, **more)
    report = os.path.join(TMP, "%s.json" % "-".join((name, title(more).replace("=", "-").replace(" ", "-")) + words))
    try:
        done = subprocess.run([PROGRAM, name, *words], env=shim_environment(report, **dict({"MEMSHIM_LOG": "none"}, **more)), capture_output=True, text=True,
                              timeout=120, check=False)
    except subprocess.TimeoutExpired as late:
        return ["it hangs", str(late.stdout)], None
    told = False
    if os.path.exists(report):
        with open(report, encoding="utf-8") as file:
            told = any("waited in vain" in line for line in json.load(file)["diagnostics"])
    return done.stdout.splitlines() + done.stderr.splitlines() + ([] if done.returncode == 0 else ["exit %d" % done.returncode]), told


def shape(allocator, name, streams, shimmed, memory="32G"):
    """What a program of this shape came to: the most that was live and reserved, and its largest block, in bytes."""
    more = {"MEMSIM_MEMORY": memory, "MEMSIM_COST": "memset=20000,copy=20000"}
    report = os.path.join(TMP, "%s-%s-%d.json" % (allocator, name, streams))
    env = shim_environment(report, MEMSHIM_LOG="none", **more) if shimmed else native_environment(**more)
    done = subprocess.run([SHAPES, allocator, "shapes", name, str(streams)], env=env, capture_output=True, text=True, timeout=300, check=False)
    figures = {key: float(value) for key, value in (line.split() for line in done.stdout.splitlines())} if done.returncode == 0 else None
    vain = False
    if shimmed and figures:
        with open(report, encoding="utf-8") as file:
            vain = any("waited in vain" in line for line in json.load(file)["diagnostics"])
    return figures, vain, done.stderr


def look_at_shape(name, streams):
    """A machine that is so slow that work takes seconds makes frees wait in vain: then there is nothing to see."""
    said = "%s on %d: synchronous calls reserve at most a quarter more than is live, 64 MiB and the largest block" % (name, streams)
    figures, vain, complaint = shape("runtime", name, streams, True)
    if vain:
        skip(said, "a free waited in vain")
        return
    allowed = figures and 1.25 * figures["live_peak_bytes"] + 64 * MIB + figures["largest_bytes"]
    fact(figures and figures["reserved_peak_bytes"] <= allowed, said, ["%s, allowed are %s" % (figures, allowed), complaint])


def ordered_pair(name, streams):
    """What memshim may reserve in stream order, what it did, and a complaint."""
    native = shape("runtime-async", name, streams, False)[0] if name != "tiny" else None
    figures, _, complaint = shape("runtime-async", name, streams, True)
    least = figures and -(-figures["live_peak_bytes"] // UNIT) * UNIT
    return figures and (native["reserved_peak_bytes"] if native else least) + 64 * MIB, figures, complaint


def look_at_ordered_shape(name, streams):
    """How far each stream has got when another asks is the machine's, natively too (from 1,376 to 2,016 MiB for `growing`): runs beside each other are
    compared, and the best of five counts. Natively whole units of 32 MiB are taken, so that no run takes less than what is live in such; where the
    driver's own pool takes minutes that stands for it."""
    for _ in range(5):
        allowed, figures, complaint = ordered_pair(name, streams)
        held = figures and figures["reserved_peak_bytes"] <= allowed
        if held:
            break
    fact(held, "%s on %d: stream-ordered calls reserve at most 64 MiB more than natively" % (name, streams),
         ["%s, allowed are %s" % (figures, allowed), complaint])


def look_at_little_memory(streams):
    """Natively 609 MiB will do for it. Which frees are over when memory is asked for is the machine's, and with it how far what is free lies in
    pieces: of 100 runs on a busy machine four ended for want of 10 MiB in one (docs/internals/pool.md), so one of three is to do."""
    for _ in range(3):
        figures, _, complaint = shape("runtime", "serving", streams, True, "640M")
        if figures:
            break
    fact(figures, "serving on %d: a device with a twentieth more memory than it needs natively is enough" % streams, [complaint])


JOBS = [(name, more) for name in SAYS for more in MODES if "MEMSHIM_MODE" not in more or name in TRACKED]
LET_GO = [(name, more) for name in SAYS for more in RELEASED if "MEMSHIM_MODE" not in more or name not in HANGS_NATIVELY]
SHAPE_JOBS = [] if SANITIZED else [(name, streams) for name in ("loop", "layers", "growing", "serving", "tiny") for streams in (1, 4)]
TIGHT_STREAMS = () if SANITIZED else (1, 4)
plan(len(JOBS) + len(LET_GO) + (len(VAIN) + 1) * len(LIMBO_ONLY) + 2 * len(SHAPE_JOBS) + len(TIGHT_STREAMS))
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    played = [(name, more, pool.submit(play, name, more)) for name, more in JOBS]
    let_go = [(name, more, pool.submit(play, name, more, HELD_MS)) for name, more in LET_GO]
    for name, more, job in played:
        output, told = job.result()
        fact(output == SAYS[name], "%s, %s" % (name, title(more)), output)
        if name in VAIN and more in LIMBO_ONLY:
            fact(told, "%s, %s: the report tells of a wait in vain" % (name, title(more)))
        if name == "green" and more in LIMBO_ONLY:
            fact(told is False, "green, %s: no free waits in a context that a green one shares" % title(more))
    for name, more, job in let_go:
        said = OTHERWISE.get(name, SAYS[name]) if more else SAYS[name]
        fact(job.result()[0] == said, "%s, released after a while, %s" % (name, title(more)), job.result()[0])
for name, streams in SHAPE_JOBS:
    look_at_shape(name, streams)
    look_at_ordered_shape(name, streams)
for streams in TIGHT_STREAMS:
    look_at_little_memory(streams)
