#!/usr/bin/env python3
"""Processes on one simulated device: shares hold, for memory of each kind; what is free in one goes to another that is short of it; who does not
answer delays nobody twice; and whatever stands in the place of the page, a program runs as without it."""
import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "share"))
from hooklib import MEMSHIM, TMP, fact, native_environment, plan  # noqa: E402
from scene import KINDS, NO_MEMORY, WAIT, Scene  # noqa: E402


def is_asked():
    """Natively what one has freed another may have; so it is under memshim, where it would be kept."""
    for words, yields, status in (("at its next call", "call", 0), ("at once, by a thread", "thread", 0), ("never", "off", NO_MEMORY)):
        scene = Scene(MEMSHIM_YIELD=yields)
        one, other = scene.guest(), scene.guest()
        one.do("a 9 d 1")
        one.do("w") # it has memory for what comes and goes there, and will not give any back to have some
        one.do("a 1 d 3000")
        one.do("f 1")
        other.do("a 1 d 10")
        other.say("a 2 d 3000")
        if yields != "thread":
            one.do("w")
        got = other.hear()[0]
        scene.end()
        asked, gave = other.told("neighbours"), one.told("neighbours")
        fact(got == status, "memory that is free in one process goes to another %s: status %d" % (words, got), [asked, gave])
        fact(asked is None and gave is None if status else
             asked["asked"] == 1 and asked["heard"] == 1 and asked["brought_bytes"] >= 2000 << 20 and gave["asked_here"] == 1 and
             gave["given_bytes"] == asked["brought_bytes"], "both reports say so", [asked, gave])


def answers_by_many():
    """While one thread is giving back, which takes time, others find the same ask: none of them may answer before that is done."""
    slowly = {"MEMSIM_COST": "cuMemFree_v2=2000000,cuMemFreeAsync=2000000"}
    for yields in ("call", "thread"):
        scene = Scene(MEMSHIM_YIELD=yields)
        one, other = scene.guest(**slowly), scene.guest()
        one.do("a 9 d 1")
        for i in range(6):
            one.do("a %d d 500" % i)
        for i in range(6):
            one.do("f %d" % i)
        other.do("a 1 d 10")
        other.say("a 2 d 3000")
        one.do("p 6")
        got = other.hear()[0]
        scene.end()
        fact(got == 0 and other.told("neighbours")["brought_bytes"] >= 2900 << 20, "six threads find one ask, MEMSHIM_YIELD=%s: it is answered when all is back" % yields,
             [got, other.told("neighbours")])


def first_by_many():
    """Threads that take memory before the process has its place on the page: all of it is counted there."""
    for kind in ("h", "d"):
        for _ in range(3):
            scene = Scene(**WAIT)
            one, other = scene.guest(MEMSHIM_SHARE="1G"), scene.guest(MEMSHIM_SHARE="1G")
            one.do("a 1 d 10")
            got = other.do("t 16 %s 50" % kind)
            told = {row["pid"]: row["used_bytes"] >> 20 for row in json.loads(scene.top("--json"))["shares"][0]["processes"]}
            fact(got == 16 and told[other.process.pid] >= 800, "%s by 16 threads at first: the page has all of it" % KINDS[kind], [got, told])
            scene.end()


def does_not_answer():
    """Idle, or stopped: it delays others once."""
    for words, stops in (("makes no call", False), ("was stopped", True)):
        scene = Scene(**WAIT)
        one, other = scene.guest(), scene.guest()
        one.do("a 1 d 3000")
        one.do("f 1")
        other.do("a 1 d 10")
        if stops:
            one.process.send_signal(signal.SIGSTOP)
        statuses = [other.do("a 2 d 3000") for _ in range(3)]
        one.process.send_signal(signal.SIGCONT)
        fact(statuses == [NO_MEMORY] * 3, "one that %s gives nothing, and the request is refused" % words, statuses)
        one.do("w")
        fact(other.do("a 2 d 3000") == 0, "when it goes on it gives back what was asked for")
        scene.end()
        fact(other.told("neighbours")["heard"] == 0, "nobody was waited for in vain and heard", [other.told("neighbours")])


def dead_are_not_asked():
    scene = Scene()
    one, other = scene.guest(), scene.guest()
    one.do("a 1 d 3000")
    other.do("a 1 d 10")
    one.kill()
    fact(other.do("a 2 d 3000") == 0 and other.do("a 3 d 2000") == NO_MEMORY, "what a killed process had is there at once")
    scene.end()
    fact(other.told("neighbours") is None, "and nobody is asked where nobody is", [other.told("neighbours")])


