/* alloc.c - a request on the fast path.
 *
 * Floor 2.5. Takes the thread cache's lock and the shard's together, where both are this thread's own
 * (bias.h), and nothing else while it has them but the trace's, where there is one. So what others see under
 * either lock is the state before or after: the pool and the record change at once. All that could fail is
 * looked at first. Nothing of the vendor's is called but, before a request takes the locks, the question
 * which context is current; and none of that for a stream that the program has made. A block that no magazine
 * has, as none has one without a class, is taken of the heap before the locks (fallback.c, which may record
 * an event), and is given in two steps if it has to be. */
#include "fastpath/fastpath.h"
#include "fastpath/inside.h"
#include "fastpath/streams.h"
#include "pool/space/address_cache.h"
#include "unwind/native/latest_stack.h"

/* The allocation that is asked for: of a context, or in the order of a stream. */
struct request {
    uint64_t context, bytes, stream;
    ms_stack_id stack;
    uint16_t api;
    bool is_ordered;
};

static MS_INLINE ms_stack_id fast_stack_of(const struct ms_thread *me, const void *frame, const void *caller)
{
    ms_stack_id stack = ms_stack_again(me, frame, caller);
    return MS_LIKELY(stack) ? stack : ms_stack_capture(frame, caller);
}

/* True if the site is in the shard, whose latest it is then. */
static MS_INLINE bool record_site(struct ms_shard *shard, const struct request *r)
{
    uint64_t key = ms_site_key(r->stack, r->api, ms_fast_kind(r->is_ordered));
    return MS_LIKELY(shard->latest_key == key) || ms_shard_look_for_site(shard, key) != UINT32_MAX;
}

/* As ms_ledger_serve, of the shard's latest site; or 0, and nothing has happened, for want of a row or
 * room. */
static MS_INLINE uint32_t record_in(struct ms_shard *shard, uint32_t thread, uint64_t address,
                                    const struct request *r, uint64_t now_ns)
{
    const struct ms_arrival arrival = {.block = {.key = address,
                                                 .bytes = r->bytes,
                                                 .requested = r->bytes,
                                                 .context = r->context,
                                                 .stream = r->stream,
                                                 .thread = thread,
                                                 .api = r->api,
                                                 .space = MS_SPACE_ADDRESS,
                                                 .kind = ms_fast_kind(r->is_ordered),
                                                 .outlives_context = r->is_ordered},
                                       .now_ns = now_ns,
                                       .served = true};
    if (MS_UNLIKELY(shard->row->device.live_bytes + r->bytes > shard->charge)) {
        const struct ms_arrival copy = arrival; /* or all of it would lie in memory */
        return ms_ledger_rises(shard, &copy);
    }
    if (MS_UNLIKELY(!ms_totals_past_is_kept(shard, now_ns)))
        return 0;
    uint32_t record_id = shard->free_list;
    if (MS_UNLIKELY(!record_id))
        return 0;
    struct ms_block_row *row = ms_block_row_at(record_id - 1);
    struct ms_site *site = shard->latest_row;
    if (!site)
        __builtin_unreachable(); /* learn.c */
    shard->free_list = row->next;
    shard->is_active = true;
    ms_totals_in(shard, row, shard->latest_site, site, &arrival);
    if (ms_trace_wanted())
        ms_trace_put_alloc(record_id - 1, now_ns);
    return record_id;
}

/* Inside: the record has the block, and its slot the record id; 0, and nothing has happened, where that
 * cannot be. */
static MS_INLINE uint32_t fast_give(const struct ms_thread *me, const struct ms_fast_heap *at,
                                    const struct request *r, struct ms_slot *slot, uint64_t address,
                                    uint64_t now_ns)
{
    struct ms_tcache *tcache = at->tcache;
    if (MS_UNLIKELY(tcache->serial == tcache->serial_end))
        return 0;
    uint32_t record_id = record_in(at->shard, me->tid, address, r, now_ns);
    if (MS_LIKELY(record_id))
        ms_slot_activate(tcache, slot, r->bytes, slot->extent->slot_bytes, record_id);
    return record_id;
}

