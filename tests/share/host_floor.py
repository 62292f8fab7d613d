#!/usr/bin/env python3
"""A device whose memory is the host's: the host keeps its floor, whatever kind of memory is asked for and by how many processes at once; what
cudaMemGetInfo says there can be had; and where the device has memory of its own nothing is looked at."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "share"))
from hooklib import BUILD, TMP, fact, plan, preload  # noqa: E402
from scene import KINDS, NO_MEMORY, WAIT, Scene  # noqa: E402

MACHINE = {"MEMSIM_INTEGRATED": "1", "LD_PRELOAD": preload() + ":" + os.path.join(BUILD, "tests", "share", "machine.so"), **WAIT}
# The machine has 4 GiB (machine.c), of which 3 are available; its floor is 1 GiB at least.
BUSY = {**MACHINE, "MACHINE_AVAILABLE": "3072"}


def holds():
    scene = Scene(**BUSY)
    one = scene.guest()
    one.do("a 9 d 1")
    free, total = one.ask()
    fact(total == 4096 and 2000 <= free <= 2048, "free is what is available above the floor", [free, total])
    for kind, name in KINDS.items():
        statuses = [one.do("a 1 %s 2060" % kind), one.do("a 2 %s 1900" % kind), one.do("a 3 %s 300" % kind), one.do("f 2")]
        statuses += [] if statuses[2] == 0 else [one.do("a 3 %s 300" % kind)]
        there = kind != "m" # the simulator takes no memory of the device for what is managed until it is used
        fact(statuses == ([NO_MEMORY, 0, NO_MEMORY, 0, 0] if there else [NO_MEMORY, 0, 0, 0]) and one.do("f 3") == 0, "%s: refused below the floor, and there when it is free again" % name, statuses)
    free = one.ask()[0]
    fact(one.do("a 1 d %d" % (free - 8)) == 0, "what is said to be free can be had: %d MiB" % free)
    said = one.end()
    told = one.told("oom")
    fact(not said and told and {row["cause"] for row in told} == {"host"}, "nothing is said; the report names the host", [said, told])
    fits = [row["would_fit"][0] for row in told if row["kind"] == "device"]
    fact([fit["how"] for fit in fits] == ["ask_for_less", "free"] and 2000 <= fits[0]["bytes"] >> 20 <= 2048 and 100 <= fits[1]["bytes"] >> 20 <= 200,
         "and what would have fitted: less, or with so much freed", fits)
    scene.end()


def values():
    for value, mode, most in (("none", "pool", 3900), ("0", "pool", 3060), ("2G", "pool", 1010), ("50%", "pool", 1010), ("1%", "pool", 2040), ("2G", "track", 1010)):
        scene = Scene(**BUSY, MEMSHIM_HOST_FLOOR=value, MEMSHIM_MODE=mode)
        one = scene.guest()
        statuses = [one.do("a 1 d %d" % (most + 30)) if value != "none" else NO_MEMORY, one.do("a 2 d %d" % most)]
        fact(statuses == [NO_MEMORY, 0], "MEMSHIM_HOST_FLOOR=%s, MEMSHIM_MODE=%s: %d MiB at most" % (value, mode, most), statuses)
        scene.end()


def group():
    """What a device takes is not charged to the group; it counts as if it were."""
    box = os.path.join(TMP, "cgroup", "box")
    os.makedirs(box)
    for name, text in (("memory.max", "1073741824\n"), ("memory.current", "314572800\n"), ("memory.stat", "anon 1\ninactive_file 104857600\nactive_file 7\n")):
        with open(os.path.join(box, name), "w", encoding="ascii") as file:
            file.write(text)
    scene = Scene(**MACHINE, MACHINE_GROUP=os.path.join(TMP, "cgroup"))
    one = scene.guest()
    statuses = [one.do("a 1 d 500"), one.do("a 2 h 300"), one.do("a 3 d 200"), one.do("a 3 h 20")]
    fact(statuses == [0, 0, NO_MEMORY, 0], "a limit of 1 GiB with 200 MiB in use holds the device's memory: 824 MiB", statuses)
    free = one.ask()[0]
    fact(free <= 8, "and cudaMemGetInfo says so: %d MiB" % free)
    with open(os.path.join(box, "memory.max"), "w", encoding="ascii") as file:
        file.write("max\n")
    fact(one.do("a 4 d 1000") == 0, "a limit that was lifted is none")
    scene.end()


def together():
    """Many threads of many processes at the same moment, and a driver that takes its time: none passes the floor."""
    for kind in ("d", "h", "s"):
        scene = Scene(**BUSY, MEMSIM_COST="cuMemAlloc_v2=3000000,cuMemCreate=3000000,cuMemAllocAsync=3000000")
        guests = [scene.guest() for _ in range(4)]
        for guest in guests:
            guest.do("a 9 d 1")
        for guest in guests:
            guest.say("t 12 %s 90" % kind)
        got = sum(guest.hear()[0] for guest in guests)
        fact(18 <= got <= 22, "%s by 4 times 12 threads: 22 of 90 MiB fit, and %d were given" % (KINDS[kind], got))
        scene.end()


def looks():
    readings = os.path.join(TMP, "readings")
    scene = Scene(**MACHINE, MACHINE_READINGS=readings, MEMSHIM_BACKING="vmm")
    one = scene.guest()
    for _ in range(3):
        one.do("w")
    scene.end()
    count = os.path.getsize(readings)
    fact(0 < count < 200, "small requests are not each looked at: %d readings" % count)
    os.unlink(readings)
    scene = Scene(**{**MACHINE, "MEMSIM_INTEGRATED": "0", "MACHINE_READINGS": readings})
    one = scene.guest()
    statuses = [one.do("a 1 d 3900"), one.ask()[1] != 4096, os.path.exists(readings)]
    fact(statuses == [0, False, False], "a device with memory of its own has all of it, and nothing is looked at", statuses)
    scene.end()


plan(23)
holds()
values()
group()
together()
looks()
