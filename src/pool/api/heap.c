/* heap.c - which context has which heap, and what becomes of it when the context ends.
 *
 * Heaps are never given back: one whose context died serves the next context that comes, in its next life. A
 * handle of the life before is told by the number of the life. The table is read without a lock and written
 * under the one below, which is taken with none of a heap's locks held or to be taken inside. */
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "pool/mapped/mapped.h"
#include "pool/api/internal.h"
#include "pool/stream/stream.h"

struct ms_heap *_Atomic ms_heaps[MS_HEAPS];
_Atomic uint32_t ms_heap_count;
struct ms_device ms_devices[MS_DEVICES_MAX];

static _Atomic uint32_t generation;
struct ms_lock ms_heap_table_lock = MS_LOCK_INIT(MS_RANK_POOL_TABLES);
MS_TLS struct ms_heap *ms_last_heap;

struct ms_heap *ms_heap_find(uint64_t context)
{
    uint32_t count = atomic_load_explicit(&ms_heap_count, memory_order_acquire);
    for (uint32_t i = 0; context && i < count; i++) {
        struct ms_heap *heap = atomic_load_explicit(&ms_heaps[i], memory_order_acquire);
        if (atomic_load_explicit(&heap->context, memory_order_acquire) == context) {
            ms_last_heap = heap;
            return heap;
        }
    }
    return NULL;
}

static void init_locks(struct ms_heap *heap)
{
    heap->fence.lock = (struct ms_lock)MS_LOCK_INIT(MS_RANK_POOL_FENCE);
    heap->lock = (struct ms_lock)MS_LOCK_INIT(MS_RANK_POOL_HEAP);
    for (int i = 0; i < MS_TCACHES; i++)
        heap->cache.tcaches[i].lock = (struct ms_bias)MS_BIAS_INIT(MS_RANK_POOL_TCACHE);
    heap->cache.lock = &heap->lock;
    heap->cache.extents = &heap->extents;
    heap->cache.fence = &heap->fence;
    heap->cache.pending_end = &heap->cache.pending;
    heap->source = &ms_source_context;
    heap->extents.rules = &ms_extent_rules;
    atomic_store_explicit(&heap->fence.time.now, 1, memory_order_relaxed);
}

/* Table locked. */
static struct ms_heap *unused_heap(void)
{
    uint32_t count = atomic_load_explicit(&ms_heap_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        struct ms_heap *heap = atomic_load_explicit(&ms_heaps[i], memory_order_relaxed);
        if (atomic_load_explicit(&heap->state, memory_order_acquire) == MS_HEAP_NONE)
            return heap;
    }
    struct ms_heap *heap = count < MS_HEAPS ? ms_arena_alloc(sizeof(*heap)) : NULL;
    if (!heap)
        return NULL;
    init_locks(heap);
    atomic_store_explicit(&ms_heaps[count], heap, memory_order_release);
    atomic_store_explicit(&ms_heap_count, count + 1, memory_order_release);
    return heap;
}

struct ms_heap *ms_heap_known(uint64_t context)
{
    struct ms_heap *heap = ms_heap_of(context);
    if (heap || !context || !ms_policy)
        return heap;
    ms_lock(&ms_heap_table_lock);
    heap = ms_heap_of(context);
    if (!heap && (heap = unused_heap()) != NULL) {
        atomic_store_explicit(&heap->state, MS_HEAP_BLANK, memory_order_release);
        atomic_store_explicit(&heap->context, context, memory_order_release);
    }
    ms_unlock(&ms_heap_table_lock);
    return heap;
}

static void set_sizes(struct ms_heap *heap, uint64_t total_bytes)
{
    heap->total_bytes = total_bytes;
    heap->keep_bytes = ms_policy->size_of('K', total_bytes);
    heap->single_min_bytes = ms_policy->size_of('S', total_bytes);
    if (heap->single_min_bytes < MS_PAGE_BYTES)
        heap->single_min_bytes = MS_PAGE_BYTES;
}

