/* pool.c - the interface: requests, frees, and questions about addresses.
 *
 * The way of a hit: the thread's thread cache, a block from its magazine, its state word. The way of a free:
 * the page map, the extent, the state word, the magazine. A state word is exchanged at the first half of a
 * free, so that of two frees of one address one is refused, whoever comes first. Nothing is allocated here
 * but records of space/tables.c, and those not on a hit. */
#include "base/clock.h"
#include "pool/mapped/mapped.h"
#include "pool/stream/stream_arena.h"
#include "pool/external/external.h"
#include "pool/api/internal.h"
#include "pool/space/address_cache.h"
#include "pool/fence/wait.h"

MS_TLS uint64_t ms_pool_latest_address;

enum { SERIALS = 1 << 16, ADDRESS_BITS = 40 };

static void tell_of_sickness(struct ms_heap *heap)
{
    if (MS_UNLIKELY(atomic_load_explicit(&heap->failed_status, memory_order_relaxed)) &&
        atomic_exchange(&heap->failed_status, 0))
        ms_pool_note(
            "pool: a call to the driver failed with an error that stays; its context is not served any more");
}

/* The alignment of a block of `bytes` in this heap. In a range, only blocks that are made of whole pages gain
 * by lying on them; of memory of its pools the driver promises no more than a step. */
static MS_INLINE uint64_t align_of(const struct ms_heap *heap, uint64_t bytes)
{
    if (bytes < MS_PAGE_BYTES || heap->source->packed || ms_policy->pack == MS_POOL_PACK_ALL ||
        (ms_policy->vmm && bytes % MS_PAGE_BYTES))
        return MS_STEP_BYTES;
    return ms_policy->vmm ? MS_PAGE_BYTES : __atomic_load_n(&ms_policy->align_bytes, __ATOMIC_RELAXED);
}

/* The step that a block's length is a multiple of: no other block begins in the last 64 KiB of one that has
 * to be aligned, which whoever pins it for another device pins as a whole. */
static MS_INLINE uint64_t step_of(const struct ms_heap *heap, uint64_t bytes)
{
    return align_of(heap, bytes) == MS_STEP_BYTES || ms_policy->vmm ? MS_STEP_BYTES : MS_UNIT_BYTES;
}

/* False if the vendor should answer as it stands. */
static MS_INLINE bool request_of(const struct ms_heap *heap, uint64_t bytes, struct ms_request *request)
{
    bool whole = ms_heap_gives_whole(heap);
    if (MS_LIKELY(bytes <= MS_SLAB_MAX_BYTES && !whole)) {
        uint32_t class_index = ms_slab_class(bytes);
        *request = (struct ms_request){.requested = bytes,
                                       .granted = ms_slab_bytes(class_index),
                                       .align = MS_STEP_BYTES,
                                       .class_index = class_index};
        return true;
    }
    if (bytes >> ADDRESS_BITS || (whole && bytes < MS_PAGE_BYTES))
        return false; /* more than there can be; or small, where a granule for each would be a waste: the
                         vendor packs them itself */
    bool large = ms_policy->pack != MS_POOL_PACK_ALL && bytes >= heap->single_min_bytes &&
                 !heap->source->packed && !ms_backing_on(heap);
    bool single = whole || (large && __atomic_load_n(&ms_policy->large_whole, __ATOMIC_RELAXED));
    *request =
        (struct ms_request){.requested = bytes, .class_index = MS_NO_CLASS, .large = large, .single = single};
    request->granted = ms_round_up(bytes, single || large ? MS_PAGE_BYTES : step_of(heap, bytes));
    request->align = align_of(heap, request->granted);
    return true;
}

static MS_INLINE void pool_describe(const struct ms_slot *slot, struct ms_pool_block *b)
{
    const struct ms_extent *extent = slot->extent;
    const struct ms_segment *segment = extent->segment;
    struct ms_heap *heap = segment->heap;
    b->address = ms_slot_address(slot);
    b->requested = atomic_load_explicit(&slot->requested, memory_order_relaxed);
    b->granted = extent->slot_bytes;
    b->context = heap->context;
    b->device = heap->device;
    b->ordered = heap->arena != NULL;
    b->record_id = atomic_load_explicit(&slot->record_id, memory_order_relaxed);
    b->own_heap = heap;
    b->own_item = (uintptr_t)slot;
    b->own_life = atomic_load_explicit(&heap->life, memory_order_relaxed);
    b->pinned = b->in_order = b->over = false;
    b->segment_address = segment->address;
    b->segment_bytes = segment->bytes;
    b->tier = ms_tier_of(extent);
    b->id = atomic_load_explicit(&slot->state_word, memory_order_relaxed) >> MS_STATE_BITS;
    b->vmm = segment->backing != NULL;
    b->whole = !b->vmm && b->tier == MS_TIER_DEDICATED;
}

