# Each policy of the pool has an effect that a program, or its report, can see. And where nothing is served the report says why.
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"

plan 70
program=$here/policies

# with NAME=VALUE... -- SCENARIO: the program under memshim; what it printed is in $TEST_TMP/said, what memshim said in $TEST_TMP/err.
with() {
    (
        while [ "$1" != -- ]; do
            export "${1?}"
            shift
        done
        shimmed "$program" "$2"
    ) >"$TEST_TMP/said" 2>"$TEST_TMP/err"
    status=$?
}
prints() { # NAME LINE: exit status 0, and that line
    if [ "$status" -eq 0 ] && grep -qx "$2" "$TEST_TMP/said"; then check "$1" 0; else
        check "$1" 1
        sed 's/^/# /' "$TEST_TMP/said" "$TEST_TMP/err"
    fi
}
tier='dict((b["requested"], s["tier"]) for s in r["segments"] for b in s["blocks"] if b["state"] == "live")'
parts='all(sum(d[p].values()) == d[b] for d in r["devices"] for p, b in (("reserved_parts", "reserved_bytes"), ("peak_parts", "peak_reserved_bytes")))'

# MEMSHIM_MODE
with -- one
report "pool: calls are served" 'apis["cudaMalloc"]["served"] == 2 and r["pools"][0]["kind"] == "sync" and r["devices"][0]["followed_bytes"] == 0'
report "pool: the parts add up" "$parts"
report "pool: what is live is requested" 'r["devices"][0]["reserved_parts"]["requested"] == 4096 + (4 << 20)'
MODE=track
with -- one
report "track: they are followed" 'apis["cudaMalloc"]["served"] == 0 and not r["pools"] and r["devices"][0]["followed_bytes"] == live and r["devices"][0]["reserved_bytes"] == 0'
MODE=pool

# MEMSHIM_LIMIT
with MEMSIM_MEMORY=128M -- fill
prints "without a limit the device is filled" "blocks 1[456]"
report "and the cause of its end is its capacity, or what is left of it" 'r["oom"][-1]["cause"] in ("capacity", "fragmentation")'
with MEMSIM_MEMORY=128M MEMSHIM_LIMIT=48M -- fill
prints "MEMSHIM_LIMIT=48M leaves six" "blocks [456]"
report "and is named as the cause" 'r["oom"][-1]["cause"] == "limit" and r["devices"][0]["peak_reserved_bytes"] <= 48 << 20'
with MEMSIM_MEMORY=128M MEMSHIM_LIMIT=50% -- fill
prints "MEMSHIM_LIMIT in percent of the device" "blocks [678]"

# MEMSHIM_PREALLOC
with -- one
report "nothing is taken in advance" 'r["devices"][0]["peak_reserved_bytes"] < 32 << 20'
with MEMSHIM_PREALLOC=64M -- one
report "MEMSHIM_PREALLOC=64M is taken at once" 'r["devices"][0]["reserved_bytes"] >= 64 << 20'
report "and shows as what it is" "$parts"' and r["devices"][0]["reserved_parts"]["requested"] == 4096 + (4 << 20)'

with MEMSIM_MEMORY=64M MEMSHIM_PREALLOC=1G -- one
report "MEMSHIM_PREALLOC that the device cannot give: the pool begins without it" 'r["devices"][0]["peak_reserved_bytes"] <= 64 << 20 and apis["cudaMalloc"]["served"] == 2'
try "and one line says so" grep -q 'MEMSHIM_PREALLOC: device 0 does not give 1.00 GiB' "$TEST_TMP/err"

# MEMSHIM_KEEP, MEMSHIM_MEMINFO
with MEMSHIM_MEMINFO=real MEMSHIM_KEEP=256M -- cached
prints "what is cached is in use, really" "free again 0"
with MEMSHIM_MEMINFO=adjusted MEMSHIM_KEEP=256M -- cached
prints "and free, as programs see it" "free again 1"
with MEMSHIM_MEMINFO=real MEMSHIM_KEEP=0 -- cached
prints "MEMSHIM_KEEP=0 gives it back when the program waits" "free again 1"
report "which is a trim" 'r["pools"][0]["trims"] >= 1 and r["devices"][0]["reserved_bytes"] < 48 << 20'

