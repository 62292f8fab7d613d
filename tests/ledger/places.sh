# Wherever the ledger cannot lie or grow, the program runs to its normal end with its usual output, the report at exit is whole, one
# line says what is the matter, and nobody's file is touched.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"

[ -z "$TEST_SANITIZE" ] || skip_all "a sanitizer's library cannot be preloaded into a plain program"
plan 32
many=$top_builddir/tests/ledger/many
dir=$TEST_TMP/place
count=20000

# followed COMMAND...: with memshim, its ledger in $dir; output, errors and report are kept.
followed() {
    rm -f "$report"
    env LD_LIBRARY_PATH="$TEST_SIM" MEMSHIM_MODE=track MEMSHIM_DIR="$dir" MEMSHIM_REPORT="$report" \
        LD_PRELOAD="$TEST_LIB${AFTER:+:$AFTER}" "$@" >"$TEST_TMP/out" 2>"$TEST_TMP/err"
    echo $? >"$TEST_TMP/status"
}

# goes_on NAME PATTERN: the program came to its end, one line says why, the report is whole and true.
goes_on() {
    try "$1: the program ends as always" sh -c 'grep -q "^0$" "$1/status" && grep -q "^done$" "$1/out"' sh "$TEST_TMP"
    try "$1: one line says so" sh -c 'cat "$1/err"; test "$(wc -l <"$1/err")" -eq 1 && grep -q "$2" "$1/err"' sh "$TEST_TMP" "$2"
    report "$1: the report is whole" "live == $count * 512 and r['run']['complete'] and r['overhead']['dropped_events'] == 0"
    try "$1: it is valid" "$TEST_VALID" "$report"
}

dir=$TEST_TMP/missing
followed "$many" $count
goes_on "a directory that is not there" "missing: No such file"

dir=$TEST_TMP/file
: >"$dir"
followed "$many" $count
goes_on "a file in its place" "file: Not a directory"

dir=$TEST_TMP/limited
mkdir "$dir"
count=80000 # more than the report, which has the largest 10,000
followed bash -c 'ulimit -f 3600; exec "$@"' bash "$many" $count
goes_on "a limit on the size of files" "cannot grow: File too large"
try "... and the ledger is gone with its report" sh -c '! ls -A "$1" | grep -v "^memshim-share-" | grep .' sh "$dir"
followed bash -c 'ulimit -f 3600; "$@" & until grep -q done "$0"; do sleep 0.05; done; kill -KILL $!' "$TEST_TMP/out" "$many" $count 20000
"$TEST_BIN" recover -f -o "$report" "$dir"/*.ledger >"$TEST_TMP/said" 2>&1
report "... killed, what was in the file is recovered, and it says that there was more" \
    "0 < live < $count * 512 and not r['run']['complete'] and 'in the process' in r['diagnostics'][-1]"
try "... which is a valid report" "$TEST_VALID" "$report"
count=20000

dir=$TEST_TMP/tiny
mkdir "$dir"
followed sh -c "ulimit -f 8; exec \"\$@\"" sh "$many" 1
try "a limit too small for any ledger: the program ends as always" grep -q '^done$' "$TEST_TMP/out"
try "... and nothing is left" sh -c '! ls -A "$1" | grep -v "^memshim-share-" | grep .' sh "$dir"

# What is named like the ledger to come: exec keeps process number and start time.
dir=$TEST_TMP/planted
mkdir "$dir"
echo precious >"$TEST_TMP/victim"
# shellcheck disable=SC2016
followed sh -c 'ln -s "$1" "$2/memshim-$$-$(cut -d" " -f22 /proc/$$/stat).ledger"; shift 2; exec "$@"' sh \
    "$TEST_TMP/victim" "$dir" "$many" $count
try "a symbolic link in its place: the program ends as always" grep -q '^done$' "$TEST_TMP/out"
try "... what it points to is untouched" grep -qx precious "$TEST_TMP/victim"
try "... and so is the link" sh -c 'test -L "$(echo "$1"/memshim-*.ledger)"' sh "$dir"

dir=$TEST_TMP/network
mkdir "$dir"
AFTER=$top_builddir/tests/ledger/fakefs.so followed "$many" $count
goes_on "a network file system" "is on NFS"

# Its own file systems, where that is permitted.
if [ "$(id -u)" -eq 0 ] && unshare -m sh -c "mount -t tmpfs -o size=2m tmpfs '$TEST_TMP/tiny'" 2>/dev/null; then
    dir=$TEST_TMP/tiny
    # shellcheck disable=SC2016
    followed unshare -m sh -c 'mount -t tmpfs -o size=2m tmpfs "$1"; shift; exec "$@"' sh "$dir" "$many" $count
    goes_on "a small disk" "cannot grow: No space left"
    # shellcheck disable=SC2016
    followed unshare -m sh -c 'mount -t tmpfs -o ro tmpfs "$1"; shift; exec "$@"' sh "$dir" "$many" $count
    goes_on "a read-only file system" "Read-only file system"
else
    for fact in 1 2 3 4 5 6 7 8; do skip "a small disk, a read-only file system ($fact)" "mounting is not permitted"; done
fi
