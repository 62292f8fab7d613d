#!/usr/bin/env python3
"""Frees of what was freed before, and of addresses inside a block: the program gets the answers that it gets natively, and the report has a
finding for each pair of places, with both stacks, and none for what is no mistake."""
import glob
import json
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.environ["top_srcdir"], "tests", "hooks"))
from hooklib import HERE, MEMSHIM, TMP, fact, native_environment, plan, shim_environment  # noqa: E402

RULES = ("double_free", "interior_free")
# What each scene does, in its order: the rule, who was to free, who had allocated, how often, and the blocks' bytes.
D, I, MIB = "double_free", "interior_free", 1 << 20
SCENES = {
    "sync": [(D, "cudaFree", "cudaMalloc", 3, 9 * MIB), (I, "cudaFree", "cudaMallocManaged", 1, 700), (D, "cudaFree", "cudaMalloc", 1, 65536)],
    "driver": [(I, "cuMemFree_v2", "cuMemAlloc_v2", 1, 2 * MIB), (D, "cuMemFree_v2", "cuMemAlloc_v2", 1, 2 * MIB),
               (I, "cuMemFree_v2", "cuMemAllocPitch_v2", 1, 102400), (D, "cuMemFree_v2", "cuMemAllocPitch_v2", 1, 102400)],
    "ordered": [(I, "cudaFreeAsync", "cudaMallocAsync", 1, MIB), (D, "cudaFreeAsync", "cudaMallocAsync", 1, MIB),
                (D, "cudaFree", "cudaMallocAsync", 1, MIB), (I, "cudaFreeAsync", "cudaMalloc", 1, 5 * MIB),
                (D, "cudaFreeAsync", "cudaMalloc", 1, 5 * MIB)],
    "kinds": [(I, "cudaFree", "cudaMallocManaged", 1, MIB), (D, "cudaFree", "cudaMallocManaged", 1, MIB),
              (I, "cudaFreeHost", "cudaMallocHost", 1, MIB), (D, "cudaFreeHost", "cudaMallocHost", 1, MIB),
              (D, "cudaFreeArray", "cudaMallocArray", 1, 4096)],
    "handles": [(D, "cuMemRelease", "cuMemCreate", 1, 2 * MIB)] * 2,
    "nccl": [(I, "ncclMemFree", "ncclMemAlloc", 1, 2 * MIB), (D, "ncclMemFree", "ncclMemAlloc", 1, 2 * MIB)],
    "hip": [(I, "hipFree", "hipMalloc", 1, MIB), (D, "hipFree", "hipMalloc", 1, MIB), (D, "hipFree", "hipMallocPitch", 1, 51200),
            (D, "hipHostFree", "hipHostMalloc", 1, MIB), (D, "hipFreeAsync", "hipMallocAsync", 1, MIB)],
    "acl": [(I, "aclrtFree", "aclrtMalloc", 1, MIB), (D, "aclrtFree", "aclrtMalloc", 1, MIB),
            (D, "aclrtFreePhysical", "aclrtMallocPhysical", 1, 2 * MIB)],
    "threads": [(I, "cudaFree", "cudaMalloc", 320, 320 * 4096)],
    "innocent": [],  # ends with a device that was reset
}
CONFIGURATIONS = [{}, {"MEMSHIM_MODE": "track"}, {"MEMSHIM_BACKING": "vmm"}, {"MEMSHIM_FREE": "strict"}]
reports = 0


def play(scenes, **more):
    """What the program said under memshim, and its report."""
    global reports
    reports += 1
    path = os.path.join(TMP, "%d.json" % reports)
    done = subprocess.run([os.path.join(HERE, "misfrees")] + scenes, env=shim_environment(path, MEMSIM_DEVICES="2", MEMSHIM_LOG="none", **more),
                          text=True, capture_output=True, timeout=200, check=False)
    if done.returncode not in (0, -9):
        return "ended with %d: %s" % (done.returncode, done.stderr), path
    return done.stdout, path


def natively(scenes):
    return subprocess.run([os.path.join(HERE, "misfrees")] + scenes, env=native_environment(MEMSIM_DEVICES="2"), text=True,
                          capture_output=True, timeout=200, check=False).stdout


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def misfrees(report):
    return [finding for finding in report["findings"] if finding["rule"] in RULES]


