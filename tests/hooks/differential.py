#!/usr/bin/env python3
"""The simulator's own tests, and the programs of other tests, say the same under memshim as without it.

Every program under tests/sim is run natively, followed, and served; output and exit status must not differ. What differs between any two runs
(addresses, times, the values that a failed fact shows) is made equal first. Run by the harness.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from hooklib import BUILD, TMP, fact, native_environment, plan, shim_environment, skip  # noqa: E402

VARIES = ((re.compile(r"0x[0-9a-f]{6,}"), "ADDRESS"), (re.compile(r"\b\d+(\.\d+)? ?(ns|us|ms|s|seconds)\b"), "TIME"),
          (re.compile(r"\bpid \d+"), "PID"))

SHELLS = ("runtime_lookup",)
# What these say of the driver's own allocator is not so of the pool: each a permitted difference, with its reason.
NOT_SERVED = {
    "driver_memory": "granules, and what a copy past the end of a block answers, are the pool's",
    "driver_fault": "it refuses the n-th call of the driver's, of which the pool makes others",
    "driver_kernel": "a kernel that touches freed memory touches memory of the pool",
    "driver_vmm": "freed memory can be touched while the pool holds it",
    "driver_pool": "what a pool keeps, and which memory a stream gets, is ours: tests/stream",
    "driver_reuse": "which memory a stream gets that another has freed is ours: tests/stream",
    "driver_poolunit": "as driver_pool",
    "record_pool": "as driver_pool",
    "nvml": "a process uses what its pool holds, also of what it has freed",
    "driver_ipc": "a handle of a packed block is memshim's own: tests/ipc",
}


def programs():
    folder = os.path.join(BUILD, "tests", "sim")
    found = [os.path.join(folder, name) for name in sorted(os.listdir(folder))] if os.path.isdir(folder) else []
    return [p for p in found if os.path.isfile(p) and os.access(p, os.X_OK) and "." not in os.path.basename(p)]


# Equal under the rule that a free waits, and that captures forbid what they forbid natively.
STRICT = ("driver_context", "driver_stream", "driver_perthread", "driver_capture", "runtime_graph_12", "runtime_graph_13")

# Equal where nothing stays cached when the program waits: its pools have no release threshold.
KEEPS_NOTHING = ("driver_stress",)


def run(program, mode):
    own = tempfile.mkdtemp(dir=TMP)
    more = {"TEST_TMP": own}
    if os.path.basename(program).startswith("record_"):
        more.update(MEMSIM_CARD="rtx3060", MEMSIM_DEVICES="2")
    if os.path.basename(program) in STRICT:
        more["MEMSHIM_FREE"] = "strict"
    if os.path.basename(program) in KEEPS_NOTHING:
        more["MEMSHIM_KEEP"] = "0"
    env = shim_environment(os.path.join(TMP, "%e.%p.json"), MEMSHIM_MODE=mode, **more) if mode else native_environment(**more)
    done = subprocess.run([program], env=env, text=True, capture_output=True, timeout=60, check=False, errors="replace")
    text = "exit %d\n" % done.returncode + done.stdout + done.stderr
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return [line for line in text.replace(own, "OWN").splitlines() if not line.startswith("# got ")]


def compare(program, mode):
    name = "%s, %s" % (os.path.basename(program), {"track": "followed", "pool": "served"}[mode])
    if mode == "pool" and os.path.basename(program) in NOT_SERVED:
        skip(name, NOT_SERVED[os.path.basename(program)])
        return
    for _ in range(3):  # threads may take turns differently, but not every time
        try:
            native, other = run(program, None), run(program, mode)
        except subprocess.TimeoutExpired as late:
            native, other = [], ["%s" % late]
        if native == other:
            break
    pairs = zip(native + [""] * len(other), other + [""] * len(native))
    fact(native == other, name, ["natively: %s; with memshim: %s" % (a, b) for a, b in pairs if a != b])


everything = programs()
plan(2 * len(everything) + 1)
for each in everything:
    for how in ("track", "pool"):
        if os.environ["TEST_SANITIZE"] and os.path.basename(each) in SHELLS:
            skip(os.path.basename(each), "it starts a shell, which cannot load a library with a sanitizer")
        else:
            compare(each, how)
reports = len([name for name in os.listdir(TMP) if name.endswith(".json")])
fact(reports > len(everything) >= 5, "%d reports were written" % reports)
