#!/bin/sh
# One report over a process that uses CUDA and Ascend: two devices 0, each with its own figures, and totals that add up.
# shellcheck source=tests/hooks/lib.sh
# shellcheck disable=SC2154 # run-test exports the directories
. "$top_srcdir/tests/hooks/lib.sh"

plan 7
both "the program sees the same" "$top_builddir/tests/acl/mixed"
report "each interface has its device 0" 'sorted((d["api"], d["index"]) for d in r["devices"]) == [("acl", 0), ("cuda", 0)]'
report "each with what lives on it" '{d["api"]: d["live_bytes"] >> 20 for d in r["devices"]} == {"acl": 7, "cuda": 5}'
report "the sum over all sites is that of all devices and of the host" '(sum(s["live_bytes"] for s in r["sites"]) ==
    sum(d["live_bytes"] for d in r["devices"]) + sum(m["live_bytes"] for m in r["memory"] if m["kind"] == "pinned"))'
report "both were served" '(apis["cuMemAlloc_v2"]["served"] == 4 and apis["aclrtMallocPhysical"]["served"] == 2 and
    all(d["vendor_calls_saved"] > 0 for d in r["devices"]))'
report "each has its pool" 'len(r["pools"]) == 2 and sorted(p.get("device_api", "cuda") for p in r["pools"]) == ["acl", "cuda"]'
try "the report holds together" "$TEST_VALID" "$report"
