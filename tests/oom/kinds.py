#!/usr/bin/env python3
"""Each kind of memory, and each cause that it may lack for (src/record/live/oom.def): a request is refused, natively and under memshim alike; the
report says once what was asked for and why, with the stack, and what it says would have made it fit does so. All pairs of the table come up."""
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from hooklib import BUILD, MEMSHIM, TMP, fact, native_environment, plan, shim_environment  # noqa: E402
import oomlib  # noqa: E402

PROGRAM = os.path.join(BUILD, "tests", "oom", "oom_user")
TABLE = os.path.join(os.environ["top_srcdir"], "src", "record", "live", "oom.def")
HUGE = 1 << 50
PREALLOC = {"MEMSHIM_PREALLOC": "280M"}
# What a way of oom_user plants leads to, by kind: variables, cause, fragmentation, what would have made it fit.
PLANTED = [(way, kind, *said) for kind in ("device", "async", "array", "handle") for way, said in {
    "leak": ({}, "capacity", None, ["free"]),
    "in_limbo": ({}, "limbo", None, ["wait"]),
    "interleaved": (PREALLOC, "fragmentation", "interleaved", ["policy"]),
    "beside_driver": ({"MEMSIM_CONTEXT": "300M"}, "other_process", None, ["free"]),
}.items()] + [
    *(("limited", kind, {"MEMSHIM_LIMIT": "512M"}, "limit", None, ["policy", "free"]) for kind in ("device", "async", "array", "handle", "managed", "graph-launch")),
    ("in_segments", "device", {"MEMSHIM_PREALLOC": "600M"}, "fragmentation", "segments", ["policy"]),
    ("too_large", "graph", {}, "capacity", None, ["ask_for_less"]),
    ("for_streams", "device", {}, "fragmentation", "streams", ["wait"]),
]
# What the driver refuses by itself: kind, bytes, the function that fails, cause.
REFUSED = [
    ("device", 64 << 20, "cuMemAlloc_v2@2", "driver"),
    ("async", 1 << 20, "cuMemAllocAsync cuMemAllocFromPoolAsync", "driver"),
    ("array", 1 << 20, "cuArrayCreate_v2", "driver"),
    ("handle", 2 << 20, "cuMemCreate", "driver"),
    ("graph", 1 << 20, "cuGraphAddMemAllocNode", "driver"),
    ("graph-launch", 0, "cuGraphLaunch", "driver"),
    ("graph-launch", 1 << 30, "", "driver"), # the context has a part of the device
    ("managed", 1 << 20, "cuMemAllocManaged", "driver"),
    ("managed", HUGE, "cuMemAllocManaged", "host"),
    ("pinned", 1 << 20, "cuMemHostAlloc", "host"),
    ("pinned", HUGE, "cuMemHostAlloc", "capacity"),
    ("registered", 4096, "cuMemHostRegister_v2", "host"),
    ("imported", 0, "cuMemImportFromShareableHandle", "driver"),
    ("addresses", HUGE, "cuMemAddressReserve", "addresses"),
    ("mapping", 0, "cuMemMap", "driver"),
    ("access", 0, "cuMemSetAccess", "driver"),
    ("pool", 0, "cuMemPoolCreate", "driver"),
    ("context", 0, "cuCtxCreate_v2", "driver"),
    ("code", 0, "cuModuleLoadData", "driver"),
    ("stream", 0, "cuStreamCreate", "driver"),
    ("event", 0, "cuEventCreate", "driver"),
    ("stream-flags", 0, "cuStreamGetFlags", "driver"),
    ("stream-priority", 0, "cuStreamGetPriority", "driver"),
    ("launch", 0, "cuLaunchKernel", "driver"),
    ("copy", 0, "cuMemcpyDtoD", "driver"),
    ("copy-host", 0, "cuMemcpyHtoDAsync", "driver"),
    ("copy-fill", 0, "cuMemsetD8Async", "driver"),
]
HOST = ("pinned", "registered")
came_up = set()


def play(way, kind, words, variables, name):
    path = os.path.join(TMP, name + ".json")
    given = {"MEMSIM_MEMORY": "1G", "MEMSHIM_OOM_WAIT_MS": "200", **variables}
    command = [PROGRAM, way, "kind=" + kind, *words]
    return subprocess.run(command, env=shim_environment(path, **given), text=True, capture_output=True, timeout=200, check=False), path


