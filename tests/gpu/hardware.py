#!/usr/bin/env python3
"""scripts/hardware: the pack, the dry run through every stage, resuming, and docs/user/hardware.md beside its stages. Prints TAP."""
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "hw")]
import context as contexts  # noqa: E402
import stages  # noqa: E402
from gputap import BUILD, TMP, TOP, fact, plan, skip  # noqa: E402

PACK, OUT = os.path.join(TMP, "pack"), os.path.join(TMP, "out")
KEYS = {"name", "title", "status", "reason", "date", "commit", "machine", "notes", "rows"}
NAMES = [name for name, _, _ in stages.STAGES]
FACTS = 15
# What a benchmark does, in small: a row of figures as the last line.
PROGRAM = """
import ctypes, json, sys, time
cuda = ctypes.CDLL("libcudart.so.13")
p = ctypes.c_void_p()
before = time.perf_counter_ns()
for i in range(200):
    status = cuda.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(3 << 20)) or cuda.cudaFree(p)
    if status: sys.exit(status)
print("noise")
print(json.dumps({"ns": (time.perf_counter_ns() - before) / 200}))
"""


def run(*command, **more):
    """A command; its status and output."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MEMSHIM_")} | more
    done = subprocess.run(command, env={**env, "BUILD_DIR": BUILD}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=110, check=False)
    return done.returncode, done.stdout


def results():
    """The JSON of each stage that left one."""
    found = {}
    for name in NAMES:
        path = os.path.join(OUT, name + ".json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                found[name] = json.load(file)
    return found


plan(FACTS)
if os.environ["TEST_SANITIZE"]:
    for _ in range(FACTS):
        skip("scripts/hardware", "a library with a sanitizer is not preloaded here")
    sys.exit(0)
status, text = run(os.path.join(TOP, "scripts", "hardware"), "--no-build", "--pack", PACK)
fact(status == 0 and os.path.exists(os.path.join(PACK, "hardware")), "everything is packed into one folder", text.splitlines())
held = sum(os.path.getsize(os.path.join(at, n)) for at, _, names in os.walk(PACK) for n in names)
fact(held < 64 << 20, f"of less than 64 MiB ({held >> 20})")
tool = os.path.join(PACK, "hardware")
status, text = run(tool, "--dry-run", "--output", OUT, "--stage", "conformance", "--stage", "facts")
fact(status == 0 and set(results()) == {"conformance", "facts"}, "named stages alone are run", text.splitlines())
status, text = run(tool, "--dry-run", "--output", OUT)
fact(status == 0, "the dry run goes through", text.splitlines())
fact(re.findall(r"^(\S+): done before$", text, re.M) == ["facts", "conformance"], "what is done is not run again",
     text.splitlines())
found = results()
fact(list(found) == NAMES, "every stage left its results", found)
wrong = [f"{n}: {r['status']} {r['reason']}" for n, r in found.items()
         if r["status"] not in ("done", "skipped") or not KEYS <= set(r) or (r["status"] == "skipped") != bool(r["reason"])]
fact(not wrong, "each is done, or skipped with a reason", wrong)
done = [n for n, r in found.items() if r["status"] == "done"]
fact(set(done) >= {"facts", "conformance", "costs-idle", "costs-busy", "costs-followed"} | {f"conformance-{m}" for m in stages.MODES},
     "what the simulator can do is done", done)
fact(all(r["machine"]["driver"] == "simulated" and re.match(r"\d{4}-\d\d-\d\d$", r["date"]) for r in found.values()),
     "results say what they were measured on, and when")
with open(os.path.join(OUT, "README.md"), encoding="utf-8") as file:
    page = file.read()
fact(all(f"[{n}]({n}.md)" in page and os.path.exists(os.path.join(OUT, n + ".md")) for n in NAMES), "and pages for people")
with open(os.path.join(TOP, "docs", "user", "hardware.md"), encoding="utf-8") as file:
    documented = set(re.findall(r"`([a-z-]+)`", file.read().split("## Stages")[1].split("\n## ")[0]))
fact(set(NAMES) <= documented, "docs/user/hardware.md lists every stage", sorted(set(NAMES) - documented))
# A machine with a device, as far as the stages can tell: the libraries come from the search path.
real = os.path.join(TMP, "real")
status, text = run(tool, "--output", real, "--stage", "facts-static", "--stage", "costs-idle", LD_LIBRARY_PATH=BUILD)
with open(os.path.join(real, "state.json"), encoding="utf-8") as file:
    state = json.load(file)
fact(state["costs-idle"]["status"] == "done" and state["facts-static"]["status"] != "done" and
     (status == 1) == (state["facts-static"]["status"] == "failed"), "what goes wrong is said, and ends no other stage",
     text.splitlines())
context = contexts.Context(PACK, TMP, False, 60)
os.environ["LD_LIBRARY_PATH"] = BUILD
rows = stages.taking_turns(context, [sys.executable, "-c", PROGRAM], {}, "ns")
fact([r["variant"] for r in rows] == ["native", *stages.MODES] and rows[0]["ratio"] == 1 and all(r["runs"] == 2 for r in rows),
     "a program is run in turns, natively and under memshim", rows)
fact(all(r["memshim_peak_live_bytes"] == 3 << 20 and r["memshim_calls"] >= 400 and r["report_valid"] for r in rows[1:]),
     "and memshim's report of it is read", rows)
del os.environ["LD_LIBRARY_PATH"]
status, text = run(tool, "--output", os.path.join(TMP, "none"))
if os.path.exists("/dev/nvidiactl"):
    skip("without a GPU it says so", "there is a GPU")
else:
    fact(status == 1 and "--dry-run" in text, "without a GPU it says so", text.splitlines())