/* Thread cache locked: the slot becomes a live block. */
static MS_INLINE void activate(struct ms_tcache *tcache, struct ms_slot *slot, uint64_t requested,
                               uint64_t granted)
{
    if (MS_UNLIKELY(tcache->serial == tcache->serial_end)) {
        tcache->serial = ms_table_serials(SERIALS);
        tcache->serial_end = tcache->serial + SERIALS;
    }
    ms_slot_activate(tcache, slot, requested, granted, 0);
}

/* A slot out of a magazine becomes a live block. */
static MS_INLINE void bear_again(struct ms_tcache *tcache, struct ms_slot *slot,
                                 const struct ms_request *request)
{
    activate(tcache, slot, request->requested, request->granted);
    ms_count(&tcache->hits[MS_TIER_SLAB], 1);
}

static enum ms_pool_verdict alloc_slowly(struct ms_heap *heap, const struct ms_request *request,
                                         struct ms_pool_block *block_p, int *status_p)
{
    uint64_t misses = atomic_load_explicit(&heap->vendor_allocs, memory_order_relaxed);
    struct ms_slot *slot = ms_fallback_alloc(heap, request, status_p);
    ms_figures_arrived();
    tell_of_sickness(heap);
    if (!slot) {
        bool serving = atomic_load_explicit(&heap->state, memory_order_acquire) == MS_HEAP_SERVING;
        return serving ? MS_POOL_REFUSED : MS_POOL_PASSED;
    }
    bool hit = misses == atomic_load_explicit(&heap->vendor_allocs, memory_order_relaxed);
    struct ms_heap *home = slot->extent->segment->heap; /* a stream arena may have it of another */
    struct ms_tcache *tcache = ms_tcache_lock(&home->cache);
    enum ms_pool_tier tier = ms_tier_of(slot->extent);
    activate(tcache, slot, request->requested, slot->extent->slot_bytes);
    if (hit && home == heap)
        ms_count(&tcache->hits[tier], 1);
    pool_describe(slot, block_p);
    ms_tcache_unlock(tcache);
    if (MS_UNLIKELY(hit && home != heap)) { /* whose request it was */
        tcache = ms_tcache_lock(&heap->cache);
        ms_count(&tcache->hits[tier], 1);
        ms_tcache_unlock(tcache);
    }
    return MS_POOL_SERVED;
}

/* Thread cache locked: into the pending list. Returns what has gathered since the pending list was told, if
 * that is worth telling. */
static MS_INLINE uint64_t pool_put(struct ms_heap *heap, struct ms_tcache *tcache, struct ms_slot *slot,
                                   uint64_t bytes)
{
    ms_tcache_put(&heap->cache, tcache, slot);
    tcache->unweighed += bytes;
    return ms_tcache_worth_telling(tcache);
}

/* True if there is more pending than should be. */
static MS_NOINLINE bool weigh(const struct ms_pool_block *block, uint64_t bytes)
{
    return ms_pending_count(block->own_heap, block->granted, bytes) && ms_pending_poll(block->own_heap);
}

/* A dying block goes where freed ones go. False if its context has died meanwhile, and all its memory.
 * `weigh_p` is what the pending list has to be told of, mostly nothing. */
static MS_INLINE bool retire(const struct ms_pool_block *block, bool at_once, uint64_t *weigh_p)
{
    struct ms_heap *heap = block->own_heap;
    struct ms_slot *slot = (struct ms_slot *)(uintptr_t)block->own_item;
    struct ms_tcache *tcache = ms_tcache_lock(&heap->cache);
    bool alive = atomic_load_explicit(&heap->life, memory_order_acquire) == block->own_life;
    *weigh_p = 0;
    if (MS_LIKELY(alive)) {
        ms_tcache_count_out(tcache, block->requested, block->granted);
        if (MS_UNLIKELY(ms_pins_any()) && ms_pins_hold(heap, slot, block->address))
            ms_slot_set(slot, MS_SLOT_PINNED);
        else if (at_once)
            ms_tcache_put_ready(&heap->cache, tcache, slot);
        else
            *weigh_p = pool_put(heap, tcache, slot, block->granted);
    }
    ms_tcache_unlock(tcache);
    return alive;
}

