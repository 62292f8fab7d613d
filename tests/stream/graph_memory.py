#!/usr/bin/env python3
"""Memory of graphs' allocation nodes: a program prints the same as natively, and the report has what the driver keeps for graphs, now and
at most, by the calls that made the nodes, and no free that nobody saw."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, TMP, fact, native_environment, plan, shim_environment  # noqa: E402

MAKERS = {"graph_memory": ("cudaMallocAsync", "cuGraphAddMemAllocNode", "cuGraphAddNode", "cuGraphAddNode_v2"),
          "graph_memory_hip": ("hipMallocAsync", "hipGraphAddMemAllocNode", "hipGraphAddNode")}
REPORT = os.path.join(TMP, "report.json")
ENDS = ("kept", "trimmed", "reset")
MODES = ({"MEMSHIM_MODE": "pool"}, {"MEMSHIM_MODE": "track"})


def run(program, end, env):
    """What it printed, by name, and all of it."""
    done = subprocess.run([os.path.join(BUILD, "tests", "stream", program), end], env={**env, "MEMSIM_DEVICES": "2"}, text=True, capture_output=True, timeout=60, check=False)
    lines = done.stdout.splitlines() if done.returncode == 0 else []
    return dict(line.rsplit(" ", 1) for line in lines), lines


def amount(report, device):
    """Of what the driver keeps for graphs."""
    none = {"live_bytes": 0, "peak_live_bytes": 0}
    return next((row["kinds"].get("graph", none) for row in report["devices"] if row["index"] == device), none)


plan(len(MAKERS) * len(ENDS) * (1 + 6 * len(MODES)))
for program, end in ((program, end) for program in MAKERS for end in ENDS):
    said, native = run(program, end, native_environment())
    fact(len(native) > 50 and int(said["most"]) > 0 and (end != "trimmed" or said["reserved"] == "0"), "%s, %s: it holds natively" % (program, end), native)
    for mode in MODES:
        name = "%s, %s, %s" % (program, end, " ".join("%s=%s" % pair for pair in mode.items()))
        _, lines = run(program, end, shim_environment(REPORT, **mode))
        fact(lines == native, "%s: it prints the same" % name, ["%s natively, then %s" % pair for pair in zip(native, lines) if pair[0] != pair[1]])
        valid = subprocess.run([os.environ["TEST_VALID"], REPORT], text=True, capture_output=True, check=False)
        fact(valid.returncode == 0, "%s: the report is valid" % name, [valid.stdout + valid.stderr])
        with open(REPORT, encoding="utf-8") as file:
            report = json.load(file)
        seen = [amount(report, 0)["live_bytes"], amount(report, 1)["live_bytes"], amount(report, 0)["peak_live_bytes"]]
        fact(seen == [int(said["reserved"]), int(said["reserved.other"]), int(said["most"])], "%s: the report has what the driver keeps for graphs" % name,
             ["%s, not %s" % (seen, [said["reserved"], said["reserved.other"], said["most"]])])
        live = sum(row["live_bytes"] for row in report["devices"])
        leaks = sum(leak["bytes"] for leak in report["leaks"])
        fact(live - seen[0] - seen[1] == leaks == 1 << 20, "%s: nothing else is live but what the program has" % name, ["%d live, %d leaked" % (live, leaks)])
        makers = {(site["api"], site["stack"] > 0) for site in report["sites"] if site["kind"] == "graph" and site["total_bytes"]}
        fact(makers and makers <= {(api, True) for api in MAKERS[program]},
             "%s: it is told by the calls that made the nodes, with their stacks" % name, ["%s" % makers])
        coverage = report["coverage"]
        fact(not coverage["unseen_frees"] and not coverage["blind_spots"] and not coverage["replaced_blocks"],
             "%s: no free was of something that nobody saw" % name, ["%s" % coverage])
