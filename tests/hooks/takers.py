#!/usr/bin/env python3
"""What the driver takes for contexts and modules: contexts[] of the report has what the driver says is gone, under the line of the first touch,
in each mode, also of a process that was killed; `memshim contexts` joins processes by the device's UUID."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
from hooklib import HERE, MEMSHIM, TMP, fact, plan, shim_environment  # noqa: E402

MIB = 1 << 20
TAKES = 300 * MIB
PROGRAM = os.path.join(HERE, "takers_user")


def play(name, *words, **more):
    path = os.path.join(TMP, name + ".json")
    given = {"MEMSIM_DEVICES": "2", "MEMSIM_MEMORY": "2G", "MEMSIM_CONTEXT": "300M", **more}
    done = subprocess.run([PROGRAM, *words], env=shim_environment(path, **given), text=True, capture_output=True, timeout=200, check=False)
    return done, path


def told(*paths):
    done = subprocess.run([MEMSHIM, "contexts", "--json", "--all-frames", *paths], text=True, capture_output=True, check=False)
    return json.loads(done.stdout)["devices"] if done.returncode == 0 else [{"error": done.stderr}]


def rows_of(devices):
    """(kind, device, bytes ever, bytes now, how many ever, confidence, ended, the program's functions) of each row."""
    rows = []
    for device in devices:
        for row in device.get("contexts", []):
            names = [frame.get("function", "") for frame in row.get("stack", []) if isinstance(frame, dict)]
            rows.append((row["kind"], row["device"], row["total_bytes"] // MIB, row["bytes"] // MIB, row["total_count"], row["confidence"],
                         "ended_ns" in row, [name for name in names if name in FUNCTIONS][:1]))
    return sorted(rows, key=repr)


FUNCTIONS = ("read_settings", "work_on_second", "make_context", "load_modules")
MADE = {
    "first": ("context", 0, 300, 300, 1, "inferred", False, ["read_settings"]),
    "second": ("context", 1, 300, 300, 1, "inferred", False, ["work_on_second"]),
    "own": ("context", 1, 300, 0, 1, "exact", True, ["make_context"]),
    "own, alive": ("context", 1, 300, 300, 1, "exact", False, ["make_context"]),
    "modules": ("module", 1, 16, 0, 4, "exact", True, ["load_modules"]),
    "modules, alive": ("module", 1, 16, 16, 4, "exact", False, ["load_modules"]),
}


def rows(*names):
    return sorted((MADE[name] for name in names), key=repr)


def book(done):
    return dict(line.split() for line in done.stdout.splitlines())


def other_numbers(first, second):
    """What is told of two reports, of which the second is of a process that was shown the devices in another order."""
    with open(second, encoding="utf-8") as file:
        report = json.load(file)
    report["run"]["pid"] += 1
    for rows, key in [(report["devices"], "index")] + [(report[name], "device") for name in ("contexts", "sites", "balances", "leaks", "pools")]:
        for row in rows:
            row[key] = 1 - row[key] if row[key] in (0, 1) else row[key]
    path = os.path.join(TMP, "other order.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(report, file)
    return told(first, path)


def validates(path):
    return subprocess.run([os.environ["TEST_VALID"], path], text=True, capture_output=True, check=False)


# While a call of another thread is under way that may change what is free, none of it is exact, and no answer is a balance.
BESIDE = sorted([("context", 1, 300, 300, 1, "inferred", False, ["work_on_second"]), ("context", 1, 300, 300, 1, "inferred", False, ["make_context"]),
                 ("module", 1, 16, 16, 4, "inferred", False, ["load_modules"]), ("context", 0, 300, 300, 1, "inferred", False, [])], key=repr)


def beside(mode):
    done, path = play("beside " + mode, "beside", MEMSHIM_MODE=mode)
    fact(done.returncode == 0 and rows_of(told(path)) == BESIDE, mode + ": nothing is exact beside another thread's free",
         [done.stdout, done.stderr, rows_of(told(path))])
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    devices = {device["index"]: (device["balance"], device["balance_missed"] > 0) for device in report["devices"]}
    fact(devices == {0: ("never_still", True), 1: ("told", True)} and not [row for row in report["balances"] if row["device"] == 0],
         mode + ": where there is no balance the report says so, and why", [devices, report["balances"]])
    text = subprocess.run([MEMSHIM, "owners", path], text=True, capture_output=True, check=False).stdout
    fact("cuda 0: not known: some thread's call to the driver was always under way" in text and validates(path).returncode == 0,
         mode + ": so does the text", [text, validates(path).stderr])


def main():
    plan(17)
    paths = []
    for mode in ("pool", "track"):
        done, path = play(mode, MEMSHIM_MODE=mode)
        said, devices = book(done), told(path)
        paths.append(path)
        fact(done.returncode == 0 and said.get("context") == str(TAKES) and said.get("modules") == str(16 * MIB), mode + ": what the driver takes",
             [done.stdout, done.stderr])
        fact(rows_of(devices) == rows("first", "second", "own", "modules"), mode + ": each row has what was taken, and whose line did it",
             rows_of(devices))
        check = validates(path)
        fact(check.returncode == 0, mode + ": the report is valid", [check.stdout, check.stderr])
        beside(mode)
    both = told(*paths)
    fact([(device["bytes"] // MIB, device["processes"]) for device in both] == [(600, 2), (600, 2)],
         "two processes share their devices, by UUID", both)
    numbers = [[row["device"] for row in device["contexts"]] for device in other_numbers(*paths)]
    fact([sorted(set(rows)) for rows in numbers] == [[0, 1], [0, 1]] and sorted(map(len, numbers)) == [2, 6],
         "also where they number them in another order", numbers)
    ledgers = os.path.join(TMP, "ledgers")
    os.mkdir(ledgers)
    play("killed", "kill", MEMSHIM_DIR=ledgers)
    killed = os.path.join(TMP, "recovered.json")
    ledger = [os.path.join(ledgers, name) for name in os.listdir(ledgers) if name.endswith(".ledger")]
    subprocess.run([MEMSHIM, "recover", "-o", killed, *ledger[:1]], text=True, capture_output=True, check=False)
    fact(os.path.exists(killed) and rows_of(told(killed)) == rows("first", "second", "own, alive", "modules, alive"), "killed: the same, as it was",
         [ledger, rows_of(told(killed))])
    done, path = play("none", MEMSIM_CONTEXT="0")
    fact([row[:3] for row in rows_of(told(path))] == [("context", 0, 0), ("context", 1, 0), ("context", 1, 0)],
         "where nothing is taken contexts are listed all the same", rows_of(told(path)))
    text = subprocess.run([MEMSHIM, "contexts", paths[0]], text=True, capture_output=True, check=False).stdout
    fact("about 300.0 MiB, a context, process" in text and "read_settings" in text and "4 modules (gone)" in text, "the text has size and line",
         [text])


main()
