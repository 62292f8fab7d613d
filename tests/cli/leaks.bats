#!/usr/bin/env bats
# memshim leaks
load "$TEST_HELPERS/common.bash"
load helpers

@test "leaks come with class, size, count, owner and whole stack, most bytes first" {
    try leaks "$data/train.json"
    [ "$status" -eq 0 ]
    [ -z "$err" ]
    [[ $out == "3.0 MiB leaked in 3 blocks at 2 sites"* ]]
    [[ $out == *"2.0 MiB in 1 block, lost, cudaMalloc, device 0, in make_weights at /src/train.c:41"$'\n'"    main at /src/train.c:80"*"1.0 MiB in 2 blocks"*", by /usr/lib/libstripped.so, in main"*"libstripped.so+0x7f10"* ]]
}

@test "--min-bytes leaves out smaller sites" {
    try leaks --min-bytes=1025K "$data/train.json"
    [[ $out == "2.0 MiB leaked in 1 block at 1 site: lost"$'\n'"1.0 MiB left out in 2 blocks at 1 site of less than 1.0 MiB each"* ]]
    try leaks --min-bytes=1M "$data/train.json"
    [[ $out == "3.0 MiB leaked"* ]]
    try leaks --min-bytes=1G "$data/train.json"
    [ "$status" -eq 0 ]
    [ "$out" = $'no leaks of 1.00 GiB or more\n3.0 MiB left out in 3 blocks at 2 sites of less than 1.00 GiB each' ]
    try leaks --json --min-bytes=1.5MiB "$data/train.json"
    python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["left_out"] == {"bytes": 1 << 20, "count": 2, "sites": 1}' out.txt
}

@test "several reports: a line for each process, what they add up to, and each one's leaks" {
    sed 's/"pid": *[0-9]*/"pid": 77/; s/"rank": *[0-9]*/"rank": 5/' "$data/train.json" >second.json
    for verb in leaks frag; do
        try "$verb" "$data/train.json" second.json
        [ "$status" -eq 0 ]
        [[ $out == "process "*"report"* ]]
        grep -qE "^77 +5 .* second.json\$" out.txt
        grep -qE '^total .* 2 processes$' out.txt
        try "$verb" --json "$data/train.json" second.json
        python3 -c 'import json, sys; assert [r["file"][-5:] for r in json.load(open(sys.argv[1]))] == [".json"] * 2' out.txt
        try "$verb" second.json missing.json
        refused 2 "missing.json"
        try "$verb"
        refused 2 "no report"
    done
    try leaks "$data/train.json" second.json
    grep -qE '^total +6.0 MiB +6 +4  2 processes$' out.txt
    [ "$(grep -c 'json: 3.0 MiB leaked in 3 blocks at 2 sites: lost$' out.txt)" -eq 2 ]
}

@test "suppressed leaks are shown but not counted" {
    sed 's/"growing"/"at_exit"/; 0,/"class": "at_exit"/s//"class": "suppressed"/' "$data/train.json" >some.json
    try leaks some.json
    [[ $out == "2.0 MiB leaked in 1 block"*"1.0 MiB more suppressed"* ]]
    try leaks --json some.json
    python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["leaked_bytes"] == 2097152' out.txt
}

@test "--json carries what the text shows" {
    try leaks --json "$data/train.json"
    python3 - out.txt <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["leaked_bytes"] == 3145728
assert [leak["site"] for leak in report["leaks"]] == [0, 2]
assert report["leaks"][0]["owner"] == "/src/train" and report["leaks"][0]["api"] == "cudaMalloc"
assert [frame["function"] for frame in report["leaks"][0]["stack"]] == ["make_weights", "main"]
END
}

@test "names are resolved on the fly, inlined functions included" {
    "$top_builddir/tests/cli/self_report" >self.json 2>expected.txt
    try leaks self.json
    [ "$status" -eq 0 ]
    while read -r function line kind; do
        text="\(    \|.*, in \)$function at .*/self_report.c:$line"
        [ "$kind" = plain ] || text="$text \[inlined\]"
        [ "$(grep -c "^$text\$" out.txt)" -eq 1 ]
    done <expected.txt
    [ "$(wc -l <expected.txt)" -eq 4 ]
}

@test "a report from standard input" {
    status=0
    "$TEST_BIN" leaks - <"$data/train.json" >out.txt || status=$?
    [ "$status" -eq 0 ]
    grep -q make_weights out.txt
}

@test "modules that are not here are counted in one line, however many" {
    "$top_builddir/tests/cli/self_report" 2>/dev/null | sed 's|"path": "[^"]*|"path": "/no/such/program|' >self.json
    try leaks self.json
    [ "$status" -eq 0 ]
    one_line "$err"
    [[ $err == *"self.json: 1 module is not here"* ]]
    [[ $out == *"    program+0x"* ]]
}

@test "MEMSHIM_SUPPRESSIONS: leak: lines match functions, files and modules, as parts or from end to end" {
    suppress() {
        printf '%s\n' "$@" >known.supp
        MEMSHIM_SUPPRESSIONS=known.supp try leaks "$data/train.json"
        [ "$status" -eq 0 ]
    }
    suppress '# known' '' 'leak:make_w*ts'
    [[ $out == "1.0 MiB leaked in 2 blocks"*"2.0 MiB more suppressed"* ]]
    suppress 'leak:train.c'
    [[ $out == "0 B leaked in 0 blocks at 0 sites; 3.0 MiB more suppressed"* ]]
    suppress 'leak:libstripped.so'
    [[ $out == *"1.0 MiB more suppressed"* ]]
    suppress 'leak:^make_weights$'
    [[ $out == *"2.0 MiB more suppressed"* ]]
    suppress 'leak:^weights' 'leak:make$' 'leak:make?weights' 'leak:[m]ake'
    [[ $out == "3.0 MiB leaked in 3 blocks"* ]]
    absent grep -q "more suppressed" out.txt
}

@test "a file of suppressions that cannot be read, or is none, is refused by name and line" {
    MEMSHIM_SUPPRESSIONS=missing.supp try leaks "$data/train.json"
    refused 2 "MEMSHIM_SUPPRESSIONS" "missing.supp"
    printf 'leak:fine\nrace:other\n' >bad.supp
    MEMSHIM_SUPPRESSIONS=bad.supp try leaks "$data/train.json"
    refused 2 "bad.supp:2" "race:other" "leak:TEMPLATE"
}
