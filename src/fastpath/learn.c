/* learn.c - what a call of the slow path used comes to hand for the next, and when it is void.
 *
 * Floor 2.5. What is at hand is good while both of its locks are this thread's own. So whoever ends a
 * context, or what is served of it, takes the thread caches' locks away, or says that they were
 * (ms_heap_revoke). */
#include <string.h>

#include "fastpath/fastpath.h"
#include "fastpath/streams.h"

static void streams_forget(const struct ms_thread *me)
{
    if (me->own->streams)
        memset(me->own->streams, 0, MS_OWN_STREAMS_BYTES);
}

MS_NOINLINE void ms_fast_forget_all(struct ms_thread *me)
{
    fast_forget(&me->fast);
    me->fast.chosen = NULL;
    streams_forget(me);
}

/* True if nothing is filled, and no rule has frees wait, which never changes once it serves. */
static bool is_plain(const struct ms_heap *heap)
{
    return ms_policy->free_rule == MS_POOL_FENCE && !ms_policy->poison_free && !ms_policy->poison_alloc &&
           ms_policy->pack != MS_POOL_PACK_NONE && heap->gpu->ctx_get_current;
}

/* The heap's thread cache and the shard of its device, if both are this thread's own, and the record can
 * count in it. */
static bool learn(struct ms_thread *me, struct ms_heap *heap, enum ms_heap_state state,
                  struct ms_fast_heap *at_p)
{
    struct ms_fast_heap at = {.heap = heap};
    bool others_are_void = false;
    /* One that was only made known, and serves nobody yet, has no library. */
    if (!ms_last_tcache || ms_stack_sampling() ||
        atomic_load_explicit(&heap->state, memory_order_acquire) != state || !is_plain(heap) ||
        !ms_thread_id())
        return false;
    at.tcache = &heap->cache.tcaches[ms_last_tcache - 1];
    struct ms_bias *lock =
        ms_ledger_shard(atomic_load_explicit(&heap->device, memory_order_relaxed), &at.shard);
    struct ms_bias_thread *own = ms_bias_pair(&at.tcache->lock, lock, &others_are_void);
    if (others_are_void)
        ms_fast_forget_all(me);
    /* Asked behind that, since whoever changes it says so then. */
    if (!own || atomic_load_explicit(&heap->state, memory_order_seq_cst) != state ||
        !(heap->arena || ms_fence_can_close(heap)) /* each free would wait */ ||
        !at.shard->latest_row /* no site was looked for so far */)
        return false;
    me->fast.own = own;
    me->fast.counts = ms_counts_own;
    ms_ledger_clock(&me->fast.clock);
    *at_p = at;
    return true;
}

bool ms_fast_choose_context(struct ms_thread *me)
{
    struct ms_fast_cache *fast = &me->fast;
    if (!fast->aside)
        return false;
    ms_bias_choose_both(fast->own, &fast->of_context.tcache->lock, &fast->of_context.shard->lock);
    fast->of_context.heap = fast->aside;
    fast->aside = NULL;
    fast->chosen = NULL;
    return true;
}

void ms_fast_learn(struct ms_thread *me)
{
    struct ms_heap *heap = ms_last_heap;
    struct ms_fast_heap at;
    if (ms_fast_choose_context(me))
        return;
    fast_forget(&me->fast);
    if (!heap || heap->arena || !learn(me, heap, MS_HEAP_SERVING, &at))
        return;
    me->fast.context = atomic_load_explicit(&heap->context, memory_order_acquire);
    me->fast.of_context = at;
    me->fast.chosen = NULL;
}

MS_NOINLINE void ms_fast_stream_choose_another(struct ms_thread *me, const struct ms_fast_stream *of)
{
    struct ms_fast_cache *fast = &me->fast;
    if (fast->of_context.heap)
        fast->aside = fast->of_context.heap;
    fast->of_context.heap = NULL;
    ms_bias_choose_both(fast->own, &of->at.tcache->lock, &of->at.shard->lock);
    fast->chosen = &of->at;
}

/* True if it is at hand as it stands: of a stream whose handle means one in every context. */
static bool is_known(const struct ms_thread *me, struct ms_fast_order order, uint64_t changes)
{
    if (!me->own->streams || order.stream <= MS_STREAM_PER_THREAD)
        return false;
    const struct ms_fast_stream *of = ms_fast_stream_at(me, order.stream);
    return of->at.heap && of->stream == order.stream && of->pool == order.pool && of->changes == changes;
}

void ms_fast_learn_ordered(struct ms_thread *me, const struct ms_gpu *gpu, struct ms_fast_order order)
{
    /* Before all else is found, so that what changes meanwhile is noticed. */
    uint64_t changes = atomic_load_explicit(&ms_stream_changes, memory_order_acquire), context = 0;
    if (is_known(me, order, changes)) { /* the magazine had none, or the clock was too old */
        ms_ledger_clock(&me->fast.clock);
        return;
    }
    struct ms_stream *stream = ms_stream_of(gpu, order.stream);
    struct ms_stream_arena *arena = stream ? ms_stream_arena_of(stream, order.pool) : NULL;
    const struct ms_own *own = arena ? ms_own_with_streams() : NULL;
    struct ms_fast_heap at;
    if (!own || !learn(me, arena->heap, MS_HEAP_STREAM_ARENA, &at))
        return;
    if (order.stream <= MS_STREAM_PER_THREAD)
        context = ms_stream_context(stream);
    struct ms_fast_stream *of = (struct ms_fast_stream *)ms_fast_stream_at(me, order.stream);
    if (of->stream != order.stream && !of[-1].at.heap)
        of--; /* nobody has the first of the two */
    *of = (struct ms_fast_stream){at, order.stream, order.pool, context, changes};
    ms_fast_stream_choose_another(me, of);
}
