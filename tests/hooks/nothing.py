#!/usr/bin/env python3
"""Every function that is hooked, called with nothing in its arguments, answers under memshim as the vendor's does: before its library is ready
and after, by the program's own reference and by the library's, and with room for an answer in its first argument."""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, WATCHED, fact, plan, skip  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "hooks", "nothing")
LIBRARIES = {"cuda_driver": ("libcuda.so.1", "cuInit"), "cuda_runtime": ("libcudart.so.13", "cudaFree"), "nccl": ("libnccl.so.2", "ncclGroupStart"),
             "hip": ("libamdhip64.so.6", "hipFree"), "acl": ("libascendcl.so", "aclInit")}


def rows():
    """The names of the functions that have a wrapper, by interface; of the driver's, those that MEMSHIM_USES hooks too."""
    with open(os.path.join(os.environ["top_srcdir"], "hooks", "table", "cuda_uses.def"), encoding="utf-8") as file:
        found = {"cuda_driver": re.findall(r"^MS_(?:HOOK|TWINS)\(\w+, (\w+),", file.read(), re.M)}
    for line in subprocess.run([os.path.join(BUILD, "hooks", "list_rows")], capture_output=True, text=True, check=True).stdout.splitlines():
        api, name, _, outcome = line.split()[:4]
        if outcome in ("SERVED", "FOLLOWED"):
            found.setdefault(api, []).append(name)
    return found


def answers(library, ready, names, **more):
    environment = dict(os.environ, LD_LIBRARY_PATH=os.environ["TEST_SIM"], **more)
    done = subprocess.run([PROGRAM, library, ready], input="\n".join(names) + "\n", env=environment, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


if WATCHED:
    plan(1)
    skip("every call with nothing in its arguments", "sanitizers watch, and a thousand processes load the library")
    sys.exit(0)
names = rows()
plan(len(LIBRARIES) * 2 + 1)
for api, (library, ready) in LIBRARIES.items():
    native = answers(library, ready, names[api])
    there = [line for line in native if not line.endswith("exit 77")]
    fact(len(native) == len(names[api]) and len(there) > len(native) * 3 // 4 and all(line.endswith(" exit 0") for line in there),
         f"{library}: natively each of {len(native)} functions answers", [line for line in native if not line.endswith(" exit 0")])
    modes = {"served": {}} | ({"with what uses memory": {"MEMSHIM_USES": "on"}} if api == "cuda_driver" else {})
    for mode, more in modes.items():
        found = answers(library, ready, names[api], LD_PRELOAD=os.environ["TEST_LIB"], MEMSHIM_LOG="none", **more)
        fact(found == native, f"{library}, {mode}: the same answers", [f"{a}, natively {b}" for a, b in zip(found, native) if a != b])
