#!/usr/bin/env bats
# memshim peak: who held the memory of each device when most of it was live
load "$TEST_HELPERS/common.bash"
load helpers

@test "sites with their shares, most first, and what is left out" {
    try peak "$data/train.json"
    [ "$status" -eq 0 ]
    [ -z "$err" ]
    [[ $out == "cuda 0  Simulated GPU: 120.0 MiB were allocated at its peak, after 1.5 s"* ]]
    [[ $out == *"  64.0 MiB, 53.3%, cudaMalloc, by the program, in make_weights at /src/train.c:41"*"  55.0 MiB, 45.8%, cudaMallocAsync"*"  1.0 MiB, 0.8%, "*"libstripped.so+0x7f10"* ]]
    try peak -n 1 "$data/train.json"
    [ "$(tail -n 1 out.txt)" = "  ... and 56.0 MiB at 2 more sites" ]
    try peak --json -n 2 "$data/train.json"
    python3 -c 'import json
device, = json.load(open("out.txt"))["devices"]
assert device["peak_live_bytes"] == 120 << 20 and [site["at_peak_bytes"] >> 20 for site in device["sites"]] == [64, 55], device
assert device["sites"][0]["own"]["line"] == 41 and device["sites"][0]["owner"] == "program", device'
}

@test "each device has its own, host memory none, and a report without memory says so" {
    python3 - "$data/train.json" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
report["devices"].append(dict(report["devices"][0], index=1, peak_live_bytes=4096, peak_ns=7000))
first = report["sites"][0]
report["sites"].append(dict(first, id=len(report["sites"]), device=1, at_peak_bytes=4096))
report["sites"].append(dict(first, id=len(report["sites"]), kind="pinned", at_peak_bytes=8192))
json.dump(report, open("two.json", "w"))
report["sites"] = []
json.dump(dict(report, leaks=[], findings=[], oom=[]), open("none.json", "w"))
END
    try peak two.json
    grep -qx 'cuda 1  Simulated GPU: 4.0 KiB were allocated at its peak, after 7.0 us' out.txt
    [ "$(grep -c '100.0%' out.txt)" -eq 1 ]
    absent grep -q '8.0 KiB' out.txt
    try peak none.json
    [ "$out" = "no device memory was used" ]
    try peak two.json none.json
    grep -qE '^total +4  2 processes$' out.txt
    try peak
    refused 2 "no report given"
}

@test "of a real program the sites add up to the peak" {
    need_plain
    MEMSHIM_REPORT=r.json LD_PRELOAD=$TEST_LIB LD_LIBRARY_PATH=$TEST_SIM "$top_builddir/tests/cli/leaker" 3 65536
    try peak --json -n 1000 r.json
    python3 -c 'import json
device, = json.load(open("out.txt"))["devices"]
assert 0 < device["peak_live_bytes"] == sum(site["at_peak_bytes"] for site in device["sites"]), device'
}
