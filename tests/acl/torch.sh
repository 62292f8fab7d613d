#!/bin/sh
# torch_npu's expandable segments, as a program of our own that makes its calls in its order: found by dlsym alone.
# shellcheck source=tests/hooks/lib.sh
# shellcheck disable=SC2154 # run-test exports the directories
. "$top_srcdir/tests/hooks/lib.sh"

program=$top_builddir/tests/acl/torch
plan 12
MEMSIM_MEMORY=256M
export MEMSIM_MEMORY
native "$program" >"$TEST_TMP/native"
check "it runs natively" $?
try "natively a third of its requests finds no memory, and the second attempt does" grep -c 'no memory for piece' "$TEST_TMP/native"
both "natively and under memshim it sees the same" "$program"
report "its calls came by dlsym and were served" '(r["coverage"]["routes"]["dlsym"] >= 10 and r["coverage"]["routes"]["exported"] == 0 and
    apis["aclrtMallocPhysical"]["served"] > 0 and apis["aclrtFreePhysical"]["served"] > 0)'
report "its plain blocks were followed" 'apis["aclrtMallocAlign32"]["followed"] == 3 and live == 0'
report "what it saw as lack of memory is in the report" 'len(r["oom"]) == 3 and all(o["api"] == "aclrtMallocPhysical" for o in r["oom"])'
try "the report holds together" "$TEST_VALID" "$report"
MODE=track both "followed, it sees the same" "$program"

# Anything but 207001 is not tried again: the program ends, with and without memshim.
MEMSIM_FAIL=aclrtMallocPhysical@3=507899
export MEMSIM_FAIL
both "another error of the vendor's ends it" "$program"
said "and says so" 'aclrtMallocPhysical failed with 507899'
unset MEMSIM_FAIL

# RTLD_DEFAULT finds the functions once the library is there, and the preloaded one only then.
SIM_PATH=/nonexistent shimmed "$program" >"$TEST_TMP/none" 2>&1
try "without the library nothing is found" grep -q 'before the library is there: absent' "$TEST_TMP/none"
LD_LIBRARY_PATH=$TEST_SIM "$TEST_BIN" run --sim -o "$TEST_TMP/run.json" -- "$program" >"$TEST_TMP/ran" 2>&1
try "preloaded by memshim run --sim it is found at once" grep -q 'before the library is there: found' "$TEST_TMP/ran"
