#!/usr/bin/env bats
# A directory that others can write to: links, pipes, devices and reports planted under the names that are to come, reports of runs
# side by side, and who may read what is written. A stand-in for the library (fake_shim.c) writes the reports, but for the last tests.
load "$TEST_HELPERS/common.bash"
load helpers

setup() {
    [ -x "$TEST_BIN" ] || skip "the memshim command is not built (jansson or libdw is missing)"
    cd "$TEST_TMP" || return 1
    rm -rf -- *
    real=$TEST_BIN
    mkdir -p bin lib shared
    chmod 1777 shared
    cp "$TEST_BIN" bin/memshim
    cp "$top_builddir/tests/cli/fake_shim.so" lib/libmemshim.so
    TEST_BIN=$TEST_TMP/bin/memshim
    export TEST_BIN
    cd shared
}

# plant COMMAND...: a program that makes its own report, and then runs this in the shared directory with the run's number in $id.
plant() {
    cat >../planter <<END
#!/bin/sh
id=\$(printf %016x "\$MEMSHIM_RUN")
$*
END
    chmod +x ../planter
}

leak='{"schema_version": "1.0", "run": {"id": "'\''$id'\''", "pid": 1, "end_reason": "exit"}, "sites": [{"id": 0}], "leaks": [{"site": 0, "bytes": 4096, "count": 1}]}'

@test "another user's report is neither read nor rewritten, though it says the run's number and is set-user-ID" {
    [ "$(id -u)" -eq 0 ] || skip "only root can give a file to another user"
    plant "echo '$leak' >x.1.json; chown 65534:65534 x.1.json; chmod 4777 x.1.json; cp -p x.1.json ../before"
    try run --fail-on-leak -o 'x.%p.json' -- ../planter
    [ "$status" -eq 125 ]
    [[ $err == *"no report"* ]]
    cmp x.1.json ../before
    [ "$(stat -c '%a %u' x.1.json)" = "$(stat -c '%a %u' ../before)" ]
}

@test "a report of the run's own counts, and what is rewritten has no more rights than a file needs" {
    plant "echo '$leak' >x.1.json; chmod 6755 x.1.json"
    try run --fail-on-leak -o 'x.%p.json' -- ../planter
    [ "$status" -eq 23 ]
    [ "$(stat -c %a x.1.json)" = 644 ]
    grep -q '"symbolized":true' x.1.json
}

@test "a link, a pipe and a device in a report's place are not opened, followed or replaced" {
    plant "echo '$leak' >../victim.json; cp -p ../victim.json ../before; ln -s ../victim.json x.1.json; mkfifo x.2.json; ln -s /dev/zero x.3.json; ln ../victim.json x.4.link"
    try run --fail-on-leak -o 'x.%p.json' -- ../planter
    [ "$status" -eq 125 ]
    cmp ../victim.json ../before
    [ -L x.1.json ]
    [ -p x.2.json ]
    [ -L x.3.json ]
}

@test "a run in the same directory and under the same names is another one" {
    try run --fail-on-leak -o 'y.%p.json' -- sh -c 'FAKE_GPU=0 /bin/true; FAKE_GPU=100 "$TEST_BIN" run -q -o "y.%p.json" -- /bin/true; exit 0'
    [ "$status" -eq 0 ]
    [[ $err == *"leaked 0 B"* ]]
    [ "$(ls y.*.json | wc -l)" -ge 2 ]
    for n in 1 2 3 4; do
        FAKE_GPU=$((n == 3 ? 500 : 0)) "$TEST_BIN" run -q --fail-on-leak -o 'z.%p.json' -- sleep 0.3 2>/dev/null &
        eval "pid$n=\$!"
    done
    for n in 1 2 3 4; do
        status=0
        eval "wait \$pid$n" || status=$?
        [ "$status" -eq $((n == 3 ? 23 : 0)) ]
    done
}

