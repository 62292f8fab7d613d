# Programs that never touch a GPU do not notice: no output, no file, no thread, no library beyond libc; and the library
# exports what it hooks, what programs tell it of phases by, and nothing else. What it costs is printed, never judged.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"


[ -z "$TEST_SANITIZE" ] || skip_all "a sanitizer's library speaks, needs libraries and starts threads"
plan 15
work=$TEST_TMP/work
ledgers=$TEST_TMP/ledgers
mkdir "$work" "$ledgers"

# silent NAME PROGRAM...: same output and status, and no file in its directory or where a ledger would lie.
silent() {
    name=$1
    shift
    (cd "$work" && "$@") >"$TEST_TMP/native" 2>&1 </dev/null
    echo "exit $?" >>"$TEST_TMP/native"
    (cd "$work" && env LD_PRELOAD="$TEST_LIB" MEMSHIM_LOG=debug MEMSHIM_DIR="$ledgers" "$@") >"$TEST_TMP/shimmed" 2>&1 </dev/null
    echo "exit $?" >>"$TEST_TMP/shimmed"
    find "$work" "$ledgers" -mindepth 1 -printf 'left: %p\n' >>"$TEST_TMP/shimmed"
    same "$name" "$TEST_TMP/native" "$TEST_TMP/shimmed"
}

silent "bash" bash -c 'echo $((6 * 7)); ls /; exec true'
silent "sh with a pipeline" sh -c 'seq 3 | while read -r i; do echo $i; done; (exit 3)'
printf 'all:\n\t@echo made\n\t@sh -c "echo deeper"\n' >"$TEST_TMP/Makefile"
silent "make" make --no-print-directory -f "$TEST_TMP/Makefile"
silent "python3" python3 -c 'import json, os, threading, subprocess; print(len(os.listdir("/proc/self/task")), subprocess.check_output(["echo", "x"]))'
silent "ctypes does not find what is not there" python3 -c '
import ctypes
for name in ("cudaMalloc", "cuMemAlloc_v2", "hipMalloc", "roctxMarkA"):
    print(name, hasattr(ctypes.CDLL(None), name))'
silent "perl" perl -e 'print "perl ", fork() ? (wait(), "parent")[1] : exit(0), "\n"'
silent "a compiler" sh -c 'echo "int main(void){return 0;}" | cc -x c -c -o /dev/null -'
silent "threads and open files are as many as without" "$here/inert"
# strace would show even what is cleaned up again.
if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
    strace -f -o "$TEST_TMP/strace" -e trace=open,openat,creat,unlink,unlinkat,rename,renameat,mkdir,mkdirat,symlink,clone,clone3,socket,connect,timer_create,rt_sigaction,sigaltstack -E LD_PRELOAD="$TEST_LIB" \
        "$here/inert" >/dev/null 2>&1
    grep -v -e execve -e ld.so -e libmemshim.so -e 'libc.so' -e '/proc/self/task' -e '/proc/self/fd' -e exited "$TEST_TMP/strace" \
        >"$TEST_TMP/unexpected"
    try "it opens no file, starts no thread and installs no signal handler" sh -c '! grep . "$1"' sh "$TEST_TMP/unexpected"
else
    skip "it opens no file, starts no thread and installs no signal handler" \
        "${TEST_EMULATED:+$TEST_EMULATED has no ptrace: }strace is not installed or not permitted"
fi

needed=$(readelf -d "$TEST_LIB" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
try "it needs libc alone" sh -c 'echo "$1"; ! echo "$1" | grep -v -E "^(libc\.so\.6|ld-linux.*)$"' sh "$needed"
undefined=$(nm -D --undefined-only "$TEST_LIB" | awk '{print $2}')
try "it needs no vendor symbol" sh -c '! echo "$1" | grep -E "^(cu[A-Z]|cuda|__cuda|hip|nccl|acl)"' sh "$undefined"

# The exports are the rows that have wrappers, and the four functions of the loader. What MEMSHIM_USES hooks is exported under memshim's
# own names, to which the functions of libmemshim-uses.so jump.
exports_of() { # LIBRARY
    nm -D --defined-only "$1" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort -u
}
rows_of() { # FILE
    printf '#define MS_HOOK(result, symbol, ...) @ symbol\n#define MS_HOOK0(result, symbol, ...) @ symbol\n#define MS_PASS(...)\n#include "hooks/table/%s"\n' "$1" |
        $TEST_CC -E -P -I"$top_srcdir" -x c - | tr -s '@ ' '\n' | grep . | sort -u
}
rows_of cuda_uses.def >"$TEST_TMP/uses"
rows_of rows.def | comm -23 - "$TEST_TMP/uses" >"$TEST_TMP/rows"
sed 's/^/memshim_use_/' "$TEST_TMP/uses" | sort - "$TEST_TMP/rows" >"$TEST_TMP/wanted"
exports_of "$TEST_LIB" >"$TEST_TMP/exports"
exports_of "$top_builddir/libmemshim-uses.so" | grep -v -x memshim_uses_companion >"$TEST_TMP/companion"
try "there are more than 80 rows with wrappers" sh -c 'test "$(wc -l <"$TEST_TMP/rows")" -gt 80'
comm -23 "$TEST_TMP/wanted" "$TEST_TMP/exports" >"$TEST_TMP/missing"
try "every row with a wrapper is exported" sh -c '! grep . "$TEST_TMP/missing"'
comm -13 "$TEST_TMP/wanted" "$TEST_TMP/exports" | grep -v -x -E 'dlsym|dlvsym|dlopen|dlclose|dlmopen|_exit|_Exit|quick_exit|f?exec[a-z]*|abort|fork|vfork|memshim_phase_(push|pop|begin|end|mark)|memshim_pool|memshim_inner_(alloc|free)|InitializeInjectionNvtx(2|Extension)?|InitInjectionMstx' >"$TEST_TMP/extra"
try "nothing else is" sh -c '! grep . "$TEST_TMP/extra"'
try "what MEMSHIM_USES hooks is exported by libmemshim-uses.so, and nothing else" cmp "$TEST_TMP/uses" "$TEST_TMP/companion"

cost() { # PRELOAD: milliseconds for 100 starts of true
    begin=$(date +%s%N)
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        env LD_PRELOAD="$1" sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done'
    done
    echo $((($(date +%s%N) - begin) / 1000000))
}
without=$(cost "")
with=$(cost "$TEST_LIB")
echo "# 100 starts of a program: without memshim ${without} ms, with ${with} ms"
