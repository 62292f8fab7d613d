#!/usr/bin/env python3
"""Threads take and give memory of every kind at MEMSHIM_LIMIT, all at once: the device never gives more than the limit, and in the end all of it is there."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, WATCHED, fact, native_environment, plan, shim_environment  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "limit", "race")
LIMIT, ROUNDS = 64 << 20, "300" if WATCHED else "3000"
SETTINGS = ({}, {"MEMSHIM_MODE": "track"}, {"MEMSHIM_KEEP": "0"}, {"MEMSHIM_BACKING": "vmm"})


def run(env, rounds=ROUNDS):
    done = subprocess.run([PROGRAM, str(LIMIT), rounds], env={**env, "MEMSIM_MEMORY": "1G", "MEMSIM_COUNT": "1"}, text=True, capture_output=True,
                          timeout=300, check=False)
    return {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())} if done.returncode == 0 else {"exit": done.returncode}


plan(1 + len(SETTINGS))
said = run(native_environment(), "3000")
fact(said.get("wrong") == 0 and said["most"] > LIMIT, "natively the program takes more than that", ["%s" % said])
for more in SETTINGS:
    said = run(shim_environment("none", MEMSHIM_LIMIT=str(LIMIT), MEMSHIM_LOG="none", MEMSHIM_OOM_WAIT_MS="20", **more))
    fact(said.get("wrong") == 0 and said["refused"] > 0 and said["most"] <= LIMIT and said["left"] == said["total"] == LIMIT,
         "within the limit%s" % "".join(", %s=%s" % pair for pair in more.items()), ["%s" % said])
