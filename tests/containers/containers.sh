# The recipes of docs/user/containers.md, as far as they go without a container engine: rooms of namespaces (room.sh) with a /dev/shm of
# 64 MB, a root that cannot be written to, another user and no /proc, each alone and all at once. A program in there ends as always,
# and there is the report, or one line that says why not. The installed tree was moved from where it was installed.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"

[ -z "$TEST_SANITIZE" ] || skip_all "a sanitizer's library cannot be preloaded into a plain program"
[ -x "$TEST_BIN" ] || skip_all "the memshim command is not built"
need unshare chroot mount
chmod 755 "$TEST_TMP"
room="sh $top_srcdir/tests/containers/room.sh"
$room --check -- 2>"$TEST_TMP/why" || skip_all "no namespaces here: $(tail -n 1 "$TEST_TMP/why")"
[ "$(id -u)" -eq 0 ] || skip_all "another user's rooms are made by root"

env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -C "$top_builddir" -s install prefix="$TEST_TMP/first" >"$TEST_TMP/install.log" 2>&1 ||
    sed 's/^/# /' "$TEST_TMP/install.log"
mv "$TEST_TMP/first" "$TEST_TMP/moved"
app=$TEST_TMP/app # the same place inside and outside, so that its lines are found from both
mkdir "$app"
cp "$top_builddir/tests/programs/training" "$top_builddir/tests/ledger/many" "$app"
LD_LIBRARY_PATH="$TEST_SIM" "$app/training" 3 >"$TEST_TMP/native"
recipes=$TEST_TMP/moved/share/memshim

# in_room OPTIONS... -- COMMAND...: memshim, the program and a volume for reports; what it says is in out and err, its status too.
in_room() {
    rm -rf "$TEST_TMP/reports"
    mkdir -m 1777 "$TEST_TMP/reports"
    $room --volume "$TEST_TMP/moved:/opt/memshim:ro" --volume "$app:$app:ro" --volume "$TEST_TMP/reports:/reports" "$@" \
        >"$TEST_TMP/out" 2>"$TEST_TMP/err"
    echo $? >"$TEST_TMP/status"
}

# by_hand OPTIONS...: the training program with memshim's library preloaded, no command; the report to the volume, or REPORT.
by_hand() {
    in_room "$@" -- env -u MEMSHIM_DIR LD_LIBRARY_PATH=/opt/memshim/lib/memshim/sim MEMSHIM_REPORT="${REPORT-/reports/%h.%p.json}" \
        LD_PRELOAD=/opt/memshim/lib/libmemshim.so "$app/training" 3
}

# as_always NAME: the program's output and status are those that it has natively.
as_always() {
    echo 0 | diff - "$TEST_TMP/status" >"$TEST_TMP/differs" 2>&1 && diff "$TEST_TMP/native" "$TEST_TMP/out" >>"$TEST_TMP/differs" 2>&1
    try "$1: the program ends as always" sh -c 'cat "$1/err" "$1/differs"; ! [ -s "$1/differs" ]' sh "$TEST_TMP"
}

# reported NAME [LINES]: a valid report with the program's leaks by name, in the volume, and so many lines of memshim's (none).
reported() {
    as_always "$1"
    try "$1: the report is whole and names the line" sh -c 'set -- "$1" "$2" "$3"/*.json; [ $# -eq 3 ] && "$1" validate "$3" &&
        "$1" leaks "$3" | tee /dev/stderr | grep -q "in save_checkpoint at .*training.c:[0-9]"' sh "$TEST_BIN" - "$TEST_TMP/reports"
    try "$1: memshim says ${2-nothing}" sh -c 'cat "$1/err"; test "$(wc -l <"$1/err")" -eq "$2"' sh "$TEST_TMP" "${2-0}"
}

# one_line NAME PATTERN: no report, and one line that says why.
one_line() {
    as_always "$1"
    try "$1: one line says why there is no report" sh -c 'cat "$1/err"; test "$(wc -l <"$1/err")" -eq 1 && grep -q "$2" "$1/err"' sh \
        "$TEST_TMP" "$2"
}

