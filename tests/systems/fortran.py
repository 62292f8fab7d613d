#!/usr/bin/env python3
"""ncclMemAlloc as Fortran libraries use it (workarea.f90), and cuDecomp's own calls (cudecomp.c): the same natively and under memshim,
in every mode; served, the second round of an autotuner's loop asks the vendor for nothing, and everything is accounted for."""
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "systems"))
from systems import HERE, TMP, TOP, Run  # noqa: E402
from hooklib import fact, plan, skip  # noqa: E402

MODES = {"served": {}, "track": {"MEMSHIM_MODE": "track"}, "strict": {"MEMSHIM_FREE": "strict"}}
CUDECOMP = {"MEMSIM_DEVICES": "4", "MEMSIM_MEMORY": "512M", "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def compare(name, command, **environment):
    """Natively, and in each mode; returns the runs."""
    native = Run(command, **environment)
    fact(native.status == 0, "%s: runs natively" % name, native.shown())
    runs = {"native": native}
    for mode, variables in MODES.items():
        run = runs[mode] = Run(command, "%s-%s" % (name, mode), **variables, **environment)
        wrong = [] if (run.status, run.output) == (0, native.output) else ["natively:", *native.shown(), "here:", *run.shown()]
        fact(not wrong and not (sound := run.sound()), "%s, %s: prints the same, and the report is true" % (name, mode),
             wrong or sound)
    return runs


def build():
    """The program that gfortran makes of workarea.f90, or why there is none."""
    if not shutil.which("gfortran"):
        return None, "gfortran is not installed"
    if os.environ["TEST_SANITIZE"]:
        return None, "gfortran's program is built without the sanitizer"
    program = os.path.join(TMP, "workarea")
    sim = os.environ["TEST_SIM"]
    flags = ["-J", TMP, "-o", program, os.path.join(TOP, "tests", "systems", "workarea.f90"), os.path.join(TMP, "rounds.o"),
             "-L" + sim, "-l:libnccl.so.2", "-l:libcudart.so.13", "-ldl"]
    subprocess.run(os.environ["TEST_CC"].split() + ["-I" + TOP, "-c", "-o", os.path.join(TMP, "rounds.o"),
                                                    os.path.join(TOP, "tests", "systems", "rounds.c")], check=True)
    done = subprocess.run(["gfortran", "-std=f2008", "-Wall", "-O1", *flags], capture_output=True, text=True, check=False,
                          env=dict(os.environ, LD_LIBRARY_PATH=sim))
    return (program, "") if done.returncode == 0 else (None, done.stderr)


plan(8 + 8)
program, reason = build()
if program:
    runs = compare("workarea", [program])
    rows = runs["native"].output.splitlines()
    fact(len(rows) == 14 and all(": 0 sum" in row for row in rows if "grid" in row) and "too large: 1" in rows,
         "workarea: every trial is right, and what is too large is an error", rows)
    fact(runs["native"].of("round") == [12, 12, 12], "workarea: natively each round makes its work areas",
         [runs["native"].of("round")])
    made = runs["served"].of("round") + runs["served"].of("after")
    fact(0 < made[0] < 12 and made[1:3] == [0, 0] and made[3] <= 1, "workarea: served, the second round makes none", [made])
    site = [s for s in runs["served"].report()["sites"] if s["api"] == "ncclMemAlloc"]
    fact(sum(s["total_count"] for s in site) == 39 and not any(s["live_count"] for s in site),
         "workarea: 39 buffers are counted, each once", site)
elif "not installed" in reason or "sanitizer" in reason:
    for _ in range(8):
        skip("workarea", reason)
else:
    for _ in range(8):
        fact(False, "workarea: gfortran makes the program", reason.splitlines())
runs = compare("cudecomp", [os.path.join(HERE, "cudecomp")], **CUDECOMP)
fact(all(": 0, sum" in row for row in runs["native"].output.splitlines()), "cudecomp: every rank has what it should",
     runs["native"].shown())
# Each of the four ranks asks for one that is refused, which counts as a call, and for three that it gets.
fact(runs["native"].of("autotune") == [16, 16, 16], "cudecomp: natively the autotuner makes its work areas in each round",
     [runs["native"].of("autotune")])
fact(runs["served"].of("autotune")[1:] == [4, 4], "cudecomp: served, from the second round on only what is refused is asked for",
     [runs["served"].of("autotune")])
fact(runs["served"].of("areas") == runs["native"].of("areas"), "cudecomp: its own memory by handle is made by the driver, as natively",
     [runs["served"].of("areas"), runs["native"].of("areas")])
