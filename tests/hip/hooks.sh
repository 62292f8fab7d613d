# HIP under memshim: every call is recorded once, by its name and on its device; what a program sees is what it sees without.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"
. "$top_srcdir/tests/hip/real.sh"

plan 77
programs=$top_builddir/tests/hip
parts='all(sum(d[p].values()) == d[b] for d in r["devices"] for p, b in (("reserved_parts", "reserved_bytes"), ("peak_parts", "peak_reserved_bytes")))'

for version in 5 6 7; do
    for mode in track pool; do
        MODE=$mode shimmed "$programs/conform_$version" >"$TEST_TMP/said" 2>&1
        test $? = 0 && ! grep -q '^not ok' "$TEST_TMP/said"
        check "version $version under MEMSHIM_MODE=$mode: every fact holds" $?
        grep '^not ok' "$TEST_TMP/said" | sed 's/^/# /'
        try "... and the report is sound" "$TEST_VALID" "$report"
    done
done
MODE=track shimmed "$programs/conform_6" >/dev/null 2>&1
report "a function that is reached by hipGetProcAddress is recorded as well" \
    'r["coverage"]["routes"]["get_proc_address"] == 1 and apis["hipMalloc"]["calls"] - apis["hipMalloc"]["failures"] == 10'
report "what was freed is live no more" 'live == 0 and not r["leaks"] and r["coverage"]["unseen_frees"] == 0'
report "the device is HIP's" '[(d["api"], d["index"], d["name"]) for d in r["devices"]] == [("hip", 0, "Simulated HIP device")]'

shimmed MEMSIM_COST=memset=100000000 "$programs/execution" >"$TEST_TMP/execution" 2>&1
printf 'a stream: 0, going on\na stream that has ended: 0, done\na stream of a context: 0, done\n' >"$TEST_TMP/wanted"
same "a free waits for a block of a pool, and for any once there is a stream of an execution context" "$TEST_TMP/wanted" "$TEST_TMP/execution"
report "... and the report says why" 'sum("execution context" in line for line in r["diagnostics"]) == 1 and (r["pools"][0]["free_waits"], r["pools"][0]["device_waits"]) == (0, 2)'
export MEMSIM_DEVICES=2
both "two versions in one process, opened for themselves alone" "$programs/hooks" two_versions
report "each calls its own library, and one block is left" 'live == 12288 and apis["hipMalloc"]["calls"] == 3 and apis["hipFree"]["calls"] == 1 and r["coverage"]["routes"]["dlsym"] >= 4'
# Each copy of the library has memory of its own here and knows of no other, unless MEMSIM_LEDGER has them share the device.
report "of which neither tells all that is in use: that is no balance" \
    '[line for line in r["diagnostics"] if "more is held of device 0" in line] and max(b["in_use_bytes"] for b in r["balances"] if b["moment"] != "end") == 2 << 20'
mkdir "$TEST_TMP/books"
MEMSIM_LEDGER=$TEST_TMP/books both "the same where the libraries share the device" "$programs/hooks" two_versions
report "each byte is in the balance" \
    '[(b["in_use_bytes"], b["confidence"]) for b in r["balances"] if b["moment"] == "latest"] == [(4 << 20, "exact")] and not r["diagnostics"]'
both "memory of two devices" "$programs/hooks" devices
report "each on its own" '[(d["index"], d["live_bytes"], d["peak_live_bytes"]) for d in r["devices"]] == [(0, 1 << 20, 1 << 20), (1, 0, 2 << 20)]'
unset MEMSIM_DEVICES

native "$programs/probe" >"$TEST_TMP/native" 2>&1
shimmed "$programs/probe" >"$TEST_TMP/shimmed" 2>&1
same "who probes for hipMalloc without a library finds none" "$TEST_TMP/native" "$TEST_TMP/shimmed"
said "as it should be" 'hipMalloc is not there'
both "with the library it is there" "$programs/hooks" probe
said "as it should be" 'hipMalloc is there'

both "CUDA and HIP in one process" "$programs/hooks" both
report "are two devices of one report" \
    '[(d["api"], d["index"], d["live_bytes"]) for d in r["devices"]] == [("cuda", 0, 40 << 20), ("hip", 0, (2 << 20) + 3000)] and [p.get("device_api", "cuda") for p in r["pools"]] == ["cuda", "hip"]'
report "whose parts add up" "$parts and live == sum(s['live_bytes'] for s in r['sites'])"
try "... and which is sound" "$TEST_VALID" "$report"

both "a reset takes the device's memory along" "$programs/hooks" reset
report "and the report says so" '[f["rule"] for f in r["findings"] if f["rule"] == "context_died_with_blocks"] and live == 0'
both "a loop of allocations" "$programs/hooks" loop
report "needs the vendor in its first round alone" \
    'apis["hipMalloc"]["served"] == 160 and apis["hipFree"]["served"] == 160 and r["pools"][0]["vendor_allocs"] <= 8 and r["devices"][0]["vendor_calls_saved"] > 300'
