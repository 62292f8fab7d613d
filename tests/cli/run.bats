#!/usr/bin/env bats
# memshim run: the program's own status, signals, the report and what is said about it. A stand-in for the library (fake_shim.c)
# writes the reports, so that this tests the command alone; tests/cli/whole.bats runs the real one.
load "$TEST_HELPERS/common.bash"
load helpers

setup() {
    [ -x "$TEST_BIN" ] || skip "the memshim command is not built (jansson or libdw is missing)"
    cd "$TEST_TMP" || return 1
    rm -rf -- *
    mkdir -p bin lib
    cp "$TEST_BIN" bin/memshim
    cp "$top_builddir/tests/cli/fake_shim.so" lib/libmemshim.so
    TEST_BIN=$TEST_TMP/bin/memshim
    export -n FAKE_GPU
}

@test "the program's own status is the command's" {
    for code in 0 1 2 7 125 255; do
        try run -- sh -c "exit $code"
        [ "$status" -eq "$code" ]
    done
}

@test "a signal that ends the program becomes 128 + n, and is named" {
    try run -- sh -c 'kill -TERM $$'
    [ "$status" -eq 143 ]
    one_line "$err"
    [[ $err == *"signal 15 (Terminated)"* ]]
    try run -- sh -c 'kill -KILL $$'
    [ "$status" -eq 137 ]
    [[ $err == *"signal 9 (Killed)"* ]]
}

@test "what others left where ledgers lie is passed over in silence" {
    mkdir ledgers
    printf 'MSLEDGER of another version' >ledgers/memshim-1-1.ledger
    touch -d '1 hour ago' ledgers/memshim-1-1.ledger
    sleep 0.3
    MEMSHIM_DIR=$PWD/ledgers try run -- true
    [ "$status" -eq 0 ]
    [[ $err != *memshim-1-1* ]]
    [ -e ledgers/memshim-1-1.ledger ]
}

@test "127 for what is not there, 126 for what cannot be run, naming it" {
    try run -- ./missing
    refused 127 "./missing" "No such file"
    try run -- missing-program
    refused 127 "missing-program" "PATH"
    echo text >plain
    try run -- ./plain
    refused 126 "./plain" "not executable"
    try run -- ./
    refused 126 "not a file"
    printf '#!/no/such/interpreter\n' >script
    chmod +x script
    try run -- ./script
    [ "$status" -eq 127 ]
    printf 'exit 3\n' >noshebang
    chmod +x noshebang
    try run -- ./noshebang
    [ "$status" -eq 3 ]
}

@test "125 when memshim itself is not whole" {
    rm lib/libmemshim.so
    mkdir elsewhere
    mv bin/memshim elsewhere/
    TEST_BIN=$TEST_TMP/elsewhere/memshim
    if [ -e "$(sed -n 's/^libdir = //p' "$top_builddir/Makefile" | sed "s|\${exec_prefix}|$(sed -n 's/^prefix = //p' "$top_builddir/Makefile")|")/libmemshim.so" ]; then
        skip "a memshim is installed on this machine"
    fi
    try run -- true
    refused 125 "libmemshim.so"
    mkdir -p "with space/bin" "with space/lib"
    cp elsewhere/memshim "with space/bin/"
    cp "$top_builddir/tests/cli/fake_shim.so" "with space/lib/libmemshim.so"
    TEST_BIN="$TEST_TMP/with space/bin/memshim"
    try run -- true
    refused 125 "space"
}

@test "--sim without a simulator is refused" {
    [ ! -e "$top_builddir/../lib/memshim" ]
    try run --sim -- true
    [ "$status" -eq 125 ]
    [[ $err == *"libcuda.so.1"* ]]
}

@test "a bad variable or option keeps the program from starting" {
    MEMSHIM_MODE=fast try run -- touch started
    [ "$status" -eq 2 ]
    MEMSHIM_UNKNOWN=1 try run -- touch started
    refused 2 "MEMSHIM_UNKNOWN"
    try run --mode fast -- touch started
    refused 2 "--mode" "fast" "pool|track|off"
    try run --error-exitcode 0 -- touch started
    refused 2 "--error-exitcode" "1 to 255"
    try run -o - -- touch started
    refused 2 "--output" "file"
    try run
    refused 2 "no program"
    [ ! -e started ]
}