# MEMSHIM_SINGLE_MIN
with -- one
report "4 MiB are carved from a chunk" "${tier}[4 << 20] == 'run'"
with MEMSHIM_SINGLE_MIN=2M -- one
report "MEMSHIM_SINGLE_MIN=2M makes it an allocation of its own" "${tier}[4 << 20] == 'single' and ${tier}[4096] != 'single'"

with -- large
report "a large block comes out of a larger one that is vacant" "${tier}[20 << 20] == 'run'"
with MEMSHIM_SINGLE_MIN=16M -- large
report "where MEMSHIM_SINGLE_MIN is set, also to its default, it does not" "${tier}[20 << 20] == 'single'"
with -- exported
report "nor in a program that has exported something" "${tier}[20 << 20] == 'single'"

# MEMSHIM_PACK
with MEMSHIM_PACK=small -- layout
prints "small blocks share a chunk" "small ones are near"
prints "from 2 MiB on they are aligned" "and to 64 KiB 1"
prints "to no more than MEMSHIM_ALIGN says" "large ones are aligned 0"
with MEMSHIM_ALIGN=2M -- layout
prints "MEMSHIM_ALIGN=2M: to pages" "large ones are aligned 1"
for library in libcufile.so.0 libgdrapi.so.2; do
    cp "$top_builddir/tests/ipc/libmpi.so.40" "$TEST_TMP/$library"
    with PRELOAD="$preload:$TEST_TMP/$library" -- layout
    prints "beside $library by itself" "large ones are aligned 1"
done
with PRELOAD="$preload:$TEST_TMP/libcufile.so.0" MEMSHIM_ALIGN=64K -- layout
prints "but not where MEMSHIM_ALIGN is set" "large ones are aligned 0"
with MEMSHIM_IPC=emulate PRELOAD="$preload:$top_builddir/tests/ipc/libmpi.so.40" -- layout
prints "beside MPI too, where memory is packed all the same" "large ones are aligned 1"
with MEMSHIM_PACK=none -- layout
prints "MEMSHIM_PACK=none: aligned" "large ones are aligned 1"
report "MEMSHIM_PACK=none: each is an allocation of the vendor's, who packs the small ones" 'sorted(s["tier"] for s in r["segments"]) == 2 * ["followed"] + 8 * ["single"]'
with MEMSHIM_PACK=all -- layout
prints "MEMSHIM_PACK=all packs tighter" "large ones are aligned 0"

# MEMSHIM_FREE
with MEMSHIM_FREE=fence -- free-waits
prints "a free does not wait" "waited 0"
with MEMSHIM_FREE=strict -- free-waits
prints "MEMSHIM_FREE=strict: it does" "waited 1"
with MEMSHIM_FREE=fence -- again
prints "memory is not used again before its work is over" "used again 0"
report "it is in limbo meanwhile, as the timeline shows" 'max(r["timeline"]["devices"][0]["limbo"]) >= 64 * 4096 and r["devices"][0]["reserved_parts"]["limbo"] == 0'
with MEMSHIM_FREE=immediate -- again
prints "MEMSHIM_FREE=immediate: at once" "used again 1"
with MEMSHIM_FREE=ordered -- again
prints "MEMSHIM_FREE=ordered is withdrawn, and means fence" "used again 0"
report "which the report says" '[line for line in r["diagnostics"] if "MEMSHIM_FREE=ordered is withdrawn, and means fence" in line] and len([line for line in r["diagnostics"] if "ordered" in line]) == 1'
with MEMSHIM_BACKING=vmm -- one
report "MEMSHIM_BACKING=vmm: what is served is mapped by handle" 'apis["cudaMalloc"]["served"] == 2 and r["segments"] and all(s["backing"] == "vmm" for s in r["segments"])'
report "and adds up to what is reserved" 'sum(s["bytes"] for s in r["segments"]) == r["devices"][0]["reserved_bytes"]'
try "of which nobody has to be warned" sh -c '! grep -q "MEMSHIM_BACKING" "$1"' sh "$TEST_TMP/err"
with MEMSHIM_BACKING=vmm MEMSIM_FAIL=cuMemAddressReserve@1+=2 -- one
report "where the driver has no addresses it is malloc" 'apis["cudaMalloc"]["served"] == 2 and r["segments"] and all(s["backing"] == "malloc" for s in r["segments"])'
report "and the report says so" 'any("goes on as malloc" in d for d in r["diagnostics"])'
with MEMSHIM_BACKING=vmm MEMSIM_FAIL=cuMemMap@1=801 -- one
report "where it cannot map, that segment is an allocation" 'apis["cudaMalloc"]["served"] == 2 and any(s["backing"] == "malloc" for s in r["segments"])'
with MEMSIM_MEMORY=60M MEMSHIM_PREALLOC=58M MEMSHIM_OOM_WAIT_MS=0 -- scattered
prints "pieces of one allocation are no room for a large block" "status 2"
with MEMSIM_MEMORY=60M MEMSHIM_BACKING=vmm -- scattered
prints "MEMSHIM_BACKING=vmm: what is free is put together" "status 0"
prints "and no live block is touched" "wrong 0"

