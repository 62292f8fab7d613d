#!/usr/bin/env python3
"""Holds the report of every_class.c against the book that the program kept itself.

Each allocation once, with size, interface as the program called it, device, stream, thread and a stack whose first frame
of the program names function, file and line; live, leaked and peak bytes equal. The program runs by `memshim run --sim`,
and once more preloaded by hand, with stacks by frame pointers and with none. Run by the harness.
"""
import collections
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from hooklib import HERE, MEMSHIM, TMP, fact, native_environment, plan, shim_environment, skip  # noqa: E402

PROGRAM = os.path.join(HERE, "every_class")
# The program's own object; whatever else is in a stack belongs to the vendor's libraries or to the C library.
OWN = "every_class"


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def frames(report, stack):
    found = []
    while stack:
        parent, frame = report["stacks"][stack]
        found.append(report["frames"][frame])
        stack = parent
    return found


def user_frame(report, stack):
    """(function, file, line) of the innermost frame that lies in the program itself."""
    for frame in frames(report, stack):
        module = frame.get("module")
        path = report["modules"][module]["path"] if module is not None else ""
        if os.path.basename(path) == OWN:
            return frame.get("function"), os.path.basename(frame.get("file", "?")), frame.get("line")
    return None


def difference(want, got):
    """Two multisets, as lines for the reader."""
    want, got = collections.Counter(want), collections.Counter(got)
    return ["missing: %s" % (k,) for k in (want - got).elements()] + ["unexpected: %s" % (k,) for k in (got - want).elements()]


def totals(book, report, how):
    """Live, leaked and peak bytes, and calls by interface: what does not need a stack."""
    devices = {d["index"]: d for d in report["devices"]}
    live = [devices.get(i, {}).get("live_bytes") for i in range(2)]
    peak = [devices.get(i, {}).get("peak_live_bytes") for i in range(2)]
    fact(live == book["live"], "%s: live bytes of each device" % how, ["%s, the program says %s" % (live, book["live"])])
    fact(peak == book["peak"], "%s: peak bytes of each device" % how, ["%s, the program says %s" % (peak, book["peak"])])
    leaked = sum(leak["bytes"] for leak in report["leaks"] if leak["device"] >= 0)
    fact(leaked == sum(book["live"]), "%s: leaked bytes" % how, ["%s, the program says %s" % (leaked, sum(book["live"]))])
    called = collections.Counter(b["api"] for b in book["blocks"])
    known = {a["name"]: a["calls"] for a in report["apis"] if a["bytes"] > 0}
    fact(known == dict(called), "%s: every call once, under the name that was called" % how,
         difference(called.elements(), collections.Counter(known).elements()))


def live(report):
    """(segment, block) of every live block, served or followed."""
    return [(s, b) for s in report["segments"] for b in s["blocks"] if b["state"] == "live"]


def size(segment, block):
    """What the vendor was, or would have been, asked for: of a served block `bytes` is what the pool granted."""
    return block["bytes"] if segment["tier"] == "followed" else block["requested"]


def blocks(book, report, how):
    """Every live block, one by one."""
    want = [(b["api"], b["bytes"], b["device"] if b["on_device"] else -1, b["stream"], b["thread"])
            for b in book["blocks"] if b["live"]]
    got = [(b["api"], size(s, b), s["device"], int(b["stream"], 16), b["thread"]) for s, b in live(report)]
    fact(sorted(want) == sorted(got), "%s: live blocks: interface, bytes, device, stream, thread" % how, difference(want, got))


def sites(book, report, how):
    """Every allocation, freed or not, at the function, file and line that made it."""
    place = {s["id"]: user_frame(report, s["stack"]) for s in report["sites"]}
    want = [(b["api"], b["device"] if b["on_device"] else -1, b["function"], b["file"], b["line"]) for b in book["blocks"]]
    got = []
    for site in report["sites"]:
        where = place[site["id"]] or ("?", "?", 0)
        got += [(site["api"], site["device"], *where)] * site["total_count"]
    fact(sorted(map(str, want)) == sorted(map(str, got)), "%s: every allocation at its function, file and line" % how,
         difference(want, got))
    want = [(b["bytes"], b["function"], b["line"]) for b in book["blocks"] if b["live"]]
    got = [(size(s, b), *(place[b["site"]] or ("?", "?", 0))[::2]) for s, b in live(report)]
    fact(sorted(map(str, want)) == sorted(map(str, got)), "%s: live blocks hang on the right site" % how, difference(want, got))


def run(how, command, env):
    book, report = os.path.join(TMP, how + "-book.json"), os.path.join(TMP, how + "-report.json")
    done = subprocess.run([w.replace("BOOK", book).replace("REPORT", report) for w in command],
                          env=dict(env, MEMSIM_DEVICES="2"), text=True, capture_output=True, timeout=60, check=False)
    said = done.stderr.splitlines()
    fact(done.returncode == 0, "%s: the program succeeds" % how, said)
    if done.returncode:
        print("Bail out! %s: %s" % (how, " ".join(said)))
        sys.exit(1)
    return load(book), load(report)


def by_hand(stacks, mode):
    how = "%s, stacks %s" % (mode, stacks)
    book, report = run(how, [PROGRAM, "BOOK"], shim_environment(os.path.join(TMP, how + "-report.json"), MEMSHIM_STACKS=stacks,
                                                                MEMSHIM_MODE=mode))
    totals(book, report, how)
    blocks(book, report, how)
    served = {a["name"]: a["served"] for a in report["apis"] if a["served"]}
    fact(bool(served) == (mode == "pool"), "%s: calls are served, or none is" % how, [served])
    followed = [d["followed_bytes"] for d in report["devices"]]
    fact(all(d["live_bytes"] - d["followed_bytes"] == d["reserved_parts"]["requested"] for d in report["devices"]),
         "%s: what lives is followed, or requested of the pool" % how, [followed, [d["reserved_parts"] for d in report["devices"]]])


def by_command():
    book, report = run("run", [MEMSHIM, "run", "--sim", "-o", "REPORT", "--", PROGRAM, "BOOK"], os.environ)
    fact(len(book["blocks"]) >= 60 and any(not b["live"] for b in book["blocks"]), "the book has %d allocations of %d interfaces" %
         (len(book["blocks"]), len({b["api"] for b in book["blocks"]})))
    totals(book, report, "run")
    blocks(book, report, "run")
    sites(book, report, "run")
    fact(report["coverage"]["unseen_frees"] == 0 and report["coverage"]["divergent"] == 0, "run: no free was unseen",
         [report["coverage"]])
    fact(report["coverage"]["blind_spots"] == [], "run: there is no blind spot", report["coverage"]["blind_spots"])
    checked = subprocess.run([os.environ["TEST_VALID"], os.path.join(TMP, "run-report.json")], text=True, capture_output=True,
                             check=False)
    fact(checked.returncode == 0, "run: memshim validate accepts the report",
         checked.stdout.splitlines() + checked.stderr.splitlines())


plan(25 + 2 * 6 + 4 * 2)
native = subprocess.run([PROGRAM, os.path.join(TMP, "native")], env=native_environment(MEMSIM_DEVICES="2"), text=True,
                        capture_output=True, timeout=60, check=False)
fact(native.returncode == 0, "the program runs without memshim", native.stderr.splitlines())
if os.path.exists(MEMSHIM):
    by_command()
else:
    for _ in range(12):
        skip("the report of memshim run", "the memshim command was not built")
for mode in ("pool", "track"):
    for stacks in ("fp", "off"):
        by_hand(stacks, mode)
