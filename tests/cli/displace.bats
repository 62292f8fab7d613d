#!/usr/bin/env bats
# memshim run --sim: what a program finds by a path or a name of its own is displaced by the simulated library, and said. The wheel is made up: its runtime answers
# version 7, the simulated ones 12 and 13 thousand.
# shellcheck shell=bash disable=SC2154
load "$TEST_HELPERS/common.bash"
load helpers

made=$top_builddir/tests/cli
name=libcudart-53d54daa.so.12.6.68

setup() {
    [ -x "$TEST_BIN" ] || skip "the memshim command is not built (jansson or libdw is missing)"
    need_plain "a program of its own"
    cd "$TEST_TMP" || return 1
    rm -rf -- *
    mkdir -p wheel/libs
    cp "$made/wheel_module.so" wheel/module.so
    cp "$made/wheel_runtime.so" "wheel/libs/$name"
}

# A run of the program that opens things, with nothing of its own on standard error.
open_with() {
    try run "${options[@]}" --sim -f -o report.json -- "$made/wheel_opener" "$@"
}

simulated() {
    [ "$out" -ge 12000 ] && [ "$out" -lt 14000 ]
}

@test "without the simulator a wheel has its own runtime" {
    run "$made/wheel_opener" ask "$PWD/wheel/module.so"
    [ "$output" = 7 ]
}

@test "a name with a hash, found by DT_RPATH, is displaced and said; the wheel is as it was" {
    options=()
    open_with ask "$PWD/wheel/module.so"
    [ "$status" -eq 0 ]
    simulated
    echo "$err" | grep -qF "memshim: the simulated libcudart.so.12 stands in for $(realpath "wheel/libs/$name")"
    [ "$(echo "$err" | grep -c "stands in for")" -eq 1 ]
    cmp "wheel/libs/$name" "$made/wheel_runtime.so"
    grep -q '"allocated_bytes": *54321' report.json
}

@test "-q leaves it unsaid" {
    options=(-q)
    open_with ask "$PWD/wheel/module.so"
    simulated
    [ -z "$err" ]
}

@test "a path is displaced, with and without a version, through a link, and under a hash" {
    options=()
    cp "$made/wheel_runtime.so" wheel/libcudart.so.12
    ln -s libcudart.so.12 wheel/libcudart.so
    for file in wheel/libcudart.so.12 ./wheel/libcudart.so "$PWD/wheel/libs/$name"; do
        open_with version "$file"
        simulated
    done
}

@test "a search path and a bare name with a hash" {
    options=()
    LD_LIBRARY_PATH=$PWD/wheel/libs open_with version "$name"
    simulated
}

@test "what is not there is not made up" {
    options=()
    open_with version "$PWD/wheel/libcudart.so.12"
    [ "$out" = "cannot be opened" ]
    open_with version libcudart-00000000.so.12
    [ "$out" = "cannot be opened" ]
    absent grep -q "stands in for" err.txt
}

@test "what the simulator has not stays the program's own" {
    options=()
    for file in libcudart-53d54daa.so.9.2 libcudartx.so.12 libcudart-hash.so.12 libcudart.socket; do
        cp "$made/wheel_runtime.so" "wheel/$file"
        open_with version "$PWD/wheel/$file"
        [ "$out" = 7 ]
        absent grep -q "stands in for" err.txt
    done
}

@test "what a module opens by a name alone is searched for where the module says" {
    options=()
    cp "$made/wheel_module.so" wheel/libs/libbeside.so
    cp "wheel/libs/$name" "wheel/$name"
    open_with beside "$PWD/wheel/module.so"
    [ "$out" = 1 ]
}

@test "processes that tell the same are told once" {
    options=()
    try run --sim -f -o report.json -- sh -c "'$made/wheel_opener' ask wheel/module.so; '$made/wheel_opener' ask wheel/module.so"
    [ "$status" -eq 0 ]
    [ "$(echo "$err" | grep -c "stands in for")" -eq 1 ]
}

teardown() {
    [ -z "${run_pid:-}" ] || kill "$run_pid" "$program_pid" 2>/dev/null || true
}

# directories: those of runs that there are.
directories() {
    find tmp -mindepth 1 -maxdepth 1 -name 'memshim-sim.*' | sort
}

# until_true COMMAND...: waits for it, for a minute at most.
until_true() {
    for _ in $(seq 600); do
        "$@" && return 0
        sleep 0.1
    done
    return 1
}

# begin NAME: a run whose program says when it is up, and ends when it is told to.
begin() {
    mkfifo "$1.up" "$1.end"
    "$TEST_BIN" run --sim -f -o none -- sh -c "echo \$\$ >$1.up; read -r line <$1.end" 3>&- &
    run_pid=$!
    read -r program_pid <"$1.up"
}

gone() {
    [ ! -e "/proc/$1" ]
}

@test "what a killed run leaves is removed by the next, once its programs have ended; others' is not" {
    mkdir tmp tmp/memshim-sim.open
    chmod 755 tmp/memshim-sim.open
    echo >tmp/memshim-sim.file
    ln -s memshim-sim.open tmp/memshim-sim.link
    before=$(directories)
    export TMPDIR=$PWD/tmp
    begin killed
    left=$(directories)
    [ "$left" != "$before" ]
    kill -KILL "$run_pid"
    wait "$run_pid" || true
    "$TEST_BIN" run --sim -f -o none -- true
    [ "$(directories)" = "$left" ]
    echo >killed.end
    until_true gone "$program_pid"
    begin living
    after=$(directories)
    "$TEST_BIN" run --sim -f -o none -- true
    [ "$(directories)" = "$after" ]
    [ "$(echo "$after" | wc -l)" -eq "$(echo "$left" | wc -l)" ]
    [ "$after" != "$left" ]
    echo >living.end
    wait "$run_pid"
    [ "$(directories)" = "$before" ]
}
