# tap.sh - TAP for tests in plain shell: facts, skips, and what a test needs. Sourced, never run:
#   . "$TEST_HELPERS/tap.sh"
# shellcheck shell=sh
n=0

plan() { echo "1..$1"; }

# Instead, at the end: as many as there were.
plan_said() { plan "$n"; }

# check NAME STATUS [FILE]: one fact; where it does not hold, FILE is shown.
check() {
    n=$((n + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        [ -z "${3-}" ] || head -n 40 "$3" | sed 's/^/# /'
    fi
}

# skip NAME REASON: a fact that cannot be looked at here.
skip() {
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}

# skip_all REASON: instead of plan.
skip_all() {
    echo "1..0 # SKIP $1"
    exit 0
}

# need PROGRAM...: skips the test, naming what is missing.
need() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 || skip_all "$tool is not installed"
    done
}
