# Whoever else lives in the process: sanitizers, other preloads, C++ modules, JSON libraries, another user's rights.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"

plan 23
SIM_PATH=$here/plain
export WITH_POOL=1
exports=$(nm -D --defined-only "$TEST_LIB" | awk '{print $3}')

try "memshim exports no unwinder" sh -c '! echo "$1" | grep -E "^_Unwind|^__register_frame|^unw_|^__gcc_personality"' sh "$exports"
try "memshim exports no JSON function" sh -c '! echo "$1" | grep -iE "json|hashtable_|strbuffer_|utf8_"' sh "$exports"

# C++ modules that are opened later throw through the host's own unwinder.
if [ -n "$TEST_SANITIZE" ]; then
    for fact in "exceptions" "libgcc_s" "caught" "recorded" "frame pointers"; do
        skip "$fact" "sanitizers replace the unwinder's entry points"
    done
elif command -v g++ >/dev/null && g++ -fPIC -shared -O1 -o "$TEST_TMP/throw_module.so" "$top_srcdir/tests/hooks/throw_module.cc"; then
    both "exceptions of a module that is opened later" "$here/exceptions" "$TEST_TMP/throw_module.so"
    said "they run through libgcc_s" 'after: _Unwind_RaiseException in libgcc_s.so.1'
    said "and are caught" '^caught 0 12$'
    report "the walk before and after is recorded" 'apis["cuMemAlloc_v2"]["calls"] == 2'
    export MEMSHIM_STACKS=fp
    both "a walk by frame pointers does not change that" "$here/exceptions" "$TEST_TMP/throw_module.so"
    unset MEMSHIM_STACKS
else
    for fact in "exceptions" "libgcc_s" "caught" "recorded" "frame pointers"; do skip "$fact" "no C++ compiler"; done
fi

# A host with its own functions under the names of JSON libraries, alone and with the libraries themselves.
both "a host with functions named like jansson's" "$here/json_host"
report "its report is whole" 'apis["cuMemAlloc_v2"]["calls"] == 1'
for library in libjson-c.so.5 libjansson.so.4; do
    if PRELOAD=$library shimmed true >/dev/null 2>"$TEST_TMP/err" && [ ! -s "$TEST_TMP/err" ]; then
        PRELOAD="$preload:$library" shimmed "$here/threads" errno >"$TEST_TMP/out" 2>&1
        check "beside $library" $?
        report "the report beside $library is whole" 'apis["cuMemAlloc_v2"]["calls"] >= 1'
    else
        skip "beside $library" "$library is not installed"
        skip "the report beside $library is whole" "$library is not installed"
    fi
done

# Sanitizers in the host. gcc's needs its library first; clang's is inside the program.
host() { # NAME COMPILER FLAG PRELOAD
    if [ -n "$TEST_SANITIZE" ]; then
        skip "$1" "this build has a sanitizer of its own"
    elif [ -n "${TEST_EMULATED-}" ]; then
        skip "$1" "$TEST_EMULATED has no ptrace and few addresses, which sanitizers need"
    elif ! command -v "$2" >/dev/null ||
        ! "$2" -g "$3" -D_GNU_SOURCE -I"$top_srcdir" -I"$top_srcdir/src" "$top_srcdir/tests/hooks/threads.c" \
            -o "$TEST_TMP/host" "$here/plain/libcuda.so.1" -pthread 2>/dev/null; then
        skip "$1" "$2 cannot build with $3"
    else
        native "$TEST_TMP/host" many-threads 1000 >"$TEST_TMP/native" 2>&1
        PRELOAD=$4 shimmed "$TEST_TMP/host" many-threads 1000 >"$TEST_TMP/shimmed" 2>&1
        same "$1" "$TEST_TMP/native" "$TEST_TMP/shimmed"
    fi
}
LIMIT=180 # a host under ThreadSanitizer takes seconds on a machine at rest
host "a host with gcc's AddressSanitizer" gcc -fsanitize=address "$(gcc -print-file-name=libasan.so):$TEST_LIB"
# memshim is not built with the sanitizer, which cannot see its locks then: TSAN_OPTIONS says to look at the host alone.
export TSAN_OPTIONS="$TSAN_OPTIONS:ignore_noninstrumented_modules=1"
host "a host with gcc's ThreadSanitizer" gcc -fsanitize=thread "$(gcc -print-file-name=libtsan.so):$TEST_LIB"
host "a host with gcc's UndefinedBehaviorSanitizer" gcc -fsanitize=undefined "$TEST_LIB"
host "a host with clang's AddressSanitizer" clang -fsanitize=address "$TEST_LIB"
host "a host with clang's ThreadSanitizer" clang -fsanitize=thread "$TEST_LIB"
LIMIT=30

# A program with more rights than its caller: nothing of memshim's may reach the disk. The loader drops a preload there,
# so the second program is linked with memshim.
secure_host() { # PROGRAM
    chmod 4755 "$1"
    (
        cd "$TEST_TMP/secure-out" || exit 1
        setpriv --reuid=65534 --regid=65534 --clear-groups env LD_LIBRARY_PATH="$TEST_TMP" MEMSHIM_LOG=debug \
            MEMSHIM_DIR="$TEST_TMP/secure-out" MEMSHIM_REPORT="$TEST_TMP/secure-out/%p.json" LD_PRELOAD="$TEST_TMP/libmemshim.so" "$1"
    ) >"$TEST_TMP/shimmed" 2>&1
    status=$?
    cat "$TEST_TMP/shimmed"
    [ $status -eq 0 ] && [ -z "$(ls -A "$TEST_TMP/secure-out")" ]
}
secure_build() {
    mkdir -p "$TEST_TMP/secure-out" && chmod 711 "$TEST_TMP" && chmod 777 "$TEST_TMP/secure-out" &&
        cp "$here/plain/libcuda.so.1" "$TEST_LIB" "$TEST_TMP/" &&
        $TEST_CC -I"$top_srcdir" -I"$top_srcdir/src" "$top_srcdir/tests/hooks/secure.c" -Wl,-rpath,"$TEST_TMP" \
            -L"$TEST_TMP" -l:libcuda.so.1 -o "$TEST_TMP/secure" &&
        $TEST_CC -I"$top_srcdir" -I"$top_srcdir/src" "$top_srcdir/tests/hooks/secure.c" -Wl,-rpath,"$TEST_TMP" \
            -L"$TEST_TMP" -Wl,--no-as-needed -l:libmemshim.so -l:libcuda.so.1 -o "$TEST_TMP/secure-linked"
}
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null || [ -n "$TEST_SANITIZE" ] || ! secure_build; then
    for fact in "a setuid program" "... marked as such" "one linked with memshim" "... marked as such" "... and silent"; do
        skip "$fact" "needs root, setpriv and a build without sanitizers"
    done
else
    try "a setuid program: no file appears" secure_host "$TEST_TMP/secure"
    try "... it ran, marked as such" grep -q '^secure 1, alloc 0$' "$TEST_TMP/shimmed"
    try "a setuid program that is linked with memshim: no file appears" secure_host "$TEST_TMP/secure-linked"
    try "... it ran, marked as such" grep -q '^secure 1, alloc 0$' "$TEST_TMP/shimmed"
    try "... and MEMSHIM_LOG is not obeyed" sh -c 'test "$(wc -l <"$TEST_TMP/shimmed")" -eq 1'
fi
