#!/usr/bin/env bats
# memshim frag --trace FILE --at MOMENT: segments as they were, against a replay of the trace that shares nothing with the command's
load "$TEST_HELPERS/common.bash"
load helpers

# play PROGRAM WORD...: r.json and r.trace of it.
play() {
    need_plain "the simulator's programs"
    [ -x "$top_builddir/tests/$1" ] || skip "tests/$1 is not built"
    program=$1
    shift
    MEMSIM_MEMORY=1G MEMSHIM_OOM_WAIT_MS=200 "$TEST_BIN" run -q --sim -f -o r.json --trace r.trace -- "$top_builddir/tests/$program" "$@" >/dev/null || true
}

# same MOMENT: what the command says of it is what the lines of the trace say.
same() {
    "$TEST_BIN" frag --json --top 1000000 --trace r.trace --at "$1" r.json >then.json
    "$TEST_BIN" trace --text -f -o r.lines r.trace
    python3 - "$1" <<'END'
import json, sys
report, then = json.load(open("r.json")), json.load(open("then.json"))["devices"][0]
lines = [line.split() for line in open("r.lines") if not line.startswith("#")]

def at(count):
    blocks = {}
    for words in lines[:count]:
        if words[1] == "a":
            blocks[words[2]] = (int(words[6], 16), int(words[3]), words[5])
        else:
            del blocks[words[2]]
    return blocks

if sys.argv[1] == "peak":
    live = most = count = 0
    for i, words in enumerate(lines):
        live += int(words[3]) * (1 if words[1] == "a" else -1)
        if live > most:
            most, count = live, i + 1
    assert most == report["devices"][0]["peak_live_bytes"], (most, report["devices"][0]["peak_live_bytes"])
else:
    ns = report["oom"][-1]["t_ns"] if sys.argv[1] == "oom" else int(float(sys.argv[1]) * 1e9)
    count = sum(int(words[0]) * 1000 <= ns for words in lines)
blocks = at(count)
assert then["then"]["live_bytes"] == sum(size for _, size, _ in blocks.values()) and then["then"]["live_count"] == len(blocks), then["then"]
if sys.argv[1] == "oom":
    assert then["then"]["live_bytes"] == report["oom"][-1]["live"], (then["then"], report["oom"])
placed = {}
rows = {str(site.get("row", site["id"])): site["id"] for site in report["sites"]}
for segment in report["segments"]:
    start = int(segment["address"], 16)
    lay = [block for block in blocks.values() if segment["tier"] != "followed" and start <= block[0] < start + segment["bytes"]]
    if lay:
        placed[segment["address"]] = (sum(size for _, size, _ in lay), len(lay))
assert (placed or sys.argv[1] not in ("peak", "oom")) and placed == {row["address"]: (row["live_bytes"], row["live_count"]) for row in then["segments"]}, (placed, then["segments"])
assert then["then"]["placed_bytes"] == sum(size for size, _ in placed.values()) and then["then"]["placed_count"] == sum(n for _, n in placed.values())
held = sum(row["live_bytes"] for row in then["holders"])
assert {row["site"] for row in then["holders"]} <= {rows[block[2]] for block in blocks.values()} and held <= then["then"]["placed_bytes"]
END
}

@test "at the peak, and at any time" {
    play programs/training 40
    same peak
    same 0
    same 0.05
    same 1000
    try frag --trace r.trace r.json
    [ "$status" -eq 0 ]
    [[ $out == *"at the peak, after "*" allocated in "*" blocks, "*"there to the end"*"Segments, most fragmented first"*"Who holds the fragmented segments"* ]]
    absent grep -q 'as it grew' out.txt
    try frag --trace r.trace --at oom r.json
    [[ $out == *"there always was memory"* ]]
}

@test "when there was no memory: every second block of what lay side by side" {
    MEMSHIM_PREALLOC=280M play oom/oom_user interleaved
    same oom
    try frag --trace r.trace --at oom r.json
    [[ $out == *"out of memory, after "* ]]
    grep -qE ' held back by 140\.0 MiB of cudaMalloc in [0-9]+ segments?, in hoard at ' out.txt
    grep -qE '^  0x[0-9a-f]+ +run .*#\?+#' out.txt
}

@test "a trace that says anything is no harm" {
    python3 - "$data/train.json" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
MIB = 1 << 20
r["segments"] = [{"device": 0, "address": "0x7f0000000000", "bytes": 4 * MIB, "tier": "run", "backing": "malloc", "blocks": []},
                 {"device": 0, "address": "0x7f0000400000", "bytes": 4 * MIB, "tier": "run", "backing": "malloc", "blocks": []}]
json.dump(r, open("pool.json", "w"))
lines = ["# memshim 0.1.0: train, process %d" % r["run"]["pid"],
         "1 a 1 1048576 0 0 0x7f0000000000", "2 a 2 1048576 0 1 0x7f0000080000", "3 a 3 4611686018427387904 0 - 0x7f0000200000", "4 a 4 4194304 0 - 0x7f0000300000",
         "5 a 5 1048576 0 999999 0x7f0000400000", "6 f 5 1048576 0", "7 a 18446744073709551615 4096 0 1 0x7f0000500000", "8 f 18446744073709551615 4096 0",
         "9 f 77 1 0", "10 a 6 0 0 - 0x7f0000600000", "11 a 7 512 0 1 0x7f00007ffe00", "12 f 1 1 0", "13 f 1 1 0", "14 a 1 5 0 0 0x0"]
open("wild.trace", "w").write("\n".join(lines) + "\n")
END
    sed 's/4611686018427387904/9223372036854775807/' wild.trace >much.trace
    try frag --trace much.trace pool.json
    refused 2 "more is live than there can be"
    for moment in peak oom 0 0.000005 3; do
        try frag --trace wild.trace --at $moment pool.json
        [ "$status" -eq 0 ]
        try frag --json --trace wild.trace --at $moment pool.json
        [ "$status" -eq 0 ]
        python3 -c 'import json; json.load(open("out.txt"))'
    done
    try frag --json --trace wild.trace --at 0.000002 pool.json
    python3 - <<'END'
import json
then = json.load(open("out.txt"))["devices"][0]
assert then["then"]["live_count"] == 2 and then["then"]["placed_count"] == 1 and len(then["segments"]) == 1, then
assert then["segments"][0]["unknown_bytes"] == 3 << 20, then
END
}

@test "wrong usage is refused" {
    play programs/training 2
    try frag --at peak r.json
    refused 2 "--at needs --trace"
    try frag --trace r.trace --at soon r.json
    refused 2 "'soon'"
    try frag --trace r.trace --at -1 r.json
    refused 2 "'-1'"
    try frag --trace r.trace --at nan r.json
    refused 2 "'nan'"
    try frag --trace missing r.json
    refused 2 missing
    try frag --trace r.json r.json
    refused 2 "r.json"
    try frag --trace r.trace r.json r.json
    refused 2 "2 reports"
    try frag --trace r.trace "$data/train.json"
    refused 2 "of process"
}
