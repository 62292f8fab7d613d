# What the .bats tests share; they begin with: load "$TEST_HELPERS/common.bash"
# shellcheck shell=bash disable=SC2154

# run_sim PROGRAM...: the program on the simulated GPU, with memshim before it, without the memshim command.
# The simulator's names are preloaded too, since a search path loses to a DT_RPATH.
run_sim() {
    run env LD_PRELOAD="$TEST_LIB:$TEST_SIM/libcuda.so.1" LD_LIBRARY_PATH="$TEST_SIM" \
        MEMSHIM_REPORT="$TEST_TMP/report.json" "$@"
}

# run_native PROGRAM...: the same without memshim.
run_native() {
    run env LD_LIBRARY_PATH="$TEST_SIM" "$@"
}

# json FILE EXPRESSION: prints a Python expression over the report, which is called r (report.py says what else there is).
json() {
    python3 "$TEST_HELPERS/report.py" "$1" "$2"
}

# need PROGRAM...: skips the test, naming what is missing.
need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 || skip "$tool is not installed"
    done
}

# need_terminal: skips the test where no terminal can be made for a program.
need_terminal() {
    need script
    script -qec true /dev/null >/dev/null 2>&1 || skip "no pseudo-terminal can be made here"
}

# need_plain: skips under sanitizers, which do not stand being loaded into a program built without them.
need_plain() {
    [ -z "$TEST_SANITIZE" ] || skip "a sanitizer's library cannot be preloaded into $1"
}
