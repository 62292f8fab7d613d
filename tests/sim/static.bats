#!/usr/bin/env bats
# Programs that contain the simulated runtime (libcudart_static.a), made by the C compiler and by nvcc as it comes: they run as they are and
# under memshim, print the same, and the report has each place that allocates by function, file and line, and the leak.

load "$TEST_HELPERS/common.bash"

# names_in ARCHIVE: each global name with how it is visible.
names_in() {
    readelf -sW "$1" | awk '($5 == "GLOBAL" || $5 == "WEAK") && $7 != "UND" && $7 ~ /^[0-9]/ { print $6, $8 }' | LC_ALL=C sort
}

# with_report NAME VARIABLE=VALUE... PROGRAM: under memshim; prints the same as natively and leaves a valid report.
with_report() {
    local name=$1
    shift
    LD_LIBRARY_PATH="$TEST_SIM" "${@: -1}" >"$TEST_TMP/native.txt"
    env "${@:1:$#-1}" "$TEST_BIN" run -q --sim -o "$TEST_TMP/$name.json" -- "${@: -1}" >"$TEST_TMP/$name.txt" 2>"$TEST_TMP/$name.err"
    diff "$TEST_TMP/native.txt" "$TEST_TMP/$name.txt"
    [ ! -s "$TEST_TMP/$name.err" ] || { cat "$TEST_TMP/$name.err"; false; }
    "$TEST_VALID" "$TEST_TMP/$name.json"
}

# The program's places as a report has them; a loop may have been unrolled, so those of one line are taken together.
places_of() { # NAME
    json "$TEST_TMP/$1.json" '"\n".join("site %s %d %d %d" % (*place, sum(n for n, _ in of), sum(b for _, b in of))
        for place, of in grouped(((f["function"].split("(")[0], f["line"]), (s["total_count"], s["total_bytes"]))
            for s in r["sites"]
            for f in [next((f for f in frames(r, s["stack"]) if f.get("file", "").endswith("static_user.c")), None)]
            if f and not f["function"].startswith("meet_the_other")))'
}

check_modes() { # NAME PROGRAM
    local mode
    for mode in pool track vmm; do
        case $mode in
        pool) with_report "$1-pool" A=1 "$2" ;;
        track) with_report "$1-track" MEMSHIM_MODE=track "$2" ;;
        vmm) with_report "$1-vmm" MEMSHIM_BACKING=vmm "$2" ;;
        esac
        diff <(grep '^site' "$TEST_TMP/native.txt" | sort) <(places_of "$1-$mode")
        [ "$(json "$TEST_TMP/$1-$mode.json" '[(l["bytes"], l["count"], innermost(r, l, "static_user.c").split("(")[0])
            for l in r["leaks"]]')" = "[(777777, 1, 'forget')]" ]
    done
    grep -q '^copies right$' "$TEST_TMP/native.txt"
    grep -q '^runtimes two$' "$TEST_TMP/native.txt"
    grep -q '^its memory is freed here: 0$' "$TEST_TMP/native.txt"
    grep -q '^its error: 1, here: 0$' "$TEST_TMP/native.txt"
}

need_command() {
    [ -x "$TEST_BIN" ] || skip "the memshim command is not built: no jansson or no elfutils"
}

@test "an archive has the names of the real one, each hidden, and nothing else that a program could meet" {
    need readelf
    for major in 12 13; do
        archive=$TEST_SIM/libcudart_static.a
        [ "$major" = 13 ] || archive=$TEST_SIM/cuda12/libcudart_static.a
        diff <(awk -F'[(), ]+' -v major="$major" '/^EXPORT/ && $3 <= major && major <= $4 { print "HIDDEN " $2 }' \
            "$top_srcdir/sim/cudart/exports.def" | LC_ALL=C sort) <(names_in "$archive")
    done
    real=$TEST_CUDA_HOME/lib64/libcudart_static.a
    [ -n "$TEST_CUDA_HOME" ] && [ -e "$real" ] || skip "no real libcudart_static.a is installed"
    diff <(names_in "$real" | grep -v ' libcudart_static_') <(names_in "$TEST_SIM/libcudart_static.a")
}

@test "a program by the C compiler, with the runtime of CUDA 13" {
    need_command
    check_modes by_cc_13 "$top_builddir/tests/sim/static_13"
    grep -q '^runtime 0, 13$' "$TEST_TMP/native.txt"
}

@test "a program by the C compiler, with the runtime of CUDA 12" {
    need_command
    check_modes by_cc_12 "$top_builddir/tests/sim/static_12"
    grep -q '^runtime 0, 12$' "$TEST_TMP/native.txt"
}

@test "without a driver it says so, as on a machine that has none" {
    # The other runtime, which is a shared library, whether this machine has one or not.
    ln -s "$top_builddir/libcudart.so.13" "$TEST_TMP/"
    run env LD_LIBRARY_PATH="$TEST_TMP" "$top_builddir/tests/sim/static_13"
    [[ $output == *"stream 35"*"runtimes two"* ]]
}

@test "a program by nvcc as it comes, with the archive found by one -L" {
    need_command
    need_plain "a program of nvcc's"
    [ -n "$TEST_CUDA_HOME" ] || skip "there is no CUDA toolkit"
    [ -x "$TEST_CUDA_HOME/bin/nvcc" ] || skip "the CUDA toolkit has no nvcc"
    "$TEST_CUDA_HOME/bin/nvcc" --version | grep -q 'release 13' || skip "nvcc is not of CUDA 13"
    "$TEST_CUDA_HOME/bin/nvcc" -g -x cu -o "$TEST_TMP/by_nvcc" "$top_srcdir/tests/sim/static_user.c" -L "$TEST_SIM" \
        -Xlinker "$top_builddir/tests/sim/beside/libbeside.so" -Xlinker -rpath="$top_builddir/tests/sim/beside" \
        -Xlinker -rpath-link="$TEST_SIM"
    check_modes by_nvcc "$TEST_TMP/by_nvcc"
    grep -q '^launch 0, over 0$' "$TEST_TMP/native.txt"
}
