#!/bin/sh
# The toolkit's own libnccl.so.2 behaves the same with and without memshim on a machine without a device: version, statuses, texts.
set -u

. "$TEST_HELPERS/tap.sh"

real=${TEST_CUDA_HOME-}/lib64

[ -e "$real/libnccl.so.2" ] || skip_all "no libnccl.so.2 in the toolkit"
[ -z "$TEST_SANITIZE" ] || skip_all "a sanitizer's library cannot be loaded into programs built without"
run() { # run OUTPUT VARIABLE...
    output=$1
    shift
    env LD_LIBRARY_PATH="$real" "$@" "$top_builddir/tests/nccl/plain" >"$TEST_TMP/$output" 2>&1
}

run native
check "runs natively" $?
sed 's/^/# /' "$TEST_TMP/native" | head -3
grep -q '^alloc 0' "$TEST_TMP/native" && {
    skip "without a device" "there is one"
    plan_said
    exit 0
}
for mode in pool track off; do
    run "$mode" LD_PRELOAD="$TEST_LIB" MEMSHIM_MODE="$mode" MEMSHIM_REPORT="$TEST_TMP/report.json"
    check "runs under memshim, $mode" $?
    diff "$TEST_TMP/native" "$TEST_TMP/$mode" | sed 's/^/# /'
    cmp -s "$TEST_TMP/native" "$TEST_TMP/$mode"
    check "and prints the same" $?
done
# The simulated library answers the same where there is no driver at all.
mkdir "$TEST_TMP/alone"
cp "$TEST_SIM/libnccl.so.2" "$TEST_TMP/alone/"
env LD_LIBRARY_PATH="$TEST_TMP/alone" "$top_builddir/tests/nccl/plain" >"$TEST_TMP/simulated" 2>&1
check "the simulated one runs without a driver" $?
if ldconfig -p | grep -q 'libcuda\.so\.1 '; then
    skip "and prints the same" "there is a driver"
else
    # Which release each of them is, is its own.
    for output in native simulated; do
        sed -E 's/^(version 0) [0-9]+$/\1 N/' "$TEST_TMP/$output" >"$TEST_TMP/$output.any"
    done
    diff "$TEST_TMP/native.any" "$TEST_TMP/simulated.any" | sed 's/^/# /'
    cmp -s "$TEST_TMP/native.any" "$TEST_TMP/simulated.any"
    check "and prints the same" $?
fi
plan_said
