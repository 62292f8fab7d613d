#!/usr/bin/env python3
"""Phases that programs name by memshim's own functions and by NVTX's: the report says of them what the program's own book says, in one thread
and in many; also of programs that were killed, fork, are interrupted, and give names that nobody should."""
import glob
import json
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, MEMSHIM, TMP, WATCHED, fact, plan, shim_environment, skip  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "phases", "phases_user")
MIB = 1 << 20
HEADER = "include/nvtx3/nvToolsExt.h"
CLIENTS = os.path.join(os.environ["TEST_CACHE"], "clients")
# The toolkit's, or what scripts/test-clients has left of PyTorch's packages.
NVTX = os.path.join(os.environ["TEST_CUDA_HOME"], HEADER) if os.environ.get("TEST_CUDA_HOME") else max(
    glob.glob(os.path.join(CLIENTS, "*/lib/python3*/site-packages/nvidia/*", HEADER)), default="")
reports = 0


def environment(path, **more):
    return shim_environment(path, NVTX_INJECTION64_PATH=os.environ["TEST_LIB"], MEMSHIM_LOG="none", **more)


def play(*words, program=PROGRAM, **more):
    """What the program said, and its report."""
    global reports
    reports += 1
    path = os.path.join(TMP, "%d.json" % reports)
    done = subprocess.run([program, *words], env=environment(path, **more), text=True, capture_output=True, timeout=200, check=False)
    return done, load(path)


