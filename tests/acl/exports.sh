#!/bin/sh
# The simulated Ascend runtime exports what is listed and nothing of the driver's rooms it stands on; MEMSIM_* knows its functions.
# shellcheck disable=SC2154 # run-test exports the directories
set -u

. "$TEST_HELPERS/tap.sh"

sim=$TEST_SIM/libascendcl.so
need nm readelf
plan 7
LC_ALL=C
export LC_ALL
sed -n 's/^X(\(.*\))$/\1/p' "$top_srcdir/sim/acl/exports.def" >"$TEST_TMP/listed"
nm -D --defined-only "$sim" | awk '{ print $3 }' | sort >"$TEST_TMP/exported"
grep '^acl' "$TEST_TMP/exported" | diff "$TEST_TMP/listed" -
check "the library exports what is listed" $?
[ "$(grep -v '^acl' "$TEST_TMP/exported")" = memsim_count ]
check "and beside it the simulator's own count alone" $?
if [ -n "$TEST_SANITIZE" ]; then
    skip "the library needs libc alone" "sanitized build"
else
    [ "$(readelf -d "$sim" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')" = libc.so.6 ]
    check "the library needs libc alone" $?
fi
readelf -d "$sim" | grep -q 'SONAME.*\[libascendcl.so\]'
check "it is called as the vendor's" $?

calls=$top_builddir/tests/acl/calls
MEMSIM_FAIL='aclrtMallocHost@1=207001,cuMemAlloc_v2@1=2,hipMalloc@1=2' "$calls" >"$TEST_TMP/faults" 2>"$TEST_TMP/said"
grep -q '^not ok .*aclrtMallocHost' "$TEST_TMP/faults" && [ ! -s "$TEST_TMP/said" ]
check "a fault of one function is that function's, and other libraries' names are theirs to judge" $?
MEMSIM_FAIL='aclrtMallocHoist@1=207001' "$calls" 2>&1 >/dev/null | grep -q 'MEMSIM_FAIL=aclrtMallocHoist@1=207001: expected'
check "a name that is none is named" $?
MEMSIM_LOG=$TEST_TMP/log "$calls" >/dev/null
grep -q 'unsupported aclrtAllocBuf 1' "$TEST_TMP/log"
check "what is not simulated is counted" $?
