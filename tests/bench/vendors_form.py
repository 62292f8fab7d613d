#!/usr/bin/env python3
"""scripts/bench vendors, and uses: the form that scripts rely on, and the figures that are known beforehand. A short run; prints TAP."""

import json
import os
import subprocess
import sys

KEYS = ["interface", "case", "allocator", "ns_per_pair", "cpu_ns_per_pair", "cpu_over_native", "vendor_calls_per_1000", "device_syncs_per_1000", "pairs"]
USES = ["case", "allocator", "ns_per_round", "cpu_ns_per_round", "cpu_over_off", "added_ns", "caller_ns", "caller_over_native", "rounds"]
FACTS = []


def fact(holds, name):
    """One line of TAP."""
    FACTS.append((bool(holds), name))


def main():
    """One run."""
    if os.environ["TEST_SANITIZE"]:
        print("1..0 # SKIP figures mean nothing under a sanitizer")
        return
    command = [os.path.join(os.environ["top_srcdir"], "scripts/bench"), "vendors", "--json", "--no-build", "--rounds", "1", "--milliseconds", "5"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "BUILD_DIR": os.environ["top_builddir"]})
    fact(done.returncode == 0, "it runs: " + done.stderr.strip().replace("\n", " "))
    report = json.loads(done.stdout) if done.returncode == 0 else {"rows": []}
    rows = report["rows"]
    fact(list(report) == ["name", "machine", "rows"] and all(list(row) == KEYS for row in rows), "its JSON has a name, a machine, and rows of one form")
    fact(rows and all(row["ns_per_pair"] > 0 and row["pairs"] > 0 for row in rows), "every figure is a time")
    handles = {(row["case"], row["allocator"]): row["vendor_calls_per_1000"] for row in rows if row["interface"] == "aclrtMallocPhysical"}
    fact(all(handles.get((case, way)) == 2000 for case in ("pair", "segment") for way in ("native", "memshim-track")),
         "natively and followed, a handle that is made and freed is two calls of the vendor's")
    fact(all(handles.get((case, "memshim")) == 0 for case in ("pair", "segment")), "served, it is none")
    calls = {(row["interface"], row["allocator"]): row["vendor_calls_per_1000"] for row in rows}
    fact(all(calls.get((system, way), 0) >= 1990 for system in ("ncclMemAlloc", "TVM", "cuDecomp") for way in ("native", "memshim-track")),
         "what NCCL, TVM and an autotuner do is two calls and more")
    fact(all(calls.get((system, "memshim"), 1000) < 100 for system in ("ncclMemAlloc", "TVM", "cuDecomp")), "and next to none, served")
    blocks = {(row["case"], row["allocator"]): row["vendor_calls_per_1000"] for row in rows if row["interface"] == "hipMalloc"}
    fact(all(blocks.get((case, way)) == 2000 for case in ("pair", "workspace", "busy") for way in ("native", "memshim-track")),
         "a block of HIP's")
    fact(blocks.get(("pair", "memshim")) == 0, "served, a small one is none")
    waits = {(row["case"], row["allocator"]): row["device_syncs_per_1000"] for row in rows if row["interface"] == "hipMalloc"}
    fact(waits.get(("busy", "native")) == 1000 and waits.get(("busy", "memshim"), 1000) < 5, "and a free beside work of another stream waits for no device, as each does natively")
    fact(calls.get(("hipMallocAsync", "native")) == 2000 and calls.get(("hipMallocAsync", "memshim")) == 0, "a pair in the order of a stream is none")
    command[1] = "uses"
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "BUILD_DIR": os.environ["top_builddir"]})
    rows = json.loads(done.stdout)["rows"] if done.returncode == 0 else []
    fact(len(rows) == 12 and all(list(row) == USES and row["rounds"] > 0 for row in rows), "uses: the same; three ways of four cases")
    fact(rows and all(row["cpu_over_off"] == 1 for row in rows if row["allocator"] == "memshim"), "with the ratio to memshim without them")
    print(f"1..{len(FACTS)}")
    for number, (holds, name) in enumerate(FACTS, 1):
        print(f"{'ok' if holds else 'not ok'} {number} - {name}")
    sys.exit(not all(holds for holds, _ in FACTS))


main()