/* Inside: a block of the class of what is asked for. `slot_p`: NULL if no magazine has one. */
static MS_INLINE uint32_t fast_take(const struct ms_thread *me, const struct ms_fast_heap *at,
                                    const struct request *r, uint64_t now_ns, struct ms_slot **slot_p,
                                    uint64_t *address_p)
{
    struct ms_tcache *tcache = at->tcache;
    struct ms_batch *batch = tcache->magazines[ms_slab_class(r->bytes)].ready;
    *slot_p = NULL;
    if (MS_UNLIKELY(!batch || !batch->count))
        return 0;
    uint32_t left = batch->count - 1;
    struct ms_slot *slot = *slot_p = batch->items[left];
    if (MS_UNLIKELY(!record_site(at->shard, r)))
        return 0;
    uint32_t record_id = fast_give(me, at, r, slot, *address_p = ms_slot_address(slot), now_ns);
    if (MS_UNLIKELY(!record_id))
        return 0;
    batch->count = left;
    if (MS_LIKELY(left))
        __builtin_prefetch(batch->items[left - 1], 1); /* for the next request */
    ms_count(&tcache->hits[MS_TIER_SLAB], 1);
    return record_id;
}

/* A block that was taken of the heap: its record id, or 0. */
static MS_INLINE uint32_t give_taken(struct ms_thread *me, const struct ms_fast_heap *at,
                                     const struct request *r, struct ms_slot *slot, uint64_t address)
{
    uint64_t now_ns;
    if (MS_UNLIKELY(!ms_clock_own_ns(&me->fast.clock, &now_ns)))
        return fast_forget(&me->fast);
    if (!fast_enter(me))
        return 0;
    uint32_t record_id = record_site(at->shard, r) ? fast_give(me, at, r, slot, address, now_ns) : 0;
    if (MS_LIKELY(record_id))
        ms_count(&at->tcache->hits[ms_tier_of(slot->extent)], 1);
    fast_leave(me);
    return record_id;
}

/* If give_taken cannot give the slot, pool and record follow one after the other, as on the slow path. */
static MS_NOINLINE uint64_t give_in_turn(struct ms_heap *heap, const struct request *r, struct ms_slot *slot)
{
    struct ms_pool_block given;
    ms_heap_give(heap, slot, r->bytes, &given);
    const struct ms_block block = {.key = given.address,
                                   .bytes = r->bytes,
                                   .requested = r->bytes,
                                   .context = r->context,
                                   .stack = r->stack,
                                   .thread = ms_thread_id(),
                                   .device = (int16_t)given.device,
                                   .api = r->api,
                                   .space = MS_SPACE_ADDRESS,
                                   .kind = MS_KIND_DEVICE};
    ms_pool_set_record_id(&given, ms_ledger_serve(&block));
    return given.address;
}

/* Of what lies at hand in the heap, which is of this context. The driver may leave something in errno, and in
 * the thread's last error. */
static MS_NOINLINE uint64_t alloc_of_heap(struct ms_thread *me, uint64_t context, uint64_t bytes,
                                          ms_stack_id stack, uint16_t api)
{
    const struct request r = {.context = context, .bytes = bytes, .stack = stack, .api = api};
    const struct ms_fast_heap *at = &me->fast.of_context;
    struct ms_heap *heap = at->heap;
    int saved_errno = *me->errno_place, error = ms_gpu_error_before(heap->gpu);
    struct ms_slot *slot = ms_heap_slot_at_hand(heap, bytes);
    ms_gpu_error_rewind(heap->gpu, error);
    *me->errno_place = saved_errno;
    if (MS_UNLIKELY(!slot))
        return 0;
    uint64_t address = ms_slot_address(slot);
    ms_address_cache_fetch(address);
    uint32_t record_id = give_taken(me, at, &r, slot, address);
    if (MS_UNLIKELY(!record_id))
        return give_in_turn(heap, &r, slot);
    ms_address_cache_note(address, slot, record_id);
    return address;
}

