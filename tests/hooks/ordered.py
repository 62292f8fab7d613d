#!/usr/bin/env python3
"""MEMSHIM_FREE=ordered: by which ways work is seen, when the policy gives up, and that it is nowhere in the way under another."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from hooklib import HERE, TMP, fact, native_environment, plan, shim_environment, skip  # noqa: E402

PROGRAM = os.path.join(HERE, "ordered_user")
REPORT = os.path.join(TMP, "report.json")
ORDERED = {"MEMSHIM_FREE": "ordered", "MEMSHIM_LOG": "none", "MEMSIM_DEVICES": "2"}
# What gives up, and a word of the line that says why.
BLIND = (("next", "dlsym(RTLD_NEXT)", {}), ("deepbind", "libm.so.6", {}), ("namespace", "libm.so.6", {}), ("peer", "cuCtxEnablePeerAccess", {}),
         ("context-wait", "cuCtxWaitEvent", {}), ("graph", "launched by the device", {}), ("green", "cuGreenCtxCreate", {}),
         ("poison", "MEMSHIM_POISON", {"MEMSHIM_POISON": "alloc"}), ("shared", "MEMSHIM_IPC", {"MEMSHIM_IPC": "native"}))
WAYS = ("linked", "dlsym", "default", "lookup", "runtime")


def run(*arguments, **variables):
    env = shim_environment(REPORT, **variables) if variables else native_environment(MEMSIM_DEVICES="2")
    done = subprocess.run([PROGRAM, *arguments], env=env, text=True, capture_output=True, timeout=60, check=False)
    return done.stdout.splitlines() + ["exit %d" % done.returncode] + done.stderr.splitlines()


def told():
    with open(REPORT, encoding="utf-8") as file:
        return [line for line in json.load(file)["diagnostics"] if "MEMSHIM_FREE=ordered" in line]


plan(4 + 2 * len(WAYS) + 2 * len(BLIND))
said = run("again", "nothing", **ORDERED)
fact(said == ["again 1", "exit 0"], "while one stream has work, memory comes again at once", said)
fact(len(told()) == 1 and "as fence" not in told()[0], "the report counts, and no more", told())
for way in WAYS:
    native, said = run("join", way), run("join", way, **ORDERED)
    fact(native[1:] == ["kept 1", "exit 0"] and said == ["again 1", "kept 1", "exit 0"], "a stream that joins by %s waits" % way, native + said)
    lines = told()
    fact(len(lines) == 1 and " 1 waits on the device, 0 by the host" in lines[0], "... on the device", lines)
for what, word, more in BLIND:
    if what == "deepbind" and os.environ["TEST_SANITIZE"]:
        for fact_ in ("it is not used again before its work is over", "the report says why"):
            skip("%s: %s" % (what, fact_), "sanitizers refuse RTLD_DEEPBIND")
        continue
    said = run("again", what, **dict(ORDERED, **more))
    fact(said == ["again 0", "exit 0"], "%s: it is not used again before its work is over" % what, said)
    lines = told()
    fact(any("goes on as fence" in line and word in line for line in lines), "%s: the report says why" % what, lines)
native = run("whose")
said = run("whose", MEMSHIM_MODE="pool", MEMSHIM_FREE="fence")
fact(native == said and any(": libcuda.so" in line for line in native), "under the fence lookups answer with the driver's own functions", native + said)
said = run("whose", **ORDERED)
ours = [line for line in said if "libmemshim.so" in line]
fact(len(ours) >= 7 and not any("Query" in line for line in ours), "under ordered with wrappers, for what submits work", said)