def live_is_kept():
    scene = Scene(**WAIT)
    one, other = scene.guest(), scene.guest()
    one.do("a 1 d 3000")
    other.do("a 1 d 10")
    other.say("a 2 d 3000")
    one.do("w")
    fact(other.hear()[0] == NO_MEMORY, "what is in use is nobody else's")
    fact(one.do("f 1") == 0, "and is there still")
    scene.end()


def caches_together():
    """Four processes take turns, each with more than a fourth of the device; natively all fit."""
    for native in (True, False):
        scene = Scene()
        guests = [scene.guest(native) for _ in range(4)]
        statuses = []
        for turn in range(8):
            guest, rest = guests[turn % 4], [other for other in guests if other is not guests[turn % 4]]
            guest.say("a 1 d 1500")
            for other in rest:
                other.say("w")
            statuses.append(guest.hear()[0])
            statuses += [other.hear()[0] for other in rest]
            statuses.append(guest.do("f 1"))
        scene.end()
        fact(not any(statuses), "four whose caches together are more than the device: none is refused %s" % ("natively" if native else "under memshim"), statuses)


def on_screen(scene, words):
    """True if a screen of memshim top has these words."""
    child, fd = pty.fork()
    if not child:
        os.execve(MEMSHIM, [MEMSHIM, "top"], native_environment(MEMSHIM_DIR=os.path.join(scene.where, "pages"), TERM="xterm", COLUMNS="160", LINES="30"))
    said = b""
    with contextlib.suppress(OSError):
        while words.encode() not in said and len(said) < 1 << 20:
            said += os.read(fd, 65536)
        os.write(fd, b"q")
        while os.read(fd, 65536):
            pass
    os.waitpid(child, 0)
    os.close(fd)
    return words.encode() in said


def seen():
    """What a device has is told as one sum, with who is beyond what is kept for it, by top and by metrics."""
    scene = Scene(**WAIT)
    one, other, alone = scene.guest(MEMSHIM_SHARE="1G"), scene.guest(), scene.guest(native=True)
    statuses = [one.do("a 9 d 1"), other.do("a 9 d 1"), alone.do("a 1 d 350"), one.do("a 1 d 1500"), other.do("a 1 d 300"), other.do("a 2 d 100"), other.do("f 2")]
    one.ask() # the driver is asked, so others' part is known
    other.do("w")
    other.do("a 3 d 400")
    device, = json.loads(scene.top("--json"))["shares"]
    parts = {key: device[key + "_bytes"] for key in ("free", "allocated", "cached", "contexts", "neighbours", "unaccounted")}
    fact(not any(statuses) and sum(parts.values()) == device["total_bytes"] == 4 << 30 and parts["allocated"] >= 1800 << 20 and parts["cached"] >= 0 and
         parts["unaccounted"] >= 350 << 20 and parts["neighbours"] == 0 and device["yours_bytes"] == parts["allocated"] + parts["cached"] + parts["contexts"],
         "top: the parts of a device add up to it", [statuses, device])
    beyond = {row["pid"]: row["beyond_bytes"] for row in device["processes"]}
    line, = [line for line in scene.top("--lines").splitlines() if " GPU-" in line]
    fact(476 << 20 <= beyond[one.process.pid] < 1 << 30 and beyond[other.process.pid] == 0 and
         re.search(r"GPU-6d656d73: 4.00 GiB = \S+ \S+ free \+ \S+ \S+ yours \(\S+ \S+ allocated \+ \S+ \S+ cached \+ \S+ \S+ contexts\) \+ 0 B neighbours \+ "
                   r"\S+ \S+ unaccounted; guest %d has 1.00 GiB kept for it, and \S+ \S+ beyond that$" % one.process.pid, line), "and a line says so, and who is beyond", [beyond, line])
    fact(on_screen(scene, "GPU-6d656d73: 4.00 GiB = "), "so does the screen")
    text = subprocess.run([MEMSHIM, "metrics", "--textfile", "-"], env=native_environment(MEMSHIM_DIR=os.path.join(scene.where, "pages")), text=True, capture_output=True, check=True).stdout
    told = {labels: int(value) for labels, value in re.findall(r"^memshim_gpu_(\w+\{.*\}) (\d+)$", text, re.M)}
    sums = [sum(value for labels, value in told.items() if labels.startswith(name)) for name in ("memory_bytes", "part_bytes", "process_bytes", "guarantee_bytes", "beyond_bytes")]
    fact(sums[0] == sums[1] == 4 << 30 and sums[2] == device["yours_bytes"] and sums[3] == 1 << 30 and sums[4] == beyond[one.process.pid], "and metrics", [sums, told])
    scene.end()
    peak, = [row for row in one.told("balances") if row["moment"] == "peak"]
    shown = subprocess.run([MEMSHIM, "summary", one.report], env=native_environment(), text=True, capture_output=True, check=True).stdout
    fact(0 < peak["neighbours_bytes"] <= peak["untracked"] and re.search(r"^Most  cuda 0: 4.00 GiB = .* yours \(.*\) \+ [1-9]\S+ \S+ neighbours \+ [1-9]", shown, re.M),
         "a report says what neighbours had when most was in use, and summary begins with it", [peak, shown])


