#!/usr/bin/env python3
"""Captures that end in other ways than by their end: a program prints the same as natively, and afterwards freed memory is used again, in
every scene and under each policy; so also where the driver refuses to say whether a stream captures, or to end a capture."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, TMP, fact, native_environment, plan, shim_environment  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "stream", "capture_ends")
REPORT = os.path.join(TMP, "report.json")
# Without the question, and with one failed: the question is what counted captures once.
SCENES = [("wrong_thread", None), ("invalid", None), ("joined", None), ("destroyed", None), ("reset", None)]
SCENES += [("refused", None)] + [("refused", "cuStreamIsCapturing@%d=999" % n) for n in range(1, 6)]
SCENES += [("refused", "cuStreamEndCapture@%d=999" % n) for n in (1, 2, 4)] + [("wrong_thread", "cuStreamIsCapturing@1+=999"),
                                                                             ("invalid", "cuStreamIsCapturing@1+=999")]
POLICIES = ({},)
MORE = 24 << 20  # what a scene may add to what is reserved at most without one; with a capture that counts as open it is 48 MiB


def run(scene, fail, env):
    """What it printed."""
    if fail:
        env = {**env, "MEMSIM_FAIL": fail}
    done = subprocess.run([PROGRAM, scene], env=env, text=True, capture_output=True, timeout=60, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else ["exit status %d" % done.returncode]


def reserved():
    """At most, of the first device."""
    with open(REPORT, encoding="utf-8") as file:
        return json.load(file)["devices"][0]["peak_reserved_bytes"]


plan(len(SCENES) * len(POLICIES))
natively = {case: run(*case, native_environment()) for case in SCENES}
for policy in POLICIES:
    run("none", None, shim_environment(REPORT, **policy))
    without = reserved()
    for scene, fail in SCENES:
        native = natively[scene, fail]
        lines = run(scene, fail, shim_environment(REPORT, **policy))
        more = reserved() - without if scene != "joined" else 0  # it frees 200 MiB while a capture is open
        differ = ["%s natively, then %s" % pair for pair in zip(native, lines) if pair[0] != pair[1]]
        fact(lines == native and len(lines) > 2 and "churn.pool_is_small 1" in lines and more < MORE,
             "%s%s%s" % (scene, ", " + fail if fail else "", "".join(", %s=%s" % pair for pair in policy.items())),
             differ + ["%d lines, %d" % (len(native), len(lines)), "%d bytes more than without were reserved" % more])