/* No magazine has one: a magazine is filled, or a block carved, and that is all. */
static MS_NOINLINE enum ms_pool_verdict alloc_at_hand(struct ms_heap *heap, const struct ms_request *request,
                                                      struct ms_pool_block *block_p)
{
    struct ms_slot *slot = ms_fallback_at_hand(heap, request);
    tell_of_sickness(heap);
    if (!slot)
        return MS_POOL_PASSED;
    ms_heap_give(heap, slot, request->requested, block_p);
    return MS_POOL_SERVED;
}

enum ms_pool_verdict ms_heap_serve(struct ms_heap *heap, uint64_t bytes, enum ms_pool_how how,
                                   struct ms_pool_block *block_p, int *status_p)
{
    struct ms_request request;
    if (MS_UNLIKELY(!bytes || !request_of(heap, bytes, &request) || (how && ms_policy->poison_alloc)))
        return MS_POOL_PASSED;
    if (how && request.class_index == MS_NO_CLASS)
        return alloc_at_hand(heap, &request, block_p);
    struct ms_tcache *tcache = ms_tcache_lock(&heap->cache);
    struct ms_slot *slot = ms_tcache_take(&heap->cache, tcache, &request);
    enum ms_pool_verdict verdict = MS_POOL_SERVED;
    if (MS_LIKELY(slot != NULL)) {
        bear_again(tcache, slot, &request);
        pool_describe(slot, block_p);
        ms_tcache_unlock(tcache);
        ms_pool_latest_address = block_p->address;
    } else {
        ms_tcache_unlock(tcache);
        verdict =
            how ? alloc_at_hand(heap, &request, block_p) : alloc_slowly(heap, &request, block_p, status_p);
    }
    if (MS_UNLIKELY(ms_policy->poison_alloc && verdict == MS_POOL_SERVED && !heap->arena) &&
        !ms_poison_alloc(heap, block_p->address, block_p->granted)) {
        /* The fill is still to come: the block is nobody's before a fence has seen it, and the vendor
         * answers. */
        uint64_t unweighed;
        ms_slot_set((struct ms_slot *)(uintptr_t)block_p->own_item, MS_SLOT_RETIRING);
        if (retire(block_p, false, &unweighed) && unweighed)
            weigh(block_p, unweighed);
        verdict = MS_POOL_PASSED;
    }
    return verdict;
}

struct ms_slot *ms_heap_slot_at_hand(struct ms_heap *heap, uint64_t bytes)
{
    struct ms_request request;
    struct ms_slot *slot = request_of(heap, bytes, &request) ? ms_fallback_at_hand(heap, &request) : NULL;
    tell_of_sickness(heap);
    return slot;
}

void ms_heap_give(struct ms_heap *heap, struct ms_slot *slot, uint64_t requested,
                  struct ms_pool_block *block_p)
{
    struct ms_tcache *tcache = ms_tcache_lock(&heap->cache);
    activate(tcache, slot, requested, slot->extent->slot_bytes);
    ms_count(&tcache->hits[ms_tier_of(slot->extent)], 1);
    pool_describe(slot, block_p);
    ms_tcache_unlock(tcache);
    ms_pool_latest_address = block_p->address;
}

enum ms_pool_verdict ms_pool_alloc(const struct ms_gpu *gpu, uint64_t context, int device, uint64_t bytes,
                                   enum ms_pool_how how, struct ms_pool_block *block_p, int *status_p)
{
    struct ms_heap *heap = ms_heap_of(context);
    if (MS_UNLIKELY(!heap || atomic_load_explicit(&heap->state, memory_order_acquire) != MS_HEAP_SERVING)) {
        heap = bytes && context && !how ? ms_heap_make(gpu, context, device) : NULL;
        if (!heap || atomic_load_explicit(&heap->state, memory_order_acquire) != MS_HEAP_SERVING)
            return MS_POOL_PASSED;
    }
    return ms_heap_serve(heap, bytes, how, block_p, status_p);
}

