#!/usr/bin/env python3
"""Late work on freed blocks never shows in anybody's memory; and it does, at once, when the fence is switched off.

hazards.c runs natively and under memshim. TEST_HAZARDS is the number of operations (allocations and frees) of each run with
the defaults; without it each build makes some thousands, of a seed of its own, so that no two make the same. Other
configurations make no more than 400,000. TEST_SEED is the seed, TEST_RUNS a part of the names of the runs that are made. `TEST_HAZARDS=10000000 TEST_TIMEOUT=7200 scripts/test hazards` is a full run.
"""
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, SEED, TMP, WATCHED, fact, plan, preload, skip  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "hazards", "hazards")
HIP = PROGRAM + "_hip"
RACES = "thread" in WATCHED
COUNT = int(os.environ.get("TEST_HAZARDS", "2000" if RACES else "8000" if WATCHED else "20000"))
SOME = min(COUNT, 400000)
FEW = min(COUNT, 12000)  # where others than memshim do the work
LITTLE = min(SOME // 8, 20000)  # the program needs more memory the longer it goes on, natively too
SCARCE_COUNT = SOME // 4 if WATCHED else max(SOME // 4, 60000)  # a mistake took a hundred thousand to show
WANTED = os.environ.get("TEST_RUNS", "")
THREADS = "8" if RACES else "4"
TOLD = re.compile(r"operations (\d+), blocks checked (\d+), late copies checked (\d+), contexts (\d+), resets (\d+), seconds ([0-9.]+)")


def run(count, devices, words="", sim=None, shim=None, workers=THREADS, program=PROGRAM):
    """(exit status, what was printed, the operations that were done)."""
    env = dict(os.environ, LD_LIBRARY_PATH=os.environ["TEST_SIM"], HAZARDS=words, MEMSIM_DEVICES=str(devices + 1), **(sim or {}))
    if shim is not None:
        env.update(LD_PRELOAD=preload(), MEMSHIM_REPORT=os.path.join(TMP, "report.json"), **dict({"MEMSHIM_MODE": "pool"}, **shim))
    timeout = (max(60, count // 5000) + 60) * (3 if WATCHED else 1)
    try:
        done = subprocess.run([program, str(count), workers, SEED, str(devices)], env=env, text=True, capture_output=True,
                              timeout=timeout, check=False)
    except subprocess.TimeoutExpired as late:
        return 124, ["still running after %d seconds" % timeout, str(late.stdout)], 0
    lines = done.stdout.splitlines() + done.stderr.splitlines()
    told = next((TOLD.match(line) for line in lines if TOLD.match(line)), None)
    return done.returncode, lines, int(told.group(1)) if told else 0


def clean(name, count, *arguments, **more):
    if WANTED not in name:
        skip(name, "TEST_RUNS is %s" % WANTED)
        return
    status, lines, operations = run(count, *arguments, **more)
    fact(status == 0 and operations >= count, "%s: %s" % (name, lines[-2] if len(lines) > 1 else "nothing was printed"),
         ["exit status %d" % status] + lines)


def reports_add_up():
    """What the last report says of reserved memory at the end and at its peak."""
    with open(os.path.join(TMP, "report.json"), encoding="utf-8") as file:
        report = json.load(file)
    wrong = []
    for device in report["devices"]:
        for total, parts in (("reserved_bytes", "reserved_parts"), ("peak_reserved_bytes", "peak_parts")):
            if device.get(total, 0) != sum(device.get(parts, {}).values()):
                wrong.append("device %d: %s is %d, its parts %s" % (device["index"], total, device[total], device[parts]))
        live = device["live_bytes"] - device["kinds"].get("graph", {"live_bytes": 0})["live_bytes"]  # the driver keeps some for graphs
        if live:
            wrong.append("device %d: %d bytes are live" % (device["index"], live))
    return report, wrong


def caught(name, shim, words="stop", program=PROGRAM):
    """The same program must find something wrong: other bytes, or memory that is gone (700)."""
    status, lines, operations = run(2000000, 1, words=words, shim=shim, program=program)
    fact(status == 1 and any("# a " in line or "status 700" in line for line in lines), "%s: caught after %d operations, %s" % (name, operations, lines[-1]),
         ["exit status %d" % status] + lines)
    for line in lines[:2]:
        print("# %s" % line)


def nothing_is_left():
    """Of the latest run, if there was one."""
    if WANTED:
        skip("the report", "TEST_RUNS is %s" % WANTED)
        return
    found, problems = reports_add_up()
    fact(not problems, "the report's figures add up, and nothing is live", problems)


MAPPED = {"MEMSHIM_BACKING": "vmm"}
plan(43)
clean("natively", FEW, 2, "ends")
clean("recorded only", FEW, 2, "ends", shim={"MEMSHIM_MODE": "track"})
clean("one device", COUNT, 1, shim={})
nothing_is_left()
clean("two devices, contexts and resets", SOME, 2, "cross ends", shim={}, sim={"MEMSIM_SEED": SEED})
clean("nothing is kept", SOME // 2, 2, "cross ends", shim={"MEMSHIM_KEEP": "0", "MEMSHIM_PACK": "all"})
clean("little memory", LITTLE, 1, shim={"MEMSHIM_SINGLE_MIN": "4M", "MEMSHIM_POISON": "both"}, sim={"MEMSIM_MEMORY": "1G"})
clean("frees that wait", FEW, 2, "ends", shim={"MEMSHIM_FREE": "strict"})
clean("mapped by handle", SOME // 2, 1, shim=MAPPED)
nothing_is_left()
clean("mapped by handle, two devices, contexts and resets", SOME // 2, 2, "cross ends", shim=dict(MAPPED, MEMSHIM_KEEP="0"), sim={"MEMSIM_SEED": SEED})
clean("mapped by handle, little memory", LITTLE, 1, shim=MAPPED, sim={"MEMSIM_MEMORY": "1G"})
# Natively, too: threads that are watched free in streams for longer than a device's memory lasts.
clean("streams, pools and graphs, natively", FEW, 2, "streams scarce" if RACES else "streams")
clean("streams, pools and graphs", COUNT, 1, "streams", shim={})
nothing_is_left()
clean("streams, pools and graphs, of two devices, contexts and resets", SOME // 2, 2, "streams cross ends", shim={"MEMSHIM_KEEP": "0"}, sim={"MEMSIM_SEED": SEED})
clean("streams, pools and graphs, sixteen threads, of two devices and contexts", SOME // 4, 2, "streams ends", shim={}, workers="16")
clean("streams, pools and graphs, poisoned", SOME // 16, 2, "streams", shim={"MEMSHIM_POISON": "both"})
clean("streams, pools and graphs, with little memory", LITTLE, 1, "streams", shim={"MEMSHIM_KEEP": "0"},
      sim={"MEMSIM_MEMORY": "3G" if RACES else "1536M"})  # eight threads need more natively, too
SCARCE = {"MEMSHIM_OOM_WAIT_MS": "5"}
clean("streams, pools and graphs, where memory is scarce", SOME // 4, 1, "streams scarce", shim=SCARCE, sim={"MEMSIM_MEMORY": "600M"})
nothing_is_left()
clean("streams of one pool, where memory is scarce", SCARCE_COUNT, 1, "streams scarce pure", shim=SCARCE, sim={"MEMSIM_MEMORY": "600M"})
clean("streams, pools and graphs, where memory is scarce, mapped by handle", SOME // 8, 2, "streams scarce ends", shim=dict(SCARCE, **MAPPED),
      sim={"MEMSIM_MEMORY": "600M", "MEMSIM_SEED": SEED})
clean("streams, pools and graphs, mapped by handle", SOME // 4, 1, "streams", shim=MAPPED)
clean("streams of one pool", SOME // 2, 1, "streams pure", shim={})
nothing_is_left()
# Under HIP a free that has no order waits, so captures and such frees take turns.
clean("HIP, natively", FEW, 1, program=HIP)
clean("HIP, one device", SOME, 1, shim={}, program=HIP)
nothing_is_left()
clean("HIP, two devices and resets", SOME // 2, 2, "cross ends", shim={}, sim={"MEMSIM_SEED": SEED}, program=HIP)
clean("HIP, streams, pools and graphs, natively", FEW, 2, "streams scarce" if RACES else "streams", program=HIP)
clean("HIP, streams, pools and graphs", SOME, 1, "streams", shim={}, program=HIP)
nothing_is_left()
clean("HIP, streams, pools and graphs, of two devices and resets", SOME // 4, 2, "streams cross ends", shim={"MEMSHIM_KEEP": "0"}, sim={"MEMSIM_SEED": SEED}, program=HIP)
clean("HIP, streams of one pool", SOME // 2, 1, "streams pure", shim={}, program=HIP)
clean("HIP, streams of one pool, keeping nothing, two devices", SOME // 4, 2, "streams pure cross", shim={"MEMSHIM_KEEP": "0"}, program=HIP)
for name, shim, words, program in (("HIP without the fence", {}, "stop", HIP), ("HIP's streams of one pool without waiting for other streams", {}, "streams pure stop", HIP),
                                    ("one stream after another without the fence", {}, "solo stop", PROGRAM), ("without the fence", {}, "stop", PROGRAM),
                                    ("mapped by handle without the fence", MAPPED, "stop", PROGRAM),
                                    ("streams of one pool without waiting for other streams", {}, "streams pure stop", PROGRAM),
                                    ("streams, pools and graphs without waiting for other streams", {}, "streams stop", PROGRAM)):
    if WATCHED or WANTED not in name:
        skip(name, "what this makes is not a sanitizer's to find" if WATCHED else "TEST_RUNS is %s" % WANTED)
    else:
        caught(name, dict(shim, MEMSHIM_FREE="immediate"), words, program)