by_hand
reported "a /dev/shm of 64 MB"
by_hand --user 12345
reported "another user"
try "... whose file it is" sh -c 'test "$(stat -c "%u %a" "$1"/*)" = "12345 600" || { ls -l "$1"; false; }' sh "$TEST_TMP/reports"
by_hand --read-only
reported "a read-only root, reports to a volume"
by_hand --no-proc
reported "no /proc"
by_hand --user 12345 --read-only --no-proc
reported "all of it at once"
REPORT=memshim.%p.json by_hand --read-only
one_line "a read-only root and no volume" "memshim.*\.json.*Read-only file system"
REPORT=/nowhere/%p.json by_hand --user 12345
one_line "a directory that is not there" "/nowhere/.*\.json.*No such file"
REPORT=/etc/%p.json by_hand --user 12345
one_line "a directory that is another user's" "/etc/.*\.json.*Permission denied"

# The command inside the room: it finds its library and the simulator beside itself, and reads what it wrote.
for options in "" "--no-proc" "--read-only --user 12345"; do
    # shellcheck disable=SC2086
    in_room $options -- env -u MEMSHIM_DIR /opt/memshim/bin/memshim run --sim -q -o /reports/r.json -- "$app/training" 3
    reported "memshim run ${options:-in a room}"
done
in_room --no-proc -- sh -c 'cd /reports && /opt/memshim/bin/memshim run --sim -q -o r.json -- "$0/training" 3 >/dev/null &&
    /opt/memshim/bin/memshim summary r.json' "$app"
try "memshim summary without /proc" sh -c 'cat "$1/out" "$1/err"; grep -q "^Leak .* never freed" "$1/out"' sh "$TEST_TMP"

# Half of a small /dev/shm is others': a library that finds no room there ends its program.
in_room --shm 8m -- env -u MEMSHIM_DIR LD_LIBRARY_PATH=/opt/memshim/lib/memshim/sim MEMSHIM_REPORT=/reports/many.json MEMSHIM_MODE=track \
    LD_PRELOAD=/opt/memshim/lib/libmemshim.so sh -c '"$0/many" 60000 2000 >/reports/said & until grep -qs done /reports/said; do
        kill -0 $! || exit 9; sleep 0.05; done; df -k --output=avail /dev/shm | tail -n 1 >/reports/avail; wait $!' "$app"
try "half of a small /dev/shm is left to others" sh -c 'cat "$1/err" "$1/reports/avail"; test "$(cat "$1/reports/avail")" -ge 4096 &&
    test "$(cat "$1/reports/avail")" -lt 6000' sh "$TEST_TMP"
try "... one line says so" sh -c 'cat "$1/err"; test "$(wc -l <"$1/err")" -eq 1 && grep -q "cannot grow: No space left" "$1/err"' sh "$TEST_TMP"
try "... and the report is whole" sh -c 'set -- "$1/reports/many.json" "$2"; "$2" validate "$1" && "$2" summary "$1"' sh "$TEST_TMP" "$TEST_BIN"

# Slurm puts what a TaskProlog prints into each task's environment (`export`), or into its output (`print`).
task() { # RANK
    # shellcheck disable=SC2046
    env -u MEMSHIM_DIR SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_PROCID="$1" LD_LIBRARY_PATH="$TEST_SIM" \
        $("$recipes/slurm-task-prolog" | sed -n 's/^export //p') "$app/training" 3 >"$TEST_TMP/rank.$1" 2>&1
}
mkdir "$TEST_TMP/ranks"
export MEMSHIM_REPORT="$TEST_TMP/ranks/%h%R.%p.json"
for rank in 0 1 2 3; do task $rank; done
unset MEMSHIM_REPORT
try "Slurm: each task has its report, with its rank" python3 -c 'import glob, json, sys
found = sorted((r["run"]["rank"], r["run"]["world_size"], r["run"]["job_id"]) for r in (json.load(open(p)) for p in glob.glob(sys.argv[1] + "/*.json")))
print(found); sys.exit(found != [(n, 4, "7") for n in range(4)])' "$TEST_TMP/ranks"
try "Slurm: the tasks' output is theirs alone" sh -c 'for rank in 0 1 2 3; do diff "$1/native" "$1/rank.$rank" || exit 1; done' sh "$TEST_TMP"
try "Slurm: a job without MEMSHIM_REPORT is left alone" sh -c 'test -z "$("$1/slurm-task-prolog")"' sh "$recipes"

