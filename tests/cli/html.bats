#!/usr/bin/env bats
# memshim html: what is in the page, read by its documented format; scripts/test-browser looks at it in a browser
load "$TEST_HELPERS/common.bash"
load helpers

page() { # PAGE REPORT...: its structure, and its figures against the reports
    PYTHONDONTWRITEBYTECODE=1 python3 "$top_srcdir/tests/html/page_format.py" "$@"
}

made() { # large|hostile FILE SITES
    PYTHONDONTWRITEBYTECODE=1 python3 "$top_srcdir/tests/html/reports.py" "$@" "$data/train.json"
}

@test "one report, and several, with every figure" {
    cp "$data/train.json" one.json
    made large two.json 300
    try html one.json -o page.html
    [ "$status" -eq 0 ]
    [ -z "$out$err" ]
    page page.html one.json
    try html one.json two.json -f -o page.html
    [ "$status" -eq 0 ]
    page page.html one.json two.json
    # The same reports make the same page.
    try html one.json two.json
    cmp out.txt page.html
}

@test "of a real program, and of one that allocated nothing" {
    need_plain
    MEMSHIM_REPORT=r.json LD_PRELOAD=$TEST_LIB LD_LIBRARY_PATH=$TEST_SIM "$top_builddir/tests/cli/leaker" 3 65536
    python3 - "$data/train.json" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
json.dump(dict(report, sites=[], leaks=[], findings=[], oom=[]), open("none.json", "w"))
END
    "$TEST_BIN" html r.json none.json -o page.html
    page page.html r.json none.json
}

@test "of a job: what its processes had, and who stands out" {
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top_srcdir/tests/merge python3 - <<'END'
import made
for rank in range(24):
    made.write("r%d.json" % rank, rank, 24, 13)
END
    try merge -o job.json r*.json
    try html job.json r1.json -o page.html
    [ "$status" -eq 0 ]
    page page.html job.json r1.json
}

@test "hostile names are in no part of the page but its data" {
    made hostile hostile.json 0
    try html hostile.json -o page.html
    [ "$status" -eq 0 ]
    page page.html hostile.json
    absent grep -qE 'hacked|onerror' page.html
    # Neither is a name that is no UTF-8, nor the file's own.
    printf '{"schema_version":"1.0","run":{"host":"\xff"}}' >bad.json
    try html bad.json -o bad.html
    refused 2 bad.json
    [ ! -e bad.html ]
    cp "$data/train.json" '<b>&.json'
    "$TEST_BIN" html '<b>&.json' -o named.html
    page named.html '<b>&.json'
}

@test "the script makes no markup of text, and knows no address" {
    cd "$top_srcdir/src/html/page"
    absent grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|createContextualFragment|srcdoc' ./*.js body.html
    absent grep -nE 'https?:|fetch\(|XMLHttpRequest|import\(|localStorage' ./*.js ./*.css body.html
    absent grep -niE '</script' ./*.js
}

@test "uPlot is as it came" {
    cd "$top_srcdir/src/html/uplot"
    echo 'addc030d2f1268dbee42ef31f7173b624b87443277163b04651490705dce7397  uPlot.iife.min.js
37d952f00df006ceab033267e05f050cedd8d6906467cc86525dee795dcfa6a9  uPlot.min.css' | sha256sum -c
    grep -q 'Copyright (c) 2021 Leon Sorokin' "$top_srcdir/NOTICE"
}

@test "what is wrong is said in a line" {
    try html
    refused 2 "no report given"
    echo keep >page.html
    try html "$data/train.json" -o page.html
    refused 2 page.html
    [ "$(cat page.html)" = keep ]
    try html "$data/train.json" missing.json -o new.html
    refused 2 missing.json
    [ ! -e new.html ]
}
