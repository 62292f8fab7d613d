#!/usr/bin/env python3
"""Ledgers that were damaged, or made to look like some: what is read of them is bounded, whatever they say, and the report
is valid. Prints TAP."""
import json
import os
import resource
import struct
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ["top_srcdir"], "tests", name) for name in ("ledger", "hooks")]
import hooklib  # noqa: E402
from hooklib import BUILD, MEMSHIM, TMP, fact, plan, shim_environment  # noqa: E402
from ledgerfile import HEAD, TABLE_BYTES, Ledger  # noqa: E402
from needs import lacking  # noqa: E402

# Bytes of a row of out-of-memory, and where it says which rows tell what sites held.
OOM_ROW, OOM_SITES = 320, 140


def killed():
    """A ledger of a program that was killed."""
    place = TMP + "/place"
    os.makedirs(place)
    env = shim_environment("none", MEMSHIM_DIR=place, MEMSHIM_MODE="track", MEMSHIM_LOG="none",
                           MEMSIM_FAIL="cuMemAlloc_v2@50=2,cuMemAlloc_v2@60=2")
    with subprocess.Popen([BUILD + "/tests/ledger/many", "100", "100000", "all"], env=env, stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        child.kill()
    name, = (name for name in os.listdir(place) if name.endswith(".ledger"))
    return place + "/" + name


def recovered(path):
    """What recover makes of a copy, within bounds of memory and processor that any sound one needs a tenth of."""
    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 29, 1 << 29))
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
    done = subprocess.run([MEMSHIM, "recover", "-o", "-", path], capture_output=True, text=True, check=False, preexec_fn=limit)
    if done.returncode != 0:
        return None, [done.returncode, done.stderr]
    with open(TMP + "/report.json", "w", encoding="utf-8") as file:
        file.write(done.stdout)
    checked = subprocess.run([os.environ["TEST_VALID"], TMP + "/report.json"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout), [] if checked.returncode == 0 else [checked.stdout, checked.stderr]


def dropped(source):
    """Counts of what found no room are no less than nothing, in sum as well."""
    made = Ledger(source)
    for table in range(len(made.names)):
        struct.pack_into("<Q", made.bytes, HEAD.size + table * TABLE_BYTES + 48, (1 << 63) - 1)
    made.save(TMP + "/dropped.ledger")
    report, wrong = recovered(TMP + "/dropped.ledger")
    fact(not wrong and report["overhead"]["dropped_events"] > 0, "what was dropped is counted up, and never below nothing", wrong)


def takers(source):
    """No context has more now than it ever took."""
    made = Ledger(source)
    rows = max(made.rows("FOOTPRINTS"), 1)
    for row in range(rows):
        made.write("FOOTPRINTS", row * 128 + 32, struct.pack("<4Q", 5000, 50, 3000, 30))
    made.save(TMP + "/takers.ledger")
    report, wrong = recovered(TMP + "/takers.ledger")
    fact(not wrong and report["contexts"] and
         all(row["bytes"] <= row["total_bytes"] and row["count"] <= row["total_count"] for row in report["contexts"]),
         "what a context has is no more than it took", wrong or [report["contexts"]])


def ooms(source):
    """Each error has the rows that it wrote, however many it says that it did."""
    report, wrong = recovered(source_copy(source))
    sites = [len(oom["sites"]) for oom in report["oom"]]
    fact(not wrong and len(sites) == 2 and min(sites) >= 1, "the sound one has two", wrong or sites)
    made = Ledger(source)
    first, = struct.unpack("<Q", made.read("OOMS", OOM_SITES + 4, 8))
    for row in range(2):
        made.write("OOMS", row * OOM_ROW + OOM_SITES, struct.pack("<IQ", 0xffffffff, first))
    made.save(TMP + "/ooms.ledger")
    report, wrong = recovered(TMP + "/ooms.ledger")
    fact(not wrong and sum(len(oom["sites"]) for oom in report["oom"]) == sum(sites), "and however many it says it has, no more",
         wrong or [len(oom["sites"]) for oom in report["oom"]])


def source_copy(source):
    """recover removes what it has read."""
    Ledger(source).save(TMP + "/copy.ledger")
    return TMP + "/copy.ledger"


def sparse(source):
    """A file of a terabyte of nothing."""
    made = Ledger(source)
    made.save(TMP + "/sparse.ledger")
    extents = HEAD.size + len(made.names) * TABLE_BYTES
    with open(TMP + "/sparse.ledger", "r+b") as file:
        for place, (table, first, offset, size) in enumerate((row[0], *row[2:]) for row in made.extents):
            if made.names[table] == "BLOCKS" and not first:
                file.seek(extents + place * 32)
                file.write(struct.pack("<IIQQQ", table, 0, 0, 1 << 39, 1 << 30))
            del offset, size
        file.truncate(1 << 40)
    _, wrong = recovered(TMP + "/sparse.ledger")
    fact(not wrong, "a file that is a hole takes neither memory nor time", wrong)


def main():
    """Its facts."""
    if lacking():
        return
    source = killed()
    dropped(source)
    takers(source)
    ooms(source)
    sparse(source)
    plan(hooklib.number)


main()
