#!/usr/bin/env bats
# memshim check, memshim suppress and run --fail-on-...: each rule fails for what it is about, and names the line.
load "$TEST_HELPERS/common.bash"
load "$top_srcdir/tests/cli/helpers"

# record NAME PEAK LEAK GROWTH: a report of check_user.
record() {
    need_plain "check_user"
    "$TEST_BIN" run -q --sim -f -o "$1" -- "$top_builddir/tests/check/check_user" "$2" "$3" "$4"
}

# failed STATUS WORD...: the check failed so, and one line has all the words.
failed() {
    local word
    [ "$status" -eq "$1" ] || return 1
    grep FAILED out.txt >failed.txt || return 1
    shift
    for word in "$@"; do
        grep -qF -- "$word" failed.txt || return 1
    done
}

@test "each rule fails beyond its limit and holds at it, and a failure names the line that holds most" {
    record a.json 64 3 8
    "$TEST_BIN" peak --json a.json >/dev/null
    peak=$(json a.json 'r["devices"][0]["peak_live_bytes"]')
    reserved=$(json a.json 'r["devices"][0]["peak_held_bytes"]')
    stranded=$(json a.json 'r["devices"][0]["peak_parts"]["stranded"]')
    [ "$peak" -ge $((64 << 20)) ]
    [ "$stranded" -ge $((8 << 20)) ]

    try check --max-peak "$peak" --max-leak 3M --max-reserved "$reserved" --max-frag "$stranded" --max-growth 0 --max-growth phase:grow=8M a.json
    [ "$status" -eq 0 ]
    [[ $out == *"0 of 6 checks failed"* ]]

    try check --max-peak $((peak - 1)) a.json
    failed 1 "peak of device 0" "--max-peak"
    grep -q "by hold_much at .*check_user.c:[0-9]*" out.txt
    try check --max-leak 2M a.json
    failed 1 "leaked: 3.0 MiB, allowed 2.0 MiB (--max-leak 2M)"
    grep -q "3.0 MiB by leak_some at .*check_user.c:[0-9]*" out.txt
    try check --max-growth phase:grow=7M a.json
    failed 1 "growth of phase grow: 8.0 MiB, allowed 7.0 MiB"
    grep -q "8.0 MiB by grow_by at .*check_user.c:[0-9]*" out.txt
    try check --max-frag $((stranded - 1)) a.json
    failed 1 "fragmentation of device 0"
    try check --max-reserved $((reserved - 1)) a.json
    failed 1 "reserved of device 0"
    try check --max-peak phase=63M --max-peak owner:program=1M --max-leak device:0=0 a.json
    failed 1 "peak of phase step" "peak of owner program" "leaked of device 0"
    [ "$(grep -c . failed.txt)" -eq 3 ]
    [[ $out == *"3 of 4 checks failed"* ]]
}

@test "shares are of the device's memory, and of what was reserved" {
    try check --max-peak 2% "$data/train.json"
    [ "$status" -eq 0 ]
    grep -qF "allowed 163.8 MiB (--max-peak 2%)" out.txt
    try check --max-peak device:0=1% "$data/train.json"
    failed 1 "120.0 MiB, allowed 81.9 MiB"
    sed 's/"peak_reserved_bytes": 0/"peak_reserved_bytes": 1000000/; s/"stranded": 0/"stranded": 37748737/' "$data/train.json" >f.json
    try check --max-frag 30% f.json
    failed 1 "fragmentation of device 0"
    try check --max-frag 31% f.json
    [ "$status" -eq 0 ]
}

@test "memory that grows as long as a program runs is told, and not what is merely leaked" {
    sed '0,/"class": "at_exit"/s//"class": "growing"/' "$data/train.json" >g.json
    try check --max-growth 0 "$data/train.json"
    [ "$status" -eq 0 ]
    try check --max-growth 1M --max-growth device=0 g.json
    [ "$status" -eq 1 ]
    [ "$(grep -c '^FAILED  growth of device 0: 1.0 MiB, allowed 0 B' out.txt)" -eq 1 ]
    [[ $out == *"1 of 2 checks failed"* ]]
}

