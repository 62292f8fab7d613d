#!/usr/bin/env bats
# memshim findings: what is wrong, ranked, with the line. What is found in which program: tests/findings.
load "$TEST_HELPERS/common.bash"
load helpers

# with EXPRESSION: train.json, `r`, after a statement of Python.
with() {
    python3 - "$data/train.json" "$1" >r.json <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
exec(sys.argv[2])
json.dump(r, sys.stdout)
END
}

@test "each leak is one, with its line and what to do" {
    try findings "$data/train.json"
    [ "$status" -eq 0 ]
    [[ $out == *"warning, leak on device 0 (exact): 2.0 MiB of cudaMalloc in "*" never freed"* ]]
    [[ $out == *"to do: free what make_weights at /src/train.c:41 allocates"* ]]
    [[ $out == *"allocated by cudaMalloc, in make_weights at /src/train.c:41"* ]]
}

@test "errors first, then bytes; what is told again is not told twice" {
    with 'r["findings"] = [{"rule": "stranded_memory", "severity": "warning", "confidence": "exact", "bytes": 1 << 30, "device": 0, "message": "m", "advice": "a"}, {"rule": "double_free", "severity": "error", "confidence": "exact", "bytes": 8, "device": 0, "message": "m", "advice": "a", "api": "cudaFree", "stack": r["sites"][0]["stack"]}, {"rule": "leak", "severity": "warning", "confidence": "exact", "bytes": 5, "message": "old", "advice": "old"}]'
    try findings --json r.json
    [ "$status" -eq 0 ]
    python3 - <<'END'
import json
rows = json.load(open("out.txt"))["findings"]
assert [row["rule"] for row in rows[:2]] == ["double_free", "stranded_memory"], rows
assert [row["bytes"] for row in rows[1:]] == sorted((row["bytes"] for row in rows[1:]), reverse=True), rows
assert "old" not in [row["message"] for row in rows] and rows[0]["own"]["function"] == "make_weights", rows
END
    try findings -n 1 r.json
    [[ $out == *"error, double_free"*"freed by cudaFree, in make_weights"*"... and "*" more" ]]
    [[ $out != *stranded_memory* ]]
}

@test "what is suppressed is none" {
    echo 'leak:make_weights' >leaks.supp
    MEMSHIM_SUPPRESSIONS=leaks.supp try findings "$data/train.json"
    [ "$status" -eq 0 ]
    [[ $out != *"make_weights at /src/train.c:41 allocates"* ]]
    with 'r["leaks"] = []; r["findings"] = []'
    try findings r.json
    [ "$out" = "nothing was found" ]
}

@test "of one rule there are twenty at most, and the sum of the others" {
    with 'r["leaks"] = [{"site": i % 3, "bytes": 100 + i, "count": 1, "class": "at_exit", "device": 0} for i in range(25)]; r["findings"] = []'
    try findings --json r.json
    python3 - <<'END'
import json
rows = json.load(open("out.txt"))["findings"]
assert len(rows) == 20, rows
END
    try findings --json -n 100 r.json
    python3 - <<'END'
import json
rows = json.load(open("out.txt"))["findings"]
assert len(rows) == 21 and rows[-1]["bytes"] == sum(range(100, 105)) and rows[-1]["message"].startswith("5 more"), rows
END
}

@test "several reports begin with a table; wrong usage is refused" {
    try findings "$data/train.json" "$data/train.json"
    [[ $(head -1 out.txt) == *errors*warnings*"to know"* ]]
    try findings
    refused 2 "no report given"
    try findings --top many "$data/train.json"
    refused 2 top
}