/* Of a class, out of the thread's magazine. `empty_p`: whether that has none. */
static MS_INLINE uint64_t alloc_of_magazine(struct ms_thread *me, const struct ms_fast_heap *at,
                                            const struct request *r, bool *empty_p)
{
    struct ms_slot *slot;
    uint64_t now_ns, address;
    *empty_p = false;
    if (MS_UNLIKELY(!ms_clock_own_ns(&me->fast.clock, &now_ns)))
        return fast_forget(&me->fast);
    MS_KEEP(now_ns);
    if (!fast_enter(me))
        return 0;
    uint32_t record_id = fast_take(me, at, r, now_ns, &slot, &address);
    fast_leave(me);
    if (MS_UNLIKELY(!record_id)) {
        *empty_p = !slot;
        return 0;
    }
    ms_address_cache_note(address, slot, record_id);
    return address;
}

/* In the heap's context: out of the thread's magazine, or else of the heap. */
static MS_INLINE uint64_t alloc_of_class(struct ms_thread *me, const struct request *r)
{
    bool empty;
    uint64_t address = alloc_of_magazine(me, &me->fast.of_context, r, &empty);
    return MS_LIKELY(address || !empty) ? address : alloc_of_heap(me, r->context, r->bytes, r->stack, r->api);
}

static MS_INLINE bool may_take(void)
{
    return MS_LIKELY(!__atomic_load_n(&ms_policy->export_whole, __ATOMIC_RELAXED));
}

/* Without a class. */
static MS_NOINLINE uint64_t alloc_of_extents(struct ms_thread *me, const struct ms_gpu *gpu, uint64_t bytes,
                                             const void *frame, const void *caller, uint16_t api)
{
    if (!may_take())
        return 0;
    if (MS_UNLIKELY(!fast_is_current(me, gpu, me->fast.context)))
        return fast_forget(&me->fast);
    return alloc_of_heap(me, me->fast.context, bytes, fast_stack_of(me, frame, caller), api);
}

/* True if the size has a class; 0 bytes have none. */
static MS_INLINE bool has_class(uint64_t bytes)
{
    return MS_LIKELY(bytes - 1 < MS_SLAB_MAX_BYTES);
}

uint64_t ms_fast_alloc(struct ms_thread *me, const struct ms_gpu *gpu, uint64_t bytes, const void *frame,
                       const void *caller, uint16_t api)
{
    if (MS_UNLIKELY(!me->fast.of_context.heap))
        return 0;
    if (!has_class(bytes))
        return bytes ? alloc_of_extents(me, gpu, bytes, frame, caller, api) : 0;
    if (!may_take())
        return 0;
    if (MS_UNLIKELY(!fast_is_current(me, gpu, me->fast.context)))
        return fast_forget(&me->fast);
    const struct request r = {
        .context = me->fast.context, .bytes = bytes, .stack = fast_stack_of(me, frame, caller), .api = api};
    return alloc_of_class(me, &r);
}

uint64_t ms_fast_alloc_in(struct ms_thread *me, uint64_t context, uint64_t bytes, ms_stack_id stack,
                          uint16_t api)
{
    const struct request r = {.context = context, .bytes = bytes, .stack = stack, .api = api};
    if (!bytes || !may_take())
        return 0;
    if (MS_UNLIKELY(me->fast.context != context))
        return fast_forget(&me->fast);
    return has_class(bytes) ? alloc_of_class(me, &r) : alloc_of_heap(me, context, bytes, stack, api);
}

uint64_t ms_fast_alloc_ordered(struct ms_thread *me, const struct ms_gpu *gpu, struct ms_fast_order order,
                               uint64_t bytes, const void *frame, const void *caller, uint16_t api)
{
    const struct ms_fast_stream *of = has_class(bytes) ? ms_fast_stream_of(me, gpu, order.stream) : NULL;
    bool empty;
    if (MS_UNLIKELY(!of || of->pool != order.pool))
        return 0;
    ms_fast_stream_choose(me, of);
    const struct request r = {.context = of->at.heap->context,
                              .bytes = bytes,
                              .stream = order.stream,
                              .stack = fast_stack_of(me, frame, caller),
                              .api = api,
                              .is_ordered = true};
    uint64_t address = alloc_of_magazine(me, &of->at, &r, &empty);
    if (MS_LIKELY(address))
        ms_mempool_count_alloc(of->at.heap->arena->pool, bytes);
    return address;
}
