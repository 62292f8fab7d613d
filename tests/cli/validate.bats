#!/usr/bin/env bats
# memshim validate
load "$TEST_HELPERS/common.bash"
load helpers

# change EXPRESSION: the sample report with a Python statement applied to r, as changed.json.
change() {
    python3 -c 'import json, sys
r = json.load(open(sys.argv[1]))
exec(sys.argv[2])
json.dump(r, open("changed.json", "w"))' "$data/train.json" "$1"
}

# caught TEXT: validate finds exactly one thing in changed.json, and its line is this.
caught() {
    try validate changed.json
    [ "$status" -eq 1 ] || return 1
    [ "$out" = "changed.json: $1" ]
}

@test "a good report passes without a word" {
    try validate "$data/train.json" "$data/train.json"
    [ "$status" -eq 0 ]
    [ -z "$out$err" ]
}

@test "a list or a figure of another form is shown with its place" {
    change 'del r["run"]'
    caught '$ has no run'
    change 'r["devices"] = {}'
    caught '$.devices is no list'
    change 'r["leaks"][0] = 7'
    caught '$.leaks[0] is no object'
    change 'r["stacks"][1] = [0]'
    caught '$.stacks[1] is no pair of a parent and a frame'
    change 'r["apis"][0]["failures"] = "many"'
    caught '$.apis[0].failures is no integer'
    change 'r["leaks"][0]["count"] = 1.5'
    caught '$.leaks[0].count is no integer'
}

@test "what contradicts itself is shown with its place" {
    change 'r["devices"][0]["live_bytes"] += 1'
    caught '$.devices[0].live_bytes is 3145729, but the sum of its sites'"'"' live_bytes is 3145728'
    change 'r["devices"][0]["peak_live_bytes"] -= 1'
    caught '$.devices[0].peak_live_bytes is 125829119, but the sum of its sites'"'"' at_peak_bytes is 125829120'
    change 'r["sites"][1]["stack"] = 77'
    caught '$.sites[1].stack is 77, which names none of 5 rows'
    change 'r["stacks"][2][0] = 3'
    caught '$.stacks[2].parent is 3, more than the node before it, 1'
    change 'r["leaks"].pop()'
    caught '$.sites[0].live_count is not 0, but leaks lists no leak of the site'
    change 'r["leaks"][0]["bytes"] -= 1'
    caught '$.leaks[0].bytes is 1048575, but what its site holds and lost with contexts is 1048576'
    change 'r["apis"][0]["followed"] = 1'
    caught '$.apis[0].calls is 13, but served and followed together is 1'
    change 'r["timeline"]["devices"] = [{"device": 0, "live": [1], "reserved": [], "limbo": []}]'
    caught '$.timeline.devices[0].live is 1, but the length of t is 0'
    change 'r["devices"][0]["peak_reserved_bytes"] = 5'
    caught '$.devices[0].peak_reserved_bytes is 5, but the sum of peak_parts is 0'
    change 'd = r["devices"][0]; d["reserved_bytes"] = d["reserved_parts"]["cached"] = d["peak_reserved_bytes"] = d["peak_parts"]["cached"] = 5'
    caught '$.devices[0].reserved_bytes is 5, but the sum of its segments is 0'
    change 'r["devices"][0]["followed_bytes"] += 1'
    caught '$.devices[0].followed_bytes is 3145729, more than live_bytes, 3145728'
    change 'r["segments"] = [{"device": 1, "address": "0x1000", "bytes": 512, "tier": "run", "backing": "malloc",
        "blocks": [{"offset": 0, "bytes": 256, "requested": 0, "state": "free"}, {"offset": 300, "bytes": 212, "requested": 0, "state": "free"}]}]'
    caught '$.segments[0].blocks.offset is 300, but the end of the piece before it is 256'
    change 'r["segments"] = [{"device": 1, "address": "0x1000", "bytes": 512, "tier": "run", "backing": "malloc",
        "blocks": [{"offset": 0, "bytes": 256, "requested": 0, "state": "free"}]}]'
    caught '$.segments[0].bytes is 512, but the end of its last piece is 256'
}

@test "sums are not held against a report that says it is not whole" {
    change 'r["devices"][0]["live_bytes"] += 1; r["run"]["complete"] = False'
    try validate changed.json
    [ "$status" -eq 0 ]
    change 'r["devices"][0]["live_bytes"] += 1; r["overhead"]["dropped_events"] = 1'
    try validate changed.json
    [ "$status" -eq 0 ]
}

@test "one bad file among good ones decides the status" {
    change 'r["apis"][0]["calls"] += 1'
    try validate "$data/train.json" changed.json
    [ "$status" -eq 1 ]
    echo '{' >broken.json
    try validate changed.json broken.json "$data/train.json"
    [ "$status" -eq 2 ]
    one_line "$err"
    [[ $out == *'served and followed together'* ]]
}

@test "a flood of violations is bounded" {
    change 'r["leaks"] = [7 for _ in range(1000)]'
    try validate changed.json
    [ "$status" -eq 1 ]
    [ "$(wc -l <out.txt)" -eq 101 ]
    [[ $out == *"and 900 more" ]]
}

@test "the schema is printed as it is installed, and is one" {
    "$TEST_BIN" validate --schema >schema.json
    cmp schema.json "$top_srcdir/src/report/report.schema.json"
    python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is not installed"
    python3 -c 'import json, jsonschema
jsonschema.Draft202012Validator.check_schema(json.load(open("schema.json")))'
}

@test "the tests hold reports against the schema as well" {
    python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is not installed"
    "$TEST_VALID" "$data/train.json"
    for fault in 'del r["run"]["pid"]' 'r["devices"][0]["index"] = -1' 'r["run"]["end_reason"] = "bored"' \
        'r["frames"][3]["rel_pc"] = 32' 'r["frames"][3]["rel_pc"] = "1f"' 'del r["tool"]'; do
        change "$fault"
        run "$TEST_VALID" changed.json
        [ "$status" -eq 1 ]
        [[ $output == *"changed.json: \$"* ]]
    done
}