# MEMSHIM_OOM_WAIT_MS
with MEMSIM_MEMORY=64M MEMSHIM_OOM_WAIT_MS=10000 -- limbo
prints "out-of-memory waits for what was freed" "status 0"
with MEMSIM_MEMORY=64M MEMSHIM_OOM_WAIT_MS=0 -- limbo
prints "MEMSHIM_OOM_WAIT_MS=0: it does not" "status 2"
report "and the cause is limbo" 'r["oom"][-1]["cause"] == "limbo"'

# MEMSHIM_POISON
with MEMSHIM_POISON=off -- poison
prints "memory comes as it was left" "same 1 alloc 0 free 0"
with MEMSHIM_POISON=alloc -- poison
prints "MEMSHIM_POISON=alloc" "same [01] alloc 1 free 0"
with MEMSHIM_POISON=free -- poison
prints "MEMSHIM_POISON=free" "same 1 alloc 0 free 1"
with MEMSHIM_POISON=both -- poison
prints "MEMSHIM_POISON=both" "same [01] alloc 1 free 0"

# MEMSHIM_IPC
with MEMSHIM_IPC=emulate -- one
report "MEMSHIM_IPC=emulate packs" "${tier}[4 << 20] == 'run'"
with MEMSHIM_IPC=native -- one
report "MEMSHIM_IPC=native: each block is an allocation of the vendor's" "${tier}[4 << 20] == 'single' and ${tier}[4096] in ('single', 'followed')"

# Where nothing is served.
with CUDA_INJECTION64_PATH=/nowhere/tool.so -- one
report "beside an injected tool all is followed" 'apis["cudaMalloc"]["served"] == 0 and r["devices"][0]["reserved_bytes"] == 0'
try "one line says so" sh -c 'test "$(grep -c "CUDA_INJECTION64_PATH" "$1")" -eq 1' sh "$TEST_TMP/err"
with CUDA_MEMCHECK=1 -- one
report "beside cuda-gdb's memory checker too" 'apis["cudaMalloc"]["served"] == 0'
with MEMSIM_FAIL=cuMemAlloc_v2@1=999 -- one
report "a driver whose first allocation fails as none should is followed" 'apis["cudaMalloc"]["served"] == 0 and apis["cudaMalloc"]["failures"] == 0'
report "and the report says so" 'sum("not served any more" in line for line in r["diagnostics"]) == 1'
with MEMSIM_FAIL=cuMemGetAddressRange_v2@1=1 -- one
report "so is one that does not know its own allocation" 'apis["cudaMalloc"]["served"] == 0 and apis["cudaMalloc"]["failures"] == 0 and r["devices"][0]["reserved_bytes"] == 0'
report "and the report says why" 'sum("begins and ends" in line for line in r["diagnostics"]) == 1'
with MEMSIM_FAIL=cuMemAlloc_v2@1=2 -- one
report "no memory for the first is what the program hears" 'apis["cudaMalloc"]["failures"] == 1'
with MEMSIM_FAIL=cuCtxRecordEvent@1+=801 -- free-waits
prints "without a fence over a context the program runs" "waited [01]"
with -- one
try "and in the end no line is printed where all is well" sh -c 'test ! -s "$1"' sh "$TEST_TMP/err"
try "memshim validate accepts the report" "$TEST_VALID" "$report"