both "memory that is freed behind a stream" "$programs/hooks" behind
report "waits there for it" 'apis["hipFreeAsync"]["served"] == 1 and live == 0'
MEMSIM_MEMORY=512M both "a device that is full" "$programs/hooks" full
said "says so" 'its error 2'
report "and what was kept is given back for what does not fit" 'r["oom"] and r["oom"][0]["device_api"] == "hip" and apis["hipMalloc"]["failures"] == 1'

shimmed "$programs/hooks" capture >"$TEST_TMP/said" 2>&1
test $? = 0 && ! grep -vq ' 0$\|^77$' "$TEST_TMP/said"
check "inside a capture memory comes from the pool and goes back to it, and the capture stays valid" $?
both "four threads, each on a stream of its own" "$programs/hooks" threads
said "find every byte as they left it" '^0 mistakes$'
report "and nothing is left" 'live == 0 and r["pools"][0]["vendor_allocs"] < apis["hipMalloc"]["calls"] / 4'
try "... and the report is sound" "$TEST_VALID" "$report"

both "streams that come and go" "$programs/hooks" streams
report "do not end the serving" 'apis["hipMalloc"]["served"] == 700 and apis["hipFree"]["served"] == 700 and live == 0'

for version in 5 7; do
    both "version $version: rows, flags, and what is said of blocks and of what was one" "$programs/answers_$version"
    report "rows and plain memory are served" \
        '[apis[n]["served"] for n in ("hipMallocPitch", "hipMemAllocPitch", "hipMalloc3D", "hipExtMallocWithFlags")] == [21, 18, 18, 3]'
    report "and nothing is left" 'live == 0'
done

REPORT=$TEST_TMP/ipc.%p.json both "memory of one process in another" "$programs/ipc"
said "a packed block is opened as any other, and only its bytes are" '^small: exported 0, opened 0, wrong 0, closed 0, changed 3000$'
said "a handle of an address inside a packed block is the block's" '^inside a small one: exported 0, opened 0, wrong 0, closed 0, changed 16$'
said "and so is one of a large block" '^inside a large one: exported 0, opened 0, wrong 0, closed 0, changed 16$'
REPORT=$TEST_TMP/strange.%p.json shimmed "$programs/ipc" strange >"$TEST_TMP/shimmed" 2>&1
said "an importer without memshim gets an error for a packed block" '^small: exported 0, opened 1, wrong -1, closed -1, changed 0$'
said "and a whole one as ever" '^large: exported 0, opened 0, wrong 0, closed 0, changed 41943040$'
REPORT=$TEST_TMP/strange.%p.json MEMSHIM_IPC=native shimmed "$programs/ipc" strange >"$TEST_TMP/shimmed" 2>&1
said "under MEMSHIM_IPC=native it gets both" '^small: exported 0, opened 0, wrong 0, closed 0, changed 3000$'

both "all vendors in one process" "$programs/hooks" all
report "have their devices in one report" \
    '[(d["api"], d["index"], d["live_bytes"] >> 20) for d in r["devices"]] == [("cuda", 0, 7), ("hip", 0, 12), ("acl", 0, 11)]'
report "whose parts add up" "$parts and live == sum(s['live_bytes'] for s in r['sites']) == sum(b['requested'] for s in r['segments'] for b in s['blocks'] if b['state'] == 'live')"
try "... and which is sound" "$TEST_VALID" "$report"

# The n-th call of the vendor's is refused: whoever is followed sees it, and the record holds what is there.
for function in hipMalloc hipFree; do
    for nth in 1 2 3; do
        MEMSIM_FAIL=$function@$nth=2 MEMSIM_DEVICES=2 MODE=track both "$function refuses its call number $nth" "$programs/hooks" devices
    done
done
for function in hipGetDevice hipMemGetAddressRange hipDeviceSynchronize hipPeekAtLastError; do
    MEMSIM_FAIL=$function@1+=719 shimmed "$programs/hooks" loop >"$TEST_TMP/said" 2>&1
    try "$function never answers: no crash, and a sound report" "$TEST_VALID" "$report"
done

# Without a device the real runtime refuses nearly everything, and so must whoever stands before it.
if [ -n "$hip_real" ] && [ -n "$TEST_SANITIZE" ]; then
    skip "the real runtime without a device answers as it does without memshim" "a plain interpreter cannot load a sanitizer's build"
    skip "and is the real one" "a plain interpreter cannot load a sanitizer's build"
elif [ -n "$hip_real" ]; then
    SIM_PATH=$hip_real both "the real runtime without a device answers as it does without memshim" /usr/bin/env python3 "$top_srcdir/tests/hip/no_device.py"
    said "and is the real one" 'hipRuntimeGetVersion 0 .* 5[0-9]{7}$'
else
    skip "the real runtime without a device answers as it does without memshim" "$hip_missing"
    skip "and is the real one" "$hip_missing"
fi
