#!/usr/bin/env python3
"""Phases of packages that have NVTX in them, where scripts/test-clients has left them in the cache: Python's nvtx, libnvToolsExt.so.1,
PyTorch. Each script prints what the report must say."""
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
def end(name=None):
    at = max(i for i, one in enumerate(opens) if name in (None, one[0]))
    name, was, peak = opens.pop(at)
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
THREADS = BEGIN + """
import threading, nvtx
turn, turns = threading.Condition(), [0]
def in_turn(steps):
    for number, step in steps:
        with turn:
            turn.wait_for(lambda: turns[0] == number)
            step()
            turns[0] += 1
            turn.notify_all()
def pushes(name, domain=None):
    return lambda: (nvtx.push_range(name, domain=domain), begin(name))
def pops(name, domain=None):
    return lambda: (nvtx.pop_range(domain=domain), end(name))
kept, handles = {}, {}
def takes(key, size):
    return lambda: kept.update({key: allocate(size)})
def gives(key):
    return lambda: free(kept.pop(key))
def starts(name):
    return lambda: (handles.update({name: nvtx.start_range(name)}), begin(name))
def ends(name):
    return lambda: (nvtx.end_range(handles.pop(name)), end(name))
def ends_nothing():
    nvtx.pop_range(); nvtx.pop_range(domain="of nobody"); nvtx.pop_range(domain="memory")
allocate(1 << 20)
one = [pushes("one"), takes("a", 3 << 20), None, pushes("inner"), None, takes("c", 1 << 20), pops("inner"), None, pops("one"), starts("whole"),
       None, ends_nothing, None]
two = [None, None, pushes("two", "memory"), None, takes("b", 5 << 20), None, None, gives("a"), None, None, pops("two", "memory"), None, ends("whole")]
for number in range(20):
    turns[0] = 0
    if number == 19:
        two[10] = pushes("left open by a thread that ends", "memory")
    threads = [threading.Thread(target=in_turn, args=([(n, step) for n, step in enumerate(steps) if step],)) for steps in (one, two)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    free(kept.pop("b")); free(kept.pop("c"))
allocate(9 << 20)
end("left open by a thread that ends"); end("two")
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
import os, threading, torch
book = {"step": (3, 10 << 20, 14 << 20, 2 << 20), "forward": (3, 8 << 20, 12 << 20, 15 << 20), "thread": (1, 10 << 20, 10 << 20, 4 << 20),
        "whole": (1, 10 << 20, 10 << 20, 4 << 20), "open": (1, 11 << 20, 11 << 20, 1 << 20)}
kept = torch.zeros(1 << 20, device="cuda")
for number in range(3):
    with torch.cuda.nvtx.range("step"):
        torch.cuda.nvtx.range_push("forward")
        one = torch.empty((number + 4) << 20, dtype=torch.uint8, device="cuda")
        torch.cuda.nvtx.range_pop()
        two = torch.empty(2 << 20, dtype=torch.uint8, device="cuda")
        del one
def work():
    torch.cuda.nvtx.range_push("thread")
    kept_too.append(torch.empty(4 << 20, dtype=torch.uint8, device="cuda"))
    torch.cuda.nvtx.range_pop()
    torch.cuda.nvtx.range_pop()
    torch.cuda.nvtx.range_end(whole)
kept_too, whole = [], torch.cuda.nvtx.range_start("whole")
thread = threading.Thread(target=work)
thread.start()
thread.join()
torch.cuda.nvtx.range_pop()
torch.cuda.nvtx.range_push("open")
kept_too.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
print(repr(book), flush=True)
os._exit(0)
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


plan(4)
package = newest("*/lib/python3*/site-packages/nvtx/__init__.py")
home = package.split("/lib/python3")[0] if package else ""
check_or_skip("Python's nvtx: its ranges are those of the program's book", package, "it is not in the cache", home + "/bin/python3", NVTX)
check_or_skip("Python's nvtx in two threads, with ranges that do not pair: the same", package, "it is not in the cache", home + "/bin/python3", THREADS)
library = newest("*/lib/python3*/site-packages/nvidia/nvtx/lib/libnvToolsExt.so.1")
check_or_skip("libnvToolsExt.so.1: the same", library, "it is not in the cache", sys.executable, OLD, library)
torch = newest("*/lib/python3*/site-packages/torch/lib/libtorch_cuda.so")
home = torch.split("/lib/python3")[0] if torch else ""
check_or_skip("PyTorch's ranges, in threads and unpaired: the same", torch, "it is not in the cache", home + "/bin/python3", TORCH)
