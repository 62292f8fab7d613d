#!/usr/bin/env python3
"""Ledgers that killed processes left: a process that begins one removes those that are old, and the oldest of too many,
and nothing that somebody may need still; memshim clean does the same and says so. Prints TAP."""
import os
import shutil
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ["top_srcdir"], "tests", name) for name in ("ledger", "hooks")]
import hooklib  # noqa: E402
from hooklib import BUILD, MEMSHIM, TMP, fact, plan, shim_environment, skip  # noqa: E402
from ledgerfile import Ledger  # noqa: E402
from needs import lacking  # noqa: E402

PLACE = TMP + "/place"
DAYS = 2 * 86400
# Of the process's row: its number; the namespace of that; the start.
PID, TICKS, SPACE, START = 0, 8, 16, 24


def start(place, *arguments, **more):
    """A program that has a ledger there."""
    env = shim_environment("none", MEMSHIM_DIR=place, **more)
    child = subprocess.Popen([BUILD + "/tests/ledger/many", "10", *arguments], env=env, stdout=subprocess.PIPE)
    child.stdout.readline()
    return child


def ledgers_in(place):
    """Their names; a page that processes share (docs/user/sharing.md) is none."""
    return [name for name in os.listdir(place) if not name.startswith("memshim-share-")]


def killed(place, **more):
    """The ledger of one that was killed."""
    os.makedirs(place, exist_ok=True)
    before = set(ledgers_in(place))
    with start(place, "100000", **more) as child:
        child.kill()
    name, = set(ledgers_in(place)) - before
    return os.path.join(place, name)


def ends(place, **more):
    """A program that has a ledger there, and ends as programs do."""
    with start(place, **more) as child:
        child.wait()
    return sorted(ledgers_in(place))


def change(source, name, age=0, owner=None, **fields):
    """The same under another name, of a process that began `age` seconds earlier, and with other fields."""
    made, path = Ledger(source), os.path.join(os.path.dirname(source), name)
    begun, = struct.unpack("<Q", made.read("PROCESS", START, 8))
    for at, value in {START: begun - age * 10 ** 9, **{int(k[1:]): v for k, v in fields.items()}}.items():
        made.write("PROCESS", at, struct.pack("<i" if at == PID else "<Q", value))
    made.save(path, owner)
    written = os.stat(source).st_mtime - age
    os.utime(path, (written, written))
    return name


