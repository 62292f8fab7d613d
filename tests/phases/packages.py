#!/usr/bin/env python3
"""Phases of packages that have NVTX in them, where scripts/clients has left them in the cache: Python's nvtx, libnvToolsExt.so.1, and with
TEST_TORCH=1, as it takes its time, PyTorch. Each script prints what the report must say."""
import glob
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import MEMSHIM, TMP, WATCHED, fact, plan, skip  # noqa: E402

CLIENTS = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "memshim", "clients")
BEGIN = """
import ctypes, sys
runtime = ctypes.CDLL("libcudart.so.13")
live, book, opens = 0, {}, []
def allocate(size):
    global live
    pointer = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
    live += size
    for one in opens:
        one[2] = max(one[2], live)
    return pointer, size
def free(block):
    global live
    assert runtime.cudaFree(block[0]) == 0
    live -= block[1]
def begin(name):
    opens.append([name, live, live])
def end():
    name, was, peak = opens.pop()
    count, least, most, growth = book.get(name, (0, peak, peak, 0))
    book[name] = (count + 1, min(least, peak), max(most, peak), growth + live - was)
"""
NVTX = BEGIN + """
import nvtx
@nvtx.annotate("step", domain="memory")
def step(size):
    begin("step")
    with nvtx.annotate("allocate", category="a"):
        begin("allocate")
        block = allocate(size)
        end()
    kept = allocate(1000)
    free(block)
    end()
    return kept
allocate(1 << 20)
for number in range(40):
    step((number * 37 % 11 + 1) * 100000)
handle = nvtx.start_range("whole", domain="memory"); begin("whole"); free(allocate(5 << 20)); nvtx.end_range(handle); end()
nvtx.push_range("open"); begin("open"); allocate(77); end()
print(repr(book))
"""
OLD = BEGIN + """
tools = ctypes.CDLL(sys.argv[1])
allocate(1 << 20)
assert tools.nvtxRangePushA(b"outer") == 0; begin("outer")
for size in (3 << 20, 2 << 20, 5 << 20):
    assert tools.nvtxRangePushA(b"inner") == 1; begin("inner")
    free(allocate(size)); allocate(500)
    assert tools.nvtxRangePop() == 1; end()
assert tools.nvtxRangePop() == 0; end()
assert tools.nvtxRangePop() < 0
print(repr(book))
"""
TORCH = """
import torch
book = {"step": (3, 10 << 20, 14 << 20, 2 << 20), "forward": (3, 8 << 20, 12 << 20, 15 << 20)}
kept = torch.zeros(1 << 20, device="cuda")
for number in range(3):
    with torch.cuda.nvtx.range("step"):
        torch.cuda.nvtx.range_push("forward")
        one = torch.empty((number + 4) << 20, dtype=torch.uint8, device="cuda")
        torch.cuda.nvtx.range_pop()
        two = torch.empty(2 << 20, dtype=torch.uint8, device="cuda")
        del one
print(repr(book))
"""


def newest(pattern):
    return max(glob.glob(os.path.join(CLIENTS, pattern)), default=None, key=os.path.getmtime)


def check(name, python, script, *words):
    """The report of the script, against the book that it prints."""
    source, path = os.path.join(TMP, "script.py"), os.path.join(TMP, "report.json")
    with open(source, "w", encoding="utf-8") as file:
        file.write(script)
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("NVTX_", "LD_PRELOAD"))}
    done = subprocess.run([MEMSHIM, "run", "--sim", "--see-through", "-q", "-f", "-o", path, python, source, *words], env=clean, capture_output=True,
                          text=True, timeout=300, check=False)
    if done.returncode:
        fact(False, name, [done.returncode, done.stdout, done.stderr])
        return
    book = {key: list(value) for key, value in eval(done.stdout.splitlines()[-1]).items()}  # pylint: disable=eval-used
    with open(path, encoding="utf-8") as file:
        phases = json.load(file)["phases"]
    told = {}
    for phase in phases:
        on = phase["devices"][0]
        told[phase["name"]] = [phase["count"], on["peak_bytes"]["min"], on["peak_bytes"]["max"], on["growth_bytes"]["total"]]
    fact(told == book, name, ["told %s" % told, "book %s" % book])


def check_or_skip(name, there, why, *more):
    if there and not WATCHED:
        check(name, *more)
    else:
        skip(name, "sanitizers watch" if WATCHED else why)


plan(3)
package = newest("*/lib/python3*/site-packages/nvtx/__init__.py")
home = package.split("/lib/python3")[0] if package else ""
check_or_skip("Python's nvtx: its ranges are those of the program's book", package, "it is not in the cache", home + "/bin/python3", NVTX)
library = newest("*/lib/python3*/site-packages/nvidia/nvtx/lib/libnvToolsExt.so.1")
check_or_skip("libnvToolsExt.so.1: the same", library, "it is not in the cache", sys.executable, OLD, library)
torch = newest("*/lib/python3*/site-packages/torch/lib/libtorch_cuda.so") if os.environ.get("TEST_TORCH") else None
home = torch.split("/lib/python3")[0] if torch else ""
check_or_skip("PyTorch's ranges: the same", torch, "TEST_TORCH is not set, or it is not in the cache", home + "/bin/python3", TORCH)