def load(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError:
        return {"phases": [], "diagnostics": ["no report"], "sites": []}


def phases(report):
    """By name: of every one its figures on the first device."""
    return {phase["name"]: dict(phase, **(phase["devices"][0] if phase["devices"] else {})) for phase in report["phases"]}


def told(phase):
    """As the program's book has it."""
    peak = phase["peak_bytes"]
    return [phase["count"], peak["min"], peak["max"], phase["allocated_bytes"], phase["freed_bytes"], phase["growth_bytes"]["total"]]


def check_book(threads, name, program=PROGRAM, **more):
    done, report = play("book", str(threads), program=program, **more)
    found, wrong = phases(report), [done.stderr] if done.returncode else []
    for line in done.stdout.splitlines():
        words = line.split()
        expected = [int(word) for word in words[1:]]
        if words[0] not in found or told(found[words[0]]) != expected:
            wrong.append("%s: %s, told %s" % (words[0], expected, told(found[words[0]]) if words[0] in found else "nothing"))
    for phase in found.values():
        held = [site["bytes"] for site in phase["sites"]]
        if held != sorted(held, reverse=True) or sum(held) > phase["peak_bytes"]["max"] or not held:
            wrong.append("sites of %s: %s" % (phase["name"], held))
    fact(len(done.stdout.splitlines()) == 6 and not wrong, name, wrong)
    return found, report


def check_books():
    found, _ = check_book(1, "one thread: phases of each interface are those of the program's book")
    sources = {name: (phase["source"], phase.get("domain")) for name, phase in found.items()}
    fact(sources == {"load": ("memshim", None), "step": ("memshim", None), "forward": ("nvtx", None), "backward": ("nvtx", None),
                     "layer": ("nvtx", "a domain"), "thread": ("nvtx", None)}, "by source and domain", [sources])
    _, report = check_book(8, "eight threads: the same")
    path = os.path.join(TMP, "%d.json" % reports)
    valid = subprocess.run([os.environ["TEST_VALID"], path], capture_output=True, text=True, check=False)
    fact(valid.returncode == 0 and report["phases"], "the report is valid", [valid.stdout, valid.stderr])
    check_book(8, "the same where nothing is served", MEMSHIM_MODE="track")


def check_header():
    if not os.path.exists(NVTX) or WATCHED:
        skip("NVTX's own header", "it is not installed, or sanitizers watch")
        return
    program = os.path.join(TMP, "real")
    source = os.environ["top_srcdir"]
    done = subprocess.run(os.environ["TEST_CC"].split() + ["-std=gnu11", "-DREAL_NVTX", "-I" + source, "-I" + source + "/src",
                                                           "-I" + os.path.dirname(os.path.dirname(NVTX)), "-o", program,
                                                           source + "/tests/phases/phases_user.c", "-L" + BUILD, "-l:libcudart.so.13",
                                                           "-Wl,--allow-shlib-undefined", "-pthread", "-ldl"],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        fact(False, "NVTX's own header: it compiles", done.stderr.splitlines())
        return
    check_book(4, "NVTX's own header: the same", program=program)


def check_texts():
    """Each function of NVTX's, and each way to give it a text."""
    for words, name in (((), "each function of NVTX's, and texts of each kind"), (("old",), "the same where libnvToolsExt.so.1 calls memshim")):
        done, report = play(*words, program=PROGRAM.replace("phases_user", "nvtx_texts"))
        expected = sorted(line.rsplit(" ", 2) for line in done.stdout.splitlines())
        sums = {}
        for phase in report["phases"]:
            sum_ = sums.setdefault(phase["name"], [0, 0])
            sum_[0] += phase["count"]
            sum_[1] += phase["marks"]
        found = sorted([name_, str(count), str(marks)] for name_, (count, marks) in sums.items())
        domains = {phase.get("domain") for phase in report["phases"]}
        fact(done.returncode == 0 and len(expected) == 8 and found == expected and domains == {None, "the domain"}, name, [found, expected, domains, done.stderr])


def check_killed():
    global reports
    reports += 1
    path, directory = os.path.join(TMP, "%d.json" % reports), os.path.join(TMP, "ledgers")
    os.makedirs(directory)
    with subprocess.Popen([PROGRAM, "kill"], env=environment(path, MEMSHIM_DIR=directory), stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run([MEMSHIM, "recover", "-o", path, directory], capture_output=True, text=True, check=False)
    found = phases(load(path))
    expected = {"outer": [1, 9 * MIB, 9 * MIB, 14 * MIB, 12 * MIB, 2 * MIB], "inner": [1, 5 * MIB, 5 * MIB, 6 * MIB, 4 * MIB, 2 * MIB]}
    fact({name: told(phase) for name, phase in found.items()} == expected and all(phase["open"] == 1 for phase in found.values()),
         "killed inside of two phases: both are told as far as they came", [found, done.stderr])
    held = {name: [site["bytes"] for site in phase["sites"]] for name, phase in found.items()}
    fact(held == {"outer": [8 * MIB, MIB], "inner": [4 * MIB, MIB]}, "with what held most at their peaks", [held])


def check_hostile():
    done, report = play("hostile", "50000" if WATCHED else "1000000")
    found, lines = phases(report), report["diagnostics"]
    fact(done.returncode == 0 and "n" * 255 in found and "\x1b[31m\r\nred\x07" in found, "names of a megabyte are cut, others are as they were",
         [done.stderr] + sorted(found)[:4])
    fact(any("\ufffd" in name for name in found) and "" in found, "what is no UTF-8 is U+FFFD, and no name none")
    fact("..." in found and len(report["phases"]) == 8192 and found["..."]["count"] > 10000, "of a million names there are as many rows as there may be",
         [len(report["phases"])])
    fact(found.get("...", {}).get("count", 0) + sum(phase["count"] for name, phase in found.items() if name.startswith("name ")) >= (50000 if WATCHED else 1000000),
         "and all phases are counted")
    wanted = ("was open at the end", "was no room beside 1024", "were ended that were not open", "beyond 8191 are one row")
    fact(all(any(part in line for line in lines) for part in wanted), "ranges that do not pair, or found no room, are said", lines)
    shown = subprocess.run([MEMSHIM, "phases", "-n", "20", os.path.join(TMP, "%d.json" % reports)], capture_output=True, check=False)
    fact(shown.returncode == 0 and b"\x1b" not in shown.stdout and b"[31m" in shown.stdout, "the command shows them, and no control character",
         [shown.stdout[:600]])


def check_fork():
    _, report = play("fork", MEMSHIM_REPORT=os.path.join(TMP, "fork.%p.json"))
    told_by = [load(os.path.join(TMP, name)) for name in os.listdir(TMP) if name.startswith("fork.")]
    faults = [line for one in told_by for line in one["diagnostics"] if "phase" in line]
    by = sorted(sorted(phases(one)) for one in told_by)
    fact(by == [["child"], ["parent", "parent's too"]] and not faults, "a child of fork has its own phases, and ends its parent's without a fault",
         [by, faults, report["diagnostics"]])
    child = [phases(one)["child"] for one in told_by if "child" in phases(one)]
    fact(len(child) == 1 and told(child[0]) == [1, 3 * MIB, 3 * MIB, 3 * MIB, 0, 3 * MIB], "with its own figures", child)


def check_signals():
    done, report = play("signals")
    found, faults = phases(report), [line for line in report["diagnostics"] if "phase" in line]
    fact(done.returncode == 0 and found.get("loop", {}).get("open") == 0 and not faults, "a handler begins and ends phases, wherever the program is",
         [done.returncode, done.stderr, faults, {name: phase["open"] for name, phase in found.items()}])


def check_run():
    if WATCHED:
        skip("memshim run", "sanitizers watch")
        return
    path = os.path.join(TMP, "run.json")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("NVTX_", "LD_PRELOAD"))}
    done = subprocess.run([MEMSHIM, "run", "--sim", "-f", "-o", path, PROGRAM, "book", "2"], env=clean, capture_output=True, text=True, check=False)
    fact(done.returncode == 0 and "forward" in phases(load(path)), "memshim run has NVTX call memshim", [done.stderr])
    shown = subprocess.run([MEMSHIM, "phases", path], capture_output=True, text=True, check=False).stdout
    fact("step, " in shown and "a domain: layer" in shown and "device 0: peak" in shown and "cudaMalloc" in shown, "memshim phases lists them", shown.splitlines())
    again = json.loads(subprocess.run([MEMSHIM, "phases", "--json", path], capture_output=True, text=True, check=False).stdout)
    fact(len(again["phases"]) == 6 and "stack" in again["phases"][0]["devices"][0]["sites"][0], "and as JSON", [again])
    done = subprocess.run([MEMSHIM, "run", "--sim", "-f", "-o", path, PROGRAM, "book", "1"], env=dict(clean, NVTX_INJECTION64_PATH="/nowhere/tool.so"),
                          capture_output=True, text=True, check=False)
    fact("NVTX_INJECTION64_PATH=/nowhere/tool.so is yours and stays" in done.stderr and "forward" not in phases(load(path)) and "step" in phases(load(path)),
         "another injection of the user's stays", [done.stderr])
    alone = subprocess.run([PROGRAM, "book", "1"], env=dict(clean, NVTX_INJECTION64_PATH=os.environ["TEST_LIB"], LD_LIBRARY_PATH=os.environ["TEST_SIM"]),
                           capture_output=True, text=True, cwd=TMP, check=False)
    fact(alone.returncode == 0 and len(alone.stdout.splitlines()) == 6 and not [name for name in os.listdir(TMP) if name.startswith("memshim.")],
         "where NVTX alone loads memshim it does nothing", [alone.returncode, alone.stderr])


plan(20 if WATCHED else 24)
check_books()
check_header()
check_texts()
check_killed()
check_hostile()
check_fork()
check_signals()
check_run()
