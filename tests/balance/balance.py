#!/usr/bin/env python3
"""What is in use on a device, as its driver says, is what memshim has in the terms of balances[], and the simulated driver's own ledger says the
same of each: for every program among the tests, in every mode, told what it wants to be told (commands.py). TEST_BALANCE=all runs them all,
1/4 to 4/4 (or of any other number) a part of all, a pattern those whose name matches; without it there is a part of each. A program without a
row fails in a mode unless commands.py says why it has none, and its report says the same. The last line counts."""
import collections
import concurrent.futures
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.environ["top_srcdir"], "tests", name) for name in ("hooks", "balance")]
import commands  # noqa: E402
import hooklib  # noqa: E402
from hooklib import BUILD, MEMSHIM, TMP, fact, native_environment, plan, shim_environment  # noqa: E402

POOL = ("requested", "rounding", "limbo", "cached", "stranded", "pinned")
TERMS = POOL + ("followed", "contexts", "untracked")
MIB = 1 << 20
CONTEXT = 20 * MIB

MODES = {
    "pool": {},
    "track": {"MEMSHIM_MODE": "track"},
    "none": {"MEMSHIM_PACK": "none"},
    "vmm": {"MEMSHIM_BACKING": "vmm"},
    "keep": {"MEMSHIM_KEEP": "0"},
    "strict": {"MEMSHIM_FREE": "strict"},
}
LATE, KILLED_AFTER = 200, 5  # seconds
# For every run of the tests.
PART = {"sim/driver_pool": ("pool", "track"), "sim/runtime_memory_13": ("pool", "none", "vmm"), "sim/driver_graphmem": ("pool",),
        "sim/driver_vmm": ("pool",), "sim/nccl_calls": ("pool",), "acl/calls": ("pool",), "hip/hooks": ("pool", "track"),
        "balance/agent": ("pool", "track", "none"), "nccl/buffers": ("pool",), "faults/streams": ("track",), "helpers/tap_selftest": ("pool",)}


def books_of(folder):
    """Per process: the lines of the simulator's ledger, in order."""
    found = {}
    for path in glob.glob(os.path.join(folder, "*.books")):
        lines = []
        with open(path, encoding="utf-8") as file:
            for line in file:
                words = line.split()
                lines.append((words[0], int(words[1]), {k: int(v) for k, v in (word.split("=") for word in words[2:])}))
        found[int(os.path.basename(path).split(".")[0])] = lines
    return found


WORLDS = {"cuda": "cuda", "hip": "HIP", "acl": "runtime"}


def own(line):
    """What of the device's capacity is this process's."""
    return sum(line[k] for k in ("asked", "contexts", "modules", "lazy", "graphs", "rounding", "arrays", "pools", "leaving"))


def rest(line):
    """Others', and what of this process's own no call tells: what is loaded as it is first used, and what is on its way back."""
    return sum(line[k] for k in ("lazy", "leaving", "arrays", "others"))


def hidden(lines):
    """What else was in use of a device when its first context began: how big that is nobody tells, so it counts as the context's."""
    return rest(lines[0]) if lines else 0


def differs(row, line, most_hidden):
    """What is wrong with a row that is to be of the same moment as a line; '' if nothing."""
    if row["in_use_bytes"] != own(line) + line["others"]:
        return "in_use"
    ours = sum(row[k] for k in POOL) + row["followed"] - row["driver_rounding"] - row["driver_cached"]
    if ours != line["asked"] + line["graphs"]:
        return "known %d, asked %d graphs %d" % (ours, line["asked"], line["graphs"])
    taken = line["contexts"] + line["modules"]
    if row["driver_rounding"] != line["rounding"]:
        return "the driver's rounding %d not %d" % (row["driver_rounding"], line["rounding"])
    if row["driver_cached"] != line["pools"]:
        return "in the driver's pools %d not %d" % (row["driver_cached"], line["pools"])
    if row["contexts"] + row["untracked"] != taken + rest(line) or not taken <= row["contexts"] <= taken + most_hidden:
        return "contexts %d not %d, untracked %d not %d" % (row["contexts"], taken, row["untracked"], rest(line))
    return ""


