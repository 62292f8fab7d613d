"""Runs a program of which the driver refuses calls, and says what it and the report must not show."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, TMP, native_environment, preload  # noqa: E402


class Program:
    """One of the programs beside this file."""

    def __init__(self, name, **sim):
        self.path = os.path.join(BUILD, "tests", "faults", name)
        self.sim = sim
        self.runs = 0

    def counts(self, functions, more):
        """How often a run in which nothing is refused calls each of these: to refuse a later call is the same run once more. A few more, since what is
        asked until it is so is asked more or less often."""
        self.sim.update(MEMSIM_COUNT="1", COUNTED=",".join(functions))
        lines = self.run("", more)[1]
        del self.sim["MEMSIM_COUNT"], self.sim["COUNTED"]
        return {line.split()[1]: int(line.split()[2]) + 2 for line in lines if line.startswith("count ") and not line.endswith("-1")}

    def run(self, fail, more=None):
        """(exit status, lines, report) of one run under memshim; natively if `more` is None."""
        self.runs += 1
        path = os.path.join(TMP, "report.%d.json" % self.runs)
        env = native_environment(MEMSIM_FAIL=fail, **self.sim)
        if more is not None:
            env.update(LD_PRELOAD=preload(), MEMSHIM_REPORT=path, MEMSHIM_LOG="none", MEMSHIM_OOM_WAIT_MS="20", **dict({"MEMSHIM_MODE": "pool"}, **more))
        try:
            done = subprocess.run([self.path], env=env, text=True, capture_output=True, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            return 124, ["it hangs"], None
        report = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
            os.remove(path)
        return done.returncode, done.stdout.splitlines() + done.stderr.splitlines(), report


def blocks(report):
    """Bytes of live blocks: without what the driver keeps for graphs."""
    return sum(d["live_bytes"] - d["kinds"].get("graph", {"live_bytes": 0})["live_bytes"] for d in report["devices"])


def untrue(lines, report):
    """What the report says otherwise than the program."""
    if report is None:
        return ["there is no report"]
    found = []
    apis = {a["name"]: a for a in report["apis"]}
    for line in lines:
        words = line.split()
        if words[0] == "tally":
            got = apis.get(words[1], {"calls": 0, "failures": 0})
            if (got["calls"], got["failures"]) != (int(words[2]), int(words[3])):
                found.append("%s; the report has %d and %d" % (line, got["calls"], got["failures"]))
        elif words[0] == "live" and blocks(report) != int(words[1]):
            found.append("%s; the report has %d" % (line, blocks(report)))
    for device in report["devices"]:
        for total, parts in (("reserved_bytes", "reserved_parts"), ("peak_reserved_bytes", "peak_parts")):
            if device.get(total, 0) != sum(device.get(parts, {}).values()):
                found.append("%s is %d, its parts %s" % (total, device[total], device[parts]))
    for pool in report["pools"]:
        for key in ("reserved_bytes", "live_bytes", "limbo_bytes") if pool.get("streams") else ():
            if pool[key] != sum(stream[key] for stream in pool["streams"]):
                found.append("pool %d: %s is %d, and its streams have %s" % (pool["id"], key, pool[key], [stream[key] for stream in pool["streams"]]))
    return found


def pairs(lines):
    """(function, code) of what was refused."""
    return {tuple(line.split(": ", 1)[1].rsplit(" ", 1)) for line in lines if line.startswith("round ") and line.rsplit(" ", 1)[1].isdigit()
            and "instead of" not in line}


def judge(fail, may_see, outcome, plain):
    """What is wrong with a run; `may_see` tells whether the program may be told of a (function, code)."""
    status, lines, report = outcome
    if not lines or lines[-1].split()[0] != "live":
        return ["%s: exit status %d, %s" % (fail, status, lines[-3:])]
    found = [line for line in lines if "overlap" in line or "instead of" in line]
    if ("cudaStreamEndCapture", "801") not in pairs(lines):  # the runtime could not look it up: what began cannot end, natively as well
        found += ["%s %s" % pair for pair in pairs(lines) if not may_see(pair)]
    if not pairs(lines):
        found += [line for line in lines if line not in plain]
    return ["%s: %s" % (fail, line) for line in found + untrue(lines, report)]
