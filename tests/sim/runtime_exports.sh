#!/bin/sh
# The simulated runtimes export exactly what the real ones do, under the real ones' version node, and need nobody else.
set -u

. "$TEST_HELPERS/tap.sh"

need nm readelf

# Names with their version, and the version node itself out of the way.
names() {
    nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sort
}

for major in 12 13; do
    lib=$TEST_SIM/libcudart.so.$major
    soname=libcudart.so.$major
    awk -F'[(), ]+' -v major="$major" '/^EXPORT/ && $3 <= major && major <= $4 { print $2 "@@'"$soname"'" }' \
        "$top_srcdir/sim/cudart/exports.def" | sort >"$TEST_TMP/want"
    names "$lib" >"$TEST_TMP/have"
    diff "$TEST_TMP/want" "$TEST_TMP/have" | sed 's/^/# /'
    cmp -s "$TEST_TMP/want" "$TEST_TMP/have"
    check "$soname exports the $(grep -c . "$TEST_TMP/want") names of the real one, versioned $soname" $?
    readelf -d "$lib" | grep -q "SONAME.*\[$soname\]"
    check "$soname has its SONAME" $?
    test "$(readelf -V "$lib" | grep -c 'Name: libcudart')" -eq 2
    check "$soname has one version node beside the base" $?
    ! readelf -d "$lib" | grep NEEDED | grep -qi 'libcuda'
    check "$soname is not linked with the driver" $?
    ! nm -D --undefined-only "$lib" | grep -q ' cu'
    check "$soname has no undefined vendor symbol" $?
    real=$TEST_CUDA_HOME/lib64/$soname
    if [ -e "$real" ]; then
        names "$real" >"$TEST_TMP/real"
        cmp -s "$TEST_TMP/real" "$TEST_TMP/have"
        check "$soname exports what $real does" $?
    else
        skip "$soname against the real one" "no real $soname is installed"
    fi
done
plan_said
