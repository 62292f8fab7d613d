#!/usr/bin/env python3
"""Programs that size themselves by what a device has, or take it in ways of their own, under MEMSHIM_LIMIT on a larger device: each of them sees the limit
as its device, from the first question on, and takes no more. So do contexts count: MEMSIM_CONTEXT is what one takes."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import BUILD, TMP, fact, native_environment, plan, shim_environment  # noqa: E402

HERE = os.path.join(BUILD, "tests", "limit")
OUT = 2
# By program: what it says natively, on a device of 8 GiB; and under a limit of 1 GiB.
FACTS = {
    "ways": ({"alloc_2g": 0, "create_3": 0, "managed": 0, "array": 0, "ordered": 0, "alloc": 0},
             {"alloc_2g": OUT, "create_1": 0, "create_2": OUT, "create_3": OUT, "managed": OUT, "array": OUT, "ordered": OUT, "alloc": OUT, "host_pool": 0, "release": 0,
              "array_again": 0}),
    "expandable": ({"mapped_mib": 1280}, {"reserve": 0, "mapped_mib": 1020, "refused": OUT, "again": 5}),
    "sleeper": ({"other": 0, "wake_refused": 0},
                {"reserve": 0, "create": 0, "map": 0, "access": 0, "release_mapped": 0, "other": OUT, "unmap": 0, "other_asleep": 0, "wake_refused": OUT,
                 "free": 0, "wake": 0, "map_again": 0}),
    "preallocates": ({"total_mib": 8192, "block": 0}, {"info": 0, "total_mib": 1024, "left_mib": 1024, "block": 0}),
    "nine_tenths": ({"total_mib": 8192}, {"total_mib": 1024, "left_mib": 1024, "block": 0, "beyond_mib": 0, "left_at_last_mib": 0}),
}
FACTS["graphs"] = ({"refused": 0, "beside": 0},
                   {"block": 0, "node": 0, "make": 0, "refused": OUT, "refused_last": 0, "free": 0, "launch": 0, "left_mib": 512, "beside": OUT, "again": 0, "wait": 0,
                    "destroy": 0, "trim": 0, "block_again": 0})
# HIP has no pools of the host's, and one last error for all of its functions.
HIP = {"ways": {"host_pool": 1}, "graphs": {"refused_last": OUT}}
# NVML, and the totals of properties: by MEMSHIM_MEMINFO and the limit. The simulator's NVML looks at every process of the machine, so the device is one that
# whatever else runs here does not fill.
CARD = ("first_total_mib", "first_free_mib", "then_total_mib", "then_free_mib", "then_used_mib", "then_sum_mib", "properties_mib", "device_mib")
CARDS = {
    ("adjusted", "1G"): (1024, 1024, 1024, 924, 100, 1024, 1 << 20, 1 << 20),
    ("properties", "1G"): (1024, 1024, 1024, 924, 100, 1024, 1024, 1024),
    ("properties", "1%"): (10485, 10485, 10485, 10385, 100, 10485, 10485, 10485),
    ("real", "1G"): None,
    ("adjusted", "none"): None,
    ("properties", "none"): None,
}
# A context of 100 MiB.
BESIDE = {
    "expandable": {"mapped_mib": 920, "refused": OUT, "again": 5},
    "preallocates": {"info": 0, "total_mib": 1024, "left_mib": 924, "block": 0},
    "nine_tenths": {"total_mib": 1024, "left_mib": 924, "block": 0, "left_at_last_mib": 0},
}


def run(program, env, vendor="sizes", **more):
    done = subprocess.run([os.path.join(HERE, vendor), program], env={"MEMSIM_MEMORY": "8G", **env, **more}, text=True, capture_output=True, timeout=120, check=False)
    return {name: int(value) for name, value in (line.split() for line in done.stdout.splitlines())} if done.returncode == 0 else {"exit": done.returncode}


def holds(said, facts):
    return all(said.get(name) == value for name, value in facts.items())


def under(program, vendor="sizes", **more):
    return run(program, shim_environment("none", MEMSHIM_LOG="none", MEMSHIM_OOM_WAIT_MS="0", **more), vendor)


def two(program):
    """At the same time, each with a half of the device. Their contexts are made one after the other: what is made at one moment cannot be told apart."""
    where = os.path.join(TMP, "two-" + program)
    os.makedirs(os.path.join(where, "device"))
    env = shim_environment("none", MEMSHIM_LOG="none", MEMSHIM_OOM_WAIT_MS="0", MEMSHIM_SHARE="1G/1G", MEMSHIM_DIR=where, MEMSIM_MEMORY="2G",
                           MEMSIM_LEDGER=os.path.join(where, "device"))
    pair = []
    for _ in range(2):
        pair.append(subprocess.Popen([os.path.join(HERE, "sizes"), program, "together"], env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        pair[-1].stdout.readline()
    for one in pair:
        one.stdin.write("\n")
        one.stdin.flush()
    return [{name: int(value) for name, value in (line.split() for line in one.communicate(timeout=120)[0].splitlines())} for one in pair]


plan((6 + 5) * len(FACTS) + len(BESIDE) + len(CARDS) + 4)
for vendor, (name, (natively, limited)) in ((vendor, facts) for vendor in ("sizes", "sizes_hip") for facts in FACTS.items()):
    if vendor == "sizes_hip":
        limited = {**limited, **HIP.get(name, {})}
    called = name if vendor == "sizes" else "HIP, " + name
    said = run(name, native_environment(), vendor)
    fact(holds(said, natively), "%s: natively the device is the bound" % called, ["%s" % said])
    for mode in ("pool", "track"):
        said = under(name, vendor, MEMSHIM_MODE=mode, MEMSHIM_LIMIT="1G")
        fact(holds(said, limited), "%s: the limit is, MEMSHIM_MODE=%s" % (called, mode), ["%s" % said])
    for words, share in (("at most", "512M/1G"), ("of a device of that length, beside what is kept for others", "1G")):
        said = under(name, vendor, MEMSHIM_SHARE=share, **({"MEMSIM_MEMORY": "1G"} if share == "1G" else {}))
        fact(holds(said, limited), "%s: so is a share, %s" % (called, words), ["%s" % said])
    if vendor == "sizes_hip": # no call makes a context of HIP's, so that two at one moment cannot be told apart
        continue
    both = two(name)
    fact(all(holds(said, limited) for said in both), "%s: two of them beside one another, each with its share" % called, ["%s" % said for said in both])
for name, limited in BESIDE.items():
    said = under(name, MEMSHIM_LIMIT="1G", MEMSIM_CONTEXT="100M")
    fact(holds(said, limited), "%s: a context counts" % name, ["%s" % said])
TOTALS = ("first_total_mib", "then_total_mib", "properties_mib", "device_mib")
native = run("cards", native_environment(), MEMSIM_MEMORY="1T")
fact(all(native.get(name) == 1 << 20 for name in TOTALS) and native["then_used_mib"] >= 100, "natively a card has its memory", ["%s" % native])
for (info, limit), figures in CARDS.items():
    said = under("cards", MEMSHIM_LIMIT=limit, MEMSHIM_MEMINFO=info, MEMSIM_MEMORY="1T")
    fact(all(said.get(name) == native[name] for name in TOTALS) and said["then_sum_mib"] == 1 << 20 if figures is None else
         tuple(said.get(name) for name in CARD) == figures, "MEMSHIM_MEMINFO=%s, MEMSHIM_LIMIT=%s: what the card says" % (info, limit), ["%s" % said])
said = under("cards", MEMSHIM_SHARE="512M/1G", MEMSHIM_MEMINFO="properties", MEMSIM_MEMORY="1T")
fact(tuple(said.get(name) for name in CARD) == CARDS["properties", "1G"], "a share: what the card says", ["%s" % said])
said = under("nine_tenths", MEMSHIM_LIMIT="1G", MEMSHIM_MEMINFO="real")
fact(said.get("total_mib") == 8192 and said["block"] == OUT, "MEMSHIM_MEMINFO=real says what the vendor says", ["%s" % said])
said = under("nine_tenths", MEMSHIM_LIMIT="25%", MEMSIM_OTHERS="7G")
fact(said.get("total_mib") == 2048 and said["left_mib"] == 1024 and said["block"] == 0, "free is no more than the device has", ["%s" % said])
