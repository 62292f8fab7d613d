#!/bin/sh
# The simulated cuBLAS and cuBLASLt export exactly what the real ones do, under the real ones' version node, and need nobody else.
set -u

. "$TEST_HELPERS/tap.sh"

need nm readelf

# Functions with their version.
names() {
    nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | LC_ALL=C sort
}

# One library against its list, and against the vendor's own where a toolkit has that.
hold() { # hold NAME MAJOR LIST
    soname=lib$1.so.$2
    lib=$TEST_SIM/$soname
    awk -F'[(), ]+' -v major="$2" '/^ROW/ && $(NF - 2) <= major && major <= $(NF - 1) { print $3 "@@'"$soname"'" }' \
        "$top_srcdir/sim/cublas/$3.def" | LC_ALL=C sort >"$TEST_TMP/want"
    names "$lib" >"$TEST_TMP/have"
    diff "$TEST_TMP/want" "$TEST_TMP/have" | sed 's/^/# /'
    cmp -s "$TEST_TMP/want" "$TEST_TMP/have"
    check "$soname exports the $(grep -c . "$TEST_TMP/want") names of the real one, versioned $soname" $?
    readelf -d "$lib" | grep -q "SONAME.*\[$soname\]"
    check "$soname has its SONAME" $?
    ! readelf -d "$lib" | grep NEEDED | grep -qi cu && ! nm -D --undefined-only "$lib" | grep -q ' cu'
    check "$soname is linked with no vendor's library" $?
    real=$TEST_CUDA_HOME/lib64/$soname
    if [ -n "$TEST_CUDA_HOME" ] && [ -e "$real" ]; then
        # A release of another month may have some names more or fewer; most are the same.
        names "$real" | LC_ALL=C comm -12 - "$TEST_TMP/have" >"$TEST_TMP/both"
        [ "$(grep -c . "$TEST_TMP/both")" -ge $(($(grep -c . "$TEST_TMP/have") * 9 / 10)) ]
        check "$soname: nine names of ten are the installed release's too" $?
    else
        skip "$soname against the real one" "no real $soname is installed"
    fi
}

for major in 12 13; do
    hold cublas "$major" exports
    hold cublasLt "$major" lt_exports
done
plan_said
