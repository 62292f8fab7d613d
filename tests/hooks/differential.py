#!/usr/bin/env python3
"""The simulator's own tests, and the programs of other tests, say the same under memshim as without it.

Every program under tests/sim is run twice; output and exit status must not differ. What differs between any two runs
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


def programs():
    folder = os.path.join(BUILD, "tests", "sim")
    found = [os.path.join(folder, name) for name in sorted(os.listdir(folder))] if os.path.isdir(folder) else []
    return [p for p in found if os.path.isfile(p) and os.access(p, os.X_OK) and "." not in os.path.basename(p)]


def run(program, shimmed):
    own = tempfile.mkdtemp(dir=TMP)
    more = {"TEST_TMP": own}
    env = shim_environment(os.path.join(TMP, "%e.%p.json"), **more) if shimmed else native_environment(**more)
    done = subprocess.run([program], env=env, text=True, capture_output=True, timeout=60, check=False, errors="replace")
    text = "exit %d\n" % done.returncode + done.stdout + done.stderr
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return [line for line in text.replace(own, "OWN").splitlines() if not line.startswith("# got ")]


everything = programs()
plan(len(everything) + 1)
for program in everything:
    if os.environ["TEST_SANITIZE"] and os.path.basename(program) in SHELLS:
        skip(os.path.basename(program), "it starts a shell, which cannot load a library with a sanitizer")
        continue
    for _ in range(3):  # threads may take turns differently, but not every time
        try:
            native, other = run(program, False), run(program, True)
        except subprocess.TimeoutExpired as late:
            native, other = [], ["%s" % late]
        if native == other:
            break
    pairs = zip(native + [""] * len(other), other + [""] * len(native))
    fact(native == other, os.path.basename(program),
         ["natively: %s; with memshim: %s" % (a, b) for a, b in pairs if a != b])
reports = len([name for name in os.listdir(TMP) if name.endswith(".json")])
fact(reports * 2 > len(everything) >= 5, "%d reports were written" % reports)
