/* hit.c - see hit.h: the shortest way of a call, which touches the thread's own lease and lane and nothing
 * that others write.
 *
 * Floor 2. Takes the lease's lock and the lane's together, where both are this thread's own (bias.h), and
 * nothing else while it has them. So what others see under either lock is the state before or after: the pool
 * and the record change at once. All that could fail is looked at first, and is then left to the usual way,
 * which also says what there is at hand (ms_hit_learn). Nothing of the vendor's is called but, before a
 * request takes the locks, the question which context is current. A block that no magazine has, as none has
 * one without a class, is taken of the heap before that as well (ladder.c, which may record an event), and is
 * given in the usual way if it has to be; what a free leaves to be told to limbo is told behind the locks.
 *
 * What is at hand (base/pass.h) is good while both locks are this thread's own. So whoever ends a context, or
 * what is served of it, takes the leases' locks away, or says that they were (ms_heap_part). */
#include "config.h"

#include "ledger/hit.h"
#include "pool/hit.h"
#include "pool/internal.h"
#include "pool/limbo.h"
#include "pool/space/near.h"
#include "stack/again.h"

/* The next call goes the usual way, and finds it anew. */
static bool forget(struct ms_pass *pass)
{
    pass->heap = NULL;
    return false;
}

/* Inside, all is what it was when it came to hand. */
static MS_INLINE bool enter(struct ms_pass *pass)
{
    return MS_LIKELY(ms_bias_enter_both(pass->own)) || forget(pass);
}

/* The driver may leave something in errno; what else is done here does not. */
static MS_INLINE bool is_current(const struct ms_thread *me, const struct ms_gpu *gpu, uint64_t *context_p)
{
    int saved_errno = *me->errno_place;
    bool told = ms_gpu_context_told(gpu, context_p);
    *me->errno_place = saved_errno;
    return told && me->pass.context == *context_p;
}

static MS_INLINE ms_stack_id stack_of(const struct ms_thread *me, const void *frame, const void *caller)
{
    ms_stack_id stack = ms_stack_again(me, frame, caller);
    return MS_LIKELY(stack) ? stack : ms_stack_capture(frame, caller);
}

/* What is asked for. */
struct request {
    uint64_t context, bytes;
    ms_stack_id stack;
    uint16_t api;
};

/* Inside: the record has the block, and its slot the ticket; 0, and nothing has happened, where that cannot
 * be. */
static MS_INLINE uint32_t give(struct ms_thread *me, const struct request *r, struct ms_slot *slot,
                               uint64_t address, uint64_t now_ns)
{
    struct ms_lease *lease = me->pass.lease;
    if (MS_UNLIKELY(lease->serial == lease->serial_end))
        return 0;
    uint32_t ticket = ms_ledger_hit_in(me->pass.lane, me->tid, address, r->bytes, r->context, r->api, now_ns);
    if (MS_LIKELY(ticket))
        ms_slot_bear(lease, slot, r->bytes, slot->run->slot_bytes, ticket);
    return ticket;
}

/* Inside: a block of the class of what is asked for. `slot_p`: NULL if no magazine has one. */
static MS_INLINE uint32_t take(struct ms_thread *me, const struct request *r, uint64_t now_ns,
                               struct ms_slot **slot_p, uint64_t *address_p)
{
    struct ms_lease *lease = me->pass.lease;
    struct ms_bag *bag = lease->magazines[ms_slab_class(r->bytes)].ready;
    *slot_p = NULL;
    if (MS_UNLIKELY(!bag || !bag->count))
        return 0;
    uint32_t left = bag->count - 1;
    struct ms_slot *slot = *slot_p = bag->items[left];
    if (MS_UNLIKELY(!ms_ledger_hit_site(me->pass.lane, r->stack, r->api)))
        return 0;
    uint32_t ticket = give(me, r, slot, *address_p = ms_slot_address(slot), now_ns);
    if (MS_UNLIKELY(!ticket))
        return 0;
    bag->count = left;
    if (MS_LIKELY(left))
        __builtin_prefetch(bag->items[left - 1], 1); /* for the next request */
    ms_count(&lease->hits[MS_TIER_SLAB], 1);
    return ticket;
}

