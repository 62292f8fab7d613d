#!/usr/bin/env python3
"""Phases that programs name by ROCTX and MSTX: the report says of them what the program's own book says, however the libraries came
into the program, with a profiler beside memshim and without; the vendors' functions are called all the same. The libraries are stand-ins."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, MEMSHIM, TMP, fact, plan, preload, shim_environment  # noqa: E402

DIRECTORY = os.path.join(BUILD, "tests", "phases")
TOOL = os.path.join(DIRECTORY, "libmstx_tool.so")
SOURCES = {"push": ("roctx", None), "start": ("roctx", None), "range": ("mstx", None), "layer": ("mstx", "a domain")}
reports = 0


def play(libraries, *words, tool=False, **more):
    """What the program said, and its report."""
    global reports
    reports += 1
    path = os.path.join(TMP, "%d.json" % reports)
    program = os.path.join(DIRECTORY, "markers_linked" if libraries == "linked" else "markers_user")
    environment = shim_environment(path, MEMSHIM_LOG="none", **more)
    environment["LD_LIBRARY_PATH"] += ":" + DIRECTORY
    if tool:
        environment["LD_PRELOAD"] = preload() + ":" + TOOL
    done = subprocess.run([program, libraries, *words], env=environment, text=True, capture_output=True, timeout=200, check=False)
    try:
        with open(path, encoding="utf-8") as file:
            return done, json.load(file)
    except OSError:
        return done, {"phases": [], "diagnostics": ["no report"]}


def told(phase):
    """As the program's book has it."""
    device = phase["devices"][0]
    peak = device["peak_bytes"]
    return [phase["count"], peak["min"], peak["max"], device["allocated_bytes"], device["freed_bytes"], device["growth_bytes"]["total"]]


def check_book(name, libraries, threads, expected_tail, **more):
    done, report = play(libraries, "book", str(threads), **more)
    found = {phase["name"]: phase for phase in report["phases"] if phase["count"]}
    *book, last = done.stdout.splitlines() or [""]
    wrong = [done.stderr] if done.returncode else []
    for line in book:
        words = line.split()
        expected = [int(word) for word in words[1:]]
        if words[0] not in found or told(found[words[0]]) != expected:
            wrong.append("%s: %s, told %s" % (words[0], expected, told(found[words[0]]) if words[0] in found else "nothing"))
    sources = {word: (phase["source"], phase.get("domain")) for word, phase in found.items()}
    marks = sorted((phase["source"], phase.get("domain", "")) for phase in report["phases"] if phase["name"] == "a mark" and phase["marks"] == 1)
    faults = [line for line in report["diagnostics"] if "that were not open" in line]
    fact(len(book) == 4 and not wrong and sources == SOURCES, "%s: phases are those of the program's book" % name, wrong + [sources])
    fact(len(marks) == 3 and not faults, "%s: three marks, and nothing that does not pair" % name, [marks, faults])
    fact(last.startswith("seen ") and int(last.split()[1]) > 20 and last.endswith(expected_tail),
         "%s: the vendor's functions were called, and their answers are the program's" % name, [last, expected_tail])
    return last


def check_hostile():
    done, report = play("opened", "hostile")
    names = {phase["name"]: phase for phase in report["phases"]}
    lines = report["diagnostics"]
    fact(done.returncode == 0 and done.stdout == "popped -1 levels 0 1\n", "hostile names and ends: the program lives, levels are the library's",
         [done.returncode, done.stdout, done.stderr])
    fact("n" * 255 in names and "" in names and any("\ufffd" in name for name in names), "a megabyte is cut, NULL is no name, what is no UTF-8 is U+FFFD",
         [sorted(names)[:5]])
    fact(names.get("twice", {}).get("count") == 1 and names.get("twice too", {}).get("count") == 1 and names.get("no domain", {}).get("count") == 1,
         "a range ends once", [{name: phase["count"] for name, phase in names.items() if len(name) < 20}])
    fact(all(any(part in line for line in lines) for part in ("was open at the end", "was no room beside 1024", "were ended that were not open")),
         "what does not pair, and what found no room, is said", lines)
    valid = subprocess.run([os.environ["TEST_VALID"], os.path.join(TMP, "%d.json" % reports)], capture_output=True, text=True, check=False)
    fact(valid.returncode == 0, "the report is valid", [valid.stdout, valid.stderr])


plan(3 * 6 + 1 + 5)
check_book("linked", "linked", 1, "refused 0 tool 0 ranges 0 faults 0")
check_book("opened, eight threads", "opened", 8, "refused 0 tool 0 ranges 0 faults 0")
check_book("MSTX compiled in", "header", 4, "refused 0 tool 0 ranges 0 faults 0")
check_book("nothing served", "header", 2, "refused 0 tool 0 ranges 0 faults 0", MEMSHIM_MODE="track")
seen = check_book("beside a profiler", "opened", 4, "faults 0", tool=True)
fact(" refused 0 tool 4096 ranges " in seen and int(seen.split()[7]) > 10, "it has every range, by its own numbers and domains", [seen])
check_book("beside a profiler that is idle", "header", 4, "refused 0 tool 4096 ranges 0 faults 0", tool=True, MSTX_TOOL="idle")
check_hostile()
