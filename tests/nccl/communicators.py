#!/usr/bin/env python3
"""What NCCL takes for its communicators is NCCL's, by the program's call and the communicator, also where several are made in one line; what
the program asks NCCL for itself is the program's."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
TOP = os.environ["top_srcdir"]
sys.path.insert(0, os.path.join(TOP, "tests", "hooks"))
from hooklib import BUILD, MEMSHIM, TMP, fact, plan, shim_environment  # noqa: E402

MIB = 1 << 20
TAKES = 4 * MIB
EITHER = "9 or 10"  # made in two threads
# owner, entry, communicator, device: bytes ever, bytes in the end
WANT = {("NCCL", "ncclCommInitRank", "1, rank 0 of 1", 0): (TAKES, TAKES), ("NCCL", "ncclCommInitRank", "2, rank 0 of 1", 0): (TAKES, 0),
        ("NCCL", "ncclCommSplit", "3", 0): (TAKES, TAKES), ("NCCL", "ncclGroupEnd", "4, rank 0 of 1", 0): (TAKES, TAKES),
        ("NCCL", "ncclCommInitAll", "5 to 6", 0): (TAKES, TAKES), ("NCCL", "ncclCommInitAll", "5 to 6", 1): (TAKES, TAKES),
        ("NCCL", "ncclGroupEnd", "7 to 8", 0): (TAKES, TAKES), ("NCCL", "ncclGroupEnd", "7 to 8", 1): (TAKES, TAKES),
        ("NCCL", "ncclCommGrow", EITHER, 0): (TAKES, TAKES), ("NCCL", "ncclCommGrow", EITHER, 1): (TAKES, TAKES)}


def play(mode, **more):
    path = os.path.join(TMP, "%s.json" % mode)
    environment = shim_environment(path, MEMSIM_DEVICES="2", MEMSIM_COMMUNICATOR=str(TAKES), MEMSHIM_MODE=mode, **more)
    done = subprocess.run([os.path.join(BUILD, "tests", "nccl", "communicators")], env=environment, text=True, capture_output=True, timeout=200,
                          check=False)
    return done, path


def told(path, *words):
    return subprocess.run([MEMSHIM, "owners", *words, path], text=True, capture_output=True, check=False).stdout


def parts_of(rows):
    return {(row["owner"], part.get("entry"), EITHER if part.get("communicator") in ("9", "10") else part.get("communicator"), row["device"]): (part["total_bytes"], part["live_bytes"])
            for row in rows if row["memory"] == "device" for part in row.get("parts", [])}


def main():
    plan(8)
    for mode in ("pool", "track"):
        done, path = play(mode)
        fact(done.returncode == 0 and done.stdout == "made\n", mode + ": the program gets what it asks for", [done.stdout, done.stderr])
        rows = json.loads(told(path, "--json"))["owners"]
        fact(parts_of(rows) == WANT, mode + ": NCCL's by entry point and communicator", ["%s" % parts_of(rows), "%s" % WANT])
        own = [row["total_bytes"] for row in rows if row["owner"] == "program" and row["memory"] == "device"]
        fact(own == [6 * MIB], mode + ": the program's own buffer of NCCL's is the program's", rows)
        text = told(path)
        fact("NCCL in ncclCommInitRank, communicator 1, rank 0 of 1" in text and
             subprocess.run([os.environ["TEST_VALID"], path], capture_output=True, check=False).returncode == 0, mode + ": so says the text", [text])


main()
