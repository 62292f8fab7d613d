"""A busy program is killed with SIGKILL at random moments; `memshim recover` must give a report that is valid and true.

True: every block that the program's own log has as live is in the report, and what the report has besides are calls that
threads were in, one each at most. TEST_KILLS says how often (a few by default; 500 for a full run). Prints TAP.
"""

import collections
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from needs import lacking  # noqa: E402

THREADS = 4
ENTRIES = 128
LIVE = 2
KILLS = int(os.environ.get("TEST_KILLS", "25"))
TMP = os.environ["TEST_TMP"]
MEMSHIM = os.environ["TEST_BIN"]


def environment():
    """The simulated GPU, followed."""
    library = os.environ["TEST_LIB"]
    return {**os.environ, "LD_LIBRARY_PATH": os.environ["TEST_SIM"], "LD_PRELOAD": library, "MEMSHIM_DIR": TMP,
            "MEMSHIM_REPORT": TMP + "/never.json", "MEMSHIM_TRACE": TMP + "/churn.trace",
            "MEMSHIM_TRACE_MAX": random.choice(["none", "1M"])}


def read_log(path):
    """What each thread held, and what it may have been at: address -> bytes, and per thread its busy entries."""
    live, busy = {}, []
    with open(path, "rb") as log:
        data = log.read()
    if len(data) < THREADS * ENTRIES * 32:  # it has only just been made
        return {}, []
    for thread in range(THREADS):
        mine = []
        for entry in range(ENTRIES):
            address, size, state, _ = struct.unpack_from("<4Q", data, (thread * ENTRIES + entry) * 32)
            if state == LIVE:
                live[address] = size
            elif state:
                mine.append((address, size, state))
        busy.append(mine)
    return live, busy


def run_and_kill(log):
    """Starts the program, lets it run for a while of its own choosing, kills it; its ledger."""
    if os.path.exists(log):
        os.unlink(log)
    command = [os.environ["top_builddir"] + "/tests/ledger/churn", log, str(THREADS)]
    with subprocess.Popen(command, env=environment()) as child:
        for _ in range(2000):
            if os.path.exists(log) and any(read_log(log)[0]) and [f for f in os.listdir(TMP) if f.endswith(".ledger")]:
                break
            time.sleep(0.002)
        time.sleep(random.random() ** 2 * 0.1)
        child.send_signal(signal.SIGKILL)
        child.wait()
    ledgers = [f for f in os.listdir(TMP) if f.endswith(".ledger")]
    assert len(ledgers) == 1, ledgers
    return os.path.join(TMP, ledgers[0])


def blocks(report):
    """(segment, block) of every live block, served or followed."""
    return [(s, b) for s in report["segments"] for b in s["blocks"] if b["state"] == "live"]


def compare(log, report):
    """What is wrong with the report, in words; empty if nothing is."""
    live, busy = read_log(log)
    recovered = {int(s["address"], 16) + b["offset"]: b["bytes"] for s, b in blocks(report)}
    wrong = [f"{a:#x} is live in the log and not in the report" for a in live if recovered.get(a) != live[a]]
    most = sum(1 for mine in busy if mine)
    unknown = [a for a in recovered if a not in live]
    if any(len(mine) > 1 for mine in busy):
        wrong.append("the log itself has a thread in two calls")
    if len(unknown) > most:
        wrong.append(f"{len(unknown)} blocks are in the report alone, {most} threads were in a call")
    sizes = {size for mine in busy for _, size, _ in mine}
    wrong += [f"{a:#x} is nobody's" for a in unknown if recovered[a] not in sizes]
    run = report["run"]
    if run["end_reason"] != "killed" or not run["complete"] or report["diagnostics"]:
        wrong.append(f"run {run['end_reason']} {run['complete']} {report['diagnostics']}")
    total = sum(recovered.values())
    if sum(d["live_bytes"] for d in report["devices"]) != total:
        wrong.append("a device's live bytes are not those of its blocks")
    return wrong


def compare_trace(path, report):
    """What is wrong with the trace, which must say what the report says but for the one call that each thread was in."""
    live, wrong = {}, []
    trace = subprocess.run([MEMSHIM, "trace", "--text", path], capture_output=True, text=True, check=False)
    if trace.returncode != 0:
        return ["trace: " + trace.stderr]
    for line in trace.stdout.splitlines():
        words = line.split()
        if line[0] != "#" and words[1] == "a":
            live[words[2]] = int(words[3])
        elif line[0] != "#" and live.pop(words[2], None) != int(words[3]):
            wrong.append(f"the trace has a free of what is not there: {line!r}")
    sizes = collections.Counter(live.values())
    sizes.subtract(b["bytes"] for _, b in blocks(report))
    if sum(abs(count) for count in sizes.values()) > THREADS:
        wrong.append(f"the trace and the report differ: {sizes}")
    return wrong


def once(log):
    """One kill: what is wrong."""
    ledger = run_and_kill(log)
    path = ledger + ".json"
    done = subprocess.run([MEMSHIM, "recover", ledger], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return ["recover: " + done.stderr]
    checked = subprocess.run([os.environ["TEST_VALID"], path], capture_output=True, text=True, check=False)
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    os.unlink(path)
    wrong = compare(log, report) + compare_trace(TMP + "/churn.trace", report)
    os.unlink(TMP + "/churn.trace")
    if checked.returncode != 0:
        wrong.append("validate: " + checked.stdout + checked.stderr)
    if os.path.exists(ledger):
        wrong.append("the ledger was not removed")
        os.unlink(ledger)
    return wrong


def main():
    """So many kills, one fact for each ten."""
    if lacking():
        return
    seed = int(os.environ.get("TEST_SEED", random.randrange(1 << 30)))
    random.seed(seed)
    print(f"1..1\n# seed {seed}")
    wrong = 0
    for number in range(KILLS):
        found = once(TMP + "/log")
        wrong += bool(found)
        for line in found[:5]:
            print(f"# kill {number}: {line}")
    print(f"{'not ok' if wrong else 'ok'} 1 - after {KILLS} kills at random moments the report is valid and true")
    sys.exit(wrong != 0)


main()
