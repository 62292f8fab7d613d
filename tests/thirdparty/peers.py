#!/usr/bin/env python3
"""Other allocators over cudaMallocAsync and memory pools: PyTorch's (backend:cudaMallocAsync) and RMM's resources.

What they print natively is what they print under memshim, however it is set; the report is valid, counts the same allocations, and says that they were
served. They come out of the packages that scripts/bench --peers installs; skipped where it has not.
"""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, TMP, fact, native_environment, plan, shim_environment  # noqa: E402

HERE = os.path.join(os.environ["top_srcdir"], "tests", "thirdparty")
PEERS = os.path.join(os.environ["TEST_CACHE"], "peers")
WANTED = os.path.join(os.environ["top_srcdir"], "tests", "bench", "peers", "requirements.txt")
REPORT = os.path.join(TMP, "report.json")
PROGRAMS = {  # name -> includes, libraries' places, libraries, the function that is counted
    "torch_async": (["torch/include"], ["torch/lib"], ["-lc10_cuda", "-lc10"], "cudaMallocAsync"),
    "rmm_async": (["librmm/include", "librmm/include/rapids", "rapids_logger/include"], ["librmm/lib64", "rapids_logger/lib64"],
                  ["-lrmm", "-lrapids_logger"], "cudaMallocFromPoolAsync"),
}
MODES = {"the defaults": {}, "MEMSHIM_MODE=track": {"MEMSHIM_MODE": "track"}, 
         "MEMSHIM_BACKING=vmm": {"MEMSHIM_BACKING": "vmm"}, "MEMSHIM_KEEP=0": {"MEMSHIM_KEEP": "0"},
         "MEMSHIM_POISON=both": {"MEMSHIM_POISON": "both"}}


def skip_all(reason):
    """Says why, and ends."""
    print("1..0 # SKIP " + reason)
    sys.exit(0)


def same(one, other):
    """Whether two files hold the same."""
    if not os.path.exists(other):
        return False
    with open(one, encoding="utf-8") as a, open(other, encoding="utf-8") as b:
        return a.read() == b.read()


def build(name):
    """The program, compiled once for this build directory."""
    includes, places, libraries, _ = PROGRAMS[name]
    program, source = os.path.join(BUILD, "tests", "thirdparty", name), os.path.join(HERE, name + ".cc")
    if not os.path.exists(program) or any(os.path.getmtime(program) < os.path.getmtime(file) for file in (source, os.path.join(PEERS, "installed"))):
        os.makedirs(os.path.dirname(program), exist_ok=True)
        done = subprocess.run(["g++", "-std=c++20", "-DNDEBUG", "-w", *("-I" + os.path.join(PEERS, path) for path in [*includes, "nvidia/cu13/include"]),
                               source, *("-L" + os.path.join(PEERS, path) for path in places), *libraries, os.path.join(BUILD, "libcudart.so.13"),
                               "-pthread", "-o", program], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return None, done.stderr
    return program, ":".join([BUILD, *(os.path.join(PEERS, path) for path in places)])


def run(program, env, path):
    """(exit status, what it printed, what it complained of)."""
    env = {**env, "LD_LIBRARY_PATH": path, "MEMSIM_DEVICES": "2", "MEMSIM_MEMORY": "1G", "PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
    done = subprocess.run([program], env=env, text=True, capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


def reported(function):
    """The row of the function, and what is wrong with the report."""
    wrong = subprocess.run([os.environ["TEST_VALID"], REPORT], capture_output=True, text=True, check=False)
    with open(REPORT, encoding="utf-8") as file:
        report = json.load(file)
    row = next(api for api in report["apis"] if api["name"] == function)
    complaints = wrong.stdout + wrong.stderr if wrong.returncode else ""
    complaints += "".join(" %s: %s" % (key, report["coverage"][key]) for key in ("unseen_frees", "replaced_blocks") if report["coverage"][key])
    return row, complaints


if os.environ.get("TEST_SANITIZE"):
    skip_all("a sanitizer's library cannot be preloaded into a program without")
if not same(WANTED, os.path.join(PEERS, "installed")):
    skip_all("the packages are not there: scripts/bench async --peers installs them (550 MB are fetched)")
plan(len(PROGRAMS) * (1 + 2 * len(MODES)))
for name, (_, _, _, function) in PROGRAMS.items():
    program, path = build(name)
    native = run(program, native_environment(), path) if program else (1, [], path)
    fact(native[0] == 0 and len(native[1]) > 30 and not any(line.split()[1] != "0" for line in native[1] if "wrong" in line),
         "%s holds natively" % name, [native[2][-2000:], "exit status %d" % native[0]] + native[1])
    for mode, variables in MODES.items():
        other = run(program, shim_environment(REPORT, **variables), path) if program else (1, [], "")
        differ = ["%s natively, then %s" % pair for pair in zip(native[1], other[1]) if pair[0] != pair[1]]
        fact(other[0] == 0 and native[1] == other[1], "%s prints the same with %s" % (name, mode),
             differ + ["exit status %d" % other[0], other[2][-2000:]])
        row, complaints = reported(function) if other[0] == 0 else ({}, "no report")
        served = row.get("served", 0) > 0.8 * row.get("calls", 1)
        fact(not complaints and served == ("track" not in mode), "%s: the report with %s is sound" % (name, mode), [complaints, "%s" % row])