@test "a baseline is written by one command, holds what it has, and fails beyond its tolerance" {
    record a.json 100 1 0
    try check --baseline base.json --update-baseline a.json
    [ "$status" -eq 0 ]
    try check --baseline base.json a.json
    [ "$status" -eq 0 ]
    record b.json 102 1 0 # within 5%
    try check --baseline base.json --tolerance frag=20% --tolerance reserved=20% b.json
    [ "$status" -eq 0 ]
    record c.json 110 2 0
    try check --baseline base.json c.json
    failed 1 "peak of device 0" "+ 5%" "leaked: 2.0 MiB, allowed 1.0 MiB (baseline 1.0 MiB + 0%)"
    try check --baseline base.json --tolerance peak=1G --tolerance reserved=1G --tolerance frag=1G --tolerance leak=1M c.json
    [ "$status" -eq 0 ]
    sed -i 's/"leak": "0%"/"leak": "100%"/; s/"peak": "5%"/"peak": "200%"/; s/"frag": "5%"/"frag": "1000%"/; s/"reserved": "5%"/"reserved": "1000%"/' base.json
    try check --baseline base.json c.json
    [ "$status" -eq 0 ]
    try check --baseline base.json --update-baseline c.json # what people wrote there stays
    grep -q '"leak": "100%"' base.json
    try check --baseline base.json --tolerance 0 c.json
    [ "$status" -eq 0 ]
    try check --baseline base.json --tolerance 0 a.json c.json # of several, the most of any
    [ "$status" -eq 0 ]
}

@test "what is no limit, no baseline, or about nothing, is refused in one line" {
    try check "$data/train.json"
    refused 2 "nothing to check" "--max-peak"
    try check --max-peak 12Q "$data/train.json"
    refused 2 "--max-peak" "12Q"
    try check --max-frag owner:x=1M "$data/train.json"
    refused 2 "--max-frag" "device"
    try check --max-leak phase:x=1M "$data/train.json"
    refused 2 "--max-leak" "owner"
    try check --max-leak 3% "$data/train.json"
    refused 2 "device=3%"
    try check --tolerance pique=1% "$data/train.json"
    refused 2 "pique" "peak"
    try check --update-baseline "$data/train.json"
    refused 2 "--baseline"
    try check --max-peak phase:x=1G "$data/train.json"
    refused 2 "no such phase"
    try check --max-peak owner:NCCL=1G "$data/train.json"
    [ "$status" -eq 0 ]
    [[ $err == *"no such owner"* ]]
    echo '{"memshim_baseline": 2}' >bad.json
    try check --baseline bad.json "$data/train.json"
    refused 2 "bad.json" "no baseline"
    echo '{' >bad.json
    try check --baseline bad.json "$data/train.json"
    refused 2 "bad.json"
    try check --max-peak 1M missing.json
    refused 2 "missing.json"
    try check --max-peak 1M
    refused 2 "no report"
}

@test "several reports are held each by itself, and --json says what the text does" {
    sed 's/"pid": *[0-9]*/"pid": 77/; s/125829120/99/' "$data/train.json" >second.json
    try check --max-peak 100M "$data/train.json" second.json
    failed 1 "peak of device 0"
    [[ $out == *"1 of 2 checks failed"* ]]
    try check --json --max-peak 100M "$data/train.json" second.json
    [ "$status" -eq 1 ]
    python3 - out.txt <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
assert r["failed"] == 1 and [c["held"] for c in r["checks"]] == [False, True]
bad = r["checks"][0]
assert (bad["figure"], bad["of"], bad["name"], bad["bytes"], bad["allowed_bytes"]) == ("peak", "device", "0", 125829120, 100 << 20)
assert bad["own"]["function"] == "make_weights" and bad["site_bytes"] == 67108864
PY
}