@test "one name for several processes: each has its file, each counts, and -f takes them all away" {
    try run --fail-on-leak=99 -o w.json -- sh -c 'FAKE_GPU=100 /bin/true; FAKE_GPU=0 /bin/true; exit 0'
    [ "$status" -eq 23 ]
    [ "$(echo w*.json)" = "w.2.json w.json" ]
    echo kept >w.3.json
    FAKE_GPU=0 try run -f --fail-on-leak -o w.json -- true
    [ "$status" -eq 0 ]
    [ "$(echo w*.json)" = "w.3.json w.json" ]
}

@test "an output's name that is a link, a pipe or a directory is refused, with -f too; /dev/null is not" {
    report=$data/train.json
    echo precious >../victim
    ln -s ../victim link
    ln -s ../nowhere dangling
    mkfifo pipe
    mkdir directory
    for name in link dangling pipe directory; do
        try summary -f -o "$name" "$report"
        refused 2 "$name"
        try symbolize -f -o "$name" "$report"
        [ "$status" -eq 2 ]
    done
    [ "$(cat ../victim)" = precious ]
    [ ! -e ../nowhere ]
    try summary -o /dev/null "$report"
    [ "$status" -eq 0 ]
    [ -c /dev/null ]
}

@test "a pipe and a device among the reports are named, not opened; a pipe of the shell's own is read" {
    cp "$data/train.json" a.json
    mkfifo b.json
    ln -s /dev/zero c.json
    for name in b.json c.json .; do
        for verb in summary leaks frag validate; do
            try "$verb" "$name"
            refused 2 "$name"
        done
    done
    try summary <(cat a.json)
    [ "$status" -eq 0 ]
}

@test "files are their owner's alone, unless MEMSHIM_READERS says otherwise, whatever the umask is" {
    umask 0
    for verb in summary leaks symbolize; do
        try "$verb" -o "$verb.out" "$data/train.json"
        [ "$(stat -c %a "$verb.out")" = 600 ]
        MEMSHIM_READERS=group try "$verb" -f -o "$verb.out" "$data/train.json"
        [ "$(stat -c %a "$verb.out")" = 640 ]
    done
    umask 077
    MEMSHIM_READERS=all try summary -f -o summary.out "$data/train.json"
    [ "$(stat -c %a summary.out)" = 644 ]
    MEMSHIM_READERS=everybody try run -- true
    refused 2 "MEMSHIM_READERS" "owner"
}

# From here on with the library itself.
whole() {
    need_plain "every program of this test"
    [ -e "$TEST_SIM/libcuda.so.1" ] || skip "the simulator is not built"
    [ -e "$TEST_LIB" ] || skip "libmemshim.so is not built"
    TEST_BIN=$real
    export MEMSHIM_DIR=$PWD/ledgers
    mkdir ledgers
}

# ledger: kills a program that has leaked, and leaves its ledger in $ledger.
ledger() {
    env LD_PRELOAD="$TEST_LIB:$TEST_SIM/libcuda.so.1" LD_LIBRARY_PATH="$TEST_SIM" "$top_builddir/tests/ledger/ends" term >/dev/null || :
    ledger=$(echo "$PWD"/ledgers/memshim-*.ledger)
    [ -f "$ledger" ]
}

@test "recover beside a ledger writes through no link and into no pipe, and says so" {
    whole
    ledger
    echo precious >../victim
    for planted in "ln -s ../../victim" "ln -s /dev/zero" mkfifo; do
        $planted "$ledger.json"
        for force in "" -f; do
            # shellcheck disable=SC2086
            try recover $force "$ledger"
            refused 2 "$ledger.json"
        done
        [ -e "$ledger" ]
        rm "$ledger.json"
    done
    [ "$(cat ../victim)" = precious ]
    try recover "$ledger"
    [ "$status" -eq 0 ]
    [ "$(stat -c %a "$ledger.json")" = 600 ]
    mkfifo ledgers/memshim-2-2.ledger
    try recover ledgers
    refused 2 "no ledger of yours" "ledgers"
}

