#!/usr/bin/env python3
"""include/memshim.h in programs of C++: no compiler that is here has anything to say of it, under any standard from C++11 on; and the report
has the pieces that a memory resource gave, by pool and line."""
import json
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, TMP, WATCHED, fact, native_environment, plan, shim_environment, skip  # noqa: E402

SOURCE = os.path.join(os.environ["top_srcdir"], "tests", "inner", "arena_user.cc")
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wold-style-cast", "-Wconversion", "-Wshadow", "-Wzero-as-null-pointer-constant", "-Werror"]
STANDARDS = ("c++11", "c++14", "c++17", "c++20", "c++2b")
COMPILERS = [name for name in ("g++", "clang++") if shutil.which(name)]


def compile_with(compiler, standard, *words):
    return subprocess.run([compiler, "-std=" + standard, *WARNINGS, "-fPIE", "-I" + os.path.join(os.environ["top_srcdir"], "include"), SOURCE, *words],
                          capture_output=True, text=True, check=False)


def check_silent():
    for standard in STANDARDS:
        said = [done.stderr for done in (compile_with(compiler, standard, "-fsyntax-only") for compiler in COMPILERS) if done.returncode or done.stderr]
        fact(not said, "%s: %s have nothing to say" % (standard, " and ".join(COMPILERS)), said)


def check_pieces(standard):
    program, path = os.path.join(TMP, standard), os.path.join(TMP, standard + ".json")
    done = compile_with(COMPILERS[0], standard, "-pie", "-o", program, "-L" + BUILD, "-l:libcudart.so.13", "-Wl,--allow-shlib-undefined")
    if done.returncode:
        fact(False, "%s: the program is linked" % standard, done.stderr.splitlines())
        return
    done = subprocess.run([program], env=shim_environment(path, MEMSHIM_LOG="none"), text=True, capture_output=True, timeout=100, check=False)
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    live, count, peak, is_known = map(int, done.stdout.split())
    device, heaps = report["inner_devices"][0], {heap["name"]: heap["live_bytes"] for heap in report["heaps"]}
    told = [device["live_bytes"], device["live_count"], device["peak_live_bytes"], 1]
    fact(done.returncode == 0 and told == [live, count, peak, is_known] and heaps == {"weights": live - 4097, "cache": 4097},
         "%s: the pieces are those of the program's book" % standard, [done.stdout, told, heaps, done.stderr])
    natively = subprocess.run([program], env=native_environment(), text=True, capture_output=True, check=False)
    fact(natively.returncode == 0 and natively.stdout.split() == [str(live), str(count), str(peak), "0"], "%s: without memshim nothing happens" % standard,
         [natively.stdout, natively.stderr])


if not COMPILERS or WATCHED:
    plan(1)
    skip("C++", "there is no compiler of C++, or sanitizers watch")
else:
    plan(len(STANDARDS) + 4)
    check_silent()
    check_pieces("c++11")
    check_pieces("c++17")
