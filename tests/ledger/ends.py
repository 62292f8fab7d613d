"""Every way in which a process can end leaves a true report, or a ledger from which `memshim recover` makes one, and the program
ends as it does without memshim. Prints TAP."""

import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
from needs import lacking  # noqa: E402

TMP = os.environ["TEST_TMP"]
MEMSHIM = os.environ["TEST_BIN"]
ENDS = os.environ["top_builddir"] + "/tests/ledger/ends"


def run(mode, followed):
    """Status and output of one run, in an empty directory of its own."""
    place = TMP + "/place"
    shutil.rmtree(place, ignore_errors=True)
    os.mkdir(place)
    env = {**os.environ, "LD_LIBRARY_PATH": os.environ["TEST_SIM"]}
    if followed:
        env |= {"LD_PRELOAD": os.environ["TEST_LIB"], "MEMSHIM_DIR": place, "MEMSHIM_REPORT": place + "/%p.json",
                "MEMSHIM_TRACE": place + "/%p.trace"}
    done = subprocess.run([ENDS, mode], env=env, capture_output=True, text=True, timeout=60, check=False, cwd=place)
    return done


def reports(place):
    """What was written at exit, and what recover makes of the rest: a list of (pid, reason, code, live)."""
    ledgers = [f for f in os.listdir(place) if f.endswith(".ledger")]
    if ledgers:
        done = subprocess.run([MEMSHIM, "recover", place], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert not [f for f in os.listdir(place) if f.endswith(".ledger")], "a ledger was not removed"
    found = []
    for name in (f for f in os.listdir(place) if ".trace" not in f and not f.startswith("memshim-share-")):
        path = os.path.join(place, name)
        checked = subprocess.run([os.environ["TEST_VALID"], path], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        assert not report["diagnostics"], report["diagnostics"]
        run_ = report["run"]
        found.append((run_["pid"], run_["end_reason"], run_.get("exit_code", -1), report["devices"][0]["live_bytes"]))
    return sorted(found)


def traces(place):
    """What is live at the end of each trace: a list of (pid, live)."""
    found = []
    for name in (f for f in os.listdir(place) if ".trace" in f):
        live = {}
        done = subprocess.run([MEMSHIM, "trace", "--text", os.path.join(place, name)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        for line in done.stdout.splitlines():
            if line.startswith("#"):
                continue
            _, operation, number, size, *_ = line.split()
            if operation == "a":
                assert number not in live, f"{name}: {number} twice"
                live[number] = int(size)
            else:
                assert live.pop(number) == int(size), f"{name}: {number} goes with another size"
        found.append((int(name.split(".")[0]), sum(live.values())))
    return sorted(found)


def look(mode):
    """What is wrong with one way of ending; empty for nothing."""
    native, done = run(mode, False), run(mode, True)
    wrong = []
    if native.returncode != done.returncode:
        wrong.append(f"status {done.returncode}, natively {native.returncode}")

    def unnumbered(text):
        return re.sub(r"\d+", "N", text)

    if unnumbered(native.stdout) != unnumbered(done.stdout) or unnumbered(native.stderr) != unnumbered(done.stderr):
        wrong.append(f"output {done.stdout!r} {done.stderr!r}, natively {native.stdout!r} {native.stderr!r}")
    expected = sorted((int(p), r, int(c), int(b)) for p, r, c, b in (line.split() for line in done.stdout.splitlines()))
    try:
        found = reports(TMP + "/place")
    except AssertionError as error:
        return wrong + [str(error)]
    if found != expected:
        wrong.append(f"records {found}, expected {expected}")
    try:
        traced = traces(TMP + "/place")
    except AssertionError as error:
        return wrong + [str(error)]
    if traced != sorted((pid, live) for pid, _, _, live in expected):
        wrong.append(f"traces {traced}, expected {expected}")
    return wrong


def main():
    """One fact for each way."""
    if lacking():
        return
    modes = subprocess.run([ENDS], env={**os.environ, "LD_LIBRARY_PATH": os.environ["TEST_SIM"]}, capture_output=True, text=True,
                           check=True).stdout.split()
    print(f"1..{len(modes)}")
    failed = False
    for number, mode in enumerate(modes, 1):
        if mode == "clone" and "TEST_EMULATED" in os.environ:
            print(f"ok {number} - {mode} # SKIP {os.environ['TEST_EMULATED']} keeps MADV_WIPEONFORK from the kernel, which a child without fork() is known by")
            continue
        wrong = look(mode)
        failed |= bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {mode}")
        for line in wrong:
            print("#", line)
    sys.exit(failed)


main()
