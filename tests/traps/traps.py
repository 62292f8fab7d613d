#!/usr/bin/env python3
"""Every trap prints the same natively and under memshim, or differs as docs/user/differences.md permits.

The table in docs/user/differences.md names each trap that may print something else, and the variables that take the difference
back: such a trap must differ, and must not under those variables and MEMSHIM_FREE=strict. Every other trap must print the
same under the defaults and under MEMSHIM_FREE=strict. A second table has what differs with MEMSHIM_BACKING=vmm. TEST_TRAPS=PATTERN runs the traps whose name matches.
"""
import concurrent.futures
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
TOP = os.environ["top_srcdir"]
sys.path.insert(0, os.path.join(TOP, "tests", "hooks"))
from hooklib import BUILD, TMP, WATCHED, fact, plan, preload, skip  # noqa: E402

# Programs that end with children, or in the middle of something, leak.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
PROGRAM = os.path.join(BUILD, "tests", "traps", "traps")
ROW = re.compile(r"^\| `([a-z0-9-]+)` \|[^|]*\|[^|]*\| (.*) \|$")


def environment(words):
    return dict(word.split("=", 1) for word in words)


def listed():
    """What docs/user/differences.md permits: {trap: {variable: value}}; by default, and beyond that with MEMSHIM_BACKING=vmm."""
    default, mapped = {}, {}
    found = default
    with open(os.path.join(TOP, "docs", "user", "differences.md"), encoding="utf-8") as file:
        for line in file:
            if line.startswith("## "):
                found = mapped if "MEMSHIM_BACKING=vmm" in line else default
            row = ROW.match(line.rstrip())
            if row:
                found[row.group(1)] = environment(re.findall(r"`(MEMSHIM_[A-Z_]+=[^`]+)`", row.group(2)))
    return default, mapped


def run(trap, words, **more):
    """What a trap prints, line by line; with a variable of memshim's, under memshim."""
    env = dict(os.environ, LD_LIBRARY_PATH=os.environ["TEST_SIM"], **environment(words))
    if more:
        env.update(LD_PRELOAD=preload(), MEMSHIM_REPORT="none", MEMSHIM_LOG="none", **more)
    try:
        done = subprocess.run([PROGRAM, trap], env=env, text=True, capture_output=True, timeout=60, check=False, cwd=TMP)
    except subprocess.TimeoutExpired as late:
        return ["still running after 60 seconds", str(late.stdout)]
    return done.stdout.splitlines() + done.stderr.splitlines() + ["exit %d" % done.returncode]


def runs(trap, words, taken_back):
    """What it prints natively, under the defaults, under strict and what takes a difference back, and with mapped memory."""
    strict = dict({"MEMSHIM_MODE": "pool", "MEMSHIM_FREE": "strict"}, **taken_back)
    return (run(trap, words), run(trap, words, MEMSHIM_MODE="pool"), run(trap, words, **strict) if is_strict_too(trap) else None,
            run(trap, words, MEMSHIM_MODE="pool", MEMSHIM_BACKING="vmm"))


def is_strict_too(trap):
    """Frees that wait answer as the vendor's: a sanitizer looks at them where they are to take a difference back (and in tests/nohang)."""
    return not WATCHED or trap in permitted


def differences(one, other):
    longest = max(len(one), len(other))
    one, other = (lines + [""] * (longest - len(lines)) for lines in (one, other))
    return ["natively: %s; under memshim: %s" % (a, b) for a, b in zip(one, other) if a != b]


def look_mapped(trap, default, mapped):
    """With MEMSHIM_BACKING=vmm: as without, or as the second table says. What the first one has may differ in either."""
    if trap in permitted_mapped:
        fact(default != mapped, "%s: differs with MEMSHIM_BACKING=vmm, as docs/user/differences.md says" % trap, ["it does not differ"])
    else:
        fact(default == mapped or trap in permitted, "%s with MEMSHIM_BACKING=vmm" % trap, differences(default, mapped))


def look(trap, native, default, strict, mapped):
    if any(line.startswith("skip: ") for line in native):
        reason = next(line for line in native if line.startswith("skip: "))[6:]
        skip(trap, reason)
        skip("%s under strict" % trap, reason)
        skip("%s with MEMSHIM_BACKING=vmm" % trap, reason)
        return
    look_mapped(trap, default, mapped)
    if trap in permitted:
        fact(native != default, "%s: differs, as docs/user/differences.md says" % trap, ["it does not differ"])
        names = " ".join("%s=%s" % pair for pair in permitted[trap].items()) or "MEMSHIM_FREE=strict"
        fact(native == strict, "%s: the same under %s" % (trap, names), differences(native, strict))
    else:
        fact(native == default, trap, differences(native, default))
        if strict is None:
            skip("%s under strict" % trap, "a build without sanitizers looks at this")
        else:
            fact(native == strict, "%s under strict" % trap, differences(native, strict))


# What a sanitizer itself does not stand, or finds in the simulator.
UNFIT = {"thread": ("signal-handlers", "exit-among-threads", "fork", "fork-large", "fork-first"), "address": ("small-stack",)}

# Traps that are also run with memory filled before it is handed out and after it is freed.
POISONED = ("slow-fills", "no-overlap", "reuse-after-nonblocking-stream", "reuse-and-late-reads", "capture-survives-relaxed")

traps = [line.split() for line in subprocess.run([PROGRAM, "--list"], env=dict(os.environ, LD_LIBRARY_PATH=os.environ["TEST_SIM"]),
                                                 text=True, capture_output=True, check=True).stdout.splitlines()]
unfit = [name for word, names in UNFIT.items() if word in WATCHED for name in names]
chosen = [t for t in traps if re.search(os.environ.get("TEST_TRAPS", ""), t[0]) and t[0] not in unfit]
permitted, permitted_mapped = listed()
plan(3 * len(chosen) + 2 + sum(name in POISONED for name, *_ in chosen))
names = [t[0] for t in traps]
rows = set(permitted) | set(permitted_mapped)
fact(len(set(names)) == len(names) > 40, "%d traps have names of their own" % len(names))
fact(rows <= set(names) and permitted and permitted_mapped, "every difference that is listed has a trap",
     ["no trap %s" % name for name in sorted(rows - set(names))])
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    jobs = [pool.submit(runs, name, words, permitted.get(name, {})) for name, *words in chosen]
    poisoned = [(name, pool.submit(run, name, words), pool.submit(run, name, words, MEMSHIM_MODE="pool", MEMSHIM_POISON="both"))
                for name, *words in chosen if name in POISONED]
    for (name, *_), job in zip(chosen, jobs):
        look(name, *job.result())
    for name, native, other in poisoned:
        fact(native.result() == other.result(), "%s with MEMSHIM_POISON=both" % name, differences(native.result(), other.result()))
