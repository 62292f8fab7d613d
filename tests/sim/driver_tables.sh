#!/bin/sh
# The simulated driver's tables against the vendor's, where a toolkit is present; and what the library needs.
# shellcheck disable=SC2154 # run-test exports the directories
set -u

sim=$top_builddir/libcuda.so.1
tables=$top_srcdir/sim/cuda
number=0
failed=0

result() { # STATUS NAME
    number=$((number + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $number - $2"
    else
        echo "not ok $number - $2"
        failed=1
    fi
}

skipped() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP no CUDA toolkit"
}

echo 1..7
LC_ALL=C
export LC_ALL
sed -n 's/^X(.*, \(.*\))$/\1/p' "$tables/exports.def" | sort >"$TEST_TMP/listed"
# What is for graphics the vendor's library has and its stub has not.
sed -n 's/^X(\(.*\))$/\1/p' "$tables/graphics.def" >"$TEST_TMP/graphics"
nm -D --defined-only "$sim" | awk '{ print $3 }' | grep '^cu' | sort >"$TEST_TMP/exported"
sort "$TEST_TMP/listed" "$TEST_TMP/graphics" | diff - "$TEST_TMP/exported"
result $? "the library exports what is listed"

if [ -n "$TEST_SANITIZE" ]; then
    number=$((number + 2))
    echo "ok 2 - needs libc alone # SKIP sanitized build"
    echo "ok 3 - no version nodes # SKIP sanitized build"
else
    needed=$(readelf -d "$sim" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    [ "$needed" = libc.so.6 ]
    result $? "the library needs libc alone"
    ! readelf -V "$sim" | grep -q 'Version definition section'
    result $? "the library has no version nodes"
fi

# A copy would be a driver of its own in programs that ask for both names.
[ -L "$top_builddir/libcuda.so" ] && [ "$(realpath "$top_builddir/libcuda.so")" = "$(realpath "$sim")" ]
result $? "libcuda.so is the same library"

stub=$TEST_CUDA_HOME/lib64/stubs/libcuda.so
if [ -n "$TEST_CUDA_HOME" ] && [ -f "$stub" ]; then
    nm -D --defined-only "$stub" | awk '{ print $3 }' | sort | diff "$TEST_TMP/listed" -
    result $? "the list is that of the vendor's library"
else
    skipped "the list is that of the vendor's library"
fi
if [ -n "$TEST_CUDA_HOME" ] && [ -f "$TEST_CUDA_HOME/include/cudaTypedefs.h" ]; then
    "$top_srcdir/scripts/generate" lookup "$TEST_CUDA_HOME/include" "$TEST_TMP/listed" | diff "$tables/exports.def" -
    result $? "the lookup table is that of the vendor's typedefs"
else
    skipped "the lookup table is that of the vendor's typedefs"
fi
if [ -n "$TEST_CUDA_HOME" ] && [ -f "$TEST_CUDA_HOME/include/cudaGL.h" ] && [ -f "$TEST_CUDA_HOME/include/cudaEGL.h" ]; then
    cat "$TEST_CUDA_HOME"/include/cudaGL.h "$TEST_CUDA_HOME"/include/cudaEGL.h "$TEST_CUDA_HOME"/include/cudaVDPAU.h |
        sed -n 's/.*CUresult CUDAAPI \(cu[A-Za-z0-9]*\)(.*/\1/p' | grep -v '^cuWGL' | sort -u >"$TEST_TMP/declared"
    [ -s "$TEST_TMP/declared" ] && comm -23 "$TEST_TMP/declared" "$TEST_TMP/exported" >"$TEST_TMP/lacking"
    cat "$TEST_TMP/lacking"
    [ -s "$TEST_TMP/declared" ] && [ ! -s "$TEST_TMP/lacking" ]
    result $? "what the vendor's headers declare for graphics is there"
else
    skipped "what the vendor's headers declare for graphics is there"
fi
exit $failed
