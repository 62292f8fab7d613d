#!/bin/sh
# The kept traces, replayed through the pool over the tests' own driver: every invariant after each request, and figures that must
# stay good together: reserved over live, the least capacity over live, and calls of the vendor's, on a device with plenty left and
# on one of half as much again as is live. The bounds are what the policies reach today, with a little room; a change that goes
# beyond one has made something worse. Prints TAP.
set -u

dir=$(mktemp -d "${TEST_TMP:-/tmp}/replay.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
tool=$top_builddir/tests/pool/replay
command -v xz >/dev/null 2>&1 || {
    echo "1..0 # SKIP xz is not installed"
    exit 0
}

# trace, most reserved over live, most capacity over live, most calls, and on the smaller device
bounds='convnet 1.08 1.06 85 90
dataframe 1.24 1.18 80 135
decode 1.18 1.16 75 315
pipeline 1.23 1.03 95 480
training 1.03 1.04 18 18
transformer 1.05 1.06 68 85'

n=0
result() { # STATUS NAME
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

# The same with memory made of handles: -v. Calls are handles that are made.
mapped='convnet 1.04 1.02 280 330
dataframe 1.11 1.11 165 400
decode 1.05 1.03 340 400
pipeline 1.04 1.02 95 150
training 1.04 1.04 62 62
transformer 1.01 1.01 310 430'

while read -r mode name reserved capacity calls short; do
    [ "$mode" = malloc ] && flag='' || flag=-v
    xz -dc "$top_srcdir/tests/traces/$name.trace.xz" >"$dir/$name.trace" || exit 1
    # shellcheck disable=SC2086  # no flag is no word
    REPLAY_CHECK=1 "$tool" $flag -n "$dir/$name.trace" >"$dir/checked" 2>&1
    result $? "$name, $mode: every invariant holds after each request"
    # trace, live, reserved, ratio, allocations, frees, events per 1000 frees, least capacity, ratio, calls at 1.05
    # shellcheck disable=SC2046,SC2086  # words are what is wanted
    set -- $("$tool" $flag "$dir/$name.trace" | tail -n 1)
    awk "BEGIN { exit !($4 <= $reserved) }"
    result $? "$name, $mode: reserved $4 of what is live (at most $reserved)"
    awk "BEGIN { exit !($9 <= $capacity) }"
    result $? "$name, $mode: fits into $9 of what is live (at most $capacity)"
    result $(($5 + $6 > calls)) "$name, $mode: $5 allocations and $6 frees of the driver's (at most $calls)"
    # shellcheck disable=SC2046,SC2086
    set -- $("$tool" $flag -n -x 150 "$dir/$name.trace" | tail -n 1)
    result $(($5 + $6 > short)) "$name, $mode, of half as much again: $5 allocations and $6 frees (at most $short)"
done <<EOF
$(printf '%s\n' "$bounds" | sed 's/^/malloc /')
$(printf '%s\n' "$mapped" | sed 's/^/vmm /')
EOF

# Made-up traces, in which only what must always hold is looked at: with room to spare, and the short ones on ever smaller devices.
# TEST_SEED and TEST_TRACES (how many of each kind) try others.
first=${TEST_SEED:-1}
python3 "$top_srcdir/tests/bench/synthetic.py" "$dir/made" "$first" $((first + ${TEST_TRACES:-1} - 1)) || exit 1
for trace in "$dir"/made/*.trace; do
    [ "$(wc -l <"$trace")" -gt 1500 ] && flag=-n || flag=''
    # shellcheck disable=SC2086  # no flag is no word
    REPLAY_CHECK=1 "$tool" $flag "$trace" >"$dir/checked" 2>&1
    result $? "$(basename "$trace" .trace): every invariant holds after each request"
    # shellcheck disable=SC2086
    REPLAY_CHECK=1 "$tool" -v $flag "$trace" >"$dir/checked" 2>&1
    result $? "$(basename "$trace" .trace), vmm: every invariant holds after each request"
done
echo "1..$n"