@test "options after the program's name are the program's" {
    try run -- echo --sim -o x
    [ "$out" = "--sim -o x" ]
    try run echo --sim
    [ "$out" = "--sim" ]
}

@test "three lines say what was leaked, where the report is and what to type next" {
    FAKE_GPU=4096 try run -- true
    [ "$status" -eq 0 ]
    [ -z "$out" ]
    [ "$(echo "$err" | wc -l)" -eq 3 ]
    [[ $err == *"peak 4.0 KiB on 1 device, leaked 4.0 KiB in 1 block"* ]]
    path=$(sed -n 's/^memshim: report: //p' err.txt)
    [ -f "$path" ]
    next=$(sed -n 's/^memshim: next: memshim //p' err.txt)
    [ "$next" = "leaks $path" ]
    # shellcheck disable=SC2086
    try $next
    [ "$status" -eq 0 ]
    [[ $out == "4.0 KiB leaked in 1 block"* ]]
    run "$TEST_VALID" "$path"
    [ "$status" -eq 0 ]
    grep -q '"symbolized":true' "$path"
}

@test "without a leak what held the peak comes next, as the summary says; -q says nothing" {
    FAKE_GPU=0 try run -- true
    [[ $err == *"leaked 0 B in 0 blocks"*"next: memshim peak "* ]]
    next=$(sed -n 's/^memshim: next: //p' err.txt)
    path=$(sed -n 's/^memshim: report: //p' err.txt)
    try summary "$path"
    [ "$(tail -n 1 out.txt)" = "Next  $next" ]
    FAKE_GPU=0 try run -q -- true
    [ -z "$err" ]
}

@test "-o names the report, refuses to replace it, and -f does" {
    FAKE_GPU=1 try run -o here.json -- true
    [ "$status" -eq 0 ]
    [ -f here.json ]
    cp here.json before.json
    FAKE_GPU=2 try run -o here.json -- touch started
    refused 2 "here.json" "-f"
    [ ! -e started ]
    cmp here.json before.json
    FAKE_GPU=2 try run -f -o here.json -- true
    [ "$status" -eq 0 ]
    grep -q '"live_bytes":2' here.json
    try run -f -o here.json -- true
    [ ! -e here.json ]
    [[ $err == *"no report"* ]]
}

@test "a report lands where the command was started, whatever directory the program goes to" {
    mkdir away
    FAKE_GPU=1 try run -o 'r.%%.%p.json' -- sh -c 'cd away && exec true'
    [ "$(ls r.%.*.json | wc -l)" -eq 1 ]
    [ -z "$(ls away)" ]
}

@test "old reports and other files of the name are not taken for this run's" {
    FAKE_GPU=5000 try run -o 'x.%p.json' -- true
    old=$(ls x.*.json)
    sleep 0.01
    FAKE_GPU=0 try run -o 'x.%p.json' -- true
    [[ $err != *"$old"* ]]
    [[ $err != *"more"* ]]
}

@test "other processes' reports are named, and count for the gate" {
    try run -o 'y.%p.json' -- sh -c "FAKE_GPU=100 /bin/true; FAKE_GPU=200 /bin/true; FAKE_GPU=0 exec /bin/true"
    [ "$status" -eq 0 ]
    [[ $err == *"3 processes: leaked 300 B in 2 blocks together"*"and "*" more, the next one y."*"next: memshim leaks y."*" y."* ]]
    [ "$(sed -n 's/^memshim: next: memshim leaks//p' err.txt | wc -w)" -eq 2 ]
    try run --fail-on-leak=299 -o 'z.%p.json' -- sh -c 'FAKE_GPU=100 /bin/true; FAKE_GPU=200 /bin/true; exit 0'
    [ "$status" -eq 23 ]
    try run --fail-on-leak=300 -o 'w.%p.json' -- sh -c 'FAKE_GPU=100 /bin/true; FAKE_GPU=200 /bin/true; exit 0'
    [ "$status" -eq 0 ]
}

