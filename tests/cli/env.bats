#!/usr/bin/env bats
# memshim env, and the documents made from it
load "$TEST_HELPERS/common.bash"
load helpers

@test "env shows value and source of a variable, from default, file and environment" {
    try env
    [ "$status" -eq 0 ]
    [ -z "$err" ]
    [[ $out == *"MEMSHIM_MODE = pool  [default]"* ]]
    printf 'MODE = off\nSTACK_DEPTH = 12\n' >memshim.conf
    MEMSHIM_CONFIG=$PWD/memshim.conf MEMSHIM_MODE=track try env
    [ "$status" -eq 0 ]
    [[ $out == *"MEMSHIM_MODE = track  [environment; default pool]"* ]]
    [[ $out == *"MEMSHIM_STACK_DEPTH = 12  [file; default 64]"* ]]
}

@test "--json lists every row of the table" {
    try env --json
    python3 - out.txt "$top_srcdir/src/base/options/options.def" <<'END'
import json, re, sys
rows = json.load(open(sys.argv[1]))
names = re.findall(r'^MS_OPTION\(\w+, "(\w+)"', open(sys.argv[2]).read(), re.M)
assert len(names) > 20 and [row["name"] for row in rows] == ["MEMSHIM_" + name for name in names]
assert all(row["allowed"] and row["text"] and row["effect"] in ("now", "pool", "stacks", "ledger") for row in rows)
END
}

@test "an unknown variable and a bad value are named, exit 2, and the rest is still shown" {
    MEMSHIM_NO_SUCH=1 try env
    [ "$status" -eq 2 ]
    one_line "$err"
    [[ $err == *MEMSHIM_NO_SUCH* ]]
    [[ $out == *MEMSHIM_MODE* ]]
    MEMSHIM_MODE=fast try env
    [ "$status" -eq 2 ]
    one_line "$err"
    [[ $err == *MEMSHIM_MODE*fast*track* ]]
    [[ $out == *"MEMSHIM_MODE = pool  [default]"* ]]
}

@test "docs/user/environment.md is what env --markdown prints" {
    "$TEST_BIN" env --markdown | diff - "$top_srcdir/docs/user/environment.md"
}