def clean(*words, **more):
    """memshim clean: what it printed, and what it said."""
    env = dict(os.environ, MEMSHIM_DIR=PLACE, **more)
    done = subprocess.run([MEMSHIM, *words], env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def ages():
    """By age, owner and life."""
    young = killed(PLACE)
    old = change(young, "memshim-1-1.ledger", DAYS)
    foreign = [change(young, "memshim-1-2.ledger", DAYS, **{"f%d" % SPACE: 4711})]
    other = Ledger(young)
    struct.pack_into("<I", other.bytes, 8, 999)
    other.save(PLACE + "/memshim-1-3.ledger")
    os.utime(PLACE + "/memshim-1-3.ledger", (1, 1))
    foreign.append("memshim-1-3.ledger")
    with open("/proc/self/stat", encoding="ascii") as file:
        ticks = int(file.read().rsplit(")", 1)[1].split()[19])
    foreign.append(change(young, "memshim-1-4.ledger", DAYS, **{"f%d" % PID: os.getpid(), "f%d" % TICKS: ticks}))
    shutil.copy(young, PLACE + "/memshim-x.json")
    os.utime(PLACE + "/memshim-x.json", (1, 1))
    foreign.append("memshim-x.json")
    if os.geteuid() == 0:
        foreign.append(change(young, "memshim-1-5.ledger", DAYS, owner=65534))
    # Written to as it began, and used until it was killed a moment ago: the file's own time says little.
    used = change(young, "memshim-1-6.ledger", DAYS)
    made, latest = Ledger(PLACE + "/" + used), 1024 - 47 * 8 - 8
    made.write("PROCESS", latest, struct.pack("<Q", DAYS * 10 ** 9))
    made.save(PLACE + "/" + used)
    os.utime(PLACE + "/" + used, (1, 1))
    with start(PLACE, "100000", MEMSHIM_DIR_KEEP="1000000000") as living:
        alive, = [name for name in ledgers_in(PLACE) if name.startswith("memshim-%d-" % living.pid)]
        status, out, said = clean("doctor")
        fact(status == 0 and "3 ledgers" in out and "memshim clean" in out, "doctor names them", [out, said])
        before = sorted(ledgers_in(PLACE))
        status, out, said = clean("clean", "--dry-run")
        fact(status == 0 and out.count("would go") == 1 and out.count("stays") == 2 and sorted(ledgers_in(PLACE)) == before,
             "clean --dry-run tells and removes nothing", [status, out, said])
        left = ends(PLACE)
        fact(left == sorted(set(before) - {old}), "a process that begins removes what is old, of its user's, and dead",
             [left, before])
        status, out, said = clean("clean")
        fact(status == 0 and out.count("stays") == 2 and said.startswith("memshim: 0 ledgers"), "what is young stays", [out, said])
        status, out, said = clean("clean", MEMSHIM_DIR_KEEP="0")
        fact(status == 0 and out.count("removed") == 2 and said.startswith("memshim: 2 ledgers") and
             sorted(ledgers_in(PLACE)) == sorted(foreign + [alive]), "unless it is asked for; nothing else does",
             [out, said, ledgers_in(PLACE)])
        living.kill()


def runs():
    """What a memshim run waits for stays as long as it has its list."""
    place = TMP + "/runs"
    ledger = killed(place, MEMSHIM_RUN="4711")
    listed = "/dev/shm/memshim-run-%016x.reports" % 4711
    with open(listed, "w", encoding="ascii"):
        pass
    left = ends(place, MEMSHIM_DIR_KEEP="0")
    os.unlink(listed)
    fact(left == [os.path.basename(ledger)], "what a memshim run will read stays", [left])
    fact(ends(place, MEMSHIM_DIR_KEEP="0") == [], "until that has ended")


def crowded():
    """No more than a tenth of the file system."""
    place = TMP + "/crowded"
    os.makedirs(place)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600m", "none", place], capture_output=True, check=False).returncode != 0:
        skip("no more than a tenth of the file system", "only root can mount one")
        return
    try:
        source = killed(place)
        size = os.stat(source).st_blocks * 512
        most = 600 * 2 ** 20 // 10 // size
        for i in range(most + 20):
            change(source, "memshim-2-%d.ledger" % i, 1000 + i)
        left = ends(place)
        wanted = [os.path.basename(source)] + ["memshim-2-%d.ledger" % i for i in range(most - 1)]
        fact(sorted(left) == sorted(wanted), "no more than a tenth of the file system, the oldest go first",
             [most, len(left), set(left) ^ set(wanted)])
    finally:
        subprocess.run(["umount", place], check=False)


def reads(place):
    """The kernel's reads of a process that begins a ledger there."""
    with start(place, "100000") as child:
        with open("/proc/%d/io" % child.pid, encoding="ascii") as file:
            count = int(file.read().split("syscr:")[1].split()[0])
        child.kill()
    return count


def many_young():
    """A file that was written to a moment ago need not be opened to know that it stays."""
    place = TMP + "/young"
    source, beside = killed(place), 200
    few = reads(place)
    for i in range(beside):
        change(source, "memshim-1-%d.ledger" % i)
    many = reads(place)
    fact(many - few < beside and len(ledgers_in(place)) == beside + 3, "a process that begins reads none that are young", [few, many, len(ledgers_in(place))])


def main():
    """Its facts."""
    if lacking():
        return
    ages()
    runs()
    crowded()
    many_young()
    plan(hooklib.number)


main()