@test "--fail-on-leak: 23, or what --error-exitcode says; the program's own failure stands" {
    FAKE_GPU=1 try run --fail-on-leak -- true
    [ "$status" -eq 23 ]
    [[ $err == *"leaked 1 B, allowed 0 B"*"1 B in 1 block, lost, cudaMalloc, device 0"*"(no stack)"* ]]
    FAKE_GPU=1 try run --fail-on-leak --error-exitcode 99 -- true
    [ "$status" -eq 99 ]
    FAKE_GPU=1024 try run --fail-on-leak=1K -- true
    [ "$status" -eq 0 ]
    FAKE_GPU=1025 try run --fail-on-leak=1K -- true
    [ "$status" -eq 23 ]
    FAKE_GPU=0 try run --fail-on-leak -- true
    [ "$status" -eq 0 ]
    FAKE_GPU=1 try run --fail-on-leak -- sh -c 'exit 9'
    [ "$status" -eq 9 ]
    try run --fail-on-leak -- true
    [ "$status" -eq 125 ]
    [[ $err == *"no report"* ]]
    MEMSHIM_REPORT=none try run --fail-on-leak -- touch started
    refused 2 "--fail-on-leak" "MEMSHIM_REPORT=none"
    try run --mode off --fail-on-leak -- touch started
    refused 2 "--fail-on-leak" "off"
    [ ! -e started ]
}

@test "MEMSHIM_REPORT=none and mode off write and say nothing" {
    FAKE_GPU=1 MEMSHIM_REPORT=none try run -- true
    [ "$status" -eq 0 ]
    [ -z "$err" ]
    [ -z "$(ls ./*.json 2>/dev/null)" ]
    try run --mode off -- sh -c 'echo $MEMSHIM_MODE'
    [ "$out" = off ]
    [ -z "$err" ]
}

@test "the library comes first in LD_PRELOAD, behind a sanitizer's, before what was there" {
    need_plain "a command that a sanitizer is in"
    cp lib/libmemshim.so lib/libother.so
    LD_PRELOAD=$PWD/lib/libother.so try run -- printenv LD_PRELOAD
    [ "$out" = "$PWD/lib/libmemshim.so:$PWD/lib/libother.so" ]
    cp lib/libmemshim.so lib/libasan.so.8
    LD_PRELOAD="$PWD/lib/libother.so $PWD/lib/libasan.so.8" try run -- printenv LD_PRELOAD
    [ "$out" = "$PWD/lib/libasan.so.8:$PWD/lib/libmemshim.so:$PWD/lib/libother.so" ]
}

@test "signals sent to the command reach the program" {
    cat >catcher <<'END'
#!/bin/sh
trap 'echo got $1; exit 5' TERM HUP USR1 INT
echo ready
while :; do sleep 0.05; done
END
    chmod +x catcher
    for name in TERM HUP USR1; do
        "$TEST_BIN" run -q -- ./catcher >caught.txt &
        pid=$!
        for _ in $(seq 1200); do grep -q ready caught.txt && break; sleep 0.05; done
        kill -s "$name" "$pid"
        status=0
        wait "$pid" || status=$?
        [ "$status" -eq 5 ]
        grep -q got caught.txt
    done
}

@test "dispositions and mask are the program's as they were the command's" {
    need_plain "a shell and its tools"
    [ -z "${TEST_EMULATED-}" ] || skip "/proc has the dispositions of $TEST_EMULATED itself"
    trap '' USR2
    grep -E '^Sig(Ign|Blk)' /proc/self/status >plain.txt
    "$TEST_BIN" run -q -- grep -E '^Sig(Ign|Blk)' /proc/self/status >followed.txt
    trap - USR2
    # Signal 33 is the C library's own, and ThreadSanitizer's in the command.
    sed -i -E 's/(:\s*)[0-9a-f]{8}/\1/' plain.txt followed.txt
    grep -q '^SigIgn:.*800$' plain.txt
    diff plain.txt followed.txt
}

