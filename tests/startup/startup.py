#!/usr/bin/env python3
"""What `memshim run` has Python read at its start: pools of CuPy and RMM, by stand-ins with their interfaces, report each block; programs find
everything as it is without memshim: sitecustomize, sys.path, types, texts and tracebacks of errors; and interpreters that ignore it go on."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import MEMSHIM, TMP, WATCHED, fact, native_environment, plan, skip  # noqa: E402

PROGRAM = os.path.join(os.environ["top_srcdir"], "tests", "startup", "pools.py")
OWN = os.path.join(TMP, "own")
reports = 0


def play(*words, before=(sys.executable, PROGRAM), **more):
    """What the program said, natively and under memshim, and its report."""
    global reports
    reports += 1
    path = os.path.join(TMP, "%d.json" % reports)
    environment = native_environment(PYTHONDONTWRITEBYTECODE="1", MEMSHIM_LOG="none", **more)
    natively = subprocess.run([*before, *words], env=environment, text=True, capture_output=True, timeout=200, check=False)
    done = subprocess.run([MEMSHIM, "run", "--sim", "-q", "-o", path, "--", *before, *words], env=environment, text=True, capture_output=True, timeout=200, check=False)
    report = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
    return natively, done, report


def check_same(name, natively, done, also=True, details=()):
    same = (natively.returncode, natively.stdout, natively.stderr) == (done.returncode, done.stdout, done.stderr)
    fact(same and also, name, [natively.returncode, natively.stdout, natively.stderr, done.returncode, done.stdout, done.stderr, *details])


def told(report, name):
    """Live bytes and count of the heap, at most and altogether of the device."""
    heap = [heap for heap in report.get("heaps", []) if heap["name"] == name]
    device = report["inner_devices"][0] if report.get("inner_devices") else {}
    return [heap[0]["live_bytes"], heap[0]["live_count"], device["peak_live_bytes"], device["allocated_bytes"]] if heap else None



def check_cupy():
    natively, done, report = play("cupy")
    used, count, _ = map(int, done.stdout.split())
    check_same("CuPy: the blocks of its pool, by each thread, are those of used_bytes()", natively, done, (told(report, "CuPy") or [])[:2] == [used, count], [told(report, "CuPy")])
    path = os.path.join(TMP, "%d.json" % reports)
    leaks = subprocess.run([MEMSHIM, "leaks", path], env=native_environment(), text=True, capture_output=True, check=False).stdout
    fact("pools.py:" in leaks and "memshim_startup" not in leaks and leaks.startswith("shows the tensors that CuPy gave"), "leaks says the program's lines, and none of the hook's", [leaks])


def check_rmm():
    for way, name in (("rmm", "RMM: the blocks of a pool are those of its statistics"), ("reinitialized", "RMM: the same of a pool that reinitialize() made")):
        natively, done, report = play(way)
        live, count, peak, _ = map(int, done.stdout.splitlines()[-1].split())
        heap = told(report, "RMM") or []
        check_same(name + ", and errors say what they say without", natively, done, heap[:3] == [live, count, peak], [heap])
    natively, done, report = play("types")
    check_same("RMM: who asks for the resource gets what was set", natively, done)


def check_interpreter():
    natively, done, _ = play("seen")
    check_same("sys.path and modules are as ever, in children too", natively, done)
    natively, done, report = play("cupy", STAND_IN_FAILS="1")
    check_same("an import that fails says what it says without", natively, done, natively.returncode == 1)
    os.makedirs(OWN)
    for name, text in (("a sitecustomize of the program's own is read", "print('own', __name__)"), ("one that fails says so", "raise ValueError('own')"),
                       ("one that imports what is not there", "import not_there")):
        with open(os.path.join(OWN, "sitecustomize.py"), "w", encoding="utf-8") as file:
            file.write(text + "\n")
        natively, done, _ = play("seen", PYTHONPATH=OWN)
        check_same(name, natively, done, ("own" in done.stdout + done.stderr) or "not_there" in done.stderr)
    os.remove(os.path.join(OWN, "sitecustomize.py"))
    for flag in ("-S", "-I", "-E"):
        natively, done, report = play("cupy", before=(sys.executable, flag, PROGRAM))
        check_same("python %s goes on" % flag, natively, done, told(report, "CuPy") is None and report["devices"], [told(report, "CuPy")])
    check_missed(report)


def check_missed(report):
    """A report without the hook, whose segments are asked for by the functions of CuPy's pool."""
    path = os.path.join(TMP, "missed.json")
    for module in report["modules"]:
        if "_ctypes" in module["path"] or "libffi" in module["path"]:
            module.update(path="/usr/lib/cupy/cuda/memory.cpython-311.so", owner="program")
    for frame in report["frames"]:
        if "module" in frame and report["modules"][frame["module"]]["path"].endswith("memory.cpython-311.so"):
            frame["function"] = "__pyx_f_4cupy_4cuda_6memory_22SingleDeviceMemoryPool__malloc"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file)
    said = subprocess.run([MEMSHIM, "peak", path], env=native_environment(), text=True, capture_output=True, check=False).stdout
    fact(said.startswith("shows segments of the cache of CuPy, not tensors: Python read no start-up hook of memshim run (-I, -E, -S)\n"), "screens say that the hook was not read", [said])


def check_environment():
    printing = (sys.executable, "-c", "import os; print(os.environ.get('PYTHONPATH'))")
    _, done, _ = play(before=printing, PYTHONPATH="/nowhere:")
    fact(done.stdout.rstrip("\n").endswith(os.sep + "startup:/nowhere:") and done.returncode == 0, "what PYTHONPATH held stays behind it", [done.stdout])
    _, done, _ = play(before=printing, MEMSHIM_MODE="off")
    fact(done.stdout == "None\n", "where memshim is off it is not set", [done.stdout])


if WATCHED:
    plan(1)
    skip("Python", "sanitizers watch")
else:
    plan(16)
    check_cupy()
    check_rmm()
    check_interpreter()
    check_environment()