def shares_hold():
    scene = Scene(**WAIT)
    one, other = scene.guest(MEMSHIM_SHARE="1G/3G"), scene.guest(MEMSHIM_SHARE="2G")
    one.do("a 9 d 1")
    other.do("a 9 d 1")
    fact(one.ask()[1] == 3072 and other.ask()[1] == 4096, "each sees its share as the device's memory", [one.ask(), other.ask()])
    for kind, name in KINDS.items():
        statuses = [one.do("a 1 %s 2500" % kind), one.do("a 2 %s 1900" % kind), one.do("a 3 %s 300" % kind)]
        fact(statuses == [NO_MEMORY, 0, NO_MEMORY], "%s: what is kept for the other is not given away" % name, statuses)
        statuses = [other.do("a 1 %s 2000" % kind), other.do("a 2 %s 2000" % kind)]
        fact(statuses == [0, NO_MEMORY], "%s: it is there for the other, and no more" % name, statuses)
        fact([one.do("f 2"), other.do("f 1")] == [0, 0] and one.do("a 2 d 2000") == 0 and one.do("f 2") == 0, "%s: freed, it is there again" % name)
    told = json.loads(scene.top("--json"))["shares"]
    rows = {row["pid"]: row for row in told[0]["processes"]}
    fact(len(told) == 1 and rows[one.process.pid]["guarantee_bytes"] == 1 << 30 and rows[other.process.pid]["guarantee_bytes"] == 2 << 30 and
         told[0]["total_bytes"] == told[0]["free_bytes"] + told[0]["others_bytes"] + sum(row["used_bytes"] for row in rows.values()),
         "memshim top has both, and the sum", told)
    line = [line for line in scene.top("--lines").splitlines() if " = " in line]
    fact(len(line) == 1 and " GPU-6d656d73: 4.00 GiB = " in line[0] and line[0].count("; guest ") == 2 and "has 2.00 GiB kept for it" in line[0], "and a line of them", line)
    free = other.ask()[0]
    fact(other.do("a 1 d %d" % (free - 40)) == 0 and other.do("a 2 d 100") == NO_MEMORY, "what is said to be free can be had: %d MiB" % free)
    other.kill()
    fact(one.do("a 1 d 2900") == 0, "a process that was killed returns its share at once")
    said = one.end()
    fact(not said and {row["cause"] for row in one.told("oom")} == {"limit"}, "nothing is said; the report tells of the limit", [said])
    scene.end()


def too_many():
    scene = Scene(**WAIT)
    one, other = scene.guest(MEMSHIM_SHARE="3G"), scene.guest(MEMSHIM_SHARE="2G")
    one.do("a 9 d 1")
    fact(other.do("a 1 d 100") == 0, "one guarantee too many: the program runs")
    fact(other.do("a 2 d 1500") == NO_MEMORY and one.do("a 1 d 3000") == 0, "with nothing that is kept for it")
    said = other.end()
    fact(said.count("\n") == 1 and "nothing of cuda 0 is kept for this process: the guarantees of all" in said, "and says so in one line", [said])
    scene.end()


def without_a_share():
    """A process that asked for no share takes what it can, and is counted by those that did."""
    scene = Scene(**WAIT)
    one, other, native = scene.guest(), scene.guest(MEMSHIM_SHARE="1G/4G"), scene.guest(native=True)
    statuses = [other.do("a 9 d 1"), one.do("a 1 d 2000"), native.do("a 1 d 1000")]
    fact(statuses == [0, 0, 0], "three processes, one of which has a share", statuses)
    other.ask() # the driver is asked, so others' part is known
    statuses = [other.do("a 1 d 900"), other.do("a 2 d 300")]
    fact(statuses == [0, NO_MEMORY], "what others have taken before is not there for it", statuses)
    fact(native.do("f 1") == 0 and other.do("a 2 d 300") == 0, "until they give it back")
    scene.end()


def group():
    where = os.path.join(TMP, "group")
    os.mkdir(where, 0o770)
    scene = Scene(MEMSHIM_SHARE_GROUP=where, **WAIT)
    one, other = scene.guest(MEMSHIM_SHARE="2G"), scene.guest(MEMSHIM_SHARE="1G")
    fact(one.do("a 1 d 10") == 0 and other.do("a 1 d 10") == 0 and other.do("a 2 d 2500") == NO_MEMORY, "a group's page lies in its directory")
    fact(os.listdir(where) == ["memshim-share-6d656d73696d40008000000000000001"], "under the device's name", os.listdir(where))
    scene.end()
    scene = Scene(MEMSHIM_SHARE_GROUP=os.path.join(TMP, "none"), MEMSHIM_SHARE="1G")
    one = scene.guest()
    fact(one.do("a 1 d 3000") == 0, "without the directory the program runs")
    said = one.end()
    fact(said.count("\n") == 1 and "cuda 0 is not shared with other processes: " in said and "No such file" in said, "and says why in one line", [said])


