"""A program that exits while its other threads allocate: its report must be valid, and its figures, pieces and rows of one moment.

Valid is what `memshim validate` says. Beside that: the live pieces of a device's segments add up to what its pool says is requested, what is in
limbo likewise, and each live piece that the record knows lies where the record has it. TEST_EXITS says how often (a few by default; 1000 for a full
run); each run draws its number of threads, how long it lives, its mode, and how it ends. Prints TAP.
"""

import json
import os
import random
import subprocess
import sys

sys.dont_write_bytecode = True
from needs import lacking  # noqa: E402

EXITS = int(os.environ.get("TEST_EXITS", "24"))
TMP = os.environ["TEST_TMP"]
MEMSHIM = os.environ["TEST_BIN"]
PROGRAM = os.environ["top_builddir"] + "/tests/ledger/exiting"
MODES = [{}, {}, {"MEMSHIM_BACKING": "vmm"}, {"MEMSHIM_KEEP": "0"}, {"MEMSHIM_MODE": "track"}, {"MEMSHIM_FREE": "immediate"},
         {"MEMSHIM_SINGLE_MIN": "2M", "MEMSHIM_KEEP": "8M"}]
ENDS = ["exit", "exit", "exit", "exit", "fork", "signal", "alive", "kill"]


def environment(mode, number):
    """The simulated GPU, with two devices' worth of nothing but this program on it."""
    return {**os.environ, **mode, "LD_LIBRARY_PATH": os.environ["TEST_SIM"], "LD_PRELOAD": os.environ["TEST_LIB"],
            "MEMSIM_MEMORY": "4G", "MEMSHIM_DIR": f"{TMP}/{number}", "MEMSHIM_REPORT": f"{TMP}/{number}/%p.json"}


def recover(directory, child):
    """The report of a process that still runs, or of one that was killed: none where that was before there was a record, as one line says."""
    ledgers = [directory + "/" + f for f in os.listdir(directory) if f.endswith(".ledger")]
    if not ledgers:
        return []
    path = f"{directory}/{child.pid}.json"
    done = subprocess.run([MEMSHIM, "recover", "-o", path, ledgers[0]], capture_output=True, text=True, check=False)
    early = done.stderr.count("\n") == 1 and ("is not a ledger" in done.stderr or "is the beginning of a ledger" in done.stderr)
    return [f"recover: {done.stderr}"] if done.returncode and not early else []


def run(number):
    """One end of the program; what is wrong, and the reports that there are."""
    directory, end, wrong = f"{TMP}/{number}", random.choice(ENDS), []
    os.mkdir(directory)
    stays = end in ("alive", "kill")
    pause = str(10000000 if stays else int(random.random() ** 2 * 60000))
    command = [PROGRAM, str(random.randint(1, 8)), pause] + ([end] if end in ("fork", "signal") else [])
    mode = random.choice(MODES)
    with subprocess.Popen(command, env=environment(mode, number)) as child:
        try:
            child.wait(random.random() ** 2 * 0.2 + 0.02 if stays else 60)
        except subprocess.TimeoutExpired:
            if end == "alive":
                wrong += recover(directory, child)
            child.kill()
            if not stays:
                wrong.append("it hangs")
        child.wait()
        if end == "kill":
            wrong += recover(directory, child)
    if not stays and child.returncode != 3:
        wrong.append(f"ended with {child.returncode}")
    reports = [f"{directory}/{f}" for f in os.listdir(directory) if f.endswith(".json")]
    if not reports and not stays:
        wrong.append("no report")
    return [f"{end} {mode}: {line}" for line in wrong + [w for path in reports for w in check(path, end)]], reports


def add_up(report, device):
    """What the pieces of a device say of its pool: bytes of the live ones that were requested, and in limbo; None if some are not shown."""
    requested = limbo = 0
    for segment in report["segments"]:
        if segment["tier"] == "followed" or segment["device"] != device["index"]:
            continue
        if segment.get("blocks_left_out") or any(b["state"] == "unknown" for b in segment["blocks"]):
            return None
        requested += sum(b["requested"] for b in segment["blocks"] if b["state"] == "live")
        limbo += sum(b["bytes"] for b in segment["blocks"] if b["state"] == "limbo")
    return requested, limbo


def check(path, end):
    """What is wrong with a report."""
    checked = subprocess.run([os.environ["TEST_VALID"], path], capture_output=True, text=True, check=False)
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    wrong = ["validate: " + line for line in checked.stdout.splitlines()[:3]] if checked.returncode else []
    if end == "exit" and not report["run"]["complete"]:
        wrong.append("it says that it is not complete")
    for device in report["devices"]:
        sums = add_up(report, device)
        parts = device["reserved_parts"]
        if sums and report["run"]["complete"] and sums[0] != parts["requested"]:
            wrong.append(f"live pieces have {sums[0]} bytes, the pool says {parts['requested']}")
        if sums and report["run"]["complete"] and sums[1] > parts["limbo"]:
            wrong.append(f"pieces in limbo have {sums[1]} bytes, the pool says {parts['limbo']}")
    return wrong


def main():
    """So many ends, one fact."""
    if lacking():
        return
    seed = int(os.environ.get("TEST_SEED", random.randrange(1 << 30)))
    random.seed(seed)
    print(f"1..2\n# seed {seed}")
    wrong = made = 0
    for number in range(EXITS):
        found, reports = run(number)
        wrong += bool(found)
        made += len(reports)
        for line in found[:5]:
            print(f"# {number}: {line}")
        for name in os.listdir(f"{TMP}/{number}"):
            os.unlink(f"{TMP}/{number}/{name}")
        os.rmdir(f"{TMP}/{number}")
    print(f"{'not ok' if wrong else 'ok'} 1 - {wrong} of {EXITS} reports made while threads allocate are wrong")
    print(f"{'ok' if made * 2 > EXITS else 'not ok'} 2 - {made} reports were made")
    sys.exit(wrong != 0)


main()
