#!/usr/bin/env python3
"""Every program that holds the device and ends natively ends under memshim, whatever is configured, and gets the same answers.

Each is run with everything that can hold a stream under the defaults, and with every configuration below. What it prints
are facts that do not depend on who had how much memory left.
"""
import concurrent.futures
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, fact, plan, preload, skip  # noqa: E402

# The vendor's library allocates in a handler, as it may.
os.environ["TSAN_OPTIONS"] = os.environ.get("TSAN_OPTIONS", "") + ":report_signal_unsafe=0"
# Programs that end with children, or in the middle of something, leak.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
PROGRAM = os.path.join(BUILD, "tests", "nohang", "nohang")
HIP = PROGRAM + "_hip" # where a function alone holds a stream
KINDS = ("kernel", "value", "function")
WATCHED = bool(os.environ["TEST_SANITIZE"])
LIMIT = 180 if WATCHED else 60  # seconds: what takes longer is taken to hang
# MEMSHIM_LIMIT answers out-of-memory earlier than the device, so its facts are another program's.
CONFIGURATIONS = ({"MEMSHIM_FREE": "strict"}, {"MEMSHIM_KEEP": "0"}, {"MEMSHIM_PREALLOC": "8M"}, {"MEMSHIM_POISON": "both"},
                  {"MEMSHIM_PACK": "none"}, {"MEMSHIM_PACK": "all", "MEMSHIM_SINGLE_MIN": "2M"}, {"MEMSHIM_MEMINFO": "real"}, {"MEMSHIM_BACKING": "vmm"},
                  {"MEMSHIM_LIMBO": "0"}, {"MEMSHIM_LIMIT": "80M"}, {"MEMSHIM_MODE": "track"})
# Those under which other code takes locks, waits or asks the device: what a sanitizer can find more of is there.
WATCHED_CONFIGURATIONS = [more for more in CONFIGURATIONS if set(more) & {"MEMSHIM_FREE", "MEMSHIM_KEEP", "MEMSHIM_POISON", "MEMSHIM_BACKING", "MEMSHIM_LIMBO"}]
HIP_CONFIGURATIONS = [more for more in CONFIGURATIONS if set(more) & {"MEMSHIM_FREE", "MEMSHIM_KEEP", "MEMSHIM_BACKING", "MEMSHIM_LIMBO", "MEMSHIM_LIMIT"}]
# They end, with other answers than natively: docs/user/differences.md.
HIP_DIFFERS = {"same-and-other-size", "frees-in-host-functions", "bound-in-a-capture"}
# Fills of everything take long on the simulator.
FEW = {"MEMSHIM_POISON": ("other-waits", "freed-before-small", "capture-open", "free-and-release", "free-waits-for-another-thread",
                          "frees-in-host-functions", "bound-in-function")}


def run(program, name, words, kind, more):
    env = dict(os.environ, LD_LIBRARY_PATH=os.environ["TEST_SIM"], **dict(word.split("=", 1) for word in words))
    if more is not None:
        # Memory that is being filled is waited for, which on a loaded machine takes longer than anything else here.
        wait_ms = "300" if "MEMSHIM_POISON" not in more else "20000" if WATCHED else "3000"
        env.update(LD_PRELOAD=preload(), MEMSHIM_REPORT="none", MEMSHIM_LOG="none", MEMSHIM_OOM_WAIT_MS=wait_ms, **more)
    try:
        done = subprocess.run([program, name, kind], env=env, text=True, capture_output=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired as late:
        return ["it hangs", "it had printed: %s" % (late.stdout or b"").decode()]
    return done.stdout.splitlines() + done.stderr.splitlines() + ["exit %d" % done.returncode]


def configurations(name):
    """Those that this program is run with."""
    return [more for more in (WATCHED_CONFIGURATIONS if WATCHED else CONFIGURATIONS) if all(name in FEW.get(variable, (name,)) for variable in more)]


def kinds(name, more, turn):
    """What holds the stream: under the defaults all; else one of all; in the order of streams all under those that go on by other ways. Under a
    sanitizer one of all."""
    whole = not more or name.startswith(("streams-", "pools-")) and more == {"MEMSHIM_BACKING": "vmm"}
    return KINDS if whole and not WATCHED else (KINDS[turn % len(KINDS)],)


def ends(output):
    return output and output[0] != "it hangs"


def look(name, what, native, output, compares):
    """It ends natively, or the test is wrong."""
    if any(line.startswith("skip: ") for line in native):
        skip("%s, %s" % (name, what), next(line for line in native if line.startswith("skip: "))[6:])
        return
    passed = ends(native) and ends(output) and (native == output or not compares)
    fact(passed, "%s, %s" % (name, what), ["natively: %s" % native, "under memshim: %s" % output])


def programs_of(program):
    """Their names, each with what it wants of the simulator."""
    listed = subprocess.run([program, "--list"], env=dict(os.environ, LD_LIBRARY_PATH=os.environ["TEST_SIM"]), text=True, capture_output=True, check=True)
    return [line.split() for line in listed.stdout.splitlines()]


jobs = []
for index, (name, *words) in enumerate(programs_of(PROGRAM)):
    for turn, more in enumerate([{}] + configurations(name)):
        jobs += [(PROGRAM, name, words, kind, more) for kind in kinds(name, more, index if WATCHED else index + turn)]
for index, (name, *words) in enumerate(programs_of(HIP)):
    jobs += [(HIP, name, words, "function", more) for more in [{}] + [HIP_CONFIGURATIONS[index % len(HIP_CONFIGURATIONS)]] * (not WATCHED)]
plan(len(jobs))
with concurrent.futures.ThreadPoolExecutor(4 if WATCHED else 8) as pool:
    native = {(program, name, kind): pool.submit(run, program, name, words, kind, None)
              for program, name, words, kind in {(p, n, *w, k): (p, n, w, k) for p, n, w, k, _ in jobs}.values()}
    under = [(program, name, kind, more, pool.submit(run, program, name, words, kind, dict({"MEMSHIM_MODE": "pool"}, **more))) for program, name, words, kind, more in jobs]
    for program, name, kind, more, job in under:
        said = " ".join("%s=%s" % pair for pair in more.items())
        look(name, "%s%s%s" % ("HIP, " * (program == HIP), kind, said and ", " + said), native[program, name, kind].result(), job.result(),
             "MEMSHIM_LIMIT" not in more and not (program == HIP and name in HIP_DIFFERS))