def hostile():
    """Without a share nobody asked for the page, and nothing is said; with one there is a line."""
    for words, make in (("a pipe", os.mkfifo), ("a directory", os.mkdir), ("a link", lambda path: os.symlink("/dev/zero", path)),
                        ("random bytes", lambda path: open(path, "wb").write(os.urandom(24576)))):
        for share in ({}, {"MEMSHIM_SHARE": "1G"}):
            scene = Scene(**share)
            make(scene.page())
            one = scene.guest()
            status, said = one.do("a 1 d 3000"), one.end()
            fact(status == 0 and said.count("\n") == len(share) and ("is not shared" in said) == bool(share),
                 "%s in the place of the page%s: the program runs" % (words, ", with a share" if share else ""), [status, said])


def no_directory():
    """A directory for ledgers that takes no file."""
    for share in ({}, {"MEMSHIM_SHARE": "1G"}):
        scene = Scene(MEMSHIM_DIR="/proc/1/task", **share)
        one = scene.guest()
        status, said = one.do("a 1 d 3000"), one.end()
        lines = [line for line in said.splitlines() if " is not shared " in line]
        fact(status == 0 and len(lines) == len(share), "no place for a page%s: the program runs" % (", with a share" if share else ""), [status, said])


def children():
    """A child of fork that lives on holds nothing of its parent's."""
    scene = Scene(**WAIT)
    one, other = scene.guest(MEMSHIM_SHARE="3G"), scene.guest(MEMSHIM_SHARE="1G")
    other.do("a 1 d 10")
    one.do("a 1 d 2000")
    one.do("k")
    child = open("/proc/%d/task/%d/children" % (one.process.pid, one.process.pid), encoding="ascii").read().split()
    one.kill()
    status = other.do("a 2 d 3000")
    fact(len(child) == 1 and status == 0, "a child that lives on does not keep its parent's share", [child, status])
    for pid in child:
        os.kill(int(pid), signal.SIGKILL)
    scene.end()


def leaves_little():
    """A page stays, for who comes next; memshim clean removes it when nobody is on it."""
    scene = Scene()
    one, other = scene.guest(), scene.guest(MEMSHIM_MODE="track", MEMSHIM_SHARE="1G")
    one.do("a 1 d 10")
    other.do("a 1 d 10")
    one.end()
    there = []
    for _ in range(2):
        done = subprocess.run([MEMSHIM, "clean"], env=native_environment(MEMSHIM_DIR=os.path.dirname(scene.page())), text=True, capture_output=True, check=True)
        there.append((os.path.exists(scene.page()), "1 page of devices that nobody shares went" in done.stderr))
        scene.end()
    fact(there == [(True, False), (False, True)], "memshim clean removes a page, and not while anybody is on it", there)
    fact(os.listdir(os.path.dirname(scene.page())) == [], "and nothing else is left", os.listdir(os.path.dirname(scene.page())))


def the_page():
    """Each variable that docs/user/sharing.md sets has a value that is taken."""
    with open(os.path.join(os.environ["top_srcdir"], "docs", "user", "sharing.md"), encoding="utf-8") as page:
        settings = sorted(set(re.findall(r"(MEMSHIM_[A-Z_]+)=([\w/%]+)", page.read())))
    wrong = [(name, value) for name, value in settings
             if subprocess.run([MEMSHIM, "env"], env=native_environment(**{name: value}), text=True, capture_output=True, check=False).stderr]
    fact(len(settings) > 5 and not wrong, "the page's %d settings are taken" % len(settings), [settings, wrong])


def values():
    for value in ("2G/1G", "1G/", "/1G", "x", "120%", "1G/2G/3G"):
        scene = Scene(MEMSHIM_SHARE=value)
        one = scene.guest()
        status, said = one.do("a 1 d 10"), one.end()
        fact(status == 0 and said.count("\n") == 1 and "MEMSHIM_SHARE" in said and "LEAST/MOST" in said, "MEMSHIM_SHARE=%s is told what is allowed" % value, [said])


plan(82)
is_asked()
answers_by_many()
first_by_many()
does_not_answer()
dead_are_not_asked()
live_is_kept()
caches_together()
shares_hold()
seen()
too_many()
without_a_share()
group()
hostile()
no_directory()
children()
leaves_little()
the_page()
values()
