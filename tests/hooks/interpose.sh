# Lookups, chains, plugins and constructors: each program prints the same natively and under memshim, and memshim saw
# what it should have. Run by the harness.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"

plan 48
SIM_PATH=$TEST_SIM:$here

both "a linked library between program and runtime is called once, and finds the next" "$here/chain_linked"
said "its own name is looked up past it" 'next cudaMalloc in libcudart.so.13'
report "one allocation is recorded" 'apis["cudaMalloc"]["calls"] == 1 and apis["cudaFree"]["calls"] == 1'
for order in "$preload:$here/libchain.so" "${sanitizer:+$sanitizer:}$here/libchain.so:$TEST_LIB"; do
    native_preload=${sanitizer:+$sanitizer:}$here/libchain.so
    env LD_PRELOAD="$native_preload" LD_LIBRARY_PATH="$SIM_PATH" "$here/chain_user" >"$TEST_TMP/native" 2>/dev/null
    PRELOAD=$order shimmed "$here/chain_user" >"$TEST_TMP/shimmed" 2>"$TEST_TMP/next"
    same "a preloaded library beside memshim: ${order##*/} last" "$TEST_TMP/native" "$TEST_TMP/shimmed"
    report "... and one allocation is recorded" 'apis["cudaMalloc"]["calls"] == 1'
done
try "before memshim it finds memshim next" grep -q 'next cudaMalloc in libmemshim.so' "$TEST_TMP/next"

both "names of interfaces that are not there stay absent" "$here/probe"
both "a runtime opened locally is absent to everyone else" "$here/probe" local libcudart.so.13
both "a runtime opened globally is there, and gone when closed" "$here/probe" global libcudart.so.13
both "locally, then globally" "$here/probe" local libcudart.so.12 global libcudart.so.13
shimmed "$here/probe" weak >"$TEST_TMP/shimmed" 2>&1
try "a function of HIP's without a library says: no device" grep -q '^hip 100$' "$TEST_TMP/shimmed"
try "one of NCCL's says: unhandled CUDA error" grep -q '^nccl 1$' "$TEST_TMP/shimmed"
try "a runtime function without a runtime says: insufficient driver" grep -q '^runtime 35$' "$TEST_TMP/shimmed"
try "a driver function without a driver says: no device" grep -q '^driver 100$' "$TEST_TMP/shimmed"
try "and touches nothing" grep -q '^outputs untouched: 1$' "$TEST_TMP/shimmed"
try "nor is a report written" test ! -e "$report"

both "dlsym, dlvsym, entry points and cuGetProcAddress by every way" "$here/lookups_user" libcudart.so.13
report "each way is seen" 'apis["cudaMalloc"]["calls"] == 2 and apis["cuMemAlloc_v2"]["calls"] >= 4'
report "... and counted by route" 'r["coverage"]["routes"]["dlsym"] > 0 and r["coverage"]["routes"]["get_proc_address"] > 0'
both "the same with the older runtime" "$here/lookups_user" libcudart.so.12
both "last error, refused calls and untouched outputs" "$here/last_error"

both "two runtimes in one process, opened locally" "$here/opener" "local=$here/module12.so" "local=$here/module13.so"
report "both are followed" 'apis["cudaMalloc"]["calls"] == 6 and live == 4096 + 8192'
both "... in the other order" "$here/opener" "local=$here/module13.so" "local=$here/module12.so"
both "... opened globally" "$here/opener" "global=$here/module12.so" "global=$here/module13.so"
report "both are followed when global" 'apis["cudaMalloc"]["calls"] == 6 and live == 4096 + 8192'
env LD_LIBRARY_PATH="$SIM_PATH" LD_PRELOAD="$sanitizer $here/module12.so $here/module13.so" "$here/opener" \
    "local=$here/module12.so" "local=$here/module13.so" >"$TEST_TMP/native" 2>&1
PRELOAD="$preload:$here/module12.so:$here/module13.so" shimmed "$here/opener" \
    "local=$here/module12.so" "local=$here/module13.so" >"$TEST_TMP/shimmed" 2>&1
same "... linked from the start" "$TEST_TMP/native" "$TEST_TMP/shimmed"
report "both are followed when linked" 'apis["cudaMalloc"]["calls"] == 6 and live == 4096 + 8192'

both "a library that is unloaded and loaded again, forty times at another address" \
    "$here/reloader" "$here/plain/libcuda.so.1" cuMemAlloc_v2 40
said "it did move" '40 of 40 allocations, at 40 places'
report "is followed to the last time" 'apis["cuMemAlloc_v2"]["calls"] == 40'

out_of_sight() {
    both "RTLD_DEEPBIND changes nothing for the program" "$here/opener" "deepbind=$here/module13.so"
    report "and is named as a blind spot" 'any("module13.so" in b and "DEEPBIND" in b.upper() for b in r["coverage"]["blind_spots"])'
    both "nor does a second namespace" "$here/opener" "local=$here/module12.so" "namespace=$here/module13.so"
    report "which is named as well" 'any("module13.so" in b for b in r["coverage"]["blind_spots"])'
    both "alone in a second namespace" "$here/opener" "namespace=$here/module13.so"
    report "it is named even though nothing else was seen" 'any("module13.so" in b for b in r["coverage"]["blind_spots"])'
    both "deepbind beside a plain one" "$here/opener" "deepbind=$here/module12.so" "local=$here/module13.so"
    report "the plain one is followed" 'apis["cudaMalloc"]["calls"] >= 3'
}
if [ -n "$TEST_SANITIZE" ]; then
    for _ in 1 2 3 4 5 6 7 8; do skip "RTLD_DEEPBIND and namespaces" "sanitizers refuse them"; done
else
    out_of_sight
fi

both "a constructor that allocates before memshim's own" "$here/early_linked"
report "its allocations are recorded" 'apis["cuMemAlloc_v2"]["calls"] == 4 and live == 2 * 5 << 12'
both "a constructor that allocates inside dlopen" "$here/early_opened" "$here/libearly.so"
report "those are recorded too" 'apis["cuMemAlloc_v2"]["calls"] == 4 and live == 2 * 5 << 12'
export EARLY_THREAD_FIRST=1
both "a thread that the constructor waits for makes the first call" "$here/early_linked"
both "a thread that it waits for with the loader's lock held" "$here/early_opened" "$here/libearly.so"
report "and is recorded" 'apis["cuMemAlloc_v2"]["calls"] == 4'
