# Our walk against gdb's backtrace, frame by frame, on programs of C and C++ compiled without frame pointers. gdb stops where
# the program has just printed the frames that our walk found.
directory=$top_builddir/tests/stack

missing=
command -v gdb >/dev/null 2>&1 || missing="gdb is not installed"
[ -z "${TEST_EMULATED-}" ] || missing="$TEST_EMULATED has no ptrace, which gdb needs"
[ -z "$TEST_SANITIZE" ] || missing="gdb does not run programs with a sanitizer"
[ -n "$missing" ] || gdb -nx -batch -ex 'python print(1)' 2>/dev/null | grep -q '^1$' || missing="this gdb has no python"
[ -n "$missing" ] || "$directory/show" plain >/dev/null 2>&1 || missing="the program cannot be run"
[ -n "$missing" ] || gdb -nx -batch -ex 'break main' -ex run "$directory/show" 2>&1 | grep -q 'Breakpoint 1, ' ||
    missing="gdb may not trace here"
if [ -n "$missing" ]; then
    echo "1..0 # SKIP $missing"
    exit 0
fi

cat >"$TEST_TMP/frames.py" <<'END'
import gdb
frame = gdb.newest_frame().older().older()
interrupted = 0 # such a frame is given as the address after the one where it goes on
while frame:
    # What was inlined, or left by a tail call, has no frame on the stack: gdb makes it up from debugging information.
    if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
        print("gdb %x" % (frame.pc() + interrupted))
        interrupted = int(frame.type() == gdb.SIGTRAMP_FRAME)
    frame = frame.older()
END

n=0
compare() { # PROGRAM MODE
    n=$((n + 1))
    if [ ! -x "$directory/$1" ]; then
        echo "ok $n - $1 $2 # SKIP there is no C++ compiler"
        return
    fi
    gdb -nx -batch -ex 'set debuginfod enabled off' -ex 'set backtrace past-main on' -ex 'set backtrace past-entry on' \
        -ex 'handle SIGUSR1 nostop noprint pass' -ex 'break stop_here' -ex run -ex "source $TEST_TMP/frames.py" \
        --args "$directory/$1" "$2" >"$TEST_TMP/out" 2>&1 </dev/null
    sed -n 's/^frame //p' "$TEST_TMP/out" >"$TEST_TMP/ours"
    sed -n 's/^gdb //p' "$TEST_TMP/out" >"$TEST_TMP/gdb"
    if [ "$(wc -l <"$TEST_TMP/ours")" -ge 4 ] && cmp -s "$TEST_TMP/ours" "$TEST_TMP/gdb"; then
        echo "ok $n - $1 $2: $(wc -l <"$TEST_TMP/ours") frames, as gdb has them"
    else
        echo "not ok $n - $1 $2: as gdb has them"
        diff "$TEST_TMP/ours" "$TEST_TMP/gdb" | sed 's/^/# /'
        tail -n 5 "$TEST_TMP/out" | sed 's/^/# /'
    fi
}

echo 1..8
for mode in plain signal alternate thread; do
    compare show $mode
done
for mode in plain thread catch destructor; do
    compare show_cxx $mode
done
