#!/usr/bin/env bats
# PyPy keeps its frames in its own way: it is left alone, and the report says so. A library with its names stands in for it (pypy.c).
load "$TEST_HELPERS/common.bash"

@test "in a process with PyPy nothing of it is called, and the report says whose frames are not read" {
    need_plain "a program with PyPy's names"
    run env LD_PRELOAD="$TEST_LIB:$TEST_SIM/libcuda.so.1:$top_builddir/tests/python/pypy.so" LD_LIBRARY_PATH="$TEST_SIM" \
        MEMSHIM_REPORT="$TEST_TMP/report.json" "$top_builddir/tests/cli/leaker" 3 4096
    [ "$status" -eq 0 ]
    [ "$(json "$TEST_TMP/report.json" 'r["run"]["python"]["state"]')" = absent ]
    [ "$(json "$TEST_TMP/report.json" 'len(r["diagnostics"])')" = 1 ]
    [[ $(json "$TEST_TMP/report.json" 'r["diagnostics"][0]') == "stacks: no Python frames are read of this process's Python: it is PyPy" ]]
    [ "$(json "$TEST_TMP/report.json" 'min(len(frames(r, s["stack"])) for s in r["sites"]) >= 2')" = True ]
}
