#!/usr/bin/env python3
"""Heaps and regions by NVTX's extension for memory: the report says of them what the program's own book says, with their names; also where
they are resized, their heap ends or is emptied, threads share a name, a child of fork goes on, and handles are nobody's."""
import glob
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, MEMSHIM, TMP, WATCHED, fact, native_environment, plan, shim_environment, skip, trace_lines  # noqa: E402

USER = os.path.join(BUILD, "tests", "inner", "regions_user")
HEADER = "include/nvtx3/nvToolsExtMem.h"
CLIENTS = os.path.join(os.environ["TEST_CACHE"], "clients")
# The toolkit's, or what scripts/test-clients has left of PyTorch's packages.
NVTX = ([path for path in (os.path.join(os.environ.get("TEST_CUDA_HOME") or "/nowhere", HEADER),) if os.path.exists(path)] or
        sorted(glob.glob(os.path.join(CLIENTS, "*/lib/python3*/site-packages/nvidia/*", HEADER))) or [""])[-1]
KEYS = ("live_bytes", "live_count", "peak_live_bytes", "allocated_bytes")
reports = 0


def play(*words, program=USER, **more):
    """What the program said, and the path of its report."""
    global reports
    reports += 1
    path = os.path.join(TMP, "%d.json" % reports)
    environment = shim_environment(path, MEMSHIM_LOG="none", NVTX_INJECTION64_PATH=os.environ["TEST_LIB"], **more)
    return subprocess.run([program, *words], env=environment, text=True, capture_output=True, timeout=200, check=False), path


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def differs(report, line, keys=KEYS):
    """What differs from the program's own book."""
    told = dict(zip(KEYS, map(int, line.split())))
    device = report["inner_devices"][0] if report.get("inner_devices") else {}
    pieces = [block for segment in report.get("inner_segments", []) for block in segment["blocks"] if block["state"] == "live"]
    wrong = ["%s: %s, told %s" % (key, told[key], device.get(key)) for key in keys if told[key] != device.get(key)]
    if sum(piece["bytes"] for piece in pieces) != told["live_bytes"]:
        wrong.append("pieces: %s" % pieces)
    if sum(leak["bytes"] for leak in report.get("inner_leaks", [])) != told["live_bytes"]:
        wrong.append("leaks: %s" % report.get("inner_leaks"))
    return wrong


def heaps(report):
    return {heap["name"]: (heap["live_bytes"], heap["live_count"], heap.get("reserved_bytes"), heap.get("cached_bytes")) for heap in report.get("heaps", [])}


BOOK = {"weights": (230 << 10, 2, 1 << 20, 794 << 10), "cache": (7, 1, 1 << 20, (1 << 20) - 7), "NVTX": (1 << 20, 1, None, None)}


def check_book(name, *words, program=USER, first="1 0", **more):
    done, path = play(*words, program=program, **more)
    report, lines = read(path), done.stdout.splitlines()
    wrong = differs(report, lines[-1]) + ([heaps(report)] if heaps(report) != BOOK else []) + ([lines] if lines[0] != first else [])
    fact(done.returncode == 0 and not wrong, name, wrong + [done.stderr])
    return report, path


def check_names():
    report, path = check_book("heaps and regions are those of the program's book", "book")
    valid = subprocess.run([os.environ["TEST_VALID"], path], capture_output=True, text=True, check=False)
    fact(valid.returncode == 0, "the report is valid", [valid.stdout, valid.stderr])
    names = sorted(block["name"] for segment in report["inner_segments"] for block in segment["blocks"] if "name" in block)
    fact(names == ["layer.1", "layer.\u00e4", "workspace"], "regions have the latest name that they were given", [names])
    done = subprocess.run([MEMSHIM, "leaks", path], env=native_environment(), text=True, capture_output=True, check=False)
    fact("layer.\u00e4" in done.stdout and ", named workspace" in done.stdout and "nvtxMemRegionsRegister" in done.stdout, "leaks says the names", [done.stdout, done.stderr])
    sites = {site["id"]: site for site in report["inner_sites"]}
    fact(sum(site["total_count"] for site in sites.values()) == 11 and all(site["freed_count"] + site["live_count"] == site["total_count"] for site in sites.values()),
         "a region that is resized is the same one", [{key: site[key] for key in ("total_count", "freed_count", "live_count")} for site in sites.values()])
    check_book("the same where nothing is served", "book", MEMSHIM_MODE="track")