def kind_of(row, line):
    """What untracked is, of a row that is as the line says."""
    if row["untracked"] == line["others"]:
        return "others' alone"
    return "others' and " + ", ".join(k for k in ("lazy", "leaving", "arrays") if line[k]) if row["contexts"] == line["contexts"] + line["modules"] else "less, since a context has it"


def check_row(row, lines):
    """What its untracked bytes are, and complaints."""
    if sum(row[k] for k in TERMS) != row["in_use_bytes"]:
        return "", ["the terms of %s do not add up" % row]
    if row["moment"] == "end":
        return "not asked", []
    same = [line for world, device, line in lines if device == row["device"] and world == WORLDS[row.get("device_api", "cuda")]]
    reasons = [differs(row, line, hidden(same)) for line in same]
    if "" in reasons:
        return kind_of(row, same[reasons.index("")]), []
    close = [(reason, line) for reason, line in zip(reasons, same) if reason != "in_use"]
    return "", ["%s" % row] + ["  %s: %s" % pair for pair in close[:3]] + ["  of %d lines" % len(same)]


# How many rows had which untracked bytes.
kinds_of_rows = collections.Counter()


def check_reports(folder, books, is_held=True):
    """(reports, rows, complaints) of all that a folder holds."""
    lines, complaints, rows, reports = books_of(books), [], 0, []
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        reports.append(report)
        for row in report["balances"]:
            rows += 1
            kind, wrong = check_row(row, lines.get(report["run"]["pid"], []))
            kinds_of_rows[kind if is_held else "not held"] += 1
            complaints += wrong if is_held or "add up" in " ".join(wrong) else []
        valid = subprocess.run([os.environ["TEST_VALID"], path], text=True, capture_output=True, check=False)
        if valid.returncode:
            complaints += valid.stdout.splitlines() + valid.stderr.splitlines()
    return reports, rows, complaints


def folders():
    folder = tempfile.mkdtemp(dir=TMP)
    for name in ("books", "in", "ledgers"):
        os.mkdir(os.path.join(folder, name))
    return folder, os.path.join(folder, "books"), os.path.join(folder, "in")


def environment(folder, mode, **more):
    given = {"MEMSIM_CONTEXT": "%d" % CONTEXT, "MEMSIM_LEDGER": os.path.join(folder, "books"), "TEST_TMP": os.path.join(folder, "in"),
             "MEMSHIM_DIR": os.path.join(folder, "ledgers"), **MODES[mode]}
    return {**shim_environment(os.path.join(folder, "%e.%p.json"), **given), **more}


def recover(folder, mode):
    """Reports of processes that left none."""
    ledgers = os.path.join(folder, "ledgers")
    if not glob.glob(os.path.join(ledgers, "*.ledger")):
        return
    subprocess.run([MEMSHIM, "recover", ledgers], env=environment(folder, mode), capture_output=True, check=False)
    for path in glob.glob(os.path.join(ledgers, "*.json")):
        os.rename(path, os.path.join(folder, os.path.basename(path)))


def end_of(command, env, folder, told, seconds):
    """Runs it and returns its status, or "late": then it is killed with all that it began."""
    with subprocess.Popen(command, env=env, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          start_new_session=True) as process:
        try:
            process.communicate(told.encode(), timeout=seconds)
            return process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return "late"


def run(command, mode, told, seconds, is_held, **more):
    """Runs it, and returns how it ended, its reports, how many rows they have, and complaints."""
    folder, books, inside = folders()
    status = end_of(command, environment(folder, mode, **more), inside, told, seconds)
    recover(folder, mode)
    found = (status,) + check_reports(folder, books, is_held)
    shutil.rmtree(folder, ignore_errors=True)
    return found


def ask(command):
    """The lines that a program prints natively."""
    return subprocess.run(command, env=native_environment(), stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=60, check=True).stdout.splitlines()


class Agent:
    """A process that does as it is told (agent.c); without a mode it is one without memshim."""

    def __init__(self, folder, mode, **more):
        env = environment(folder, mode or "pool", **more)
        if not mode:
            del env["LD_PRELOAD"]
        self.process = subprocess.Popen([os.path.join(BUILD, "tests", "balance", "agent")], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, cwd=os.path.join(folder, "in"))

    def does(self, *lines):
        answers = []
        for line in lines:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answers.append(self.process.stdout.readline().strip())
        assert not [a for a in answers if a in ("", "failed")], (lines, answers)
        return answers

    def ends(self):
        self.process.communicate(timeout=60)

    def dies(self):
        self.process.kill()
        self.process.communicate(timeout=60)


