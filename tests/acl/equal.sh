#!/bin/sh
# What the tests of the Ascend interface print natively they print under memshim: served, followed, with little to keep, poisoned. And
# the report of each run holds together.
# shellcheck source=tests/hooks/lib.sh
# shellcheck disable=SC2154 # run-test exports the directories
. "$top_srcdir/tests/hooks/lib.sh"

compare() { # compare PROGRAM DESCRIPTION [VARIABLE=VALUE...]
    program=$1 what=$2
    shift 2
    rm -f "$report"
    env "$@" "MEMSHIM_REPORT=$report" "LD_PRELOAD=$preload" "$top_builddir/tests/acl/$program" >"$TEST_TMP/shimmed"
    same "$program prints the same $what" "$TEST_TMP/native.$program" "$TEST_TMP/shimmed"
    try "and its report holds together" "$TEST_VALID" "$report"
}

plan 16
for program in calls share; do
    "$top_builddir/tests/acl/$program" >"$TEST_TMP/native.$program"
    check "$program runs natively" $?
    compare "$program" "served"
    compare "$program" "followed" MEMSHIM_MODE=track
    compare "$program" "poisoned" MEMSHIM_POISON=both MEMSHIM_KEEP=0
done
compare calls "within a limit" MEMSHIM_LIMIT=8G
