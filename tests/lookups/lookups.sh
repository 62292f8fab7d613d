# The vendor's own runtimes, shared, static and NCCL's, make the same lookups with and without memshim and get the same
# statuses; the wrapped functions, all of them and no others, are answered with memshim's.
#
# Needs the CUDA toolkit, no GPU: a driver made on the spot answers the lookups and then says that there is no device.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"

[ -n "$TEST_CUDA_HOME" ] || skip_all "no CUDA toolkit was found when this tree was configured"
[ -z "$TEST_SANITIZE" ] || skip_all "a sanitizer's library stands before the logger"
[ -f "$TEST_CUDA_HOME/lib64/stubs/libcuda.so" ] || skip_all "the toolkit has no stub of the driver"
plan 31
source=$top_srcdir/tests/lookups
cd "$TEST_TMP" || exit 1
libraries=$TEST_CUDA_HOME/lib64

nm -D --defined-only "$libraries/stubs/libcuda.so" | awk '{print $3}' >driver-exports
nm -D --defined-only "$TEST_LIB" | awk '{print $3}' | grep '^cu[A-Z]' >wrapped
try "the driver is built" sh -c 'python3 "$1/gen_stub.py" "$2" driver-exports >stub.c &&
    $TEST_CC -w -shared -fPIC -Wl,-soname,libcuda.so.1 -o libcuda.so.1 stub.c' sh "$source" "$TEST_CUDA_HOME/include/cudaTypedefs.h"
try "the logger is built" $TEST_CC -O2 -D_GNU_SOURCE -shared -fPIC -o liblogger.so "$source/logger.c"
try "wrapped functions are known" sh -c 'test "$(wc -l <wrapped)" -gt 40'

$TEST_CC -x c "$source/app.cu" -I"$TEST_CUDA_HOME/include" -L"$libraries" -lcudart -o shared-app || exit 1
[ ! -f "$libraries/libnccl.so.2" ] || $TEST_CC "$source/nccl_app.c" -I"$TEST_CUDA_HOME/include" -L"$libraries" -l:libnccl.so.2 -o nccl-app
"$TEST_CUDA_HOME/bin/nvcc" -cudart static "$source/app.cu" -o static-app 2>nvcc.log || sed 's/^/# /' nvcc.log

run_app() { # LABEL PRELOAD PROGRAM: leaves LABEL.out, LABEL.asked (what the driver saw), LABEL.got (what was answered)
    rm -f "$1.asked" "$1.got"
    env LOOKUP_LOG="$1.asked" LOOKUP_ANSWERS="$1.got" LD_PRELOAD="$2" LD_LIBRARY_PATH="$TEST_TMP:$libraries" \
        MEMSHIM_MODE=track MEMSHIM_REPORT="$TEST_TMP/$1.json" timeout 60 "$3" >"$1.out" 2>&1
    echo "exit $?" >>"$1.out"
}

for kind in shared static nccl; do
    program=./$kind-app
    if [ ! -x "$program" ]; then
        for fact in 1 2 3 4 5 6 7 8 9; do skip "$kind: fact $fact" "the toolkit cannot build $program"; done
        continue
    fi
    run_app native "$TEST_TMP/liblogger.so" "$program"
    run_app with "$TEST_TMP/liblogger.so:$TEST_LIB" "$program"
    run_app alone "$TEST_LIB" "$program"
    same "$kind: the program sees no difference" native.out with.out
    same "$kind: nor without the logger" native.out alone.out
    try "$kind: 440 lookups are made" sh -c 'test "$(wc -l <native.asked)" -eq 440'
    for log in native with alone; do cut -d' ' -f1-5 $log.asked >$log.questions; done
    same "$kind: the driver is asked the same" native.questions with.questions
    try "$kind: memshim sees every one" sh -c 'test "$(grep -c " libmemshim.so$" alone.asked)" -eq 440'
    for log in native with; do cut -d' ' -f1-4 $log.got >$log.statuses; done
    same "$kind: every status is the same" native.statuses with.statuses
    # Join what was asked (with the name of the driver's function) and who owns the answer.
    sed 1d with.got | paste -d' ' with.asked - | awk '{print $5, $11}' >answers
    awk 'NR == FNR {wrapped[$1] = 1; next} wrapped[$1] && $2 != "libmemshim.so"' wrapped answers >escaped
    try "$kind: every wrapped function is answered with memshim's" sh -c '! grep . escaped'
    awk 'NR == FNR {wrapped[$1] = 1; next} !wrapped[$1] && $2 == "libmemshim.so"' wrapped answers >captured
    try "$kind: and no other" sh -c '! grep . captured'
    awk 'NR == FNR {wrapped[$1] = 1; next} wrapped[$1]' wrapped answers | sort -u >seen
    try "$kind: at least 25 wrapped functions are among them" sh -c 'test "$(wc -l <seen)" -ge 25'
done
# A driver from before cuGetProcAddress: the runtime asks dlsym for every name instead.
sed -e 's/^int cuGetProcAddress_v2(/int hidden_v2(/; s/^int cuGetProcAddress(/int hidden(/' \
    -e 's/(void \*)cuGetProcAddress_v2/(void *)hidden_v2/; s/(void \*)cuGetProcAddress,/(void *)hidden,/' stub.c >old.c
mkdir old
$TEST_CC -w -shared -fPIC -Wl,-soname,libcuda.so.1 -o old/libcuda.so.1 old.c || exit 1
for preload_list in "" "$TEST_LIB"; do
    env LD_LIBRARY_PATH="$TEST_TMP/old:$libraries" LD_PRELOAD="$preload_list" MEMSHIM_REPORT=none timeout 60 ./shared-app \
        >"old-${preload_list:+with}.out" 2>&1
done
same "an old driver, found by dlsym alone" old-.out old-with.out