def check_trace():
    """A region that is resized goes and comes; a name is no stream."""
    trace = os.path.join(TMP, "trace")
    play("book", MEMSHIM_TRACE=trace)
    lines = trace_lines(trace)
    live, streams = {}, {line.split()[4] for line in lines if line[:1].isdigit() and line.split()[1] in "AF"}
    for words in (line.split() for line in lines if line[:1].isdigit()):
        if words[1] == "A":
            live[words[2]] = int(words[3])
        elif words[1] == "F":
            del live[words[2]]
    fact(sorted(live.values()) == sorted([200 << 10, 30 << 10, 7, 1 << 20]) and streams == {"0"}, "the trace has the regions, and no streams of theirs", [live, streams] + lines[:20])


def check_threads():
    done, path = play("threads")
    # The book is not the report's, to the moment: peaks differ.
    wrong = differs(read(path), done.stdout, ("live_bytes", "live_count", "allocated_bytes"))
    fact(done.returncode == 0 and not wrong, "four threads with heaps of one name: a heap's end is that of its own regions", wrong + [done.stderr])


def check_child():
    """The driver refuses a child of fork its parent's memory: nothing of it is recorded there, and nothing of the parent's is lost."""
    place = os.path.join(TMP, "forked")
    os.makedirs(place)
    done, _ = play("fork", MEMSHIM_REPORT=os.path.join(place, "%p.json"))
    found = sorted((read(os.path.join(place, name)) for name in os.listdir(place)), key=lambda report: report["run"]["pid"])
    lines = done.stdout.splitlines()
    wrong = differs(found[0], lines[1]) + [report["inner_devices"] for report in found[1:] if report.get("inner_devices")]
    fact(done.returncode == 0 and lines[0] == "0" and not wrong, "a child of fork takes nothing from its parent's heap", wrong + lines + [done.stderr])


def check_nested():
    """Heaps in heaps have no more of the device, together, than there are blocks."""
    done, path = play("nested")
    report = read(path)
    device = report["inner_devices"][0]
    fact(done.returncode == 0 and not differs(report, done.stdout.splitlines()[-1]) and (device["held_bytes"], device["peak_held_bytes"], device["cached_bytes"]) == (1 << 20, 1 << 20, (1 << 20) - 3000),
         "a heap within another is no more memory", [device, report["heaps"], done.stderr])


def check_hostile():
    done, path = play("hostile")
    report, lines = read(path), done.stdout.splitlines()
    fact(done.returncode == 0 and not differs(report, lines[-1]) and lines[0] == "1", "handles that nobody has, and memory of the host, are not recorded",
         differs(report, lines[-1]) + [done.stderr])
    fact(heaps(report) == {"NVTX": (1024, 1, None, None)}, "nor are its heaps", [heaps(report)])


def check_versions():
    check_book("a later version that is compatible, with longer structures", "version", "0x0107", "16")
    for name, *words in (("a version that is not", "version", "0x0200", "0"), ("structures that are too short", "version", "0x0102", "-1"),
                         ("another extension", "other")):
        done, path = play(*words)
        fact(done.returncode == 0 and done.stdout.startswith("0 0\n") and not read(path).get("heaps"), "%s: nothing is taken" % name, [done.stdout, done.stderr])
    natively = subprocess.run([USER, "book"], env=native_environment(), text=True, capture_output=True, check=False)
    fact(natively.returncode == 0 and natively.stdout.startswith("0 0\n"), "without memshim nobody answers", [natively.stdout, natively.stderr])


def check_header():
    if not NVTX or WATCHED:
        skip("NVTX's own header", "it is not installed, or sanitizers watch")
        return
    program, source = os.path.join(TMP, "real"), os.environ["top_srcdir"]
    done = subprocess.run(os.environ["TEST_CC"].split() + ["-std=gnu11", "-DREAL_NVTX", "-I" + source, "-I" + source + "/src",
                                                           "-I" + os.path.dirname(os.path.dirname(NVTX)), "-o", program,
                                                           source + "/tests/inner/regions_user.c", "-L" + BUILD, "-l:libcudart.so.13",
                                                           "-Wl,--allow-shlib-undefined", "-pthread", "-ldl"], capture_output=True, text=True, check=False)
    if done.returncode:
        fact(False, "NVTX's own header: it compiles", done.stderr.splitlines())
        return
    check_book("NVTX's own header: the same book", "book", program=program)


plan(18)
check_names()
check_trace()
check_threads()
check_child()
check_nested()
check_hostile()
check_versions()
check_header()
