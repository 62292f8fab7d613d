#!/bin/sh
# Random work on the Ascend interface: by several threads, with every n-th call of the vendor's refused, and killed in its middle. The
# report knows what the program knows. TEST_ACL_STEPS is how much each run does.
# shellcheck source=tests/hooks/lib.sh
# shellcheck disable=SC2154 # run-test exports the directories
. "$top_srcdir/tests/hooks/lib.sh"

work=$top_builddir/tests/acl/work
steps=${TEST_ACL_STEPS:-120}
MEMSIM_DEVICES=2
export MEMSIM_DEVICES

# agrees: what the program said is live, the report says too.
agrees() {
    try "$1: the report knows what is live" sh -c '/usr/bin/env python3 -c "
import json, sys
said = int(open(sys.argv[2]).read().split(\"live \")[1])
told = sum(d[\"live_bytes\"] for d in json.load(open(sys.argv[1]))[\"devices\"])
sys.exit(0 if said == told else \"%d in the program, %d in the report\" % (said, told))" "$1" "$2"' sh "$report" "$TEST_TMP/out"
    try "$1: and holds together" "$TEST_VALID" "$report"
}

run() { # run NAME VARIABLE... -- ARGUMENT...
    name=$1
    shift
    settings=
    while [ "$1" != -- ]; do
        settings="$settings $1"
        shift
    done
    shift
    # shellcheck disable=SC2086 # the words are separate ones
    (
        for setting in $settings; do export "${setting?}"; done
        LIMIT=100 shimmed "$work" "$@" >"$TEST_TMP/out" 2>"$TEST_TMP/err"
    )
    said=$?
    check "$name" "$said"
    [ "$said" -eq 0 ] || sed 's/^/# /' "$TEST_TMP/out" "$TEST_TMP/err"
    agrees "$name"
}

plan 54
run "one thread" -- 1 "$steps" 1
run "six threads on two devices" MEMSIM_MEMORY=128M -- 6 "$steps" 2
run "six threads, followed" MODE=track -- 6 "$steps" 3
run "four threads, with little to keep and poisoned" MEMSHIM_KEEP=0 MEMSHIM_POISON=both -- 4 "$steps" 4
for fault in aclrtMallocPhysical@1+=207001 aclrtMallocPhysical@2=507899 aclrtMallocPhysical@9+=507899 aclrtFreePhysical@2=507899 \
    aclrtFreePhysical@1+=507899 aclrtMapMem@1=507899 aclrtMapMem@3+=507899 aclrtUnmapMem@1=507899 aclrtUnmapMem@4+=507899 \
    aclrtMallocAlign32@1+=207001 aclrtMemExportToShareableHandle@1+=507899 aclrtMemset@2+=507899; do
    run "$fault" MEMSIM_FAIL=$fault WORK_STATUS=507899 -- 2 40 5
done

# Where the vendor does not tell which device is current, nothing is served, and plain blocks belong to no device that is known.
MEMSIM_FAIL=aclrtGetDevice@1+=507899 WORK_STATUS=507899 LIMIT=100 shimmed "$work" 2 40 7 >"$TEST_TMP/out" 2>&1
check "without a current device nothing is served, and nothing breaks" $?
try "and the report holds together" "$TEST_VALID" "$report"
report "no handle was served" 'apis["aclrtMallocPhysical"]["served"] == 0'

rm "$TEST_TMP/out" # what the last one printed is not taken for this one's
mkdir "$TEST_TMP/ledgers"
MEMSHIM_DIR="$TEST_TMP/ledgers" MEMSHIM_REPORT="$report" LD_LIBRARY_PATH=$TEST_SIM LD_PRELOAD=$preload "$work" 4 "$steps" 6 hold \
    >"$TEST_TMP/out" 2>/dev/null &
pid=$!
for _ in $(seq 300); do
    grep -q live "$TEST_TMP/out" && break
    sleep 0.2
done
kill -9 $pid
wait $pid 2>/dev/null
rm -f "$report"
try "a killed process is recovered" "$TEST_BIN" recover -o "$report" "$TEST_TMP/ledgers"
agrees "recovered"
