#!/usr/bin/env python3
"""Out of memory on a device of 1 GiB in eight planted ways: oom[] of the report says why, who held it, in which phase, and what would have made
the request fit; each of those is then done, by itself, and the request is answered. A process that is killed has it all the same."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hooklib import BUILD, MEMSHIM, TMP, fact, plan, shim_environment  # noqa: E402
from oomlib import do_it, told  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "oom", "oom_user")
MIB = 1 << 20
# By way: variables, cause, kind of fragmentation, what would have made it fit.
WAYS = {
    "leak": ({}, "capacity", None, ["free"]),
    "too_large": ({}, "capacity", None, ["ask_for_less"]),
    "limited": ({"MEMSHIM_LIMIT": "512M"}, "limit", None, ["policy", "free"]),
    "in_limbo": ({}, "limbo", None, ["wait"]),
    "interleaved": ({"MEMSHIM_PREALLOC": "280M"}, "fragmentation", "interleaved", ["policy"]),
    "in_segments": ({"MEMSHIM_PREALLOC": "600M"}, "fragmentation", "segments", ["policy"]),
    "for_streams": ({}, "fragmentation", "streams", ["wait"]),
    "beside_driver": ({"MEMSIM_CONTEXT": "300M"}, "other_process", None, ["free"]),
}


def play(way, words, variables, name):
    path = os.path.join(TMP, name + ".json")
    given = {"MEMSIM_MEMORY": "1G", "MEMSHIM_OOM_WAIT_MS": "200", **variables}
    return subprocess.run([PROGRAM, way, *words], env=shim_environment(path, **given), text=True, capture_output=True, timeout=200, check=False), path


def check_way(way):
    variables, cause, kind, hows = WAYS[way]
    done, path = play(way, [], variables, way)
    rows = told(path)
    row = rows[0] if len(rows) == 1 else {}
    fits = row.get("would_fit", [])
    fact(done.returncode == 3 and row.get("cause") == cause and row.get("fragmentation") == kind and [fit["how"] for fit in fits] == hows,
         way + ": why, and what would have made it fit", [done.returncode, done.stdout, done.stderr, rows])
    held = sum(site["bytes"] for site in row.get("sites", []))
    fact(held == row.get("live") == sum(owner["bytes"] for owner in row.get("owners", [])) and row.get("phase", {}).get("name") == "request",
         way + ": sites and owners add up to what was live, in the phase", [row])
    wrong = []
    for fit in fits:
        words, more = do_it(fit, variables)
        again, _ = play(way, words, more, way + "-again")
        if again.returncode != 0:
            wrong.append([fit, words, more, again.stdout, again.stderr])
    fact(fits and not wrong, way + ": what it says makes the request fit", wrong)
    check = subprocess.run([os.environ["TEST_VALID"], path], text=True, capture_output=True, check=False)
    fact(check.returncode == 0, way + ": the report is valid", [check.stdout, check.stderr])


def check_killed():
    ledgers = os.path.join(TMP, "ledgers")
    os.mkdir(ledgers)
    play("leak", ["kill"], {"MEMSHIM_DIR": ledgers}, "killed")
    path = os.path.join(TMP, "recovered.json")
    names = [os.path.join(ledgers, name) for name in os.listdir(ledgers) if name.endswith(".ledger")]
    subprocess.run([MEMSHIM, "recover", "-o", path, *names[:1]], text=True, capture_output=True, check=False)
    rows = told(path)
    row = rows[0] if rows else {}
    fact(row.get("would_fit", [{}])[0].get("bytes") == 128 * MIB and sum(site["bytes"] for site in row["sites"]) == 896 * MIB,
         "a process that was killed by its own handler: the same", [names, rows])


def check_text():
    done = subprocess.run([MEMSHIM, "oom", os.path.join(TMP, "leak.json")], text=True, capture_output=True, check=False)
    fact(all(words in done.stdout for words in ("cudaMalloc of 256.0 MiB", "in phase request", "freeing 128.0 MiB", "hoard")),
         "the text has what was asked for, the phase, what to free and of which line", [done.stdout, done.stderr])


def check_summary():
    path = os.path.join(TMP, "leak.json")
    done = subprocess.run([MEMSHIM, "summary", path], text=True, capture_output=True, check=False)
    lines = done.stdout.splitlines()
    fact(len(lines) <= 24 and any(line.startswith("Out of memory: cudaMalloc of 256.0 MiB") for line in lines) and
         lines[-1] == "Next  memshim oom " + path, "summary is one screen, says what failed, and sends on to memshim oom", lines + [done.stderr])


def main():
    plan(4 * len(WAYS) + 3)
    for way in WAYS:
        check_way(way)
    check_killed()
    check_text()
    check_summary()


main()
