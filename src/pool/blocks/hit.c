/* hit.c - see hit.h: the shortest way of a call, which touches the thread's own thread cache and shard and
 * nothing that others write.
 *
 * Floor 2. Takes the thread cache's lock and the shard's together, where both are this thread's own (bias.h),
 * and nothing else while it has them. So what others see under either lock is the state before or after: the
 * pool and the record change at once. All that could fail is looked at first, and is then left to the usual
 * way, which also says what there is at hand (ms_hit_learn). Nothing of the vendor's is called but, before a
 * request takes the locks, the question which context is current. A block that no magazine has, as none has
 * one without a class, is taken of the heap before that as well (fallback.c, which may record an event), and
 * is given in the usual way if it has to be; what a free leaves to be told to the pending list is told behind
 * the locks.
 *
 * What is at hand (base/thread/fast_cache.h) is good while both locks are this thread's own. So whoever ends
 * a context, or what is served of it, takes the thread caches' locks away, or says that they were
 * (ms_heap_revoke). */
#include "config.h"

#include "record/live/hit.h"
#include "pool/blocks/hit.h"
#include "pool/api/internal.h"
#include "pool/fence/pending.h"
#include "pool/space/address_cache.h"
#include "unwind/native/latest_stack.h"

/* The next call goes the usual way, and finds it anew. */
static bool hit_forget(struct ms_fast_cache *fast)
{
    fast->heap = NULL;
    return false;
}

/* Inside, all is what it was when it came to hand. */
static MS_INLINE bool hit_enter(struct ms_fast_cache *fast)
{
    return MS_LIKELY(ms_bias_enter_both(fast->own)) || hit_forget(fast);
}

/* The driver may leave something in errno; what else is done here does not. */
static MS_INLINE bool is_current(const struct ms_thread *me, const struct ms_gpu *gpu, uint64_t *context_p)
{
    int saved_errno = *me->errno_place;
    bool told = ms_gpu_context_told(gpu, context_p);
    *me->errno_place = saved_errno;
    return told && me->fast.context == *context_p;
}

static MS_INLINE ms_stack_id hit_stack_of(const struct ms_thread *me, const void *frame, const void *caller)
{
    ms_stack_id stack = ms_stack_again(me, frame, caller);
    return MS_LIKELY(stack) ? stack : ms_stack_capture(frame, caller);
}

/* The allocation that is asked for. */
struct request {
    uint64_t context, bytes;
    ms_stack_id stack;
    uint16_t api;
};

/* Inside: the record has the block, and its slot the record id; 0, and nothing has happened, where that
 * cannot be. */
static MS_INLINE uint32_t hit_give(struct ms_thread *me, const struct request *r, struct ms_slot *slot,
                                   uint64_t address, uint64_t now_ns)
{
    struct ms_tcache *tcache = me->fast.tcache;
    if (MS_UNLIKELY(tcache->serial == tcache->serial_end))
        return 0;
    uint32_t record_id =
        ms_ledger_hit_in(me->fast.shard, me->tid, address, r->bytes, r->context, r->api, now_ns);
    if (MS_LIKELY(record_id))
        ms_slot_activate(tcache, slot, r->bytes, slot->extent->slot_bytes, record_id);
    return record_id;
}

/* Inside: a block of the class of what is asked for. `slot_p`: NULL if no magazine has one. */
static MS_INLINE uint32_t hit_take(struct ms_thread *me, const struct request *r, uint64_t now_ns,
                                   struct ms_slot **slot_p, uint64_t *address_p)
{
    struct ms_tcache *tcache = me->fast.tcache;
    struct ms_batch *batch = tcache->magazines[ms_slab_class(r->bytes)].ready;
    *slot_p = NULL;
    if (MS_UNLIKELY(!batch || !batch->count))
        return 0;
    uint32_t left = batch->count - 1;
    struct ms_slot *slot = *slot_p = batch->items[left];
    if (MS_UNLIKELY(!ms_ledger_hit_site(me->fast.shard, r->stack, r->api)))
        return 0;
    uint32_t record_id = hit_give(me, r, slot, *address_p = ms_slot_address(slot), now_ns);
    if (MS_UNLIKELY(!record_id))
        return 0;
    batch->count = left;
    if (MS_LIKELY(left))
        __builtin_prefetch(batch->items[left - 1], 1); /* for the next request */
    ms_count(&tcache->hits[MS_TIER_SLAB], 1);
    return record_id;
}

