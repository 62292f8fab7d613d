#!/usr/bin/env bats
# memshim diff: growth first, and no site is taken for another.
load "$TEST_HELPERS/common.bash"
load "$top_srcdir/tests/cli/helpers"

# build NAME FLAG...: diff_user, with its part in a file of that or another name.
build() {
    local name=$1
    shift
    cp "$top_srcdir/tests/diff/diff_user.c" .
    cp "$top_srcdir/tests/diff/diff_part.h" "${PART-diff_part.h}"
    # shellcheck disable=SC2086  # it may be more than one word
    $TEST_CC -g -O1 -fno-optimize-sibling-calls "$@" -o "$name" diff_user.c -Wl,--build-id "$TEST_SIM/libcudart.so.13" -Wl,--allow-shlib-undefined
    "$TEST_BIN" run -q --sim -f -o "$name.json" -- "./$name"
}

# planted_json BEFORE AFTER: the rows of two builds' reports, and which of them are pairs.
planted_json() {
    try diff --json "$@"
    [ "$status" -eq 0 ]
    python3 - out.txt "$@" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
assert [r["before"]["file"], r["after"]["file"]] == sys.argv[2:]
# The C library's inner frames have names only where its debug symbols are installed: else they are their module.
functions = lambda side: [frame.get("function") or frame["module"] for frame in side["stack"]]
own = [(frame, name) for row in r["rows"] for name in ("before", "after") if name in row
       for frame in row[name]["stack"] if frame["module"].endswith("/" + name)]
assert own and all("function" in frame for frame, name in own), own
pairs = [row for row in r["rows"] if "before" in row and "after" in row]
assert len(pairs) == 5
for row in pairs:
    assert functions(row["before"]) == functions(row["after"]), row
    assert row["before"]["hash"] != row["after"]["hash"]
    if row["state"] == "same":
        assert row["before"]["peak"] == row["after"]["peak"], row
first = r["rows"][0]
assert first["state"] == "grown" and "planted" in functions(first["after"]) and first["change"]["peak"] == 48 << 20
renamed = [row for row in pairs if any("in_part" == name for name in functions(row["after"]))]
assert len(renamed) == 2
assert [row["state"] for row in renamed] == ["same", "same"]
assert r["devices"][0]["change"]["peak"] == sum(row["change"]["peak"] for row in r["rows"])
PY
}

# unname FROM TO: the report as where a library has no symbols of its own: in it nothing but the program's frames has a name.
unname() {
    python3 - "$@" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
own = [module["id"] for module in r["modules"] if module["path"] == r["run"]["exe"]]
lost = [frame for frame in r["frames"] if "function" in frame and frame.get("module") not in own]
assert len(own) == 1 and lost
for frame in lost:
    for key in ("function", "file", "line"):
        frame.pop(key, None)
json.dump(r, open(sys.argv[2], "w"))
PY
}

@test "two builds: the planted growth first; moved functions and a renamed file are what they were" {
    need_plain "diff_user"
    build before
    PART=diff_part_renamed.h build after -DAFTER
    try diff before.json after.json
    [ "$status" -eq 0 ]
    [ -z "$err" ]
    grep -q '^before  before.json: .*/before, process' out.txt
    grep -q '^after   after.json: .*/after, process' out.txt
    grep -qF 'peak by site: 2 new, 1 gone, 1 grown, 0 shrunk, 4 same' out.txt
    grep -A1 '^ *before *after *change$' out.txt | tail -1 | grep -qE '16.0 MiB +64.0 MiB +\+48.0 MiB  grown '
    grep -qE ' - +7.0 MiB +\+7.0 MiB  new ' out.txt
    grep -qE ' - +3.0 MiB +\+3.0 MiB  new ' out.txt
    grep -qE '5.0 MiB +- +-5.0 MiB  gone ' out.txt
    planted_json before.json after.json
}

@test "the same where the C library has no symbols, and some frames no name" {
    need_plain "diff_user"
    build before
    PART=diff_part_renamed.h build after -DAFTER
    unname before.json before-unnamed.json
    unname after.json after-unnamed.json
    planted_json before-unnamed.json after-unnamed.json
    python3 -c 'import json; r = json.load(open("out.txt"))
assert any("function" not in frame for row in r["rows"] for frame in row.get("after", {"stack": []})["stack"])'
}

@test "by function, owner, and phase; each value; the other way round" {
    need_plain "diff_user"
    build before
    PART=diff_part_renamed.h build after -DAFTER
    try diff --by function before.json after.json
    grep -qE '^ *34.0 MiB +87.0 MiB +\+53.0 MiB  grown   take$' out.txt
    try diff --by owner --value leaked before.json after.json
    grep -qF 'leaked by owner: 0 new, 0 gone, 1 grown, 0 shrunk, 0 same' out.txt
    try diff --value calls before.json after.json
    grep -qE '^ +calls +6 +7 +\+1$' out.txt
    try diff after.json before.json
    grep -qF 'peak by site: 1 new, 2 gone, 0 grown, 1 shrunk, 4 same' out.txt
    grep -qE '64.0 MiB +16.0 MiB +-48.0 MiB  shrunk ' out.txt
    try diff before.json before.json
    grep -qx 'nothing changed' out.txt
    for what in function owner phase; do
        try diff --by "$what" before.json before.json
        grep -qx 'nothing changed' out.txt
    done
}

@test "the same build: sites are known by their hash, whatever else is said of them" {
    sed 's/"line": 41/"line": 99/; s/make_weights/other_name/; s/"at_peak_bytes": 67108864/"at_peak_bytes": 67108865/' "$data/train.json" >b.json
    try diff "$data/train.json" b.json
    grep -qF 'peak by site: 0 new, 0 gone, 1 grown, 0 shrunk, 2 same' out.txt
    grep -qE '\+1 B  grown   other_name at .*, before: make_weights at ' out.txt
}

@test "what is no pair of reports is refused in one line" {
    try diff "$data/train.json"
    refused 2 "two reports" "1 given"
    try diff "$data/train.json" "$data/train.json" "$data/train.json"
    refused 2 "3 given"
    try diff --by colour "$data/train.json" "$data/train.json"
    refused 2 "--by" "colour" "function"
    try diff --value total "$data/train.json" "$data/train.json"
    refused 2 "--value" "total" "reserved"
    try diff "$data/train.json" missing.json
    refused 2 "missing.json"
}
