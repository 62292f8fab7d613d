#!/usr/bin/env bats
# Files that are no report, or half of one: one line, exit 2, never a crash.
load "$TEST_HELPERS/common.bash"
load helpers

@test "what cannot be read is named" {
    try leaks missing.json
    refused 2 "missing.json" "No such file"
    try leaks .
    refused 2 "Is a directory"
    : >empty.json
    try leaks empty.json
    refused 2 "empty.json" "line 1"
    head -c 4096 /dev/urandom >noise.json
    try leaks noise.json
    refused 2 "noise.json"
    echo '[1, 2]' >array.json
    try leaks array.json
    refused 2 "array.json" "schema_version"
    echo '{"schema_version": "2.0"}' >later.json
    try leaks later.json
    refused 2 "later.json" "2.0" "1"
}

@test "a report cut anywhere gets one line and exit 2" {
    size=$(wc -c <"$data/train.json")
    for percent in 0 1 5 10 25 50 75 90 99; do
        head -c $((size * percent / 100)) "$data/train.json" >cut.json
        for verb in summary leaks; do
            try "$verb" cut.json
            refused 2 "cut.json"
        done
    done
}

@test "a report whose parts are of other types is read as far as it makes sense" {
    python3 - "$data/train.json" <<'END'
import copy, json, sys
whole = json.load(open(sys.argv[1]))
number = 0
def paths(value, path=()):
    yield path
    if isinstance(value, dict):
        for key in value: yield from paths(value[key], path + (key,))
    elif isinstance(value, list):
        for index in range(min(2, len(value))): yield from paths(value[index], path + (index,))
for path in [p for p in paths(whole) if p and p[0] not in ("schema_version", "tool", "config")]:
    for wrong in (None, -1, "x", [], {}, [[9, 9]], 1e300, 2 ** 62):
        damaged = copy.deepcopy(whole)
        place = damaged
        for key in path[:-1]: place = place[key]
        place[path[-1]] = wrong
        if number % 3 == 0:
            json.dump(damaged, open("wrong%04d.json" % number, "w"))
        number += 1
END
    set -- wrong*.json
    [ "$#" -gt 300 ]
    for verb in summary "summary --json" leaks "leaks --json"; do
        # shellcheck disable=SC2086
        try $verb "$@"
        [ "$status" -eq 0 ]
    done
    # Many in one go are told otherwise than one alone.
    for file in wrong*[05].json; do
        try leaks "$file"
        [ "$status" -eq 0 ]
    done
}

@test "a Python frame whose code object is not there gets one line, and the rest is read" {
    python3 - "$data/train.json" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
report["run"]["symbolized"] = False
first = len(report["frames"])
code = {"id": 0, "file": "train.py", "function": "step", "first_line": 7, "version": "3.12", "lines": ""}
report["codes"] = [code]
for number, wrong in enumerate((1, 2 ** 62, -1, "x", None, 1.5)):
    report["frames"][first:] = [{"kind": "python", "offset": 0, "code": wrong}, {"kind": "python", "offset": -1, "code": 0}]
    json.dump(report, open("astray%d.json" % number, "w"))
print(first)
END
    for file in astray?.json; do
        for verb in summary leaks "symbolize -f -o out.json"; do
            # shellcheck disable=SC2086
            try $verb "$file"
            [ "$status" -eq 0 ]
            [ "$(grep -c "$file: frames.*code is not one of the 1 rows of codes.*, so 1 Python frame is" err.txt)" -eq 1 ]
        done
        python3 -c 'import json; f = json.load(open("out.json"))["frames"]
assert [x["line"] for x in f if x.get("function") == "step" and x["kind"] == "python"] == [7]'
    done
}

@test "a stack that is its own parent ends" {
    sed 's/\[$/[/' "$data/train.json" >loop.json
    python3 - loop.json <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
report["stacks"][1][0] = 3
json.dump(report, open(sys.argv[1], "w"))
END
    try leaks loop.json
    [ "$status" -eq 0 ]
}
