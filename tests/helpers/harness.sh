# The harness tested on itself: tap.h tells right from wrong, the watchdog ends a test that hangs, the environment is
# clean and the temporary directory is there. Run by the harness (tests/local.mk).
program=$top_builddir/tests/helpers/tap_selftest
runner=$top_srcdir/tests/helpers/run-test
n=0

check() { # NAME STATUS
    n=$((n + 1))
    if [ "$2" -eq 0 ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; fi
}

echo 1..9
"$program" >"$TEST_TMP/out"
check "a program with a failed fact exits with 1" "$(($? != 1))"
passed=$(grep -c '^ok ' "$TEST_TMP/out")
check "six facts hold or are skipped" "$((passed != 6))"
failed=$(grep -c '^not ok ' "$TEST_TMP/out")
check "two facts do not" "$((failed != 2))"
grep -q '^# got 7 (0x7), want 8 (0x8)$' "$TEST_TMP/out"
check "both numbers are shown" $?
grep -q '^ok 8 - not looked at # SKIP no such thing here$' "$TEST_TMP/out"
check "a skip names what is missing" $?
"$program" short >/dev/null
check "fewer facts than planned is a failure" "$(($? != 1))"
skipped=$("$program" skip)
test "$skipped" = "1..0 # SKIP nothing here"
check "a whole program can be skipped" $?
TEST_TIMEOUT=1 sh "$runner" "$program" hang >"$TEST_TMP/out"
test $? -eq 1 && grep -q '^Bail out! .*after 1 seconds' "$TEST_TMP/out"
check "a test that hangs is ended and fails" $?
MEMSHIM_MODE=off MEMSIM_SEED=3 sh "$runner" sh -c 'test -d "$TEST_TMP" && test -z "${MEMSHIM_MODE-}${MEMSIM_SEED-}"'
check "a test starts with a clean environment and a directory of its own" $?
