#!/usr/bin/env bats
# Wrong usage of any verb: one line that names what is wrong and what is allowed, exit 2; and version, help.
load "$TEST_HELPERS/common.bash"
load helpers

@test "no verb and an unknown verb are refused, with where to look" {
    try
    refused 2 "no verb" "memshim help" "memshim run"
    try frobnicate
    refused 2 "'frobnicate'" "memshim help" "memshim run"
}

@test "a verb or an option that was mistyped gets the nearest one, and no list" {
    for pair in summray:summary leak:leaks sumary:summary frga:frag find:findings symbolise:symbolize contxts:contexts; do
        try "${pair%:*}"
        refused 2 "unknown verb '${pair%:*}': did you mean ${pair#*:}?"
    done
    try summary --jsno "$data/train.json"
    refused 2 "unknown option '--jsno': did you mean --json?"
    try check --max-laek=1 "$data/train.json"
    refused 2 "did you mean --max-leak?"
    try run --fail-on-leaks=5 -- true
    refused 2 "did you mean --fail-on-leak?"
    try leaks --xyzzy "$data/train.json"
    refused 2 "unknown option '--xyzzy'; memshim leaks --help lists them"
}

@test "every verb in the table has help that names each of its options, and refuses an unknown one" {
    for verb in $(sed -n 's/^MS_VERB(\([a-z]*\),.*/\1/p' "$top_srcdir/src/cli/cmds.def"); do
        try "$verb" --help
        [ "$status" -eq 0 ]
        [ -z "$err" ]
        for flag in $(sed -n "s/^MS_FLAG($verb, '.', \"[^\"]*\", \"\([^\"]*\)\".*/\1/p" "$top_srcdir/src/cli/cmds.def"); do
            case $out in *"--$flag"*) ;; *) return 1 ;; esac
        done
        try "$verb" --no-such-option
        refused 2 "memshim $verb" "--no-such-option" "--help"
        try "$verb" -Z
        refused 2 "memshim $verb" "'-Z'"
    done
}

@test "an option's missing, surplus or bad argument is named" {
    try leaks "$data/train.json" --min-bytes
    refused 2 "--min-bytes" "SIZE"
    try leaks --json=3 "$data/train.json"
    refused 2 "--json" "no argument"
    try leaks --min-bytes=12Q "$data/train.json"
    refused 2 "--min-bytes" "12Q" "1.5G"
    try leaks --min-bytes=-1 "$data/train.json"
    refused 2 "--min-bytes" "-1"
    try leaks --min-bytes=99999999999999999999 "$data/train.json"
    refused 2 "--min-bytes"
    try leaks --min-bytes=20000000T "$data/train.json"
    refused 2 "--min-bytes"
    try summary -n many "$data/train.json"
    refused 2 "--top" "many" "whole number"
}

@test "version prints the version of the build" {
    try version
    [ "$status" -eq 0 ]
    one_line "$out"
    [[ $out == "memshim $(sed -n 's/^#define PACKAGE_VERSION "\(.*\)"/\1/p' "$top_builddir/config.h") ("* ]]
    try --version
    [ "$status" -eq 0 ]
    try version --json
    echo "$out" | python3 -c 'import json, sys; r = json.load(sys.stdin); assert r["name"] == "memshim" and r["commit"]'
}

@test "output that cannot be written is an error" {
    [ -w /dev/full ] || skip "/dev/full is not here"
    status=0
    "$TEST_BIN" version >/dev/full 2>err.txt || status=$?
    [ "$status" -eq 2 ]
    one_line "$(cat err.txt)"
}