def rows_of(reports, agent, moment, device=0):
    return [row for r in reports if r["run"]["pid"] == agent.process.pid for row in r["balances"]
            if row["moment"] == moment and row["device"] == device]


def scenario(name, mode, act, **more):
    """`act` drives agents and returns what to expect of whose rows: (agent, moment, device, key, bytes)."""
    folder, books, _ = folders()
    agents = []

    def start(own_mode):
        agents.append(Agent(folder, own_mode, **more))
        return agents[-1]

    expected = act(start, mode)
    for agent in agents:
        if agent.process.poll() is None:
            agent.ends()
    recover(folder, mode)
    reports, rows, complaints = check_reports(folder, books)
    for agent, moment, device, key, value in expected:
        found = rows_of(reports, agent, moment, device)
        if len(found) != 1 or found[0][key] != value:
            complaints.append("%s of %s on device %d is not %d: %s" % (key, moment, device, value, found))
    fact(rows and not complaints, "%s, %s: %d rows of %d reports" % (name, mode, rows, len(reports)), complaints or ["no rows"])


def beside(start, mode):
    one = start(mode)
    one.does("alloc %d" % (40 * MIB), "sync")
    other = start(None)
    other.does("alloc %d" % (100 * MIB))
    one.does("alloc %d" % (64 * MIB), "sync")
    return [(one, "latest", 0, "untracked", 100 * MIB + CONTEXT), (one, "latest", 0, "contexts", CONTEXT)]


def killed(start, mode):
    one, other = start(mode), start(mode)
    one.does("alloc %d" % (40 * MIB), "sync")
    other.does("alloc %d" % (100 * MIB), "sync")
    other.dies()
    one.does("alloc %d" % (64 * MIB), "sync")
    return [(one, "latest", 0, "untracked", 0), (one, "latest", 0, "contexts", CONTEXT)]


def before(start, mode):
    """Others' memory seems the context's until it is gone."""
    other, one = start(None), start(mode)
    other.does("alloc %d" % (100 * MIB))
    one.does("alloc %d" % (40 * MIB), "sync")
    other.dies()
    one.does("alloc %d" % (64 * MIB), "sync")
    return [(one, "latest", 0, "untracked", 0), (one, "latest", 0, "contexts", CONTEXT)]


def imports(start, mode):
    one, other = start(mode), start(mode)
    handle = one.does("alloc %d" % (8 * MIB), "export 0")[1]
    other.does("alloc %d" % (4 * MIB), "import " + handle, "alloc %d" % (32 * MIB), "sync")
    one.does("alloc %d" % (32 * MIB), "sync")
    other.does("free 1")
    return []


def hosts(start, mode):
    one = start(mode)
    one.does("managed %d" % (50 * MIB), "pinned %d" % (30 * MIB), "alloc %d" % (40 * MIB), "sync")
    return [(one, "latest", 0, "contexts", CONTEXT), (one, "latest", 0, "untracked", 0), (one, "latest", 0, "managed_bytes", 50 * MIB)]


def ordered(start, mode):
    one = start(mode)
    one.does("async %d" % (5 * MIB), "sync", "pool %d" % (70 * MIB), "sync", "free 0", "sync", "graph %d" % (24 * MIB), "alloc 1000", "sync")
    return [(one, "latest", 0, "contexts", CONTEXT)]


def devices(start, mode):
    one = start(mode)
    one.does("alloc %d" % (40 * MIB), "sync", "device 1", "alloc %d" % (24 * MIB), "sync", "device 0", "free 0", "alloc %d" % (90 * MIB), "sync")
    return [(one, "latest", device, key, value) for device in (0, 1) for key, value in (("contexts", CONTEXT), ("untracked", 0))]


