# Threads, forks, signals and cancellation inside hooks, on a driver that has nothing to get stuck on.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"

plan 28
SIM_PATH=$here/plain
REPORT=$TEST_TMP/%p.json
# The pool stands between the program and the driver here; at the end, the same where every call ends in the driver.
export WITH_POOL=1
# A child of fork has threads that LeakSanitizer cannot find, and a cancelled thread leaks what it held.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"

only_report() { # moves the one report to $report
    set -- "$TEST_TMP"/[0-9]*.json
    [ $# -eq 1 ] && mv "$1" "$report"
}
clean() { rm -f "$TEST_TMP"/*.json; }

both "10,000 short-lived threads" "$here/threads" many-threads
only_report
report "each is counted once" 'apis["cuMemAlloc_v2"]["calls"] == 10000 and apis["cuMemFree_v2"]["calls"] == 10000 and live == 0'
clean
fork_storm() {
    both "threads allocate while another forks" "$here/threads" fork-storm
    try "every child wrote a report of its own" sh -c 'test $(ls "$TEST_TMP"/[0-9]*.json | wc -l) -eq 61'
    try "none holds what was the parent's" python3 -c '
import glob, json, os, sys
bad = 0
for path in glob.glob(os.environ["TEST_TMP"] + "/[0-9]*.json"):
    r = json.load(open(path))
    live = sum(d["live_bytes"] for d in r["devices"])
    parent = r["run"]["ppid"] not in [json.load(open(p))["run"]["pid"] for p in glob.glob(os.environ["TEST_TMP"] + "/[0-9]*.json")]
    calls = {a["name"]: a["calls"] for a in r["apis"]}
    want = 9 << 10 if parent else 7 << 10
    if live != want or r["run"]["pid"] != int(os.path.basename(path)[:-5]) or not parent and calls["cuMemAlloc_v2"] != 21:
        bad += 1
        print(path, "live", live, "want", want, calls)
sys.exit(bad != 0)'
    clean
}
cancelled_anywhere() {
    both "threads cancelled anywhere" "$here/threads" cancel-asynchronous
    only_report
    report "the books close all the same" 'sum(d["live_count"] for d in r["devices"]) == apis["cuMemAlloc_v2"]["calls"] - apis["cuMemFree_v2"]["calls"]'
    clean
}
no_luck=
case $TEST_SANITIZE in
*thread*) no_luck="ThreadSanitizer survives neither a fork among threads nor asynchronous cancellation" ;;
esac
if [ -n "$no_luck" ]; then
    for fact in "threads allocate while another forks" "each child's report" "its contents" "threads cancelled anywhere" \
        "the books after it"; do
        skip "$fact" "$no_luck"
    done
else
    fork_storm
fi
both "a child is the first to touch the GPU" "$here/threads" fork-first
only_report
check "only the child writes a report" $?
report "of its own calls" 'apis["cuMemAlloc_v2"]["calls"] == 21 and live == 7 << 10'
clean
both "threads cancelled at cancellation points" "$here/threads" cancel-deferred
clean
[ -n "$no_luck" ] || cancelled_anywhere
both "the program's cancellation state is kept" "$here/threads" cancel-state
clean
both "a profiler's signal handler that allocates" "$here/threads" signals
only_report
report "nothing is left over" 'live == 0'
clean
for stacks in off fp; do
    export MEMSHIM_STACKS=$stacks
    both "a handler with stacks by $stacks" "$here/threads" signals
    clean
done
unset MEMSHIM_STACKS
both "errno is the program's and the driver's" "$here/threads" errno
clean
both "a thread with a small stack" "$here/threads" small-stack
clean
unset WITH_POOL
MODE=track
both "followed: 10,000 short-lived threads" "$here/threads" many-threads
clean
both "followed: threads cancelled inside the driver" "$here/threads" cancel-inside
only_report
report "what they did last is recorded" 'live == 10 * 3072 and apis["cuMemAlloc_v2"]["calls"] == 21'
clean
both "followed: a profiler's signal handler that allocates" "$here/threads" signals
only_report
report "followed: nothing is left over" 'live == 0'
clean
both "followed: errno is the program's and the driver's" "$here/threads" errno
clean
MODE=pool
export WITH_POOL=1
REPORT=/proc/nowhere/report.json
shimmed "$here/threads" errno >"$TEST_TMP/shimmed" 2>"$TEST_TMP/err"
check "a report that cannot be written does not change the program's status" $?
try "one line names the path" sh -c 'test $(grep -c /proc/nowhere/report.json "$TEST_TMP/err") -eq 1'
REPORT=none
both "no report is asked for" "$here/threads" errno
try "and none is written" sh -c '! ls "$TEST_TMP"/*.json 2>/dev/null'
