# lib.sh - what the shell tests of the hooks share: running a program natively and under memshim.
# Sourced, never run; tests/helpers/run-test has set TEST_LIB, TEST_SIM, TEST_TMP and the rest.
# shellcheck shell=sh
# shellcheck disable=SC2034
. "$TEST_HELPERS/tap.sh"

here=$top_builddir/tests/hooks

# try NAME COMMAND...: the fact holds if the command succeeds; what it says is shown if not.
try() {
    name=$1
    shift
    "$@" >"$TEST_TMP/said" 2>&1
    said=$?
    check "$name" "$said"
    [ "$said" -eq 0 ] || sed 's/^/# /' "$TEST_TMP/said"
}

# same NAME FILE FILE: equal contents; the difference is shown if not.
same() { try "$1" diff "$2" "$3"; }

# With gcc's sanitizers, memshim needs the sanitizer's own library before it; clang's are in the program.
sanitizer_library() {
    case $TEST_SANITIZE,$($TEST_CC --version) in
    *clang*) ;;
    *address*) $TEST_CC -print-file-name=libasan.so ;;
    *thread*) $TEST_CC -print-file-name=libtsan.so ;;
    *undefined*) $TEST_CC -print-file-name=libubsan.so ;;
    esac
}
sanitizer=$(sanitizer_library)
preload=${sanitizer:+$sanitizer:}$TEST_LIB
report=$TEST_TMP/report.json

# native PROGRAM...: on the simulated GPU, without memshim.
native() {
    timeout -k 2 "${LIMIT-30}" env LD_LIBRARY_PATH="${SIM_PATH-$TEST_SIM}" "$@"
}

# shimmed PROGRAM...: the same with memshim before it and before nothing else; the report goes to $report.
shimmed() {
    rm -f "$report"
    timeout -k 2 "${LIMIT-30}" env LD_LIBRARY_PATH="${SIM_PATH-$TEST_SIM}" MEMSHIM_MODE="${MODE-pool}" \
        MEMSHIM_REPORT="${REPORT-$report}" LD_PRELOAD="${PRELOAD-$preload}" "$@"
}

# both NAME PROGRAM...: same output and same exit status with and without memshim.
both() {
    name=$1
    shift
    native "$@" >"$TEST_TMP/native" 2>&1
    echo "exit $?" >>"$TEST_TMP/native"
    shimmed "$@" >"$TEST_TMP/shimmed" 2>&1
    echo "exit $?" >>"$TEST_TMP/shimmed"
    same "$name" "$TEST_TMP/native" "$TEST_TMP/shimmed"
}

# said NAME PATTERN: the program that `both` ran last printed such a line.
said() { try "$1" grep -E "$2" "$TEST_TMP/shimmed"; }

# report NAME EXPRESSION: a Python expression over the last report, r, is true.
report() {
    try "$1" /usr/bin/env python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
apis = {a["name"]: a for a in r["apis"]}
live = sum(d["live_bytes"] for d in r["devices"])
if not eval(sys.argv[2]):
    print("does not hold:", sys.argv[2])
    print({k: r[k] for k in ("apis", "coverage")}, "live", live)
    sys.exit(1)' "$report" "$2"
}