void ms_pool_set_record_id(const struct ms_pool_block *block, uint32_t record_id)
{
    struct ms_slot *slot = (struct ms_slot *)(uintptr_t)block->own_item;
    atomic_store_explicit(&slot->record_id, record_id, memory_order_release);
    ms_address_cache_note(block->address, slot, record_id);
}

static MS_INLINE struct ms_segment *pool_segment_of(uint64_t address)
{
    struct ms_segment *segment = ms_page_segment(address);
    return segment && ms_segment_covers(segment, address) ? segment : NULL;
}

/* If a context is about to end, its memory is the driver's, and perhaps somebody else's, a moment before that
 * is known here. Whoever asks about it comes back then; but not for ever, since the end may wait for the
 * device. */
static MS_NOINLINE struct ms_segment *after_the_end(uint64_t address)
{
    uint64_t deadline = ms_clock_ns() + MS_ENDING_NS;
    struct ms_segment *segment;
    while ((segment = pool_segment_of(address)) != NULL && ms_clock_ns() < deadline &&
           atomic_load_explicit(&ms_segment_heap(segment)->state, memory_order_acquire) == MS_HEAP_ENDING)
        ms_clock_sleep(MS_ENDING_SLEEP_NS);
    return segment;
}

/* The one that the address is in for whoever does not hold the heap. */
static MS_INLINE struct ms_segment *segment_for(uint64_t address)
{
    struct ms_segment *segment = pool_segment_of(address);
    if (MS_UNLIKELY(segment && atomic_load_explicit(&ms_segment_heap(segment)->state, memory_order_acquire) ==
                                   MS_HEAP_ENDING))
        return after_the_end(address);
    return segment;
}

/* The extent that an address of a chunk lies in, if it is in use: what begins in the address's own unit and
 * before it, as the first byte of a block does; or else by the longer way. */
static MS_INLINE struct ms_extent *run_at(const struct ms_segment *segment, uint64_t address)
{
    uint64_t unit = 0;
    ms_unit *units = ms_segment_units(segment, address, &unit);
    struct ms_extent *extent = units ? atomic_load_explicit(&units[unit], memory_order_acquire) : NULL;
    return MS_LIKELY(extent && ms_extent_address(extent) <= address) ? extent
                                                                     : ms_extent_at(segment, address);
}

/* The slot that `address` lies in, whatever its state. */
static MS_INLINE struct ms_slot *slot_at(const struct ms_segment *segment, uint64_t address)
{
    struct ms_extent *extent =
        atomic_load_explicit(&segment->use, memory_order_acquire) == MS_SEGMENT_DEDICATED
            ? segment->first
            : run_at(segment, address);
    if (!extent || address - ms_extent_address(extent) >= ms_extent_bytes(extent))
        return NULL;
    if (extent->class_index == MS_NO_CLASS)
        return &extent->only;
    uint32_t count;
    struct ms_slot *slots = ms_span_slots(extent, &count);
    uint64_t index = ((address - ms_extent_address(extent)) / MS_STEP_BYTES * extent->span.reciprocal) >> 32;
    return index < count ? &slots[index] : NULL;
}

/* The slot of the live block that begins there, by the short way; or NULL. What the table says may be of long
 * ago, and its slot in use for anything since: a state word that stays the same while the rest is read is of
 * one block. */
static MS_UNSYNCHRONIZED struct ms_slot *near_slot(struct ms_slot *slot, const struct ms_segment *segment,
                                                   uint64_t address)
{
    if (!slot)
        return NULL;
    uint64_t state_word = atomic_load_explicit(&slot->state_word, memory_order_acquire);
    const struct ms_extent *extent = slot->extent;
    uint64_t index = slot->index;
    atomic_thread_fence(memory_order_acquire);
    if ((state_word & MS_STATE_MASK) != MS_SLOT_LIVE ||
        atomic_load_explicit(&slot->state_word, memory_order_relaxed) != state_word)
        return NULL;
    return extent->segment == segment && ms_extent_address(extent) + index * extent->slot_bytes == address
               ? slot
               : NULL;
}