/* A block that was taken of the heap: its ticket, or 0. */
static MS_INLINE uint32_t give_taken(struct ms_thread *me, const struct request *r, struct ms_slot *slot,
                                     uint64_t address)
{
    struct ms_pass *pass = &me->pass;
    uint64_t now_ns;
    if (MS_UNLIKELY(!ms_clock_own_ns(&pass->clock, &now_ns)))
        return forget(pass);
    if (!enter(pass))
        return 0;
    uint32_t ticket =
        ms_ledger_hit_site(pass->lane, r->stack, r->api) ? give(me, r, slot, address, now_ns) : 0;
    if (MS_LIKELY(ticket))
        ms_count(&pass->lease->hits[ms_tier_of(slot->run)], 1);
    ms_bias_leave_both(pass->own);
    return ticket;
}

/* ... where it cannot be given so: pool and record one after the other, as in the usual way. */
static MS_NOINLINE uint64_t give_in_turn(struct ms_heap *heap, const struct request *r, struct ms_slot *slot)
{
    struct ms_pool_block given;
    ms_heap_give(heap, slot, r->bytes, &given);
    ms_pool_set_ticket(
        &given, ms_ledger_serve_plain(given.address, r->bytes, r->context, r->stack, given.device, r->api));
    return given.address;
}

/* Of what lies at hand in the heap, which is of this context. The driver may leave something in errno. */
static MS_NOINLINE uint64_t alloc_of_heap(struct ms_thread *me, uint64_t context, uint64_t bytes,
                                          ms_stack_id stack, uint16_t api)
{
    const struct request r = {context, bytes, stack, api};
    struct ms_heap *heap = me->pass.heap;
    int saved_errno = *me->errno_place;
    struct ms_slot *slot = ms_heap_slot_at_hand(heap, bytes);
    *me->errno_place = saved_errno;
    if (MS_UNLIKELY(!slot))
        return 0;
    uint64_t address = ms_slot_address(slot);
    ms_near_fetch(address);
    uint32_t ticket = give_taken(me, &r, slot, address);
    if (MS_UNLIKELY(!ticket))
        return give_in_turn(heap, &r, slot);
    ms_near_note(address, slot, ticket);
    return address;
}

/* Of a class, in the heap's context: out of the thread's magazine, or else of the heap. */
static MS_INLINE uint64_t alloc(struct ms_thread *me, const struct request *r)
{
    struct ms_pass *pass = &me->pass;
    struct ms_slot *slot;
    uint64_t now_ns, address;
    if (MS_UNLIKELY(!ms_clock_own_ns(&pass->clock, &now_ns)))
        return forget(pass);
    MS_KEEP(now_ns);
    if (!enter(pass))
        return 0;
    uint32_t ticket = take(me, r, now_ns, &slot, &address);
    ms_bias_leave_both(pass->own);
    if (MS_UNLIKELY(!ticket))
        return slot ? 0 : alloc_of_heap(me, r->context, r->bytes, r->stack, r->api);
    ms_near_note(address, slot, ticket);
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
        return forget(&me->pass);
    return alloc_of_heap(me, context, bytes, stack_of(me, frame, caller), api);
}

/* Whether it has a class; 0 bytes have none. */
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
        return forget(&me->pass);
    const struct request r = {context, bytes, stack_of(me, frame, caller), api};
    return alloc(me, &r);
}

uint64_t ms_hit_alloc_in(struct ms_thread *me, uint64_t context, uint64_t bytes, ms_stack_id stack,
                         uint16_t api)
{
    const struct request r = {context, bytes, stack, api};
    if (!bytes || !may_take())
        return 0;
    if (MS_UNLIKELY(me->pass.context != context))
        return forget(&me->pass);
    return has_class(bytes) ? alloc(me, &r) : alloc_of_heap(me, context, bytes, stack, api);
}

/* The run of a live block, and its class, else NULL; without a lock. What is read of a slot here may be of
 * long ago, and its records in use for anything since, or cleared; its stamp, which no other block ever has,
 * says that it is not, if it is still the same when it is exchanged. */