@test "a stopped program stops the command, and goes on with it" {
    need_terminal
    cat >session <<END
set -m
"$TEST_BIN" run -q -- sh -c 'echo one; kill -STOP \$\$; echo two; exit 4' >>said.txt
echo "status \$?" >>said.txt
fg >/dev/null
echo "status \$?" >>said.txt
END
    script -qec "bash session" /dev/null >/dev/null
    [ "$(cat said.txt)" = "$(printf 'one\nstatus 147\ntwo\nstatus 4')" ]
}

@test "a program that nothing can be preloaded into is named, and run all the same" {
    echo 'int main(void) { return 6; }' >static.c
    ${TEST_CC:-cc} -static -o static static.c 2>/dev/null || skip "no static C library"
    try run -- ./static
    [ "$status" -eq 6 ]
    [[ $err == *"./static is statically linked"*"it runs without memshim"* ]]
    try run --fail-on-leak -- ./static
    [ "$status" -eq 6 ]
    echo '#include <stdlib.h>
int main(void) { return getenv("LD_PRELOAD") != NULL; }' >static.c
    ${TEST_CC:-cc} -static -o static static.c
    try run --fail-on-leak -- ./static
    [ "$status" -eq 125 ]
    [[ $err == *"nothing was checked"* ]]
}

@test "a program of musl's is run without the library, which its loader would end it for" {
    need_plain "a program that another loader runs"
    loader=$(LC_ALL=C readelf -l /bin/sh | sed -n 's/.*interpreter: \(.*\)]/\1/p')
    [ -e "$loader" ] || skip "the loader's path cannot be told"
    ln -s "$loader" ld-musl-x86_64.so.1
    echo '#include <stdlib.h>
int main(void) { return getenv("LD_PRELOAD") != NULL; }' >musl.c
    ${TEST_CC:-cc} -Wl,--dynamic-linker="$PWD/ld-musl-x86_64.so.1" -o musl musl.c
    try run -- ./musl
    [ "$status" -eq 0 ]
    [[ $err == *"musl"*"it runs without memshim"* ]]
    try run --fail-on-leak -- ./musl
    [ "$status" -eq 125 ]
    FAKE_GPU=1 try run -- "$loader" /bin/true
    [[ $err == *"report: "* ]]
}

@test "an empty or foreign ledger beside the run is nobody's business" {
    mkdir ledgers
    FAKE_GPU=0 MEMSHIM_DIR=$PWD/ledgers try run -- sh -c ': >ledgers/memshim-7-7.ledger; mkfifo ledgers/memshim-8-8.ledger; exec true'
    [ "$status" -eq 0 ]
    [[ $err != *ledger* ]]
    [ -e ledgers/memshim-7-7.ledger ]
}

@test "a directory that no report can be written in is known before the run" {
    try run -o nowhere/report.json -- touch started
    refused 2 "nowhere/" "No such file"
    MEMSHIM_REPORT=nowhere/report.json try run -- touch started
    [ "$status" -eq 2 ]
    [ ! -e started ]
    mkdir dir
    FAKE_GPU=1 try run -o 'dir/%p.json' -- true
    [ "$(ls dir | wc -l)" -eq 1 ]
}

@test "names that a shell or a pattern would take apart" {
    directory="$PWD/it's %p [x]*"
    mkdir "$directory"
    cd "$directory"
    FAKE_GPU=7 try run -o 'a *[b]?.json' -- true
    [ -f 'a *[b]?.json' ]
    eval "$(sed -n 's/^memshim: next: memshim /"$TEST_BIN" /p' err.txt)" >page.txt
    grep -q '^7 B leaked' page.txt
    FAKE_GPU=7 try run -o 'a *[b]?.json' -- true
    refused 2 "exists"
    FAKE_GPU=8 try run -- true
    [ "$(ls memshim.*.json | wc -l)" -eq 1 ]
    [[ $err == *"leaked 8 B"* ]]
}