@test "run --fail-on-...: the same rules, with the program's own status or the error exit code" {
    need_plain "check_user"
    user=$top_builddir/tests/check/check_user
    try run -q --sim -o a.json --fail-on-peak 100M --fail-on-growth phase:grow=8M --fail-on-reserved 1G --fail-on-frag 1G -- "$user" 64 0 8
    [ "$status" -eq 0 ]
    try run -q --sim -o b.json --fail-on-peak 32M -- "$user" 64 0 0
    [ "$status" -eq 23 ]
    [[ $err == *"peak of device 0"*"allowed 32.0 MiB (--fail-on-peak 32M)"*"by hold_much at "* ]]
    try run -q --sim -o c.json --fail-on-growth phase:grow=1M --error-exitcode 7 -- "$user" 4 0 2
    [ "$status" -eq 7 ]
    try run -q --sim -o d.json --fail-on-reserved 1M -- "$user" 4 0 0
    [ "$status" -eq 23 ]
    try run -q --sim -o e.json --fail-on-frag 1M -- "$user" 64 0 0
    [ "$status" -eq 23 ]
    try run -q --sim -o f.json --fail-on-peak phase:nobody=1G -- "$user" 4 0 0
    [ "$status" -eq 125 ]
    try check --baseline base.json --update-baseline a.json
    try run -q --sim -o g.json --fail-on-baseline base.json -- "$user" 64 0 8
    [ "$status" -eq 0 ]
    try run -q --sim -o h.json --fail-on-baseline base.json -- "$user" 64 1 8
    [ "$status" -eq 23 ]
    [[ $err == *"leaked: 1.0 MiB, allowed 0 B"*"leak_some"* ]]
    try run -q --sim -o i.json --fail-on-peak 1M -- "$user"
    [ "$status" -eq 2 ]
    MEMSHIM_REPORT=none try run --sim --fail-on-peak 1M -- touch started
    refused 2 "MEMSHIM_REPORT=none"
    [ ! -e started ]
}

@test "memshim suppress: its lines suppress what leaked, and nothing else" {
    record a.json 4 3 0
    try suppress -o known.supp a.json
    [ "$status" -eq 0 ]
    grep -qxE 'chain:\^leak_some\$:[0-9]+ <- \^main\$:[0-9]+' known.supp
    [ "$(grep -c '^chain:' known.supp)" -eq 1 ]
    MEMSHIM_SUPPRESSIONS=known.supp try check --max-leak 0 a.json
    [ "$status" -eq 0 ]
    MEMSHIM_SUPPRESSIONS=known.supp try suppress a.json
    [ -z "$out" ]
    sed 's/make_weights/^opera\\ttor new[](int*, \\"x\\")$/' "$data/train.json" >odd.json
    try suppress odd.json
    printf '%s\n' "$out" >odd.supp
    MEMSHIM_SUPPRESSIONS=odd.supp try check --max-leak 0 odd.json
    [ "$status" -eq 0 ]
}

@test "the snippet for GitHub Actions in docs/user/check.md runs as it stands" {
    need_plain "check_user"
    python3 - "$top_srcdir/docs/user/check.md" >snippet.sh <<'PY'
import re, sys, textwrap
blocks = re.findall(r"^ +run: \|\n((?: {10}.*\n|\n)+)", open(sys.argv[1]).read(), re.M)
assert blocks, "no run: block"
for block in blocks:
    print(textwrap.dedent(block))
PY
    mkdir bin
    ln -s "$TEST_BIN" bin/memshim
    printf '#!/bin/sh\nexec "%s" 40 "${LEAK-0}" 0\n' "$top_builddir/tests/check/check_user" >tests.sh
    chmod +x tests.sh
    record once.json 40 0 0
    "$TEST_BIN" check --baseline gpu-baseline.json --update-baseline once.json
    SIMULATED=--sim PATH=$PWD/bin:$PATH bash -e snippet.sh
    [ -s memshim.sarif ]
    [ -s memshim-junit.xml ]
    rm -f memshim.*
    status=0
    LEAK=1 SIMULATED=--sim PATH=$PWD/bin:$PATH bash -e snippet.sh >said.txt 2>&1 || status=$?
    [ "$status" -eq 1 ]
    grep -q 'leaked: 1.0 MiB, allowed 0 B' said.txt
    grep -q memshim/leak memshim.sarif
}