static MS_UNSYNCHRONIZED const struct ms_run *run_of(const struct ms_slot *slot, uint64_t *stamp_p,
                                                     unsigned *class_p)
{
    uint64_t stamp = *stamp_p = atomic_load_explicit(&slot->stamp, memory_order_acquire);
    const struct ms_run *run = slot->run;
    if (MS_UNLIKELY((stamp & MS_STATE_MASK) != MS_SLOT_LIVE))
        return NULL;
    *class_p = run->class_index;
    return run;
}

/* Inside: the bag that a block without a class goes into, which is of the epoch that is open. */
static MS_UNSYNCHRONIZED struct ms_bag *bag_of_runs(const struct ms_lease *lease, const struct ms_run *run,
                                                    uint64_t epoch)
{
    struct ms_bag *bag = lease->runs;
    bool has_room = bag && (!bag->count || (bag->epoch == epoch && bag->count < MS_BAG_ITEMS));
    return has_room && !run->segment->release ? bag : NULL;
}

/* Inside: the bag that the block goes into, if that is all there is to do. No segment that holds blocks of a
 * class has to be released. */
static MS_UNSYNCHRONIZED_INLINE struct ms_bag *bag_for(const struct ms_pass *pass, const struct ms_slot *slot,
                                                       const struct ms_run *run, unsigned class_index,
                                                       uint64_t epoch, uint64_t address)
{
    const struct ms_lease *lease = pass->lease;
    if (MS_UNLIKELY(run->segment->heap != pass->heap ||
                    ms_run_address(run) + slot->index * run->slot_bytes != address))
        return NULL;
    if (class_index >= MS_CLASSES)
        return bag_of_runs(lease, run, epoch);
    struct ms_bag *bag = lease->magazines[class_index].freed;
    return MS_LIKELY(bag && bag->count < MS_BAG_ITEMS) ? bag : NULL;
}

/* Inside, all of a free: the record has the block, its slot's state is exchanged, and both take it back. The
 * ticket is a guess, too: of that row all is looked at. */
static MS_INLINE bool take_back(const struct ms_pass *pass, struct ms_slot *slot, const struct ms_run *run,
                                unsigned class_index, uint64_t stamp, uint32_t ticket,
                                struct ms_block_row *row, uint64_t address, uint64_t now_ns)
{
    struct ms_lease *lease = pass->lease;
    uint64_t epoch = ms_fence_tag(&pass->heap->fence);
    struct ms_bag *bag = bag_for(pass, slot, run, class_index, epoch, address);
    struct ms_site *site;
    if (MS_UNLIKELY(!bag || !ms_ledger_hit_row(pass->lane, row, address, now_ns, &site)))
        return false;
    if (MS_UNLIKELY(!atomic_compare_exchange_strong_explicit(&slot->stamp, &stamp,
                                                             (stamp & ~MS_STATE_MASK) | MS_SLOT_LIMBO,
                                                             memory_order_seq_cst, memory_order_relaxed)))
        return false;
    ms_ledger_hit_out(pass->lane, ticket, row, site, now_ns);
    uint64_t bytes = run->slot_bytes;
    ms_bag_add(bag, slot, epoch);
    if (class_index >= MS_CLASSES)
        ms_lease_tell(&pass->heap->cache.with_runs, &pass->heap->cache, lease);
    ms_count_down(&lease->requested, atomic_load_explicit(&slot->requested, memory_order_relaxed));
    ms_count_down(&lease->granted, bytes);
    ms_count(&lease->frees, 1);
    lease->unweighed += bytes;
    return true;
}

/* Whether something may hold the block, or a capture is open. */
static MS_INLINE bool is_held(void)
{
    return MS_UNLIKELY(atomic_load_explicit(&ms_pin_count, memory_order_relaxed) |
                       (uint32_t)atomic_load_explicit(&ms_open_captures, memory_order_relaxed));
}

static MS_NOINLINE enum ms_hit free_run(struct ms_thread *me, uint64_t address, struct ms_slot *slot,
                                        struct ms_near_set *set, unsigned way);

