"""Processes that share memory, for scenarios.py: each is an agent (agent.c) under memshim or without it, asked line by line."""
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, TMP, native_environment, preload  # noqa: E402

AGENT = os.path.join(BUILD, "tests", "ipc", "agent")
LAZY = 1
made = 0


class Agent:
    """One process. Its answers are lists of words; shim False runs it without memshim."""

    def __init__(self, shim=True, **more):
        global made
        made += 1
        self.report = os.path.join(TMP, "agent-%d.json" % made)
        self.errors = os.path.join(TMP, "agent-%d.err" % made)
        environment = native_environment(**more)
        if shim:
            beside = environment.pop("LD_PRELOAD_MORE", "")
            environment.update(LD_PRELOAD=preload() + (beside and ":" + beside), MEMSHIM_REPORT=self.report)
            environment.setdefault("MEMSHIM_LOG", "warn")
        with open(self.errors, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen([AGENT], env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)

    def __call__(self, verb, *words):
        """The answer to one line; a word that is a number comes as one."""
        self.process.stdin.write(" ".join([verb] + [str(w) for w in words]) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().split()
        words = [int(w) if w.lstrip("-").isdigit() and len(w) < 100 else w for w in line]
        return words[0] if len(words) == 1 else words

    def said(self):
        """What it wrote to standard error."""
        with open(self.errors, encoding="utf-8") as file:
            return file.read()

    def end(self):
        """Lets it end by itself; returns its report, or None."""
        if self.process.poll() is None:
            self.process.stdin.write("quit\n")
            self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()
        if not os.path.exists(self.report):
            return None
        with open(self.report, encoding="utf-8") as file:
            return json.load(file)

    def kill(self):
        """Ends it at once."""
        self.process.kill()
        self.process.wait(timeout=60)