def why(path):
    done = subprocess.run([MEMSHIM, "oom", path], text=True, capture_output=True, check=False)
    found = re.search(r"why: (.*)", done.stdout)
    return found.group(1) if found else done.stdout + done.stderr


def check_planted(way, kind, variables, cause, fragmentation, hows):
    name = way + "-" + kind
    done, path = play(way, kind, [], variables, name)
    rows = oomlib.told(path)
    row = rows[0] if len(rows) == 1 else {}
    fits = row.get("would_fit", [])
    came_up.add(why(path))
    fact(done.returncode == 3 and row.get("kind") == kind.split("-")[0] and row.get("cause") == cause and row.get("fragmentation") == fragmentation and
         [fit["how"] for fit in fits] == hows and row.get("stack"), name + ": what, why, and what would have made it fit",
         [done.returncode, done.stdout, done.stderr, rows])
    wrong = []
    for fit in fits:
        words, more = oomlib.do_it(fit, variables)
        again, _ = play(way, kind, words, more, name + "-again")
        if again.returncode != 0:
            wrong.append([fit, words, more, again.stdout, again.stderr])
    fact(fits and not wrong, name + ": what it says makes the request fit", wrong)


def check_refused(kind, size, function, cause):
    """A function fails that may have a version or a twin, from the first call on or from one that is named."""
    names = [(name + "@1").split("@")[:2] for name in function.split()]
    fails = {"MEMSIM_FAIL": ",".join("%s%s@%s+=2" % (name, twin, n) for name, n in names for twin in ("", "_v2", "_ptsz"))}
    words, name = ["bytes=%d" % size], "refused-%s-%d" % (kind, size)
    native = subprocess.run([PROGRAM, "plain", "kind=" + kind, *words], env=native_environment(MEMSIM_MEMORY="1G", **fails), text=True,
                            capture_output=True, timeout=200, check=False)
    done, path = play("plain", kind, words, fails, name)
    rows = oomlib.told(path)
    row = rows[0] if len(rows) == 1 else {}
    came_up.add(why(path))
    fact(native.returncode == done.returncode == 3 and row.get("kind") == kind.split("-")[0] and row.get("cause") == cause and
         not row.get("would_fit") and row.get("stack") and (row.get("device") == -1) == (kind in HOST),
         "%s of %d bytes, refused by the driver: what and why, and nothing that would not help" % (kind, size),
         [native.returncode, done.returncode, done.stdout, done.stderr, rows])


def check_table():
    """Every pair of the table was told to somebody, in its words; those of an allocator's cache come up in tests/inner."""
    with open(TABLE, encoding="utf-8") as file:
        words = set(re.findall(r'^MS_OOM_WHY\((?!CACHE,)\w+, \w+, "\w*", "(.*)"\)$', file.read(), re.M))
    fact(len(words) > 10 and not words - came_up, "all pairs of kind and cause came up", sorted(words - came_up))


def check_first_context():
    """A cudaMalloc whose context does not fit."""
    done, path = play("context", "device", [], {"MEMSIM_CONTEXT": "2G"}, "first-context")
    rows = oomlib.told(path)
    fact(done.returncode == 3 and len(rows) == 1 and rows[0]["kind"] == "context" and rows[0]["api"] == "cudaMalloc",
         "a context that does not fit is told of under the call that needed it", [done.returncode, done.stderr, rows])


def check_idle():
    """What the pool keeps is there for whatever else takes memory of the device."""
    for kind in ("array", "handle", "graph-launch", "context"):
        done, path = play("idle", kind, [], {"MEMSIM_CONTEXT": "200M"}, "idle-" + kind)
        fact(done.returncode == 0 and not oomlib.told(path), kind + ": is made of what the pool keeps", [done.returncode, done.stdout, done.stderr])


def main():
    plan(2 * len(PLANTED) + len(REFUSED) + 6)
    check_idle()
    for row in PLANTED:
        check_planted(*row)
    for row in REFUSED:
        check_refused(*row)
    check_first_context()
    check_table()


main()
