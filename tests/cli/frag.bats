#!/usr/bin/env bats
# memshim frag
load "$TEST_HELPERS/common.bash"
load helpers

# sample [CHANGE]: pool.json, a report of a device with three segments of the pool; CHANGE is Python that changes r.
sample() {
    python3 - "$data/train.json" "${1-}" >pool.json <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
MIB = 1 << 20
d = r["devices"][0]
parts = {"requested": 3 * MIB, "rounding": 0, "limbo": MIB, "cached": 4 * MIB, "stranded": 4 * MIB, "pinned": 0}
d.update(reserved_bytes=12 * MIB, peak_reserved_bytes=12 * MIB, reserved_parts=parts, peak_parts=parts, followed_bytes=0,
         vendor_calls=3, vendor_calls_saved=97)
live = {"state": "live"}
r["segments"] = [
    {"device": 0, "address": "0x7f0000000000", "bytes": 4 * MIB, "tier": "run", "backing": "malloc", "blocks": [
        {"offset": 0, "bytes": MIB, "requested": MIB, "state": "live", "site": 0},
        {"offset": MIB, "bytes": 3 * MIB, "requested": 0, "state": "free"}]},
    {"device": 0, "address": "0x7f0000400000", "bytes": 4 * MIB, "tier": "run", "backing": "malloc", "blocks": [
        {"offset": 0, "bytes": MIB, "requested": 0, "state": "limbo"},
        {"offset": MIB, "bytes": 2 * MIB, "requested": 2 * MIB, "state": "live", "site": 1},
        {"offset": 3 * MIB, "bytes": MIB, "requested": 0, "state": "free"}]},
    {"device": 0, "address": "0x7f0000800000", "bytes": 4 * MIB, "tier": "single", "backing": "malloc", "blocks": [
        {"offset": 0, "bytes": 4 * MIB, "requested": 0, "state": "free"}]}]
exec(sys.argv[2])
json.dump(r, sys.stdout)
END
}

@test "the sample is a report that agrees with itself" {
    sample
    run "$TEST_VALID" pool.json
    [ "$status" -eq 0 ]
}

@test "parts, segments, fragmentation and who strands what" {
    sample
    try frag pool.json
    [ "$status" -eq 0 ]
    [ -z "$err" ]
    [[ $out == *"12.0 MiB reserved for the pool in 3 segments"*"3 vendor calls, 97 saved"* ]]
    [[ $out == *"8.0 MiB inactive in segments, 4.0 MiB of it in one piece: fragmentation 50.0%"* ]]
    [[ $out == *"allocated                   3.0 MiB  25.0%  ###"* ]]
    [[ $out == *"0x7f0000000000 run      4.0 MiB   1.0 MiB     1   3.0 MiB #####..............."* ]]
    [[ $out == *"0x7f0000400000 run      4.0 MiB   2.0 MiB     1   1.0 MiB ~~~~~##########....."* ]]
    [[ $out == *"3.0 MiB held back by 1.0 MiB of cudaMalloc in 1 segment"*"1.0 MiB held back by 2.0 MiB of"* ]]
}

@test "the segment that strands most comes first, and --top leaves out the others" {
    sample
    try frag --top 1 pool.json
    [[ $out == *"1 of 3"*"0x7f0000000000"* ]]
    absent grep 0x7f0000400000 out.txt
}

@test "--json carries the figures" {
    sample
    try frag --json pool.json
    python3 - out.txt <<'END'
import json, sys
d = json.load(open(sys.argv[1]))["devices"][0]
assert d["free_bytes"] == 8 << 20 and d["largest_free_bytes"] == 4 << 20 and d["fragmentation_permille"] == 500, d
assert [s["stranded_bytes"] for s in d["segments"]] == [3 << 20, 1 << 20, 0]
assert d["segments"][1]["limbo_bytes"] == 1 << 20 and d["segments"][2]["free_bytes"] == 4 << 20
assert [(h["site"], h["stranded_bytes"], h["segments"]) for h in d["holders"]] == [(0, 3 << 20, 1), (1, 1 << 20, 1)]
assert d["reserved_parts"]["stranded"] == 4 << 20 and d["vendor_calls_saved"] == 97
END
}

@test "no colour into a file, nor where NO_COLOR says so" {
    sample
    try frag pool.json
    absent grep "$(printf '\033')" out.txt
    need_terminal
    env -u NO_COLOR TERM=xterm script -qec "'$TEST_BIN' frag pool.json" /dev/null >colour.txt
    grep -q "$(printf '\033')" colour.txt
    NO_COLOR=1 TERM=xterm script -qec "'$TEST_BIN' frag pool.json" /dev/null >plain.txt
    absent grep "$(printf '\033')" plain.txt
}

