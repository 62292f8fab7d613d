#!/usr/bin/env python3
"""MEMSHIM_POISON=free: a free fills the block before it returns, and what it freed counts as free memory."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import HERE, fact, plan, shim_environment  # noqa: E402

plan(4)
for more in ({"MEMSHIM_POISON": "free"}, {"MEMSHIM_POISON": "both"}, {"MEMSHIM_POISON": "free", "MEMSHIM_FREE": "strict"},
             {"MEMSHIM_POISON": "free", "MEMSHIM_BACKING": "vmm"}):
    env = shim_environment("none", MEMSHIM_LOG="none", MEMSIM_COST="memset=300000", **more)
    done = subprocess.run([os.path.join(HERE, "poisoned")], env=env, text=True, capture_output=True, timeout=100, check=False)
    fact(done.returncode == 0 and done.stdout == "stale 0 unseen 0\n", " ".join("%s=%s" % pair for pair in more.items()), [done.stdout, done.stderr])
