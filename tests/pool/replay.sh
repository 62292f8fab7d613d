#!/bin/sh
# The kept traces, replayed through the pool over the tests' own driver: every invariant after each request, and three figures that
# must stay good together: reserved over live, the least capacity over live, and calls of the vendor's. The bounds are what the
# policies reach today, with a little room; a change that goes beyond one has made something worse. Prints TAP.
set -u

dir=$(mktemp -d "${TEST_TMP:-/tmp}/replay.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
tool=$top_builddir/tests/pool/replay
command -v xz >/dev/null 2>&1 || {
    echo "1..0 # SKIP xz is not installed"
    exit 0
}

# trace, most reserved over live, most capacity over live, most calls
bounds='convnet 1.20 1.06 44
dataframe 1.35 1.20 22
decode 1.24 1.15 66
pipeline 1.48 1.03 12
training 1.09 1.05 9
transformer 1.11 1.09 60'

n=0
result() { # STATUS NAME
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

while read -r name reserved capacity calls; do
    xz -dc "$top_srcdir/tests/traces/$name.trace.xz" >"$dir/$name.trace" || exit 1
    REPLAY_CHECK=1 "$tool" -n "$dir/$name.trace" >"$dir/checked" 2>&1
    result $? "$name: every invariant holds after each request"
    # trace, live, reserved, ratio, allocations, frees, events per 1000 frees, least capacity, ratio, calls at 1.05
    # shellcheck disable=SC2046  # words are what is wanted
    set -- $("$tool" "$dir/$name.trace" | tail -n 1)
    awk "BEGIN { exit !($4 <= $reserved) }"
    result $? "$name: reserved $4 of what is live (at most $reserved)"
    awk "BEGIN { exit !($9 <= $capacity) }"
    result $? "$name: fits into $9 of what is live (at most $capacity)"
    result $(($5 + $6 > calls)) "$name: $5 allocations and $6 frees of the driver's (at most $calls)"
done <<EOF
$bounds
EOF
echo "1..$n"