/* A block that was taken of the heap: its record id, or 0. */
static MS_INLINE uint32_t give_taken(struct ms_thread *me, const struct request *r, struct ms_slot *slot,
                                     uint64_t address)
{
    struct ms_fast_cache *fast = &me->fast;
    uint64_t now_ns;
    if (MS_UNLIKELY(!ms_clock_own_ns(&fast->clock, &now_ns)))
        return hit_forget(fast);
    if (!hit_enter(fast))
        return 0;
    uint32_t record_id =
        ms_ledger_hit_site(fast->shard, r->stack, r->api) ? hit_give(me, r, slot, address, now_ns) : 0;
    if (MS_LIKELY(record_id))
        ms_count(&fast->tcache->hits[ms_tier_of(slot->extent)], 1);
    ms_bias_leave_both(fast->own);
    return record_id;
}

/* If give_taken cannot give the slot, pool and record follow one after the other, as in the usual way. */
static MS_NOINLINE uint64_t give_in_turn(struct ms_heap *heap, const struct request *r, struct ms_slot *slot)
{
    struct ms_pool_block given;
    ms_heap_give(heap, slot, r->bytes, &given);
    ms_pool_set_record_id(
        &given, ms_ledger_serve_plain(given.address, r->bytes, r->context, r->stack, given.device, r->api));
    return given.address;
}

/* Of what lies at hand in the heap, which is of this context. The driver may leave something in errno. */
static MS_NOINLINE uint64_t alloc_of_heap(struct ms_thread *me, uint64_t context, uint64_t bytes,
                                          ms_stack_id stack, uint16_t api)
{
    const struct request r = {context, bytes, stack, api};
    struct ms_heap *heap = me->fast.heap;
    int saved_errno = *me->errno_place;
    struct ms_slot *slot = ms_heap_slot_at_hand(heap, bytes);
    *me->errno_place = saved_errno;
    if (MS_UNLIKELY(!slot))
        return 0;
    uint64_t address = ms_slot_address(slot);
    ms_address_cache_fetch(address);
    uint32_t record_id = give_taken(me, &r, slot, address);
    if (MS_UNLIKELY(!record_id))
        return give_in_turn(heap, &r, slot);
    ms_address_cache_note(address, slot, record_id);
    return address;
}

/* Of a class, in the heap's context: out of the thread's magazine, or else of the heap. */
static MS_INLINE uint64_t alloc(struct ms_thread *me, const struct request *r)
{
    struct ms_fast_cache *fast = &me->fast;
    struct ms_slot *slot;
    uint64_t now_ns, address;
    if (MS_UNLIKELY(!ms_clock_own_ns(&fast->clock, &now_ns)))
        return hit_forget(fast);
    MS_KEEP(now_ns);
    if (!hit_enter(fast))
        return 0;
    uint32_t record_id = hit_take(me, r, now_ns, &slot, &address);
    ms_bias_leave_both(fast->own);
    if (MS_UNLIKELY(!record_id))
        return slot ? 0 : alloc_of_heap(me, r->context, r->bytes, r->stack, r->api);
    ms_address_cache_note(address, slot, record_id);
    return address;
}

static MS_INLINE bool may_take(void)
{
    return MS_LIKELY(!__atomic_load_n(&ms_policy->export_whole, __ATOMIC_RELAXED));
}

/* Without a class. */
static MS_NOINLINE uint64_t hit_run(struct ms_thread *me, const struct ms_gpu *gpu, uint64_t bytes,
                                    const void *frame, const void *caller, uint16_t api)
{
    uint64_t context;
    if (!may_take())
        return 0;
    if (MS_UNLIKELY(!is_current(me, gpu, &context)))
        return hit_forget(&me->fast);
    return alloc_of_heap(me, context, bytes, hit_stack_of(me, frame, caller), api);
}

/* True if the size has a class; 0 bytes have none. */
static MS_INLINE bool has_class(uint64_t bytes)
{
    return MS_LIKELY(bytes - 1 < MS_SLAB_MAX_BYTES);
}

uint64_t ms_hit_alloc(struct ms_thread *me, const struct ms_gpu *gpu, uint64_t bytes, const void *frame,
                      const void *caller, uint16_t api)
{
    uint64_t context;
    if (!has_class(bytes))
        return bytes ? hit_run(me, gpu, bytes, frame, caller, api) : 0;
    if (!may_take())
        return 0;
    if (MS_UNLIKELY(!is_current(me, gpu, &context)))
        return hit_forget(&me->fast);
    const struct request r = {context, bytes, hit_stack_of(me, frame, caller), api};
    return alloc(me, &r);
}

