# Calls of the runtime's that memshim answers in the runtime's own hook: the program sees what it sees natively, and
# each call is counted once.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"

plan 48
SIM_PATH=$TEST_SIM:$here
export MEMSIM_DEVICES=2

both "whichever device and context is current" "$here/direct" devices
report "every call is recorded under its name" 'apis["cudaMalloc"]["calls"] == 19 and apis["cudaFree"]["calls"] == 19'
both "errors are told, and remembered, by the runtime" "$here/direct" errors
both "another thread" "$here/direct" threads
both "a fork child" "$here/direct" children
both "with stacks off" MEMSHIM_STACKS=off "$here/direct" devices
both "and with the older runtime" "$here/direct12" devices
both "two runtimes of different versions in one thread, one of which goes and comes" "$here/direct" runtimes libcudart.so.12
both "... the other way round" "$here/direct12" runtimes libcudart.so.13
cp "$TEST_SIM/libcudart.so.13" "$TEST_TMP/copy.so"
both "two copies of one version" "$here/direct" runtimes "$TEST_TMP/copy.so"
both "beside a runtime that changes devices late, as before version 12" "$here/direct" runtimes "$here/libcudart.so.11.0"

# A block of the pool's is given and taken without the runtime: one question for each request, none for a free. Where the pool needs
# more memory, or has to wait, the runtime is called.
shimmed MEMSIM_COUNT=1 "$here/direct" count >"$TEST_TMP/shimmed" 2>&1
said "the driver is asked once in a pair" '^cuCtxGetCurrent 1[01][0-9]$'
report "and each pair is counted once" 'apis["cudaMalloc"]["calls"] == 104 and apis["cudaMalloc"]["served"] == 104 and apis["cudaFree"]["calls"] == 104 and live == 0'
shimmed MEMSIM_COUNT=1 "$here/direct" carve >"$TEST_TMP/shimmed" 2>&1
said "so is a block that is cut from what is free" '^cuCtxGetCurrent 1[0-9][0-9]$'
report "... and counted once" 'apis["cudaMalloc"]["calls"] == 104 and apis["cudaMalloc"]["served"] == 104 and apis["cudaFree"]["calls"] == 104 and live == 0'
# CUPTI's listeners hear of each call, so the runtime is asked each time once there is one, or may be one that cannot be seen. That the
# library is loaded, and its functions looked up, says nothing.
for way in "not 0" "looked-up-only 0"; do
    shimmed MEMSIM_COUNT=1 "$here/direct" listen "${way% *}" >"$TEST_TMP/shimmed" 2>&1
    said "CUPTI is loaded and nobody listens (${way% *}): the driver is asked once in a pair" '^cuCtxGetCurrent 1[01][0-9]$'
done
for way in "linked 0" "activity 0" "looked-up 0" "deep 0" "refused 1"; do
    if [ -n "$TEST_SANITIZE" ] && [ "$way" = "deep 0" ]; then
        for _ in 1 2; do skip "RTLD_DEEPBIND" "sanitizers refuse it"; done
        continue
    fi
    shimmed MEMSIM_COUNT=1 "$here/direct" listen "${way% *}" >"$TEST_TMP/shimmed" 2>&1
    said "somebody listens (${way% *}): the runtime is asked each time" '^cuCtxGetCurrent [2-9][0-9][0-9]$'
    said "... and the call is CUPTI's to answer" "^listens ${way#* }$"
done
shimmed MEMSIM_COUNT=1 MEMSHIM_FREE=strict "$here/direct" count >"$TEST_TMP/shimmed" 2>&1
said "under strict the runtime is asked each time" '^cuCtxGetCurrent [2-9][0-9][0-9]$'

# The same in the order of streams.
both "streams: whichever device and context is current" "$here/direct_stream" devices
report "streams: every call is recorded under its name" 'apis["cudaMallocAsync"]["calls"] == 66 and apis["cudaFreeAsync"]["calls"] == 106'
both "streams: errors are told, and remembered, by the runtime" "$here/direct_stream" errors
both "streams: what belongs into a graph" "$here/direct_stream" captures
both "streams: other threads, and blocks of the other kind" "$here/direct_stream" threads
both "streams: another current pool, another stream of the handle" "$here/direct_stream" changes
shimmed MEMSIM_COUNT=1 "$here/direct_stream" count >"$TEST_TMP/shimmed" 2>&1
said "streams: the driver is asked nothing" '^cuCtxGetCurrent [0-9]$'
report "streams: and each pair is counted once" 'apis["cudaMallocAsync"]["calls"] == 180 and apis["cudaMallocAsync"]["served"] == 180 and apis["cudaMallocFromPoolAsync"]["calls"] == 180 and apis["cudaFreeAsync"]["calls"] == 360 and live == 0'
shimmed MEMSIM_COUNT=1 MEMSHIM_FREE=strict "$here/direct_stream" count >"$TEST_TMP/shimmed" 2>&1
said "streams: under strict the runtime is asked each time" '^cuCtxGetCurrent [1-9][0-9][0-9]$'

# A handler's calls at each instruction of a call; a sanitizer's code is too long for that.
for call in malloc free async freeasync; do
    for handler in stream both; do
        if [ -n "${TEST_SANITIZE-}" ] || [ "$(uname -m)" != x86_64 ]; then
            skip "a signal at each instruction of $call, $handler" "x86-64 without a sanitizer alone"
        else
            shimmed "$here/stepped" $call $handler >"$TEST_TMP/shimmed" 2>&1
            said "a signal at each instruction of $call, $handler" ": many points, 0 failed$"
        fi
    done
done

# Whoever stands between hears of every call.
for order in "$preload:$here/libchain.so" "${sanitizer:+$sanitizer:}$here/libchain.so:$TEST_LIB"; do
    native_preload=${sanitizer:+$sanitizer:}$here/libchain.so
    env LD_PRELOAD="$native_preload" LD_LIBRARY_PATH="$SIM_PATH" "$here/chain_user" 50 >"$TEST_TMP/native" 2>/dev/null
    PRELOAD=$order shimmed "$here/chain_user" 50 >"$TEST_TMP/shimmed" 2>/dev/null
    same "another library that wraps cudaMalloc hears of each call: ${order##*/} last" "$TEST_TMP/native" "$TEST_TMP/shimmed"
done
report "... and each is counted" 'apis["cudaMalloc"]["calls"] == 50'
