#!/bin/sh
# What the simulated management library exports and needs; and what the vendor's own Python binding reads, where it is installed.
# shellcheck disable=SC2154 # run-test exports the directories
set -u

. "$TEST_HELPERS/tap.sh"

lib=$TEST_SIM/libnvidia-ml.so.1
need nm readelf
LC_ALL=C
export LC_ALL
sed -n 's/^[A-Z]*(\(nvml[A-Za-z0-9_]*\))$/\1/p' "$top_srcdir/sim/nvml/exports.def" | sort >"$TEST_TMP/want"
nm -D --defined-only "$lib" | awk '{ print $3 }' | sort >"$TEST_TMP/have"
[ -n "$TEST_SANITIZE" ] && grep '^nvml' "$TEST_TMP/have" >"$TEST_TMP/nvml" && mv "$TEST_TMP/nvml" "$TEST_TMP/have"
diff "$TEST_TMP/want" "$TEST_TMP/have" | sed 's/^/# /'
cmp -s "$TEST_TMP/want" "$TEST_TMP/have"
check "the $(grep -c . "$TEST_TMP/want") names of its table, and no others" $?
readelf -d "$lib" | grep -q 'SONAME.*\[libnvidia-ml.so.1\]'
check "its SONAME" $?
! readelf -V "$lib" | grep -q 'Version definition'
check "no version nodes" $?
! readelf -d "$lib" | grep NEEDED | grep -qi cuda && ! nm -D --undefined-only "$lib" | grep -q ' cu'
check "linked with no vendor's library" $?
header=$TEST_CUDA_HOME/include/nvml.h
if [ -f "$header" ]; then
    # A header of a later toolkit may have more.
    sed -n 's/^[a-zA-Z_ ]*DECLDIR \{1,\}\(char *\* *\)\{0,1\}\(nvml[A-Za-z0-9_]*\)(.*/\2/p' "$header" | sort -u >"$TEST_TMP/header"
    comm -12 "$TEST_TMP/header" "$TEST_TMP/have" >"$TEST_TMP/both"
    [ "$(grep -c . "$TEST_TMP/both")" -ge 300 ]
    check "most of what the toolkit's header declares" $?
else
    skip "most of what the toolkit's header declares" "no nvml.h is installed"
fi
plan_said
