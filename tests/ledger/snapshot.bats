#!/usr/bin/env bats
# memshim snapshot: a process that goes on is reported, and stays as it is.
load "$TEST_HELPERS/common.bash"
load "$top_srcdir/tests/cli/helpers"

@test "snapshots of a process that runs, then is killed; what has ended is recover's" {
    need_plain "phases_user"
    mkfifo said
    MEMSHIM_REPORT=end.json MEMSHIM_DIR=$TEST_TMP LD_PRELOAD=$TEST_LIB:$TEST_SIM/libcuda.so.1 LD_LIBRARY_PATH=$TEST_SIM "$top_builddir/tests/phases/phases_user" kill >said &
    pid=$!
    read -r line <said
    export MEMSHIM_DIR=$TEST_TMP
    sum=$(md5sum memshim-*.ledger)
    try snapshot -o one.json "$pid"
    [ "$status" -eq 0 ]
    [[ $err == *"process $pid goes on"* ]]
    [ "$(md5sum memshim-*.ledger)" = "$sum" ]
    [ "$(json one.json 'r["run"]["end_reason"]')" = running ]
    [ "$(json one.json 'r["run"]["pid"]')" = "$pid" ]
    [ "$(json one.json 'r["devices"][0]["live_bytes"] > 0')" = True ]
    [ ! -e end.json ]
    try summary one.json
    [[ $out == *", still running: figures so far"*"Leak  none; "*" not freed so far"* ]]
    try snapshot "$pid"
    [ -s "memshim.$pid.snapshot.json" ]
    for number in 2 3; do
        try snapshot "$pid"
        [ "$status" -eq 0 ]
        [[ $err == *"memshim summary memshim.$pid.snapshot-$number.json"* ]]
    done
    try snapshot -f "$pid"
    [[ $err == *"memshim summary memshim.$pid.snapshot.json"* ]]
    [ ! -e "memshim.$pid.snapshot-4.json" ]
    try snapshot -o one.json "$pid"
    refused 2 "exists" "-f"
    try diff one.json "memshim.$pid.snapshot-3.json"
    grep -qx 'nothing changed' out.txt
    # Another user's, a link and a pipe under the process's name are nobody's; the process's own is taken all the same.
    ln -s memshim-"$pid"-*.ledger "memshim-$pid-1.ledger"
    mkfifo "memshim-$pid-2.ledger"
    try snapshot -f -o one.json "$pid"
    [ "$status" -eq 0 ]
    rm "memshim-$pid-1.ledger" "memshim-$pid-2.ledger"
    if [ "$(id -u)" -eq 0 ]; then
        chown 65534 memshim-"$pid"-*.ledger
        try snapshot -o others.json "$pid"
        refused 2 "no ledger of yours"
        [ ! -e others.json ]
        try top -n 1 "$pid"
        refused 2 "no ledger of yours"
        chown 0 memshim-"$pid"-*.ledger
    fi
    kill -0 "$pid"
    kill -9 "$pid"
    wait "$pid" || true
    try snapshot -o two.json "$pid"
    refused 2 "has ended" "memshim recover"
    [ ! -e two.json ]
}

@test "snapshots of threads that allocate and free without pause are reports whose figures agree" {
    need_plain "alloc"
    export MEMSHIM_DIR=$TEST_TMP
    MEMSHIM_REPORT=end.json LD_PRELOAD=$TEST_LIB:$TEST_SIM/libcudart.so.13 LD_LIBRARY_PATH=$TEST_SIM "$top_builddir/tests/bench/alloc/alloc" runtime pool hit 4 60000 &
    pid=$!
    until try snapshot -f -o live.json "$pid" && [ "$status" -eq 0 ] && [ "$(json live.json 'len(r["devices"]) == 1 and r["devices"][0]["allocated_count"] > 1000')" = True ]; do
        sleep 0.02
    done
    for number in 1 2 3 4 5; do
        try snapshot "$pid"
        [ "$status" -eq 0 ]
    done
    kill -9 "$pid"
    wait "$pid" || true
    for report in memshim."$pid".snapshot*.json; do
        try validate "$report"
        [ "$status" -eq 0 ]
    done
    [ "$(printf '%s\n' memshim."$pid".snapshot*.json | wc -l)" -eq 5 ]
}

@test "what is no process, or has no ledger, is refused in one line" {
    try snapshot
    refused 2 "one process"
    try snapshot x
    refused 2 "'x'" "whole number"
    MEMSHIM_DIR=$TEST_TMP try snapshot $$
    refused 2 "no ledger" "$TEST_TMP"
}
