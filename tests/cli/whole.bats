#!/usr/bin/env bats
# The command with the real library on the simulated GPU, from a program to its leaks.
load "$TEST_HELPERS/common.bash"
load helpers

prepare() {
    need_plain "every program of this test"
    [ -e "$TEST_SIM/libcuda.so.1" ] || skip "the simulator is not built"
    [ -e "$TEST_LIB" ] || skip "libmemshim.so is not built"
}

@test "run --sim: sizes, function, file and line of a leak, from a program that only knows the exported names" {
    prepare
    try run --sim -o report.json -- "$top_builddir/tests/cli/leaker" 3 1000
    [ "$status" -eq 0 ]
    [[ $err == *"leaked 2.9 KiB in 3 blocks"* ]]
    run "$TEST_VALID" report.json
    [ "$status" -eq 0 ]
    try leaks report.json
    [[ $out == "2.9 KiB leaked in 3 blocks at 1 site"* ]]
    grep -qE "leak_some at .*/leaker.c:$(grep -n 'the leak' "$top_srcdir/tests/cli/leaker.c" | cut -d: -f1)\$" out.txt
    [[ $out == *"cuMemAlloc_v2, device 0, in leak_some at "*"leaker.c:"* ]]
    try summary --json report.json
    python3 - out.txt <<'END'
import json, sys
page = json.load(open(sys.argv[1]))
device = page["devices"][0]
assert device["live_bytes"] == 3000 and device["leaked_bytes"] == 3000, device
assert device["peak_live_bytes"] == 3000 + (1 << 20), device
assert {api["name"]: api["calls"] for api in page["apis"] if "Mem" in api["name"]}.items() >= {"cuMemAlloc_v2": 4, "cuMemFree_v2": 1}.items(), page["apis"]
END
}

@test "the gate: --fail-on-leak sees exactly what was leaked" {
    prepare
    try run --sim --fail-on-leak=3000 -o a.json -- "$top_builddir/tests/cli/leaker" 3 1000
    [ "$status" -eq 0 ]
    try run --sim --fail-on-leak=2999 -o b.json -- "$top_builddir/tests/cli/leaker" 3 1000
    [ "$status" -eq 23 ]
    try run --sim --fail-on-leak -o c.json -- "$top_builddir/tests/cli/leaker" 0 1
    [ "$status" -eq 0 ]
}

@test "children each have a report of their own" {
    prepare
    program=$top_builddir/tests/cli/leaker
    try run --sim -o 'r.%p.json' -- sh -c "'$program' 1 10 && '$program' 1 20; exit 0"
    [ "$status" -eq 0 ]
    [ "$(ls r.*.json | wc -l)" -eq 2 ]
    [[ $err == *"and 1 more"* ]]
    for file in r.*.json; do
        run "$TEST_VALID" "$file"
        [ "$status" -eq 0 ]
    done
}

@test "doctor runs it and names the way it took" {
    prepare
    try doctor --sim --json -- "$top_builddir/tests/cli/leaker" 1 10
    [ "$status" -eq 0 ]
    python3 - out.txt <<'END'
import json, sys
found = json.load(open(sys.argv[1]))
assert found["run"]["reports"] == 1 and found["run"]["status"] == 0
assert found["run"]["routes"]["exported"] >= 1, found["run"]
assert any(o["role"] == "calls the CUDA driver" for o in found["program"]["objects"]), found["program"]
assert found["verdict"].startswith("memshim saw this run")
END
}

@test "a program that never touches a GPU leaves no file and no word but one" {
    prepare
    try run --sim -- true
    [ "$status" -eq 0 ]
    one_line "$err"
    [ -z "$(ls ./*.json 2>/dev/null)" ]
}

@test "a program killed in the middle is said to have no report" {
    prepare
    try run --sim -- sh -c 'kill -9 $$'
    [ "$status" -eq 137 ]
    [[ $err == *"no report: sh was ended by signal 9"* ]]
}

@test "what was preloaded comes before the simulated driver, whose functions it may stand before" {
    prepare
    LD_PRELOAD=$top_builddir/tests/cli/count_symbols.so try run --sim -q -- printenv LD_PRELOAD
    [[ $out == *"/libmemshim.so:"*"/count_symbols.so:"*"/libcuda.so.1"* ]]
}