uint32_t ms_pool_expect_free(uint64_t address)
{
    unsigned way;
    struct ms_address_cache_set *set;
    const struct ms_slot *slot = ms_address_cache_find(address, &set, &way);
    if (MS_LIKELY(slot != NULL)) {
        __builtin_prefetch(slot, 1);
        return atomic_load_explicit(&set->tickets[way], memory_order_relaxed);
    }
    const struct ms_segment *segment = pool_segment_of(address);
    slot = segment ? slot_at(segment, address) : NULL;
    return slot ? atomic_load_explicit(&slot->record_id, memory_order_relaxed) : 0;
}

/* As slot_at, where records may be changing: with the heap's lock. */
static struct ms_slot *slot_at_locked(struct ms_segment *segment, uint64_t address)
{
    struct ms_heap *heap = ms_segment_heap(segment);
    ms_lock(&heap->lock);
    bool is_there = pool_segment_of(address) == segment && ms_segment_heap(segment) == heap;
    struct ms_slot *slot = is_there ? slot_at(segment, address) : NULL;
    ms_unlock(&heap->lock);
    return slot;
}

/* The live block that begins there is no more: its state word from now on; 0 if there is none. */
static MS_INLINE uint64_t die(struct ms_slot *slot, uint64_t address)
{
    uint64_t state_word = atomic_load_explicit(&slot->state_word, memory_order_acquire),
             retiring = (state_word & ~MS_STATE_MASK) | MS_SLOT_RETIRING;
    return (state_word & MS_STATE_MASK) == MS_SLOT_LIVE && ms_slot_address(slot) == address &&
                   atomic_compare_exchange_strong_explicit(&slot->state_word, &state_word, retiring,
                                                           memory_order_seq_cst, memory_order_relaxed)
               ? retiring
               : 0;
}

/* True if what was read of a dying block is its own: its context may end meanwhile, and its records become
 * another's. */
static MS_INLINE bool is_still(const struct ms_slot *slot, uint64_t retiring)
{
    atomic_thread_fence(memory_order_acquire);
    return MS_LIKELY(atomic_load_explicit(&slot->state_word, memory_order_relaxed) == retiring);
}

/* Neither the driver is asked for an answer then, nor the device waited for: of a block that was given in the
 * order of a stream never, as long as nothing holds it. */
static MS_INLINE bool is_quick(const struct ms_heap *heap, enum ms_pool_how how)
{
    if (MS_UNLIKELY(ms_pins_any()) || (how == MS_POOL_AT_HAND_ORDERED) != (heap->arena != NULL))
        return false;
    return heap->arena || (ms_policy->free_rule == MS_POOL_FENCE && !ms_policy->poison_free &&
                           heap->gpu->ctx_record_event && !ms_fence_captured(heap) &&
                           atomic_load_explicit(&heap->state, memory_order_acquire) == MS_HEAP_SERVING);
}

enum ms_pool_verdict ms_pool_free_begin(uint64_t address, enum ms_pool_how how, struct ms_pool_block *block_p,
                                        int *status_p)
{
    struct ms_segment *segment = how ? pool_segment_of(address) : segment_for(address);
    if (!segment || (how && !is_quick(ms_segment_heap(segment), how)))
        return MS_POOL_PASSED;
    unsigned way = 0;
    struct ms_address_cache_set *set = NULL;
    struct ms_slot *slot = near_slot(ms_address_cache_find(address, &set, &way), segment, address);
    if (!slot)
        slot = slot_at(segment, address);
    uint64_t retiring = slot ? die(slot, address) : 0;
    if (MS_UNLIKELY(!retiring)) {
        if (how)
            return MS_POOL_PASSED;
        slot = slot_at_locked(segment, address);
        retiring = slot ? die(slot, address) : 0;
        if (!retiring) {
            *status_p = CUDA_ERROR_INVALID_VALUE;
            return MS_POOL_REFUSED;
        }
    }
    pool_describe(slot, block_p);
    if (set)
        ms_address_cache_drop(set, way);
    if (!is_still(slot, retiring))
        return MS_POOL_PASSED;
    if (MS_UNLIKELY(ms_pins_any()))
        block_p->pinned = ms_pins_of(address) > 0;
    return MS_POOL_SERVED;
}

/* A free in the order of a stream waits for nothing, whatever the rule: the vendor's does not. */
static bool must_wait(const struct ms_heap *heap, bool in_order)
{
    if (MS_UNLIKELY(in_order))
        return false;
    if (MS_UNLIKELY(ms_policy->free_rule != MS_POOL_FENCE))
        return ms_policy->free_rule == MS_POOL_STRICT;
    return MS_UNLIKELY(!heap->gpu->ctx_record_event && ms_fence_is_unreachable(&heap->fence));
}

