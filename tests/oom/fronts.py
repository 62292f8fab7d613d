#!/usr/bin/env python3
"""Every function of HIP's and of the Ascend runtime that is hooked for its status alone: the simulator refuses it for want of memory, natively
and under memshim alike, and the report says once which it was and what it was to make."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hooklib import BUILD, TMP, fact, native_environment, plan, shim_environment  # noqa: E402
import oomlib  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "oom", "front")
# By the tag of a family: its library, what is called first, and the statuses that say that there was no memory.
FRONTS = {"hip": ("libamdhip64.so.7", ["hipInit", "hipMalloc"], [2]),
          "acl": ("libascendcl.so", ["aclInit", "aclrtSetDevice", "aclrtMalloc"], [207001, 207018])}


def rows():
    """(family, symbol, name in the report) of what is hooked so, as the rows say: the symbols of C++ have parameters too."""
    done = subprocess.run([os.path.join(BUILD, "hooks", "list_rows")], text=True, capture_output=True, check=True)
    words = [line.split() for line in done.stdout.splitlines()]
    return [(line[0], line[1], line[4] if line[1].startswith("_Z") else line[1]) for line in words if line[0] in FRONTS and line[2] == "STATUS"]


def play(command, environment):
    return subprocess.run(command, env=environment, text=True, capture_output=True, timeout=100, check=False)


def check(family, function, name):
    """What is wrong with it; nothing if all is well."""
    library, before, statuses = FRONTS[family]
    wrong = []
    for status in statuses:
        path, fails = os.path.join(TMP, "%s-%d.json" % (function, status)), {"MEMSIM_FAIL": "%s@1+=%d" % (function, status)}
        command = [PROGRAM, os.path.join(BUILD, library), function, *before]
        native, done = play(command, native_environment(**fails)), play(command, shim_environment(path, **fails))
        told = oomlib.told(path)
        if native.stdout != "status %d\n" % status or done.stdout != native.stdout or [row["api"] for row in told] != [name] or not told[0]["stack"]:
            wrong.append([function, status, native.stdout, done.stdout, done.stderr, told])
    return wrong


def main():
    all_rows = rows()
    plan(len(all_rows) + 1)
    fact(len([row for row in all_rows if row[0] == "hip"]) > 20 and len([row for row in all_rows if row[0] == "acl"]) > 8 and
         {"hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"} <= {row[2] for row in all_rows}, "the rows are found", all_rows)
    for family, function, name in all_rows:
        wrong = check(family, function, name)
        fact(not wrong, name + ": a refusal is told", wrong)


main()
