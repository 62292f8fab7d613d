/* idle_trim.c - what goes back when the program has rested.
 *
 * Nobody called memshim for a second (base/clock.h notices that), and the device has nothing to do: what is
 * kept for the next request is of little use to the program then, and may be of use to others. With the next
 * call that memshim sees no more stays than a quarter of live memory and 64 MiB, and what MEMSHIM_KEEP allows
 * where the program's user has set it: of all that is on a device together, what contexts have first, then
 * the stream arenas of its pools, then other libraries' buffers. A program that does so again and again asks
 * the vendor again each time, as it would without memshim, and once a second at the most.
 *
 * What of another vendor's is recycled whole (recycled.h) goes by the same amount, in a call of that vendor's
 * (hooks/serve/serve_handles.c). The release threshold of a pool is the program's own wish, and stays. No
 * lock is held where the vendor is called; what the device does is waited for no longer than a moment. */
#include "pool/mapped/mapped.h"
#include "pool/stream/stream_arena.h"
#include "pool/external/external.h"
#include "pool/api/internal.h"
#include "pool/stream/driver_frees.h"

uint64_t ms_pool_rest_allowance(uint64_t live)
{
    return live / MS_REST_SHARE + MS_REST_BYTES;
}

static uint64_t idle_trim_less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t cached_in(struct ms_heap *heap, uint64_t live)
{
    ms_lock(&heap->lock);
    uint64_t reserved = heap->reserved_bytes;
    ms_unlock(&heap->lock);
    return idle_trim_less(reserved, live);
}

static uint64_t used_of(const struct ms_mempool *pool)
{
    return atomic_load_explicit(&pool->used, memory_order_relaxed);
}

/* The bytes that may stay on the device. */
static uint64_t allowance(int device)
{
    struct ms_pool_figures buffers = {0};
    ms_external_add_figures(device, &buffers);
    uint64_t live = buffers.parts.requested + buffers.parts.rounding, keep = 0;
    struct ms_heap *heap;
    struct ms_mempool *pool;
    for (uint32_t i = 0; (heap = ms_heap_ref(&i, device)) != NULL;) {
        live += ms_heap_live(heap).requested;
        keep = ms_policy->keep_is_set ? heap->keep_bytes : 0;
        ms_heap_leave(heap);
    }
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        struct ms_stream_arena *arena = ms_mempool_arenas(pool);
        if (pool->device != device || !arena)
            continue;
        live += used_of(pool);
        keep = ms_policy->keep_is_set ? arena->heap->keep_bytes : 0;
    }
    return ms_pool_rest_allowance(live) + keep;
}

/* Returns what the heap still has of it. */
static uint64_t rest_heap(struct ms_heap *heap, uint64_t may)
{
    uint64_t live = ms_heap_live(heap).requested, cached = cached_in(heap, live);
    if (cached > may && heap->source->is_quiet(heap, MS_REST_MOMENT_NS)) {
        ms_tcache_flush(&heap->cache);
        ms_keep_give_back(heap, cached - may, true);
        cached = cached_in(heap, live);
    }
    return cached;
}

static uint64_t rest_pool(struct ms_mempool *pool, uint64_t may)
{
    uint64_t handle = atomic_load_explicit(&pool->handle, memory_order_acquire),
             threshold = atomic_load_explicit(&pool->threshold, memory_order_relaxed),
             held = atomic_load_explicit(&pool->held, memory_order_relaxed),
             cached = idle_trim_less(held, used_of(pool)), keep = handle && threshold > may ? threshold : may;
    if (cached <= keep || !ms_stream_arena_give_back(pool, cached - keep))
        return cached;
    held = atomic_load_explicit(&pool->held, memory_order_relaxed);
    ms_mempool_trim_to(pool, threshold > held ? threshold : held);
    return idle_trim_less(held, used_of(pool));
}

static void rest_device(int device)
{
    uint64_t may = allowance(device);
    struct ms_heap *heap;
    struct ms_mempool *pool;
    ms_driver_frees_settle(device);
    for (uint32_t i = 0; (heap = ms_heap_ref(&i, device)) != NULL;) {
        may = idle_trim_less(may, rest_heap(heap, may));
        ms_heap_leave(heap);
    }
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        if (pool->device == device && ms_mempool_arenas(pool))
            may = idle_trim_less(may, rest_pool(pool, may));
    }
    ms_external_trim(device, may);
}

void ms_pool_rested(void)
{
    bool on[MS_DEVICES_MAX] = {false};
    struct ms_heap *heap;
    for (uint32_t i = 0; (heap = ms_heap_next(&i)) != NULL;)
        on[atomic_load_explicit(&heap->device, memory_order_relaxed)] = true;
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        if (on[device])
            rest_device(device);
    }
}