struct ms_heap *ms_heap_make(const struct ms_gpu *gpu, uint64_t context, int device)
{
    struct ms_gpu_description about;
    struct ms_heap *heap = ms_heap_known(context);
    if (!heap || device < 0 || device >= MS_DEVICES_MAX || !gpu->mem_alloc || !gpu->mem_free ||
        !gpu->event_query)
        return NULL;
    if (atomic_load_explicit(&heap->state, memory_order_acquire) != MS_HEAP_BLANK)
        return heap;
    ms_gpu_describe(gpu, device, &about);
    if (ms_policy->learn_limit)
        ms_policy->learn_limit(gpu, device);
    ms_lock(&heap->fence.lock);
    ms_lock(&heap->lock);
    if (atomic_load_explicit(&heap->state, memory_order_relaxed) == MS_HEAP_BLANK) {
        heap->gpu = gpu;
        heap->fence.at_once = ms_policy->free_rule == MS_POOL_IMMEDIATE;
        heap->source = gpu->free_is_sync ? &ms_source_device : &ms_source_context;
        heap->device = device;
        set_sizes(heap, about.total_bytes);
        ms_fence_timeline_begin(&heap->fence.time, gpu, context, MS_EVENTS_OF_CONTEXT);
        ms_backing_want(heap);
        atomic_store_explicit(&heap->state, MS_HEAP_SERVING, memory_order_release);
    }
    ms_unlock(&heap->lock);
    ms_unlock(&heap->fence.lock);
    return heap;
}

struct ms_heap *ms_heap_for_stream_arena(const struct ms_gpu *gpu, int device, struct ms_stream_arena *arena)
{
    struct ms_gpu_description about;
    ms_gpu_describe(gpu, device, &about);
    ms_lock(&ms_heap_table_lock);
    struct ms_heap *heap = unused_heap();
    if (heap) {
        heap->gpu = gpu;
        heap->device = device;
        heap->arena = arena;
        heap->source = &ms_source_pool;
        set_sizes(heap, about.total_bytes);
        atomic_store_explicit(&heap->preallocated, true,
                              memory_order_relaxed); /* nothing is, of a stream arena's */
        atomic_store_explicit(&heap->fence.time.reached, UINT64_MAX, memory_order_relaxed);
        atomic_store_explicit(&heap->state, MS_HEAP_STREAM_ARENA, memory_order_release);
    }
    ms_unlock(&ms_heap_table_lock);
    return heap;
}

uint64_t ms_heap_left(const struct ms_heap *heap)
{
    uint64_t reserved = atomic_load_explicit(&ms_devices[heap->device].reserved_bytes, memory_order_relaxed);
    uint64_t ceiling = atomic_load_explicit(&heap->ceiling_bytes, memory_order_relaxed);
    uint64_t most = ceiling && ceiling < heap->total_bytes ? ceiling : heap->total_bytes;
    uint64_t room = ms_quota_room(heap->device),
             idle = heap->arena ? ms_mempool_idle_counted(heap->device) : 0;
    return ms_least(most > reserved ? most - reserved : 0, room < UINT64_MAX - idle ? room + idle : room);
}

void ms_heap_lock_all(struct ms_heap *heap)
{
    if (ms_pool_is_stopped)
        return;
    for (int i = 0; i < MS_TCACHES; i++)
        ms_bias_lock_plainly(&heap->cache.tcaches[i].lock, MS_BIAS_TCACHE);
    ms_lock(&heap->lock);
}

void ms_heap_unlock_all(struct ms_heap *heap)
{
    if (ms_pool_is_stopped)
        return;
    ms_unlock(&heap->lock);
    for (int i = MS_TCACHES; i-- > 0;)
        ms_bias_unlock_plainly(&heap->cache.tcaches[i].lock);
}

