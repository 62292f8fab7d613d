#!/usr/bin/env python3
"""Small programs, each shaped after a public report or found in use, natively and under memshim: what each must print,
and what its report must say. One function a case; a fact that depends on how long something takes has no place here."""
import json
import os
import re
import resource
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
import hooklib  # noqa: E402
from hooklib import MEMSHIM, TMP, fact, native_environment, shim_environment  # noqa: E402

HERE = os.path.join(os.environ["top_builddir"], "tests", "cases")
CASES = []
runs = 0


def case(function):
    CASES.append(function)
    return function


class Run:
    """A program that has ended: its status, what it printed, and its report's path."""

    def __init__(self, done, report):
        self.status, self.said, self.report = done.returncode, done.stdout + done.stderr, report

    def number(self, pattern):
        """The number behind this in what was printed, or None."""
        found = re.search(pattern + r" (-?\d+)", self.said)
        return int(found.group(1)) if found else None

    def load(self):
        with open(self.report, encoding="utf-8") as file:
            return json.load(file)

    def told(self):
        """What a failed fact shows."""
        return ["status %d" % self.status] + self.said.splitlines()


def run(program, *arguments, native=False, **more):
    """Runs a program of this folder, natively or under memshim, with more environment."""
    global runs
    runs += 1
    report = os.path.join(TMP, "%d.json" % runs)
    more = dict({"MEMSIM_COUNT": "1"}, **more)
    environment = native_environment(**more) if native else shim_environment(report, MEMSHIM_LOG="none", **more)
    command = [os.path.join(HERE, program)] + [str(argument) for argument in arguments]
    return Run(subprocess.run(command, env=environment, text=True, capture_output=True, timeout=250, check=False), report)


def memshim(*arguments):
    """The command itself."""
    done = subprocess.run([MEMSHIM] + list(arguments), env=os.environ, text=True, capture_output=True, timeout=250,
                          check=False)
    return Run(done, None)


@case
def kept():
    """Blocks that were freed before a wait: no more than MEMSHIM_KEEP of them stays."""
    for arguments in ((1, 7000), (7, 1000), (3, 100), (1, 7000, 500), (2, 300, 100)):
        live = arguments[2] if len(arguments) > 2 else 0
        for more in ({"MEMSHIM_BACKING": "vmm"}, {"MEMSHIM_KEEP": "0"}):
            done = run("kept", *arguments, **more)
            keep = 0 if "MEMSHIM_KEEP" in more else 256
            fact(done.status == 0 and live <= done.number("taken") <= live + keep + 2,
                 "kept %s, %s: at most MEMSHIM_KEEP beside what is live" % (arguments, more), done.told())


@case
def limited():
    """No file may grow, and standard error is one: what memshim cannot write raises no signal in the program."""
    for limit in (0, 100, 5000, 70000, 1000000):
        run_too = [] if hooklib.WATCHED else [((), (MEMSHIM, "run", "--sim", "--"))]
        for words, first in [((), ()), (("handled",), ()), *run_too]:
            environment = native_environment() if first else shim_environment(
                TMP + "/limited.json", MEMSHIM_LOG="debug", MEMSHIM_TRACE=TMP + "/limited.%p.trace")
            with open(TMP + "/limited.err", "w", encoding="utf-8") as errors:
                done = subprocess.run([*first, HERE + "/limited", *words], env=environment, text=True, stdout=subprocess.PIPE,
                                      stderr=errors, timeout=250, check=False, cwd=TMP,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
            fact(done.returncode == 0 and done.stdout == ("waiting 1\nhandled 1\n" if words else "done\n"),
                 "limited%s: files of %d bytes at most%s" % (" handled" if words else "", limit, ", memshim run" if first else ""),
                 [done.returncode, done.stdout])


wanted = sys.argv[1:]
for function in CASES:
    if not wanted or function.__name__ in wanted:
        function()
hooklib.plan(hooklib.number)