/* MEMSHIM_POISON=free: filled before anybody can look. A block that is freed in stream order, or while
 * nothing can be waited for, is filled behind what was issued, where that can be told. Whether it is filled,
 * so that nothing is under way in it any more. */
static bool poison(struct ms_heap *heap, const struct ms_pool_block *block, int *status_p)
{
    bool waited = false;
    if (!block->in_order && ms_policy->free_rule != MS_POOL_IMMEDIATE && ms_wait_is_permitted(heap)) {
        *status_p = ms_wait_for_work(heap, &waited);
        tell_of_sickness(heap);
    }
    if (waited)
        return ms_poison_fill_freed(heap, block->address, block->granted);
    if (*status_p == CUDA_SUCCESS)
        ms_poison_free(heap, block->address, block->granted);
    return false;
}

/* A free without an order, of a block that a stream arena gave: it waits for the device, as the vendor's
 * does, for a stream that has ended may have work in the block. False while a capture is open, in which
 * nothing is waited for. */
static bool wait_behind_arena(struct ms_heap *heap, int *status_p)
{
    uint64_t context = atomic_load_explicit(&heap->arena->context, memory_order_relaxed);
    struct ms_heap *own = context ? ms_heap_make(heap->gpu, context, heap->device) : NULL;
    bool waited = false;
    if (own) {
        *status_p = ms_wait_for_work(own, &waited);
        tell_of_sickness(own);
    }
    return waited;
}

int ms_pool_free_end(struct ms_pool_block *block)
{
    struct ms_heap *heap = block->own_heap;
    int status = CUDA_SUCCESS;
    uint64_t unweighed;
    if (MS_UNLIKELY(heap->arena && !block->in_order && heap->gpu->free_is_sync &&
                    ms_policy->free_rule != MS_POOL_IMMEDIATE) &&
        !wait_behind_arena(heap, &status)) {
        ms_cross_free_behind_all(block);
        return status;
    }
    if (MS_UNLIKELY(heap->arena)) {
        retire(block, true, &unweighed);
        ms_stream_arena_count_free(heap->arena, block->requested);
        return status;
    }
    bool serving = atomic_load_explicit(&heap->state, memory_order_acquire) == MS_HEAP_SERVING;
    bool at_once = MS_UNLIKELY(ms_policy->poison_free && serving) && poison(heap, block, &status);
    if (MS_UNLIKELY(!retire(block, at_once, &unweighed)) || at_once)
        return status;
    if (MS_UNLIKELY(unweighed && serving && ms_policy->free_rule != MS_POOL_IMMEDIATE))
        block->over = weigh(block, unweighed) && !block->in_order;
    if (MS_UNLIKELY(serving && !ms_policy->poison_free && must_wait(heap, block->in_order))) {
        bool waited;
        status = ms_wait_for_work(heap, &waited);
        tell_of_sickness(heap);
    }
    return status;
}

bool ms_pool_find(uint64_t address, struct ms_pool_block *block_p)
{
    struct ms_segment *segment = segment_for(address);
    if (!segment)
        return false;
    struct ms_heap *heap = ms_segment_heap(segment);
    ms_lock(&heap->lock);
    bool is_there = pool_segment_of(address) == segment && ms_segment_heap(segment) == heap;
    struct ms_slot *slot = is_there ? slot_at(segment, address) : NULL;
    /* Blocks are born and die under other locks: a state word that stays the same is of one block. */
    uint64_t state_word = slot ? atomic_load_explicit(&slot->state_word, memory_order_acquire) : MS_SLOT_FREE;
    bool found = (state_word & MS_STATE_MASK) == MS_SLOT_LIVE;
    if (found) {
        pool_describe(slot, block_p);
        atomic_thread_fence(memory_order_acquire);
        found = atomic_load_explicit(&slot->state_word, memory_order_relaxed) == state_word;
    }
    ms_unlock(&heap->lock);
    if (found && ms_pins_any())
        block_p->pinned = ms_pins_of(block_p->address) > 0;
    return found;
}

bool ms_pool_owns(uint64_t address)
{
    return segment_for(address) != NULL;
}