SCENARIOS = {"a process without memshim beside it": (beside, {}), "a process that is killed beside it": (killed, {}),
             "others' memory before its own": (before, {}), "memory that another process exports": (imports, {}),
             "managed and pinned memory": (hosts, {}), "pools and graphs": (ordered, {}), "two devices": (devices, {"MEMSIM_DEVICES": "2"})}


def programs(pattern):
    found = [p for p in sorted(glob.glob(os.path.join(BUILD, "tests", "*", "*"))) if os.path.isfile(p) and os.access(p, os.X_OK)]
    found = [p for p in found if "." not in os.path.basename(p) and open(p, "rb").read(4) == b"\x7fELF"]
    return [p for p in found if re.search(pattern, p)]


def pairs():
    """(name, path, words, told, variables, mode) of each that is wanted."""
    chosen = os.environ.get("TEST_BALANCE", "")
    part = re.fullmatch(r"(\d+)/(\d+)", chosen)
    if not chosen:
        paths = [(os.path.join(BUILD, "tests", name), modes) for name, modes in PART.items()]
    else:
        paths = [(path, tuple(MODES)) for path in programs("" if chosen == "all" or part else chosen)]
    found = []
    for path, modes in paths:
        name = os.path.relpath(path, os.path.join(BUILD, "tests"))
        for words, told, more in commands.of(name, lambda asked, path=path: ask([path, *asked])):
            found += [(" ".join([name, *words]), path, words, told, more, mode) for mode in modes]
    first, last = ((int(part[1]) - 1, int(part[1])) if part else (0, 1))
    parts = int(part[2]) if part else 1
    return found[len(found) * first // parts:len(found) * last // parts]


def why_none(reports):
    """What the reports say of why they have no row."""
    said = {device["balance"] for report in reports for device in report["devices"]} - {"told"}
    return " and ".join(sorted(said)) or ("no device" if reports else "no report")


def judge(title, mode, outcome):
    """(what was found, complaints) of a pair: "rows", or why there are none."""
    status, reports, rows, complaints = outcome
    found = "rows" if rows else why_none(reports)
    expected = commands.expected(title, mode)
    if found not in expected:
        complaints = complaints + ["%s, not %s" % (found, " or ".join(expected))]
    if status == "late" and not commands.hangs(title, mode):
        complaints = complaints + ["it was killed: it had not ended in time"]
    return found, complaints


def every_pair():
    """Runs all that are wanted, and counts what they had."""
    counts, programs_seen, rows_seen, left_out = collections.Counter(), set(), 0, collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = [(title, mode, pool.submit(run, [path, *words], mode, told, KILLED_AFTER if commands.hangs(title, mode) else LATE,
                                          commands.is_held(title, mode), **more))
                for title, path, words, told, more, mode in pairs()]
        for title, mode, job in jobs:
            status, reports, rows, _ = job.result()
            found, complaints = judge(title, mode, job.result())
            fact(not complaints, "%s, %s: %d rows of %d reports, %s (%s)" % (title, mode, rows, len(reports), found, status), complaints)
            counts[found] += 1
            rows_seen += rows
            programs_seen.add(title.split()[0])
            left_out.update(device["balance"] for r in reports for device in r["devices"] if device["balance"] != "told")
    if os.environ.get("TEST_BALANCE") == "all":
        useless = commands.useless([(title, mode) for title, mode, _ in jobs])
        fact(not useless, "each exception is one of some pair", useless)
    without = ", ".join("%d %s" % (n, found) for found, n in sorted(counts.items()) if found != "rows")
    return "%d programs, %d pairs, %d rows; pairs without a row: %s; devices without one: %s" % (
        len(programs_seen), len(jobs), rows_seen, without or "none", ", ".join("%d %s" % (n, why) for why, n in sorted(left_out.items())) or "none")


def main():
    if "/" not in os.environ.get("TEST_BALANCE", "") or os.environ["TEST_BALANCE"].startswith("1/"):
        for name, (act, more) in SCENARIOS.items():
            for mode in ("pool", "track") if act is imports else ("pool", "track", "vmm"):
                scenario(name, mode, act, **more)
    tally = every_pair()
    plan(hooklib.number)
    print("# untracked: %s" % ", ".join("%d %s" % (n, kind) for kind, n in sorted(kinds_of_rows.items()) if kind))
    print("# %s" % tally)


main()
