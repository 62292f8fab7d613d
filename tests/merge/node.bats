#!/usr/bin/env bats
# memshim run --merge-node: a node's processes leave one file.
load "$TEST_HELPERS/common.bash"
load "$top_srcdir/tests/cli/helpers"

@test "the processes of a run are merged, and leave nothing else behind" {
    need_plain "check_user"
    user=$top_builddir/tests/check/check_user
    mkdir tmp work
    cd work
    TMPDIR=$TEST_TMP/tmp RANK=3 try run -q --sim --merge-node '%h.json' -- sh -c "'$user' 8 1 0 & '$user' 4 0 0; '$user' 2 0 0; wait"
    [ "$status" -eq 0 ]
    [ "$(ls ../tmp)" = "" ]
    node=$(hostname).json
    [ "$(find . -name '*.json')" = "./$node" ]
    python3 - "$node" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
assert r["job"]["processes"] == 3 and [rank["rank"] for rank in r["ranks"]] == [3, 3, 3]
assert sorted(rank["leaked_bytes"] for rank in r["ranks"]) == [0, 0, 1 << 20]
assert any(site["at"].startswith("leak_some at ") for site in r["job"]["sites"])
PY
    run "$TEST_VALID" "$node"
    [ "$status" -eq 0 ]
    try run --sim --merge-node '%h.json' -- touch started
    refused 2 "exists" "-f"
    try run --sim --merge-node 'x.%p.json' -- touch started
    refused 2 "--merge-node"
    try run --sim --merge-node nowhere/x.json -- touch started
    refused 2 "nowhere/"
    [ ! -e started ]
}

@test "the gate names processes whose reports are merged, and no file that is gone" {
    need_plain "check_user"
    user=$top_builddir/tests/check/check_user
    try run -q --sim --fail-on-leak --fail-on-peak 1M --merge-node node.json -- "$user" 8 1 0
    [ "$status" -eq 23 ]
    [[ $err == *"process "*" on $(hostname): 1.0 MiB leaked"* ]]
    RANK=3 try run -q --sim -f --fail-on-peak 1M --merge-node node.json -- "$user" 8 1 0
    [ "$status" -eq 23 ]
    [[ $err == *"rank 3 on $(hostname): peak of device 0: "*" by "* ]]
    absent grep -q memshim-node err.txt
}

@test "where it is said where reports go, they stay; the gate holds as ever" {
    need_plain "check_user"
    user=$top_builddir/tests/check/check_user
    try run -q --sim -o 'r.%p.json' --fail-on-leak --merge-node node.json -- "$user" 2 1 0
    [ "$status" -eq 23 ]
    [ "$(ls r.*.json | wc -l)" -eq 1 ]
    "$TEST_BIN" merge -o again.json r.*.json >/dev/null
    cmp node.json again.json
    try run -q --sim -f --merge-node node.json -- true
    [ "$status" -eq 125 ]
    [[ $err == *"no report to merge"* ]]
}