uint64_t ms_hit_alloc_in(struct ms_thread *me, uint64_t context, uint64_t bytes, ms_stack_id stack,
                         uint16_t api)
{
    const struct request r = {context, bytes, stack, api};
    if (!bytes || !may_take())
        return 0;
    if (MS_UNLIKELY(me->fast.context != context))
        return hit_forget(&me->fast);
    return has_class(bytes) ? alloc(me, &r) : alloc_of_heap(me, context, bytes, stack, api);
}

/* The extent of a live block, and its class, else NULL; without a lock. What is read of a slot here may be of
 * long ago, and its records in use for anything since, or cleared; its state word, which no other block ever
 * has, says that it is not, if it is still the same when it is exchanged. */
static MS_UNSYNCHRONIZED const struct ms_extent *run_of(const struct ms_slot *slot, uint64_t *state_word_p,
                                                        unsigned *class_p)
{
    uint64_t state_word = *state_word_p = atomic_load_explicit(&slot->state_word, memory_order_acquire);
    const struct ms_extent *extent = slot->extent;
    if (MS_UNLIKELY((state_word & MS_STATE_MASK) != MS_SLOT_LIVE))
        return NULL;
    *class_p = extent->class_index;
    return extent;
}

/* Inside: the batch that a block without a class goes into, which is of the epoch that is open. */
static MS_UNSYNCHRONIZED struct ms_batch *batch_of_extents(const struct ms_tcache *tcache,
                                                           const struct ms_extent *extent, uint64_t epoch)
{
    struct ms_batch *batch = tcache->extents;
    bool has_room = batch && (!batch->count || (batch->epoch == epoch && batch->count < MS_BATCH_ITEMS));
    return has_room && !extent->segment->release ? batch : NULL;
}

/* Inside: the batch that the block goes into, if that is all there is to do. No segment that holds blocks of
 * a class has to be released. */
static MS_UNSYNCHRONIZED_INLINE struct ms_batch *
batch_for(const struct ms_fast_cache *fast, const struct ms_slot *slot, const struct ms_extent *extent,
          unsigned class_index, uint64_t epoch, uint64_t address)
{
    const struct ms_tcache *tcache = fast->tcache;
    if (MS_UNLIKELY(extent->segment->heap != fast->heap ||
                    ms_extent_address(extent) + slot->index * extent->slot_bytes != address))
        return NULL;
    if (class_index >= MS_CLASSES)
        return batch_of_extents(tcache, extent, epoch);
    struct ms_batch *batch = tcache->magazines[class_index].freed;
    return MS_LIKELY(batch && batch->count < MS_BATCH_ITEMS) ? batch : NULL;
}

/* Inside, all of a free: the record has the block, its slot's state is exchanged, and both take it back. The
 * record id is a guess, too: of that row all is looked at. */
static MS_INLINE bool take_back(const struct ms_fast_cache *fast, struct ms_slot *slot,
                                const struct ms_extent *extent, unsigned class_index, uint64_t state_word,
                                uint32_t record_id, struct ms_block_row *row, uint64_t address,
                                uint64_t now_ns)
{
    struct ms_tcache *tcache = fast->tcache;
    uint64_t epoch = ms_fence_tag(&fast->heap->fence);
    struct ms_batch *batch = batch_for(fast, slot, extent, class_index, epoch, address);
    struct ms_site *site;
    if (MS_UNLIKELY(!batch || !ms_ledger_hit_row(fast->shard, row, address, now_ns, &site)))
        return false;
    if (MS_UNLIKELY(!atomic_compare_exchange_strong_explicit(&slot->state_word, &state_word,
                                                             (state_word & ~MS_STATE_MASK) | MS_SLOT_PENDING,
                                                             memory_order_seq_cst, memory_order_relaxed)))
        return false;
    ms_ledger_hit_out(fast->shard, record_id, row, site, now_ns);
    uint64_t bytes = extent->slot_bytes;
    ms_batch_add(batch, slot, epoch);
    if (class_index >= MS_CLASSES)
        ms_tcache_tell(&fast->heap->cache.with_runs, &fast->heap->cache, tcache);
    ms_count_down(&tcache->requested, atomic_load_explicit(&slot->requested, memory_order_relaxed));
    ms_count_down(&tcache->granted, bytes);
    ms_count(&tcache->frees, 1);
    tcache->unweighed += bytes;
    return true;
}

/* True if something may hold the block, or a capture is open. */
static MS_INLINE bool is_held(void)
{
    return MS_UNLIKELY(atomic_load_explicit(&ms_pin_count, memory_order_relaxed) |
                       (uint32_t)atomic_load_explicit(&ms_open_captures, memory_order_relaxed));
}