/* What the table has for the address, of a class or, where that is known, without one. */
static MS_INLINE enum ms_hit free_found(struct ms_thread *me, uint64_t address, struct ms_slot *slot,
                                        struct ms_near_set *set, unsigned way, bool is_run)
{
    struct ms_pass *pass = &me->pass;
    unsigned class_index;
    uint64_t now_ns, stamp, granted = 0, telling = 0;
    const struct ms_run *run = run_of(slot, &stamp, &class_index);
    if (!run)
        return MS_HIT_NONE;
    if (MS_UNLIKELY(class_index >= MS_CLASSES) && !is_run)
        return free_run(me, address, slot, set, way);
    uint32_t ticket = atomic_load_explicit(&set->tickets[way], memory_order_relaxed);
    if (MS_UNLIKELY(!ticket))
        return MS_HIT_NONE;
    struct ms_block_row *row = ms_block_row_at(ticket - 1);
    __builtin_prefetch(row, 1);
    if (MS_UNLIKELY(!ms_clock_own_ns(&pass->clock, &now_ns))) {
        forget(pass);
        return MS_HIT_NONE;
    }
    MS_KEEP(now_ns);
    if (!enter(pass))
        return MS_HIT_NONE;
    bool done = take_back(pass, slot, run, class_index, stamp, ticket, row, address, now_ns);
    if (MS_LIKELY(done)) {
        ms_near_drop(set, way);
        if (MS_UNLIKELY((telling = ms_lease_worth_telling(pass->lease)) != 0))
            granted = run->slot_bytes;
    }
    ms_bias_leave_both(pass->own);
    if (MS_UNLIKELY(telling) && ms_limbo_count(pass->heap, granted, telling))
        return MS_HIT_LIMBO;
    return done ? MS_HIT_DONE : MS_HIT_NONE;
}

static MS_NOINLINE enum ms_hit free_run(struct ms_thread *me, uint64_t address, struct ms_slot *slot,
                                        struct ms_near_set *set, unsigned way)
{
    return free_found(me, address, slot, set, way, true);
}

enum ms_hit ms_hit_free(struct ms_thread *me, uint64_t address)
{
    unsigned way;
    struct ms_near_set *set;
    struct ms_slot *slot = ms_near_find(address, &set, &way);
    if (MS_UNLIKELY(!slot || is_held()))
        return MS_HIT_NONE;
    return free_found(me, address, slot, set, way, false);
}

bool ms_hit_look(struct ms_pass *pass, struct ms_pool_wait *wait_p)
{
    struct ms_heap *heap = pass->heap;
    const struct ms_pool_block block = {.own_heap = heap,
                                        .own_life = atomic_load_explicit(&heap->life, memory_order_acquire)};
    return ms_limbo_look(heap) && ms_pool_wait_begin(&block, wait_p);
}

/* What never changes once it serves: a free waits for nothing, and nothing is filled. */
static bool is_plain(const struct ms_heap *heap)
{
    return ms_policy->free_rule == MS_POOL_FENCE && !ms_policy->poison_free && !ms_policy->poison_alloc &&
           ms_policy->pack != MS_POOL_PACK_NONE && !heap->flow && heap->gpu->ctx_record_event &&
           heap->gpu->ctx_get_current;
}

void ms_hit_learn(struct ms_thread *me)
{
    struct ms_heap *heap = ms_last_heap;
    struct ms_pass *pass = &me->pass;
    forget(pass);
    if (!heap || !ms_last_lease || ms_stack_sampling() || !is_plain(heap) || !ms_thread_id())
        return;
    pass->lease = &heap->cache.leases[ms_last_lease - 1];
    struct ms_bias *lock =
        ms_ledger_lane(atomic_load_explicit(&heap->device, memory_order_relaxed), &pass->lane);
    pass->own = ms_bias_pair(&pass->lease->lock, lock);
    /* Asked behind that, since whoever changes it says so then. */
    if (!pass->own || atomic_load_explicit(&heap->state, memory_order_seq_cst) != MS_HEAP_SERVING ||
        !ms_ledger_hit_may_be(pass->lane))
        return;
    pass->context = atomic_load_explicit(&heap->context, memory_order_acquire);
    pass->counts = ms_counts_own;
    ms_ledger_clock(&pass->clock);
    pass->heap = heap;
}
