#!/usr/bin/env python3
"""Processes on the simulated driver's shared device take and free memory of every kind at random, and are killed at any moment: together they never take more than
there is, next to nobody is refused what is kept for it, and what a killed one had is there for others. TEST_OPERATIONS is how many there are altogether, TEST_SEED how they
begin."""
import mmap
import os
import random
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "share"))
from hooklib import TMP, WATCHED, fact, plan  # noqa: E402
from scene import KINDS, Scene  # noqa: E402

OPERATIONS = int(os.environ.get("TEST_OPERATIONS", "2000" if WATCHED else "20000"))
SEED = int(os.environ.get("TEST_SEED", os.getpid()))
# Processes, and how many are killed.
CROWDS = ((2, 0), (3, 0), (16, 0), (4, 30), (16, 60))
ORDER = "dsmhr" # as in guest.c


class Tally:
    """What they count together."""
    def __init__(self, name, wanted):
        self.path = os.path.join(TMP, name)
        with open(self.path, "wb") as file:
            file.write(struct.pack("<18Q", wanted, *[0] * 17))
        with open(self.path, "r+b") as file:
            self.words = mmap.mmap(file.fileno(), 0)

    def read(self):
        words = struct.unpack("<18Q", self.words)
        return {"done": words[1], "wrong": words[2], **{kind: words[3 + 3 * i:6 + 3 * i] for i, kind in enumerate(ORDER)}}


def crowd(count, kills):
    chance = random.Random(SEED * 100 + count + kills)
    tally = Tally("tally%d-%d" % (count, kills), OPERATIONS // len(CROWDS))
    device = min(300 * count, 4096)
    scene = Scene(MEMSHIM_OOM_WAIT_MS="50", MEMSIM_MEMORY="%dM" % device)
    kept = device // count # for each second one: half of it in all

    def start(number, is_first):
        guest = scene.guest(MEMSHIM_SHARE="%dM/%dM" % (2 if number % 2 else kept, device))
        guest.number = number
        if is_first:
            guest.do("a 0 d 1")
            guest.do("f 0")
        return guest

    def go(guest, is_first):
        guest.say("r %d %d %s" % (chance.randrange(1 << 30), kept if is_first and guest.number % 2 == 0 else 0, tally.path))

    guests = [start(number, True) for number in range(count)]
    for guest in guests:
        go(guest, True)
    for _ in range(kills):
        time.sleep(chance.random() / 50)
        at = chance.randrange(count)
        guests[at].kill()
        guests[at] = start(guests[at].number, False)
        go(guests[at], False)
    ended = [guest.hear() == [0] for guest in guests]
    told = tally.read()
    words = "%d processes, %d kills" % (count, kills)
    fact(all(ended) and told["wrong"] == 0 and told["done"] >= OPERATIONS // len(CROWDS), "%s: all come to their end" % words, [SEED, ended, told])
    # A request in a thousand hears no all the same, while others' memory is on its way back: what nobody accounts for is looked at in between.
    within, refused = (sum(told[kind][i] for kind in ORDER) for i in (2, 1))
    fact(within <= max(4, refused // 50), "%s: next to nothing is refused that is kept for who asks" % words, [SEED, told])
    fact(all(told[kind][0] for kind in ORDER) and sum(told[kind][1] for kind in ORDER), "%s: memory of %s, for some and not for all" % (words, ", ".join(KINDS.values())), [SEED, told])
    said = "".join(guest.end() for guest in guests)
    causes = [row["cause"] for guest in guests if os.path.exists(guest.report) for row in guest.told("oom") or []]
    # A pool of the driver's takes a unit where it was asked for less, which is counted once it has it.
    by_driver = [cause for cause in causes if cause != "limit"]
    fact(not said and (kills or len(by_driver) <= max(2, len(causes) // 10)), "%s: who is refused is told before the driver is asked" % words, [SEED, said, len(causes), by_driver])
    last = scene.guest(MEMSHIM_SHARE="%dM" % device)
    fact(last.do("a 1 d %d" % (device - 10)) == 0 and not last.end(), "%s: all is there for the next" % words)
    scene.end()


plan(5 * len(CROWDS))
for crowded in CROWDS:
    crowd(*crowded)