/* All locks held. The batches go back to the tables, the blocks to nobody. */
static void clear(struct ms_heap *heap)
{
    for (int i = 0; i < MS_TCACHES; i++) {
        struct ms_tcache *tcache = &heap->cache.tcaches[i];
        for (int k = 0; k < MS_CLASSES; k++) {
            struct ms_magazine *m = &tcache->magazines[k];
            if (m->ready)
                ms_batch_drop(m->ready);
            if (m->freed)
                ms_batch_drop(m->freed);
            *m = (struct ms_magazine){0};
        }
        if (tcache->extents)
            ms_batch_drop(tcache->extents);
        tcache->extents = NULL;
        tcache->batches = 0;
        atomic_store_explicit(&tcache->requested, 0, memory_order_relaxed);
        atomic_store_explicit(&tcache->granted, 0, memory_order_relaxed);
        atomic_store_explicit(&tcache->allocs, 0, memory_order_relaxed);
        atomic_store_explicit(&tcache->frees, 0, memory_order_relaxed);
        tcache->unweighed = 0;
        for (int tier = 0; tier < MS_TIER_COUNT; tier++)
            atomic_store_explicit(&tcache->hits[tier], 0, memory_order_relaxed);
    }
    while (heap->cache.pending) {
        struct ms_batch *batch = heap->cache.pending;
        heap->cache.pending = batch->next;
        ms_batch_drop(batch);
    }
    heap->cache.pending_end = &heap->cache.pending;
    atomic_store_explicit(&heap->cache.with_batches, 0, memory_order_relaxed);
    atomic_store_explicit(&heap->cache.with_runs, 0, memory_order_relaxed);
    ms_extents_clear(&heap->extents);
    atomic_store_explicit(&heap->ceiling_bytes, 0, memory_order_relaxed);
    heap->reserved_bytes = heap->peak_reserved_bytes = 0;
    heap->budget = (struct ms_budget){0};
    atomic_store_explicit(&heap->pinned_bytes, 0, memory_order_relaxed);
    heap->peak_parts = (struct ms_parts){0};
    atomic_store_explicit(&heap->preallocated, false, memory_order_relaxed);
    atomic_store_explicit(&heap->known, false, memory_order_relaxed);
#define MS_COUNT(name, told, meaning) atomic_store_explicit(&heap->name, 0, memory_order_relaxed);
#include "base/store/figures.def"
}

void ms_heap_took(struct ms_heap *heap, uint64_t begin_ns)
{
    uint64_t now_ns = ms_clock_ns();

    if (now_ns > begin_ns)
        atomic_fetch_add_explicit(&heap->vendor_ns, now_ns - begin_ns, memory_order_relaxed);
}

struct ms_heap *ms_heap_next(uint32_t *next_p)
{
    while (*next_p < atomic_load_explicit(&ms_heap_count, memory_order_acquire)) {
        struct ms_heap *heap = atomic_load_explicit(&ms_heaps[(*next_p)++], memory_order_acquire);
        uint32_t state = atomic_load_explicit(&heap->state, memory_order_acquire);
        if (state != MS_HEAP_NONE && state != MS_HEAP_BLANK)
            return heap;
    }
    return NULL;
}

struct ms_live ms_heap_live(const struct ms_heap *heap)
{
    struct ms_live live = {0, 0};
    uint64_t tcaches = atomic_load_explicit(&ms_tcaches_met, memory_order_relaxed);
    for (uint64_t i = 0; i < tcaches; i++) {
        live.requested += atomic_load_explicit(&heap->cache.tcaches[i].requested, memory_order_relaxed);
        live.granted += atomic_load_explicit(&heap->cache.tcaches[i].granted, memory_order_relaxed);
    }
    return live;
}

struct ms_heap *ms_heap_ref(uint32_t *next_p, int device)
{
    while (*next_p < atomic_load_explicit(&ms_heap_count, memory_order_acquire)) {
        struct ms_heap *heap = atomic_load_explicit(&ms_heaps[(*next_p)++], memory_order_acquire);
        atomic_fetch_add(&heap->visitors, 1);
        if (atomic_load(&heap->state) == MS_HEAP_SERVING && heap->device == device)
            return heap;
        ms_heap_leave(heap);
    }
    return NULL;
}

void ms_heap_leave(struct ms_heap *heap)
{
    atomic_fetch_sub(&heap->visitors, 1);
}

