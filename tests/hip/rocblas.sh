# rocBLAS's four schemes of device memory and its stream-ordered option: equal results with and without memshim, and a report in which each
# scheme can be told. The calls are those of its handle (rocblas.c).
# shellcheck shell=sh source=tests/hooks/lib.sh
. "$top_srcdir/tests/hooks/lib.sh"

plan 26
program=$top_builddir/tests/hip/rocblas
export MEMSIM_MEMORY=1G

right() { said "... and every byte is right" ' 0 wrong bytes$'; }
sound() { try "... and the report is sound" "$TEST_VALID" "$report"; }

both "managed: the workspace grows with what is asked for" "$program" managed
right
report "managed: the report shows the first size and both that it grew to, in fewer calls of the vendor's" \
    'sorted({s["max_bytes"] >> 20 for s in r["sites"]}) == [0, 32, 80, 182] and apis["hipMalloc"]["served"] == 16 and r["devices"][0]["vendor_calls"] < 32 and live == 0'
sound
ROCBLAS_DEVICE_MEMORY_SIZE=67108864 both "preallocated: as large as the environment says, and never larger" "$program" preallocated
right
report "preallocated: one allocation, and a query makes none" \
    'apis["hipMalloc"]["calls"] == 2 and sorted(s["max_bytes"] for s in r["sites"]) == [32768, 64 << 20] and live == 0'
both "by hand: the size that was set, and managed again" "$program" by_hand
right
report "by hand: an allocation for each size that was set, and one that grew" \
    'apis["hipMalloc"]["calls"] == 5 and apis["hipFree"]["calls"] == 5 and apis["hipMalloc"]["failures"] == 0 and live == 0'
both "user-owned: the program's memory is used, and stays the program's" "$program" user_owned
right
report "user-owned: nobody but the program has memory at the end" 'apis["hipMalloc"]["calls"] == 3 and live == 0 and not r["leaks"]'
ROCBLAS_STREAM_ORDER_ALLOC=1 both "in stream order: streams are switched and nobody waits" "$program" ordered
right
report "in stream order: each operation has memory of its own, which the pool of the device's has back" \
    'apis["hipMallocAsync"]["calls"] == 14 and apis["hipFreeAsync"]["calls"] == 14 and r["devices"][0]["kinds"]["async"]["peak_live_bytes"] >= 32 << 20 and live == 0'
sound
ROCBLAS_STREAM_ORDER_ALLOC=1 ROCBLAS_DEVICE_MEMORY_SIZE=0 both "in stream order, of no size: the constructor fails as it does" "$program" ordered
said "since nothing cannot be freed in stream order" '^a handle +1$'
both "one workspace on two streams" "$program" switching
right
report "... is freed where it grows" 'apis["hipFree"]["calls"] == apis["hipMalloc"]["calls"] and live == 0'
MEMSIM_MEMORY=384M MEMSHIM_OOM_WAIT_MS=100 both "too little memory comes back as it should" "$program" little
right
said "and the handle goes on" '^3 MiB +0$'
report "the report says what was too much" '[o["requested"] for o in r["oom"]] == [(400 << 20) + (32 << 20), 400 << 20] or [o["requested"] >> 20 for o in r["oom"]] == [432, 400]'