@test "the library's report and trace are their owner's, carry the run's number, and do not replace each other" {
    whole
    umask 0
    try run --sim -o r.json --trace t.txt -- sh -c "'$top_builddir/tests/cli/leaker' 1 10; '$top_builddir/tests/cli/leaker' 1 20; exit 0"
    [ "$status" -eq 0 ]
    [ "$(stat -c %a r.json r.2.json t.txt | sort -u)" = 600 ]
    [ "$(json r.json "r['run']['id']")" = "$(json r.2.json "r['run']['id']")" ]
    run "$TEST_VALID" r.json r.2.json
    [ "$status" -eq 0 ]
    MEMSHIM_READERS=all try run -f --sim --fail-on-leak=29 -o r.json -- sh -c "'$top_builddir/tests/cli/leaker' 1 10; '$top_builddir/tests/cli/leaker' 1 20; exit 0"
    [ "$status" -eq 23 ]
    [ "$(stat -c %a r.json r.2.json | sort -u)" = 644 ]
    [ "$(echo r.*json)" = "r.2.json r.json" ]
}

@test "a program that used the GPU and was replaced by another: both are reported, no ledger stays" {
    whole
    for name in fixed.json 'x.%p.json'; do
        try run -f --sim -o "$name" -- "$top_builddir/tests/ledger/ends" exec-self
        [ "$status" -eq 0 ]
        [ -z "$(ls ledgers | grep -v "^memshim-share-")" ]
        [[ $err != *"exists"* ]]
    done
    [ "$(ls fixed*.json | wc -l)" -eq 2 ]
    [ "$(ls x.*.json | wc -l)" -eq 2 ]
    for file in fixed*.json; do json "$file" "r['run']['end_reason']"; done >reasons.txt
    [ "$(sort reasons.txt | tr '\n' ' ')" = "exec exit " ]
}

@test "the signal that ended a program is in its report, by number and by name" {
    whole
    try run --sim -o k.json -- "$top_builddir/tests/ledger/ends" term
    [ "$status" -eq 143 ]
    [ "$(json k.json "r['run']['signal']")" = 15 ]
    try summary k.json
    [[ $out == *"ended by signal 15 (Terminated)"* ]]
    try run --sim -o a.json -- "$top_builddir/tests/ledger/ends" abort
    [ "$status" -eq 134 ]
    [ "$(json a.json "r['run']['signal']")" = 6 ]
    try summary a.json
    [[ $out == *"ended by signal 6 (Aborted)"* ]]
    for file in k.json a.json; do
        run "$TEST_VALID" "$file"
        [ "$status" -eq 0 ]
    done
}

@test "the default name has the rank in a parallel job" {
    whole
    OMPI_COMM_WORLD_RANK=3 try run --sim -- "$top_builddir/tests/cli/leaker" 1 10
    [ -f "$(echo memshim.*.3.*.json)" ]
    try run --sim -- "$top_builddir/tests/cli/leaker" 1 10
    [ "$(ls memshim.*.json | wc -l)" -eq 2 ]
}

@test "a process that sets a MEMSHIM_REPORT of its own counts too, however it ends, and the list of the run does not stay" {
    whole
    mkdir 'else[where]'
    leaks="'$top_builddir/tests/cli/leaker' 1"
    try run --sim --fail-on-leak=29 -o r.json -- sh -c "$leaks 10; MEMSHIM_REPORT='else[where]/own.%p.json' $leaks 20; exit 0"
    [ "$status" -eq 23 ]
    [[ $err == *"2 processes"* ]]
    [[ $err == *"else[where]/own."* ]]
    id=$(json r.json "r['run']['id']")
    [ "$(json 'else[where]'/own.*.json "r['run']['id']")" = "$id" ]
    try run -f --sim -o r.json -- sh -c "MEMSHIM_REPORT='else[where]/killed.json' '$top_builddir/tests/ledger/ends' term; $leaks 10; $leaks 10; exit 0"
    [ "$status" -eq 0 ]
    [[ $err == *"3 processes"* ]]
    [ -f 'else[where]/killed.json' ]
    [ -z "$(find /dev/shm /tmp -maxdepth 1 -name "memshim-run-$id.reports" 2>/dev/null)" ]
}