void ms_heap_revoke(struct ms_heap *heap)
{
    for (unsigned i = 0; i < MS_TCACHES; i++)
        ms_bias_revoke_owner(&heap->cache.tcaches[i].lock);
}

void ms_heap_revoke_all(void)
{
    uint32_t count = atomic_load_explicit(&ms_heap_count, memory_order_seq_cst);
    for (uint32_t i = 0; i < count; i++) {
        struct ms_heap *heap = atomic_load_explicit(&ms_heaps[i], memory_order_acquire);
        if (heap)
            ms_heap_revoke(heap);
    }
}

void ms_pool_context_ending(uint64_t context)
{
    struct ms_heap *heap = ms_heap_of(context);
    uint32_t serving = MS_HEAP_SERVING;
    if (!heap)
        return;
    atomic_compare_exchange_strong(&heap->state, &serving, MS_HEAP_ENDING);
    ms_heap_revoke(heap);
    /* Somebody may be giving back memory of this context to make room for another's. That does not wait for
     * the device. */
    while (atomic_load(&heap->visitors))
        ms_clock_sleep(MS_HEAP_REF_SLEEP_NS);
}

/* All locks of the heap held. */
static struct ms_segment *heap_clear(struct ms_heap *heap)
{
    ms_figures_retire(heap);
    ms_backing_detach(heap);
    struct ms_segment *segments = ms_segment_detach_all(heap);
    clear(heap);
    /* Last: who finds its block as it was, after it has read the life, has read the one that is over. */
    atomic_fetch_add_explicit(&heap->life, 1, memory_order_release);
    return segments;
}

void ms_heap_lose(struct ms_heap *heap)
{
    ms_heap_lock_all(heap);
    struct ms_segment *segments = heap_clear(heap);
    atomic_store_explicit(&heap->preallocated, true, memory_order_relaxed);
    atomic_store_explicit(&heap->away_bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&heap->away_count, 0, memory_order_relaxed);
    ms_heap_unlock_all(heap);
    ms_segment_retire(heap, segments);
    ms_heap_revoke(heap);
}

static void bury(struct ms_heap *heap)
{
    ms_fence_forget(heap);
    ms_heap_lock_all(heap);
    struct ms_segment *segments = heap_clear(heap);
    atomic_store_explicit(&heap->failed_status, 0, memory_order_relaxed);
    ms_heap_unlock_all(heap);
    ms_segment_retire(heap, segments);
    ms_backing_retire(heap);
    atomic_store_explicit(&heap->context, 0, memory_order_release);
    atomic_store_explicit(&heap->state, MS_HEAP_NONE, memory_order_seq_cst);
    ms_heap_revoke(heap);
}

void ms_pool_context_ended(uint64_t context, bool dead)
{
    struct ms_heap *heap = ms_heap_of(context);
    uint32_t ending = MS_HEAP_ENDING;
    if (!heap)
        return;
    if (dead)
        bury(heap);
    else
        atomic_compare_exchange_strong(&heap->state, &ending, MS_HEAP_SERVING);
}

void ms_pool_stand_down(uint64_t context, const char *why)
{
    struct ms_heap *heap = ms_heap_known(context);
    if (heap && atomic_exchange(&heap->state, MS_HEAP_DOWN) != MS_HEAP_DOWN) {
        ms_heap_revoke(heap);
        ms_pool_note(why);
    }
}

uint32_t ms_heap_generation(void)
{
    return atomic_load_explicit(&generation, memory_order_relaxed);
}

static void heap_reset(void)
{
    ms_lock_reset(&ms_heap_table_lock);
    uint32_t count = atomic_load_explicit(&ms_heap_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        /* Locks may be held by threads that do not exist here, and other threads' records may be half
         * written: heaps are left where they are and new ones are made. */
        atomic_store_explicit(&ms_heaps[i], NULL, memory_order_relaxed);
    }
    atomic_store_explicit(&ms_heap_count, 0, memory_order_relaxed);
    memset(ms_devices, 0, sizeof(ms_devices));
    ms_last_heap = NULL;
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_POOL, heap_reset);