def told(report):
    return [(f["rule"], f["api"], report["sites"][f["site"]]["api"], f["count"], f["bytes"]) for f in misfrees(report)]


def names(report, stack):
    """The functions of a stack, innermost first."""
    found = []
    while stack:
        parent, frame = report["stacks"][stack]
        found.append(report["frames"][frame].get("function", "?"))
        stack = parent
    return found


def check_scenes():
    want = sum(SCENES.values(), [])
    native = natively(list(SCENES))
    fact(not any(bad in native for bad in ("again 0", "inside 0", "gone 0")) and "wrong 0" in native,
         "natively all are refused, and no other", [native])
    for more in CONFIGURATIONS:
        name = " ".join("%s=%s" % pair for pair in more.items()) or "the defaults"
        said, path = play(list(SCENES), **more)
        fact(said == native, "%s: the answers are the native ones" % name, said.splitlines())
        report = load(path)
        fact(told(report) == want, "%s: a finding for each pair" % name, [got for got in told(report) if got not in want] + ["missing"] +
             [one for one in want if one not in told(report)])
        fact(report["coverage"]["unseen_frees"] == 0, "%s: none of them is an unseen free" % name)
        fact(subprocess.run([os.environ["TEST_VALID"], path], capture_output=True, check=False).returncode == 0, "%s: the report is valid" % name)


def check_stacks():
    path = play(["sync"])[1]
    named = os.path.join(TMP, "named.json")
    subprocess.run([MEMSHIM, "symbolize", "-o", named, path], check=True, capture_output=True)
    report = load(named)
    first = misfrees(report)[0]
    free, alloc = names(report, first["stack"]), names(report, report["sites"][first["site"]]["stack"])
    fact(free[:2] == ["free_there", "sync_scene"], "the stack of the free", free)
    fact(alloc[:2] == ["allocate_here", "sync_scene"], "the stack of the allocation", alloc)
    text = subprocess.run([MEMSHIM, "findings", named], capture_output=True, text=True, check=True).stdout
    at = [text.find(words) for words in ("freed by cudaFree", "free_there", "allocated by cudaMalloc", "allocate_here")]
    fact(-1 not in at and text.find("free_there", at[0]) < text.find("allocated by", at[0]), "findings shows both", text.splitlines())
    for mode in ("off", "sample", "fp"):
        report = load(play(["sync", "hip"], MEMSHIM_STACKS=mode)[1])
        fact({one[:3] for one in told(report)} == {one[:3] for one in SCENES["sync"] + SCENES["hip"]} and
             sum(f["count"] for f in misfrees(report)) == sum(one[3] for one in SCENES["sync"] + SCENES["hip"]) and
             all((f["stack"] == 0) == (mode == "off") for f in misfrees(report)),
             "MEMSHIM_STACKS=%s: the function is named" % mode, [str(f) for f in misfrees(report)])


def check_many():
    said, path = play(["many"])
    found = misfrees(load(path))
    fact(said == "refused 800\n" and sum(f["count"] for f in found) == 800 and sum(f["bytes"] for f in found) == 800 * 4096,
         "more pairs than there are rows: every one counts", [said, len(found)])
    fact(len(found) == 249 and found[-1]["count"] > 1 and "api" not in found[-1], "the last row has the rest", [str(found[-1])])


def check_killed():
    ledgers = os.path.join(TMP, "ledgers")
    os.mkdir(ledgers)
    play(["killed"], MEMSHIM_DIR=ledgers)
    path = os.path.join(TMP, "recovered.json")
    (ledger,) = glob.glob(os.path.join(ledgers, "*.ledger"))
    subprocess.run([MEMSHIM, "recover", "-o", path, ledger], capture_output=True, check=True)
    fact(told(load(path)) == SCENES["sync"], "a process that was killed: recovered", [str(told(load(path)))])
    fact(subprocess.run([os.environ["TEST_VALID"], path], capture_output=True, check=False).returncode == 0, "and valid")


plan(1 + 4 * len(CONFIGURATIONS) + 6 + 2 + 2)
check_scenes()
check_stacks()
check_many()
check_killed()
