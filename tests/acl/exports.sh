#!/bin/sh
# The simulated Ascend runtime exports what is listed and nothing of the driver's rooms it stands on; MEMSIM_* knows its functions.
# shellcheck disable=SC2154 # run-test exports the directories
set -u

sim=$TEST_SIM/libascendcl.so
n=0
check() { # check STATUS DESCRIPTION
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

for tool in nm readelf; do
    command -v "$tool" >/dev/null 2>&1 || {
        echo "1..0 # SKIP $tool is not installed"
        exit 0
    }
done
echo 1..7
LC_ALL=C
export LC_ALL
sed -n 's/^X(\(.*\))$/\1/p' "$top_srcdir/src/sim/acl/exports.def" >"$TEST_TMP/listed"
nm -D --defined-only "$sim" | awk '{ print $3 }' | sort >"$TEST_TMP/exported"
grep '^acl' "$TEST_TMP/exported" | diff "$TEST_TMP/listed" -
check $? "the library exports what is listed"
[ "$(grep -v '^acl' "$TEST_TMP/exported")" = memsim_count ]
check $? "and beside it the simulator's own count alone"
if [ -n "$TEST_SANITIZE" ]; then
    n=$((n + 1))
    echo "ok $n - needs libc alone # SKIP sanitized build"
else
    [ "$(readelf -d "$sim" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')" = libc.so.6 ]
    check $? "the library needs libc alone"
fi
readelf -d "$sim" | grep -q 'SONAME.*\[libascendcl.so\]'
check $? "it is called as the vendor's"

calls=$top_builddir/tests/acl/calls
MEMSIM_FAIL='aclrtMallocHost@1=207001,cuMemAlloc_v2@1=2,hipMalloc@1=2' "$calls" >"$TEST_TMP/faults" 2>"$TEST_TMP/said"
grep -q '^not ok .*aclrtMallocHost' "$TEST_TMP/faults" && [ ! -s "$TEST_TMP/said" ]
check $? "a fault of one function is that function's, and other libraries' names are theirs to judge"
MEMSIM_FAIL='aclrtMallocHoist@1=207001' "$calls" 2>&1 >/dev/null | grep -q 'MEMSIM_FAIL=aclrtMallocHoist@1=207001: expected'
check $? "a name that is none is named"
MEMSIM_LOG=$TEST_TMP/log "$calls" >/dev/null
grep -q 'unsupported aclrtAllocBuf 1' "$TEST_TMP/log"
check $? "what is not simulated is counted"
