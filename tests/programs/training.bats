#!/usr/bin/env bats
# The training program under `memshim run --sim`: the report holds what the program says of itself, and the copies come
# back right.

load "$TEST_HELPERS/common.bash"

setup_file() {
    [ -x "$TEST_BIN" ] || return 0
    cd "$TEST_TMP"
    status=0
    "$TEST_BIN" run -q --sim -o "$TEST_TMP/training.json" -- "$top_builddir/tests/programs/training" 12 \
        >"$TEST_TMP/training.out" 2>"$TEST_TMP/training.err" || status=$?
    echo "$status" >"$TEST_TMP/training.status"
}

setup() {
    [ -x "$TEST_BIN" ] || skip "the memshim command is not built: no jansson or no elfutils"
    # Without these every comparison below would be of nothing with nothing.
    [ -s "$TEST_TMP/training.json" ]
    grep -q '^live_bytes ' "$TEST_TMP/training.out"
}

# said NAME: the value that the program printed.
said() {
    sed -n "s/^$1 //p" "$TEST_TMP/training.out"
}

report() {
    json "$TEST_TMP/training.json" "$1"
}

@test "the program ends as it does without memshim and its copies are right" {
    run_native "$top_builddir/tests/programs/training" 12
    [ "$status" -eq 0 ]
    [ "$output" = "$(cat "$TEST_TMP/training.out")" ]
    cat "$TEST_TMP/training.err"
    [ "$(cat "$TEST_TMP/training.status")" -eq 0 ]
    [ "$(said copies)" = right ]
}

@test "nothing is written to the program's standard error" {
    [ ! -s "$TEST_TMP/training.err" ]
}

@test "live bytes and blocks are the program's" {
    [ "$(report 'r["devices"][0]["live_bytes"]')" = "$(said live_bytes)" ]
    [ "$(report 'r["devices"][0]["live_count"]')" = "$(said live_count)" ]
}

@test "the peak is the program's" {
    [ "$(report 'r["devices"][0]["peak_live_bytes"]')" = "$(said peak_live_bytes)" ]
}

@test "each call is counted once, under the name that the program called" {
    [ "$(report '[a["calls"] for a in r["apis"] if a["name"] == "cudaMalloc"][0]')" = "$(said 'calls cudaMalloc')" ]
    [ "$(report '[a["calls"] for a in r["apis"] if a["name"] == "cudaMallocAsync"][0]')" = \
        "$(said 'calls cudaMallocAsync')" ]
    [ "$(report '[a["name"] for a in r["apis"] if a["name"].startswith("cuMemAlloc") and a["calls"]]')" = "[]" ]
}

@test "every planted leak is named with its function, interface, bytes and blocks, and nothing else leaked" {
    # A compiler that unrolls a loop makes several places of one.
    report '"\n".join("leak %s %s %d bytes in %d block%s" % (*where, bytes, count, "s" * (count > 1))
        for where, leaks in grouped(((innermost(r, l, "training.c"), site(r, l["site"])["api"]), l) for l in r["leaks"])
        for bytes, count in [(sum(l["bytes"] for l in leaks), sum(l["count"] for l in leaks))])' >"$TEST_TMP/leaks"
    grep '^leak ' "$TEST_TMP/training.out" | sort | diff - "$TEST_TMP/leaks"
}

@test "the stack of a leak ends in main, with file and line" {
    where=$(report '[(f["file"].rsplit("/", 1)[-1], f["line"]) for l in r["leaks"]
        for f in frames(r, site(r, l["site"])["stack"]) if f.get("function") == "save_checkpoint"][0]')
    line=$(grep -n 'cudaMalloc(&copy, CHECKPOINT_BYTES)' "$top_srcdir/tests/programs/training.c" | cut -d: -f1)
    [ "$where" = "('training.c', $line)" ]
    [ "$(report '"main" in [f.get("function") for l in r["leaks"] for f in frames(r, site(r, l["site"])["stack"])]')" = True ]
}

@test "the report says that nothing was missed" {
    [ "$(report 'r["coverage"]["unseen_frees"]')" = 0 ]
    [ "$(report 'r["overhead"]["dropped_events"]')" = 0 ]
}
