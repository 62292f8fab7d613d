#!/usr/bin/env python3
"""No call of memshim's destroys a capture that is open in another thread.

Captures begin and end in two threads while a third makes calls of one kind (tests/captures/beside.c), while the device is at work; natively
none of those captures is destroyed, and so none may be under memshim, in whatever way it is set up. docs/internals/vendor-calls.md lists what memshim
calls meanwhile. Functions by which something is found out take their time here, so that a capture may begin between what was found and what is done about it. TEST_CAPTURES is
how many calls there are in each run (60 without, 10 under a sanitizer, where what is native is left out, too; 1000 is a full run). Of HIP's own calls some destroy captures natively.
"""
import concurrent.futures
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, fact, native_environment, plan, shim_environment  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "captures", "beside")
HIP = os.path.join(BUILD, "tests", "captures", "beside_hip")
SANITIZED = bool(os.environ["TEST_SANITIZE"])
RUNS = os.environ.get("TEST_CAPTURES", "10" if SANITIZED else "60")
WORK = {"MEMSIM_COST": "memset=200000,cuEventCreate=100000,cuCtxRecordEvent=100000,cuMemFree_v2=50000,hipDeviceSynchronize=100000,hipEventQuery=50000,hipEventRecord=50000,hipMemPoolTrimTo=50000,hipStreamQuery=50000,hipFree=100000"}
SMALL = {"MEMSIM_MEMORY": "256M", "MEMSHIM_OOM_WAIT_MS": "5"}
CALLS = ("allocate", "pitched", "three", "contexts", "in_order", "free_in_order", "wait", "trim", "pools", "ask", "export", "followed", "streams", "nccl")
# Besides the defaults: what has calls of its own.
VARIANTS = (("allocate", {"MEMSHIM_FREE": "strict"}), ("allocate", {"MEMSHIM_POISON": "both"}), ("allocate", {"MEMSHIM_BACKING": "vmm"}),
            ("allocate", {"MEMSHIM_KEEP": "0"}), ("wait", {"MEMSHIM_KEEP": "0"}), ("in_order", {"MEMSHIM_POISON": "both"}),
            ("export", {"MEMSHIM_IPC": "native"}), ("allocate", {"MEMSHIM_PACK": "none"}), ("allocate", {"MEMSHIM_LIMIT": "64M"}),
            ("full", SMALL), ("full", dict(SMALL, MEMSHIM_BACKING="vmm")), ("pitched", {"MEMSHIM_FREE": "strict"}), ("followed", {"MEMSHIM_MODE": "track"}))
HIP_CALLS = ("allocate", "in_order", "ask", "streams")
HIP_VARIANTS = (("allocate", {"MEMSHIM_POISON": "both"}), ("allocate", {"MEMSHIM_KEEP": "0"}), ("full", SMALL))


def run(program, call, mode, more, shim):
    env = dict(WORK, **more)
    env = shim_environment("none", MEMSHIM_LOG="none", **env) if shim and "MEMSHIM_MODE" not in env else \
        dict(shim_environment("none", MEMSHIM_LOG="none"), **env) if shim else native_environment(**env)
    return subprocess.run([program, call, mode, RUNS], env=env, text=True, capture_output=True, timeout=250, check=False)


def look(name, done):
    said = re.match(r"captures (\d+) destroyed (\d+)$", done.stdout.strip())
    fact(done.returncode == 0 and said and int(said.group(1)) > 0 and said.group(2) == "0", name,
         ["exit status %d: %s%s" % (done.returncode, done.stdout, done.stderr)])


cases = []
for program, what, names, variants in ((PROGRAM, "CUDA", CALLS, VARIANTS), (HIP, "HIP", HIP_CALLS, HIP_VARIANTS)):
    for mode in ("global", "thread_local"):
        if program == PROGRAM and not SANITIZED:
            cases += [(program, call, mode, {}, False, "%s: %s beside captures, %s, natively" % (what, call, mode)) for call in names]
        cases += [(program, call, mode, {}, True, "%s: %s beside captures, %s" % (what, call, mode)) for call in names]
        cases += [(program, call, mode, more, True, "%s: %s beside captures, %s, %s" % (what, call, mode, " ".join("%s=%s" % pair for pair in more.items())))
                  for call, more in variants]
chosen = [case for case in cases if re.search(os.environ.get("TEST_CALLS", ""), case[-1])]
plan(len(chosen))
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    for case, job in [(case, pool.submit(run, *case[:-1])) for case in chosen]:
        look(case[-1], job.result())
