#!/usr/bin/env bats
# memshim tree, flamegraph and timeline: what holds memory as a picture in the terminal
load "$TEST_HELPERS/common.bash"
load helpers

@test "a tree has each function with what is below it, heaviest first, and says what it leaves out" {
    try tree "$data/train.json"
    [ "$status" -eq 0 ]
    [ -z "$err" ]
    [ "$out" = "At peak: 120.0 MiB
 120.0 MiB 100.0%  cuda 0
 120.0 MiB 100.0%    main
  64.0 MiB  53.3%      make_weights
  64.0 MiB  53.3%        cudaMalloc
  55.0 MiB  45.8%      step
  55.0 MiB  45.8%        cudaMallocAsync
   1.0 MiB   0.8%      libstripped.so+0x7f10
   1.0 MiB   0.8%        cudaMalloc" ]
    try tree -n 3 "$data/train.json"
    [ "$(tail -n 4 out.txt)" = " 120.0 MiB 100.0%    main
  64.0 MiB  53.3%      make_weights
  64.0 MiB  53.3%        ... 1 more
  56.0 MiB  46.7%      ... 2 more" ]
    try tree --inverted --value count "$data/train.json"
    [ "$(sed -n 1,3p out.txt)" = "Allocations: 24
        15  62.5%  cudaMalloc
        12  50.0%    libstripped.so+0x7f10" ]
    try tree --value most "$data/train.json"
    refused 2 "--value" "'most'" "peak" "rounding"
}

@test "each node of a tree is the sum of its children and of what ends in it, whatever it weighs" {
    for value in peak live leaked total count rounding; do
        for way in "" --inverted; do
            # shellcheck disable=SC2086
            try tree --json --top 1000 --value $value $way "$data/train.json"
            python3 - "$data/train.json" $value <<'END'
import json, sys
tree, report = json.load(open("out.txt")), json.load(open(sys.argv[1]))
key = {"peak": "at_peak_bytes", "live": "live_bytes", "total": "total_bytes", "count": "total_count", "rounding": "rounding_bytes"}.get(sys.argv[2])
assert tree["total"] == (sum(site[key] for site in report["sites"]) if key else sum(leak["bytes"] for leak in report["leaks"])), tree
open_at, below = {0: tree["total"]}, {}
for number, node in enumerate(tree["nodes"]):
    inner = 0
    for other in tree["nodes"][number + 1:]:
        if other["depth"] <= node["depth"]:
            break
        inner += other["total"] if other["depth"] == node["depth"] + 1 else 0
    assert node["total"] == inner + node["self"], node
assert sum(node["self"] for node in tree["nodes"]) == tree["total"]
END
        done
    done
}

@test "a flame graph is as wide as it may be, and its nodes as their shares" {
    for columns in 40 80 133; do
        COLUMNS=$columns try flamegraph "$data/train.json"
        [ "$status" -eq 0 ]
        python3 - $columns <<'END'
import sys
width, lines = int(sys.argv[1]), open("out.txt").read().split("\n")
assert lines[0] == "At peak: 120.0 MiB" and lines[-1] == "", lines
assert all(len(line) <= width for line in lines), lines
assert len(lines[1]) == width and lines[1].startswith("|cuda 0-"), lines
make, rest = lines[3].split("|")[1:3]
assert make.startswith("make_w") and abs(len(make) + 1 - width * 64 / 120) <= 1 and rest.startswith("step"), lines
END
    done
    try flamegraph --inverted "$data/train.json"
    [[ $(sed -n 2p out.txt) == "|cudaMalloc-"*"|cudaMallocAsync-"* ]]
}

timeline_report() {
    python3 - "$data/train.json" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
report["run"]["end_unix_ns"] = report["run"]["start_unix_ns"] + 8000
report["devices"][0].update(peak_reserved_bytes=64)
report["timeline"] = {"bucket_ns": 1000, "t": list(range(0, 8000, 1000)),
                      "devices": [{"device": 0, "live": [0, 8, 16, 24, 32, 40, 48, 64], "reserved": [64] * 8, "limbo": [0] * 8}]}
report["oom"] = [{"t_ns": 7900, "device": 0, "api": "cudaMalloc", "requested": 1, "live": 1, "reserved": 1, "largest_free": 1, "top_sites": []}]
report["phases"] = [{"name": "a phase\u001b[2J", "source": "nvtx", "count": 1, "open": 0, "marks": 0, "first_ns": 4000, "last_ns": 7999, "total_ns": 3999,
                     "devices": [{"device": 0, "peak_bytes": {"min": 64, "median": 64, "max": 64}}]}]
json.dump(report, open("time.json", "w"))
END
}

@test "a timeline rises as memory did, with phases, the lack of memory and the time below" {
    timeline_report
    COLUMNS=40 LC_ALL=C try timeline time.json
    [ "$status" -eq 0 ]
    [[ $(sed -n 1p out.txt) == "cuda 0  Simulated GPU: 120.0 MiB at most, after 1.5 s" ]]
    [ "$(sed -n '2,3p' out.txt)" = "  allocated   ..::--++**##@@  64 B
  reserved  @@@@@@@@@@@@@@@@  64 B" ]
    grep -qxE '  no memory  {15,17}!  1 time' out.txt
    grep -qE '^  a phas\.\.\. +={8}  64 B$' out.txt
    absent grep -q "$(printf '\033')" out.txt
    COLUMNS=40 LC_ALL=C.UTF-8 try timeline time.json
    grep -q '^  allocated .*▁.*▄.*█  64 B$' out.txt
    try timeline "$data/train.json"
    [ "$out" = "nothing was recorded over time" ]
}

@test "colour is for a terminal alone, and not with NO_COLOR" {
    command -v script >/dev/null || skip "script is not here"
    timeline_report
    for verb in flamegraph timeline tree; do
        env -u NO_COLOR TERM=xterm script -qec "$TEST_BIN $verb time.json" /dev/null >seen.txt </dev/null
        grep -q "$(printf '\033')" seen.txt
        TERM=xterm NO_COLOR=1 script -qec "$TEST_BIN $verb time.json" /dev/null >seen.txt </dev/null
        absent grep -q "$(printf '\033')" seen.txt
    done
}