static MS_NOINLINE enum ms_hit free_run(struct ms_thread *me, uint64_t address, struct ms_slot *slot,
                                        struct ms_address_cache_set *set, unsigned way);

/* Frees the slot that the table has for the address, of a class or, where that is known, without one. */
static MS_INLINE enum ms_hit free_found(struct ms_thread *me, uint64_t address, struct ms_slot *slot,
                                        struct ms_address_cache_set *set, unsigned way, bool is_run)
{
    struct ms_fast_cache *fast = &me->fast;
    unsigned class_index;
    uint64_t now_ns, state_word, granted = 0, telling = 0;
    const struct ms_extent *extent = run_of(slot, &state_word, &class_index);
    if (!extent)
        return MS_HIT_NONE;
    if (MS_UNLIKELY(class_index >= MS_CLASSES) && !is_run)
        return free_run(me, address, slot, set, way);
    uint32_t record_id = atomic_load_explicit(&set->tickets[way], memory_order_relaxed);
    if (MS_UNLIKELY(!record_id))
        return MS_HIT_NONE;
    struct ms_block_row *row = ms_block_row_at(record_id - 1);
    __builtin_prefetch(row, 1);
    if (MS_UNLIKELY(!ms_clock_own_ns(&fast->clock, &now_ns))) {
        hit_forget(fast);
        return MS_HIT_NONE;
    }
    MS_KEEP(now_ns);
    if (!hit_enter(fast))
        return MS_HIT_NONE;
    bool done = take_back(fast, slot, extent, class_index, state_word, record_id, row, address, now_ns);
    if (MS_LIKELY(done)) {
        ms_address_cache_drop(set, way);
        if (MS_UNLIKELY((telling = ms_tcache_worth_telling(fast->tcache)) != 0))
            granted = extent->slot_bytes;
    }
    ms_bias_leave_both(fast->own);
    if (MS_UNLIKELY(telling) && ms_pending_count(fast->heap, granted, telling))
        return MS_HIT_PENDING;
    return done ? MS_HIT_DONE : MS_HIT_NONE;
}

static MS_NOINLINE enum ms_hit free_run(struct ms_thread *me, uint64_t address, struct ms_slot *slot,
                                        struct ms_address_cache_set *set, unsigned way)
{
    return free_found(me, address, slot, set, way, true);
}

enum ms_hit ms_hit_free(struct ms_thread *me, uint64_t address)
{
    unsigned way;
    struct ms_address_cache_set *set;
    struct ms_slot *slot = ms_address_cache_find(address, &set, &way);
    if (MS_UNLIKELY(!slot || is_held()))
        return MS_HIT_NONE;
    return free_found(me, address, slot, set, way, false);
}

bool ms_hit_look(struct ms_fast_cache *fast, struct ms_pool_wait *wait_p)
{
    struct ms_heap *heap = fast->heap;
    const struct ms_pool_block block = {.own_heap = heap,
                                        .own_life = atomic_load_explicit(&heap->life, memory_order_acquire)};
    return ms_pending_look(heap) && ms_pool_wait_begin(&block, wait_p);
}

/* True if a free in the heap waits for nothing, and nothing is filled, which never changes once it serves. */
static bool is_plain(const struct ms_heap *heap)
{
    return ms_policy->free_rule == MS_POOL_FENCE && !ms_policy->poison_free && !ms_policy->poison_alloc &&
           ms_policy->pack != MS_POOL_PACK_NONE && !heap->arena && heap->gpu->ctx_record_event &&
           heap->gpu->ctx_get_current;
}

void ms_hit_learn(struct ms_thread *me)
{
    struct ms_heap *heap = ms_last_heap;
    struct ms_fast_cache *fast = &me->fast;
    hit_forget(fast);
    if (!heap || !ms_last_tcache || ms_stack_sampling() || !is_plain(heap) || !ms_thread_id())
        return;
    fast->tcache = &heap->cache.tcaches[ms_last_tcache - 1];
    struct ms_bias *lock =
        ms_ledger_shard(atomic_load_explicit(&heap->device, memory_order_relaxed), &fast->shard);
    fast->own = ms_bias_pair(&fast->tcache->lock, lock);
    /* Asked behind that, since whoever changes it says so then. */
    if (!fast->own || atomic_load_explicit(&heap->state, memory_order_seq_cst) != MS_HEAP_SERVING ||
        !ms_ledger_hit_may_be(fast->shard))
        return;
    fast->context = atomic_load_explicit(&heap->context, memory_order_acquire);
    fast->counts = ms_counts_own;
    ms_ledger_clock(&fast->clock);
    fast->heap = heap;
}