# Every program of the room, by /etc/ld.so.preload: none of them notices.
ordinary='for command in "id -u" "ls /opt" "sort /etc/passwd" "tar --version" "python3 -c print(sum(range(9)))" "sh -c exit\ 3" "expr 1 + 2"; do
        eval "$command" </dev/null 2>&1; echo $?; done; cat /etc/ld.so.preload >/dev/null 2>&1; ls /dev/shm'
in_room -- sh -c "$ordinary"
mv "$TEST_TMP/out" "$TEST_TMP/ordinary"
echo /opt/memshim/lib/libmemshim.so >"$TEST_TMP/ld.so.preload"
in_room --file "$TEST_TMP/ld.so.preload:/etc/ld.so.preload" -- sh -c "$ordinary"
try "/etc/ld.so.preload: no program notices" sh -c 'cat "$1/err"; diff "$1/ordinary" "$1/out" && test ! -s "$1/err" && ! ls -A "$1/reports" | grep .' sh "$TEST_TMP"
in_room --file "$TEST_TMP/ld.so.preload:/etc/ld.so.preload" -- env -u MEMSHIM_DIR LD_LIBRARY_PATH=/opt/memshim/lib/memshim/sim \
    MEMSHIM_REPORT=/reports/r.json "$app/training" 3
reported "/etc/ld.so.preload"

if python3 -c 'import yaml' 2>/dev/null; then
    report=$(LC_ALL=C.UTF-8 python3 -B "$top_srcdir/tests/containers/kubernetes.py" "$top_srcdir/packaging/containers/kubernetes.yaml" "$TEST_TMP/moved" \
        "$app/training" "$TEST_SIM" 2>"$TEST_TMP/err" | tail -n 1)
    try "kubernetes.yaml as it stands: the pod's report is in the volume, for its group" sh -c 'cat "$1/err"; test ! -s "$1/err" && "$2" validate "$3" &&
        test "$(stat -c %a "$3")" = 640' sh "$TEST_TMP" "$TEST_BIN" "$report"
else
    skip "kubernetes.yaml as it stands" "python3-yaml is not installed"
fi

modulecmd=$(ls /usr/lib/*/modulecmd.tcl /usr/lib/modulecmd.tcl /usr/share/modules/libexec/modulecmd.tcl 2>/dev/null | head -n 1)
if command -v tclsh8.6 >/dev/null 2>&1 && [ -n "$modulecmd" ]; then
    mkdir -p "$TEST_TMP/modules/memshim"
    ln -s "$recipes/modulefile" "$TEST_TMP/modules/memshim/9"
    MODULEPATH=$TEST_TMP/modules tclsh8.6 "$modulecmd" sh load memshim/9 >"$TEST_TMP/loaded" 2>"$TEST_TMP/err"
    # shellcheck disable=SC2016
    try "a module: memshim is found, nothing is preloaded" sh -c 'cat "$1/err" "$1/loaded"; . "$1/loaded" >/dev/null;
        test "$(command -v memshim)" = "$1/moved/bin/memshim" && test -z "${LD_PRELOAD-}" && memshim version' sh "$TEST_TMP"
else
    skip "a module: memshim is found, nothing is preloaded" "environment-modules is not installed"
fi
plan_said