@test "a report of a program that was followed says so" {
    try frag "$data/train.json"
    [ "$status" -eq 0 ]
    [[ $out == *"nothing was served from the pool"* ]]
}

@test "nonsense in a report is no harm" {
    sample 'r["segments"][0]["blocks"] = [{"offset": -5, "bytes": 1 << 62, "requested": 1 << 62, "state": "live", "site": 999}, {"offset": 1 << 62, "bytes": 5, "state": "free"}, 7, {}]; r["segments"][1]["bytes"] = 0; r["segments"].append({"device": 0, "bytes": 1})'
    try frag pool.json
    [ "$status" -eq 0 ]
    try frag --json pool.json
    [ "$status" -eq 0 ]
    python3 -c 'import json; json.load(open("out.txt"))'
}

@test "wrong usage is refused" {
    try frag
    refused 2 "no report"
    try frag missing.json
    refused 2 missing.json
    sample
    try frag --top many pool.json
    refused 2 top
}

@test "what is reserved far above what is live is a finding, and says why" {
    need_plain "the simulator's programs"
    [ -x "$top_builddir/tests/programs/training" ] || skip "tests/programs/training is not built"
    export MEMSHIM_PREALLOC=1G
    try run --sim -f -o ahead.json -- "$top_builddir/tests/programs/training"
    unset MEMSHIM_PREALLOC
    [ "$status" -eq 0 ]
    python3 - ahead.json <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
d, found = r["devices"][0], [f for f in r["findings"] if f["rule"] == "reserved_far_above_live"]
assert len(found) == 1 and found[0]["bytes"] == d["peak_reserved_bytes"] - d["peak_live_bytes"], found
part = max((v, k) for k, v in d["peak_parts"].items() if k != "requested")[1]
words = {"cached": "inactive in whole segments (kept", "stranded": "inactive between", "limbo": "pending (", "rounding": "rounding ("}
assert " were %s" % words[part] in found[0]["message"], (part, found)
END
    try run --sim -f -o plain.json -- "$top_builddir/tests/programs/training"
    ! grep -q reserved_far_above_live plain.json
}

@test "a program that was served: its map covers what is reserved" {
    need_plain "the simulator's programs"
    [ -x "$top_builddir/tests/programs/training" ] || skip "tests/programs/training is not built"
    try run --sim -f -o served.json -- "$top_builddir/tests/programs/training"
    [ "$status" -eq 0 ]
    [[ $err == *"peak "*" allocated and "*" reserved on 1 device, leaked "* ]]
    try frag --json served.json
    python3 - served.json out.txt <<'END'
import json, sys
r, f = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))["devices"][0]
assert sum(s["bytes"] for s in r["segments"] if s["tier"] != "followed") == f["reserved_bytes"] > 0
assert f["segment_count"] == len([s for s in r["segments"] if s["tier"] != "followed"])
assert f["vendor_calls_saved"] > 0
END
    python3 - served.json <<'END'
import json, sys
d = json.load(open(sys.argv[1]))["devices"][0]
assert sum(d["peak_parts"].values()) == d["peak_reserved_bytes"] >= d["reserved_bytes"]
for of, parts in (("", d["reserved_parts"]), ("peak_", d["peak_parts"])):
    assert (d[of + "fragmented_bytes"], d[of + "shared_bytes"]) == (parts["stranded"], parts["pinned"])
assert d["peak_fragmented_bytes"] > 0
END
    try summary --all served.json
    [[ $out == *"peak"*"peak reserved"*"allocated"* ]]
    [[ $out == *"Served from the pool"*"calls saved"*"as it grew"*"allocated"*"fragmented"* ]]
}

@test "what the device was used for when there was no memory, the last time" {
    python3 - "$data/train.json" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
row = {"t_ns": 1000, "device": 0, "api": "cudaMalloc", "requested": 1, "live": 1, "reserved": 1, "largest_free": 1, "top_sites": [], "cause": "limit"}
report["oom"] = [row, dict(row, t_ns=2000, requested=4 << 30, live=6 << 30, reserved=5 << 30, largest_free=1 << 30, cause="fragmentation")]
json.dump(report, open("oom.json", "w"))
END
    try frag oom.json
    [[ $out == *"Out of memory after 2.0 us"*"cudaMalloc, cause: fragmentation"* ]]
    grep -qE '^  asked for +4\.00 GiB +50\.0%  #{6} ' out.txt
    grep -qE '^  allocated +6\.00 GiB +75\.0%  #{9} ' out.txt
    grep -qE '^  in a piece +1\.00 GiB +12\.5%  #{2} ' out.txt
    grep -q 'the last of 2 times' out.txt
    try frag --json oom.json
    python3 -c 'import json; assert len(json.load(open("out.txt"))["oom"]) == 2'
    try frag "$data/train.json"
    absent grep -q 'Out of memory' out.txt
}
