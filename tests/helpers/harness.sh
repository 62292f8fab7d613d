# The harness tested on itself: tap.h tells right from wrong, the watchdog ends a test that hangs, the environment is
# clean and the temporary directory is there. Run by the harness (tests/local.mk).
program=$top_builddir/tests/helpers/tap_selftest
runner=$top_srcdir/tests/helpers/run-test
. "$TEST_HELPERS/tap.sh"

plan 14
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

# What failed is repeated alone. A build directory whose harness plays a plan: a letter for each run of a test, pass or fail.
build=$TEST_TMP/build
mkdir -p "$build/tests"
printf 'check:\n\t@for t in $(TESTS); do sh "$(CURDIR)/play" $$t; done\n' >"$build/Makefile"
cat >"$build/play" <<'END'
runs=$(($(cat "$1.runs" 2>/dev/null || echo 0) + 1))
echo "$runs" >"$1.runs"
case $(cut -c"$runs" "$1.plan") in
p) echo ":test-result: PASS" >"$1.trs" && echo "ok 1 - run $runs" >"$1.log" ;;
f) echo ":test-result: FAIL" >"$1.trs" && echo "not ok 1 - run $runs" >"$1.log" ;;
*) rm -f "$1.trs" ;;
esac
END
for plan in steady:p shaky:fppp broken:ffff worse:fppf gone:fpp; do
    echo "${plan#*:}" >"$build/tests/${plan%:*}.plan"
done
(
    . "$top_srcdir/tests/helpers/results.sh"
    tests=$(cd "$build" && echo tests/*.plan | sed 's/\.plan//g')
    run_tests "$tests" 1
    for t in $tests; do results_of "$t"; done >"$build/results"
    repeat_failed "$build/results" 3 >"$build/said"
)
status_of() {
    sed -n "s|^tests/$1 ||p" "$build/results"
}
test "$(status_of steady)" = PASS && test "$(cat "$build/tests/steady.runs")" -eq 1
check "a test that passes is not repeated" $?
test "$(status_of shaky)" = PASS && test "$(cat "$build/tests/shaky.runs")" -eq 4
check "one that failed and then passes three times alone has passed" $?
grep -q '^flaky: tests/shaky ' "$build/said" && grep -q '^not ok 1 - run 1$' "$build/said" && test "$(grep -c ^flaky: "$build/said")" -eq 1
check "and is named as flaky, with what failed" $?
test "$(status_of broken)$(status_of worse)$(status_of gone)" = FAILFAILFAIL
check "what fails again, or is not there any more, has failed" $?
grep -q '^not ok 1 - run 1$' "$build/tests/worse.log"
check "with the log of its first failure" $?
