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

@test "what breaks the schema is shown with its place" {
    change 'del r["run"]["pid"]'
    caught '$.run lacks "pid"'
    change 'r["devices"][0]["live_bytes"] = -1'
    caught '$.devices[0].live_bytes is -1, less than 0'
    change 'r["run"]["end_reason"] = "bored"'
    try validate changed.json
    [[ $out == *'$.run.end_reason is "bored", not one of'* ]]
    change 'r["frames"][3]["rel_pc"] = 32'
    caught '$.frames[3].rel_pc is of type integer, not string'
    change 'r["frames"][3]["rel_pc"] = "1f"'
    caught '$.frames[3].rel_pc is "1f", which does not match ^0x[0-9a-f]+$'
    change 'r["stacks"][1] = [0]'
    caught '$.stacks[1] has 1 items, at least 2 are required'
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
    change 'del r["tool"]'
    try validate "$data/train.json" changed.json
    [ "$status" -eq 1 ]
    echo '{' >broken.json
    try validate changed.json broken.json "$data/train.json"
    [ "$status" -eq 2 ]
    one_line "$err"
    [[ $out == *'lacks "tool"'* ]]
}

@test "a flood of violations is bounded" {
    change 'r["frames"] = [{} for _ in range(1000)]'
    try validate changed.json
    [ "$status" -eq 1 ]
    [ "$(wc -l <out.txt)" -eq 101 ]
    [[ $out == *"and 900 more" ]]
}

@test "python3-jsonschema agrees about the schema, on good reports and damaged ones" {
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import jsonschema' 2>/dev/null && break
        python=
    done
    [ -n "$python" ] || skip "python3-jsonschema is not installed"
    "$TEST_BIN" validate --schema >schema.json
    cmp schema.json "$top_srcdir/src/report/report.schema.json"
    "$python" - "$TEST_BIN" "$data/train.json" schema.json <<'END'
import copy, json, subprocess, sys
import jsonschema
binary, sample, schema = sys.argv[1:]
whole = json.load(open(sample))
validator = jsonschema.Draft202012Validator(json.load(open(schema)))
jsonschema.Draft202012Validator.check_schema(json.load(open(schema)))
assert validator.is_valid(whole)
def paths(value, path=()):
    yield path
    if isinstance(value, dict):
        for key in value: yield from paths(value[key], path + (key,))
    elif isinstance(value, list):
        for index in range(min(2, len(value))): yield from paths(value[index], path + (index,))
names, expected, number = [], {}, 0
for path in [p for p in paths(whole) if p and p[0] != "schema_version"]:
    for wrong in (None, -1, "x", [], {}, 1.5, "DELETE"):
        number += 1
        if number % 7 != len(path) % 7 and wrong != "DELETE":
            continue
        damaged = copy.deepcopy(whole)
        place = damaged
        for key in path[:-1]: place = place[key]
        if wrong == "DELETE": del place[path[-1]]
        else: place[path[-1]] = wrong
        damaged.setdefault("run", {})
        if isinstance(damaged["run"], dict): damaged["run"]["complete"] = damaged["run"].get("complete", None) and False
        name = "d%04d.json" % number
        json.dump(damaged, open(name, "w"))
        names.append(name)
        expected[name] = validator.is_valid(damaged)
output = subprocess.run([binary, "validate"] + names, capture_output=True, text=True).stdout
schema_says = {name: True for name in names}
for line in output.splitlines():
    text = line.split(": ", 1)[1]
    if not any(word in text for word in (", but ", ", more than ", "names none of", "leaks lists no")):
        schema_says[line.split(": ", 1)[0]] = False
wrong = [name for name in names if schema_says[name] != expected[name]]
assert len(names) > 150, len(names)
assert not wrong, (wrong[:5], [line for line in output.splitlines() if line.startswith(wrong[0])])
assert sum(expected.values()) not in (0, len(names))
END
}
