#!/bin/sh
# The simulated NCCL exports exactly what the real one does, ncclX weak and pncclX strong, without version nodes, and needs nobody.
set -u

. "$TEST_HELPERS/tap.sh"

need nm readelf

names() { # kind and name of each
    nm -D --defined-only "$1" | awk '{ print $2, $3 }' | LC_ALL=C sort
}

lib=$TEST_SIM/libnccl.so.2
{
    echo "T ncclResetDebugInitInternal"
    sed -n 's/^[A-Z]*(\([A-Za-z0-9]*\))$/\1/p' "$top_srcdir/sim/nccl/exports.def" |
        while read -r name; do printf 'W nccl%s\nT pnccl%s\n' "$name" "$name"; done
} | LC_ALL=C sort >"$TEST_TMP/want"
names "$lib" >"$TEST_TMP/have"
diff "$TEST_TMP/want" "$TEST_TMP/have" | sed 's/^/# /'
cmp -s "$TEST_TMP/want" "$TEST_TMP/have"
check "the $(grep -c . "$TEST_TMP/want") names of 2.30.7, weak and strong" $?
nm -D --defined-only "$lib" | awk '{ at[$3] = $1 } END { for (n in at) if (("p" n) in at && at["p" n] != at[n]) exit 1 }'
check "both names of a function are one address" $?
readelf -d "$lib" | grep -q 'SONAME.*\[libnccl.so.2\]'
check "its SONAME" $?
! readelf -V "$lib" | grep -q 'Version definition'
check "no version nodes" $?
! readelf -d "$lib" | grep NEEDED | grep -qi cuda && ! nm -D --undefined-only "$lib" | grep -q ' cu'
check "linked with no vendor's library" $?
real=$TEST_CUDA_HOME/lib64/libnccl.so.2
if [ -e "$real" ]; then
    # A real one of an earlier release lacks some; one of this or a later release must not have more.
    names "$real" >"$TEST_TMP/real"
    LC_ALL=C comm -23 "$TEST_TMP/real" "$TEST_TMP/have" >"$TEST_TMP/lacking"
    sed 's/^/# lacking: /' "$TEST_TMP/lacking"
    [ -s "$TEST_TMP/real" ] && [ ! -s "$TEST_TMP/lacking" ]
    check "what the real one exports" $?
else
    skip "against the real one" "no real libnccl.so.2 is installed"
fi
plan_said
