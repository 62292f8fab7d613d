/* fallback.c - how a request is answered that no magazine answers: steps in a list, one after the other until
 * one has a block, and what is tried again and again before it fails.
 *
 * Memory of a context and memory in the order of a stream have a list each. Its last step asks the vendor for
 * more. Where that refuses, the steps of a second list are gone through as long as something is under way
 * that may free memory, for MEMSHIM_OOM_WAIT_MS at most; then the vendor's own status is the answer, and of a
 * stream's request the driver answers as it stands, by the rules of its own pool. What no heap here makes
 * (other kinds of memory, other libraries' buffers) has room made for it by the same patience. No lock is
 * held where the vendor is called. */
#include <sched.h>

#include "base/clock.h"
#include "pool/mapped/mapped.h"
#include "pool/stream/stream_arena.h"
#include "pool/api/internal.h"
#include "pool/stream/driver_frees.h"

/* A request on its way. */
struct fallback {
    struct ms_heap *heap;
    const struct ms_request *request;
    int status; /* the vendor's, of what it was asked for last */
    bool busy;  /* there was some where something is under way */
    bool asked; /* other processes */
    uint64_t deadline, pause;
    uint64_t ended; /* of what goes back (driver_frees.h), when the vendor was asked last */
};

struct ms_slot *ms_fallback_from_heap(struct ms_heap *heap, const struct ms_request *request)
{
    struct ms_tcache *tcache = ms_tcache_lock(&heap->cache);
    struct ms_slot *slot = ms_tcache_take(&heap->cache, tcache, request);
    if (!slot)
        slot = ms_tcache_refill(&heap->cache, tcache, request);
    if (slot)
        /* it may have been pending, and is in no batch now that says it no longer is */
        ms_slot_set(slot, MS_SLOT_READY);
    ms_tcache_unlock(tcache);
    return slot;
}

/* Blocks that were freed up to now come out of the pending list, if that takes no longer than a moment; while
 * a thread gives memory back, no longer than that takes: it may be all that the context is busy with, and to
 * grow for it would be absurd. */
static void fence(struct ms_heap *heap)
{
    uint64_t freed = ms_fence_freed(&heap->fence);
    bool closed = freed > ms_fence_done(&heap->fence) && ms_fence_close(heap);
    ms_fence_poll(heap);
    if (!closed || ms_fence_done(&heap->fence) >= freed)
        return;
    uint64_t begin = ms_clock_ns();
    atomic_fetch_add_explicit(&heap->limbo_waits, 1, memory_order_relaxed);
    for (;;) {
        bool in_time = ms_clock_ns() - begin < MS_FENCE_NS;
        bool returning = atomic_load_explicit(&heap->returning, memory_order_acquire) > 0;
        ms_fence_poll(heap);
        if (ms_fence_done(&heap->fence) >= freed || (!in_time && !returning))
            return;
        if (!in_time)
            sched_yield();
    }
}

static struct ms_slot *from_heap(struct fallback *c)
{
    return ms_fallback_from_heap(c->heap, c->request);
}

/* --- memory of a context --- */

/* Before something that is larger is split, what was freed and can be used again lies together again where it
 * did, and may fit more closely. Nothing is waited for. Heap's lock held, and let go meanwhile: true; or
 * there is nothing to be found. */
static bool before_splitting(struct ms_heap *heap)
{
    bool may_fence = (ms_budget_may_fence(heap) || ms_backing_on(heap)) && ms_fence_pending(heap);
    if (!may_fence && !ms_tcache_may_flush_runs(&heap->cache))
        return false;
    ms_unlock(&heap->lock);
    if (may_fence && ms_fence_close(heap))
        ms_fence_poll(heap);
    ms_tcache_flush_runs(&heap->cache);
    ms_lock(&heap->lock);
    return true;
}

/* An extent of its own: what fits just so, or may be split. */
static struct ms_slot *a_run(struct ms_heap *heap, const struct ms_request *request)
{
    uint64_t bytes = request->granted, align = request->align;
    ms_lock(&heap->lock);
    ms_pending_retire(&heap->cache);
    struct ms_fit fit = ms_extent_fit(&heap->extents, bytes, align);
    if (fit.bytes > bytes && before_splitting(heap))
        fit = ms_extent_fit(&heap->extents, bytes, align);
    struct ms_slot *slot = ms_tcache_carve_fit(&heap->cache, request, &fit);
    ms_unlock(&heap->lock);
    return slot;
}

/* True if it matters which extent fits the request most closely. */
static bool is_run(const struct ms_request *request)
{
    return request->granted > MS_SLAB_MAX_BYTES && !request->single;
}

/* A slot of memory that fits, or may be split. */
static MS_INLINE struct ms_slot *free_for(struct ms_heap *heap, const struct ms_request *request)
{
    return is_run(request) ? a_run(heap, request) : ms_fallback_from_heap(heap, request);
}

static struct ms_slot *what_is_free(struct fallback *c)
{
    return free_for(c->heap, c->request);
}

static struct ms_slot *behind_a_fence(struct fallback *c)
{
    fence(c->heap);
    return from_heap(c);
}

static struct ms_slot *in_all_caches(struct fallback *c)
{
    ms_tcache_flush(&c->heap->cache);
    return from_heap(c);
}

static struct ms_slot *more(struct fallback *c)
{
    c->ended = ms_driver_frees_ended(c->heap->device);
    return ms_grow(c->heap, c->request, &c->status);
}

static struct ms_slot *what_is_over(struct fallback *c)
{
    fence(c->heap);
    return in_all_caches(c);
}

/* Pages are put together before any goes back. */
static struct ms_slot *pages_together(struct fallback *c)
{
    int refused;
    return ms_backing_on(c->heap) ? ms_backing_alloc(c->heap, c->request, &refused) : NULL;
}

/* Behind a wait on the device it takes the vendor a while to have what went back. */
static struct ms_slot *in_place_of_what_is_vacant(struct fallback *c)
{
    int device = c->heap->device;
    bool ended = ms_driver_frees_ended(device) != c->ended; /* another thread's */
    if (!ms_keep_make_room(device, ms_request_pages(c->request)) && !ended)
        return NULL;
    ms_driver_frees_await(device, true, c->deadline);
    c->ended = ms_driver_frees_ended(device);
    return ms_grow_least(c->heap, c->request, &c->status);
}

/* A block that should be an allocation of the vendor's comes out of a chunk before the program hears that
 * there is no memory, and out of what was preallocated. */
static struct ms_slot *out_of_a_chunk(struct fallback *c)
{
    struct ms_heap *heap = c->heap;
    const struct ms_request *request = c->request;
    if ((!request->single && !request->large) || ms_heap_gives_whole(heap))
        return NULL;
    ms_lock(&heap->lock);
    struct ms_slot *slot = ms_extent_take_for(&heap->extents, request);
    ms_unlock(&heap->lock);
    return slot;
}

/* Other processes are asked for what is free in them, once, and only when this one has nothing left. */
static struct ms_slot *of_other_processes(struct fallback *c)
{
    struct ms_heap *heap = c->heap;
    if (c->asked || !ms_policy->ask_others)
        return NULL;
    c->asked = true;
    if (!ms_policy->ask_others(heap->gpu, heap->device, ms_request_pages(c->request)))
        return NULL;
    return ms_grow_least(heap, c->request, &c->status);
}

/* True if more may become free, or go back, in some context on the device. */
static bool room_may_come(int device)
{
    struct ms_heap *heap;
    bool may = ms_driver_frees_pending(device) > 0;
    for (uint32_t i = 0; !may && (heap = ms_heap_ref(&i, device)) != NULL;) {
        may = ms_fence_pending(heap) || ms_keep_waits(heap);
        ms_heap_leave(heap);
    }
    return may;
}

static bool context_may_come(const struct fallback *c)
{
    return room_may_come(c->heap->device);
}

/* --- memory in the order of a stream --- */

/* A block of another stream arena's that the stream itself has freed it may have at once, as it may its
 * own. */
static struct ms_slot *freed_here(struct fallback *c)
{
    uint64_t granted = c->request->granted;
    return granted > MS_SLAB_MAX_BYTES ? ms_cross_free_take(c->heap->arena, c->request, granted, false)
                                       : NULL;
}

static struct ms_slot *what_came_home(struct fallback *c)
{
    return ms_cross_free_collect() ? from_heap(c) : NULL;
}

static bool has_free(struct ms_heap *heap, uint64_t bytes)
{
    ms_lock(&heap->lock);
    bool has = heap->extents.run_free_bytes + heap->extents.vacant_bytes >= bytes;
    ms_unlock(&heap->lock);
    return has;
}

/* A block of another stream arena's, which stays its home: taken first and looked at then, so that the event
 * comes after everything that was done to it. No lock held. */
static struct ms_slot *of_another(struct fallback *c, struct ms_stream_arena *other)
{
    struct ms_slot *slot = ms_fallback_from_heap(other->heap, c->request);
    if (!slot)
        return NULL;
    uint64_t begin = ms_slot_address(slot);
    ms_lock(&ms_streams_lock);
    bool idle =
        ms_wait_is_over(other, begin, begin + slot->extent->slot_bytes) || ms_stream_arena_is_idle(other);
    ms_unlock(&ms_streams_lock);
    if (idle)
        return slot;
    c->busy = true;
    struct ms_tcache *tcache = ms_tcache_lock(&other->heap->cache);
    ms_tcache_put_ready(&other->heap->cache, tcache, slot);
    ms_tcache_unlock(tcache);
    return NULL;
}

/* Memory that is vacant in another stream arena becomes this one's; else a block of it is lent. With `flush`,
 * whatever that takes. */
static struct ms_slot *borrow(struct fallback *c, bool flush)
{
    struct ms_stream_arena *arena = c->heap->arena;
    struct ms_stream_arena *first = ms_mempool_arenas(arena->pool), *other;
    struct ms_slot *slot = NULL;
    for (other = first; other && !slot; other = other->next_of_pool) {
        if (other != arena && flush)
            ms_tcache_flush(&other->heap->cache);
        if (other != arena && ms_stream_arena_move(other, arena, c->request))
            slot = from_heap(c);
    }
    for (other = first; other && !slot; other = other->next_of_pool) {
        if (other != arena && (flush || has_free(other->heap, c->request->granted)))
            slot = of_another(c, other);
    }
    if (slot)
        atomic_fetch_add_explicit(&arena->borrowed, 1, memory_order_relaxed);
    return slot;
}

/* By chance another stream has got there: the pool's rule must allow that it is made use of. A block of
 * another stream arena's costs an event now and one when it is freed, so that is for where much lies idle. */
static bool may_borrow(struct ms_stream_arena *arena, uint64_t granted)
{
    struct ms_mempool *pool = arena->pool;
    bool alone = !arena->next_of_pool && ms_mempool_arenas(pool) == arena;
    if (alone || granted <= MS_SLAB_MAX_BYTES ||
        !atomic_load_explicit(&pool->opportunistic, memory_order_relaxed))
        return false;
    uint64_t held = atomic_load_explicit(&pool->held, memory_order_relaxed),
             used = atomic_load_explicit(&pool->used, memory_order_relaxed);
    return held > used + granted;
}

static struct ms_slot *of_idle_streams(struct fallback *c)
{
    return may_borrow(c->heap->arena, c->request->granted) ? borrow(c, c->request->granted >= MS_MIB) : NULL;
}

static struct ms_slot *more_in_order(struct fallback *c)
{
    c->ended = ms_driver_frees_ended(c->heap->device);
    return ms_stream_arena_grow(c->heap, c->request, &c->status);
}

static struct ms_slot *what_is_home(struct fallback *c)
{
    ms_wait_weigh(c->heap->arena);
    ms_cross_free_collect();
    return in_all_caches(c);
}

static struct ms_slot *of_any_stream(struct fallback *c)
{
    return borrow(c, true);
}

/* Memory that is vacant elsewhere goes to the driver, which may make one piece of it. */
static struct ms_slot *in_place_of_others(struct fallback *c)
{
    ms_stream_trim(c->heap->device);
    return more_in_order(c);
}

static struct ms_slot *behind_its_users(struct fallback *c)
{
    return ms_wait_take(c->heap->arena, c->request);
}

static bool stream_may_come(const struct fallback *c)
{
    return ms_cross_free_pending() || ms_driver_frees_pending(c->heap->device) ||
           (c->busy && atomic_load_explicit(&c->heap->arena->pool->internal, memory_order_relaxed));
}

/* --- the lists --- */

typedef struct ms_slot *(*step_t)(struct fallback *);

/* `may_come`: whether something is under way that may free memory, or give it back. */
static const struct ladder {
    step_t first[8], last[8];
    bool (*may_come)(const struct fallback *);
} of_context = {{what_is_free, behind_a_fence, in_all_caches, more},
                {what_is_over, pages_together, in_place_of_what_is_vacant, out_of_a_chunk,
                 of_other_processes},
                context_may_come},
  of_stream = {{from_heap, freed_here, what_came_home, in_all_caches, of_idle_streams, more_in_order},
               {what_is_home, of_any_stream, in_place_of_others, behind_its_users},
               stream_may_come};

static bool no_memory(const struct fallback *c)
{
    return c->status == CUDA_ERROR_OUT_OF_MEMORY;
}

static struct ms_slot *fallback(struct fallback *c, const step_t *step)
{
    struct ms_slot *slot = NULL;
    while (!slot && *step && (c->status == CUDA_SUCCESS || no_memory(c)))
        slot = (*step++)(c);
    return slot;
}

/* After a rest, if there is time for one. */
static bool again(uint64_t deadline, uint64_t *pause_p)
{
    bool in_time = ms_clock_ns() < deadline;
    if (in_time)
        ms_clock_sleep_longer(pause_p);
    return in_time;
}

/* True if it is worth going on: memory that another thread gives back was missing here, and was not the
 * vendor's yet when that was asked. */
static bool may_go_on(const struct fallback *c, const struct ladder *ladder)
{
    return ladder->may_come(c) || ms_driver_frees_since(c->heap->device, c->ended);
}

/* The vendor has refused. Nothing that could be given back makes room for more than there is. */
static struct ms_slot *out_of_memory(struct fallback *c, const struct ladder *ladder)
{
    struct ms_heap *heap = c->heap;
    struct ms_slot *slot = NULL;
    bool pending = !heap->total_bytes || c->request->granted <= heap->total_bytes;
    c->deadline = ms_clock_ns() + ms_policy->oom_wait_ms * 1000000u;
    while (pending) {
        pending = ladder->may_come(c);
        slot = fallback(c, ladder->last);
        pending = !slot && no_memory(c) && (pending || may_go_on(c, ladder)) && again(c->deadline, &c->pause);
    }
    if (c->pause)
        atomic_fetch_add_explicit(&heap->limbo_waits, 1, memory_order_relaxed);
    return slot;
}

uint64_t ms_pool_give_back(int device, uint64_t bytes)
{
    return ms_keep_make_room(device, bytes);
}

struct ms_slot *ms_fallback_at_hand(struct ms_heap *heap, const struct ms_request *request)
{
    if (heap->arena)
        return ms_fallback_from_heap(heap, request);
    return atomic_load_explicit(&heap->preallocated, memory_order_relaxed) ? free_for(heap, request) : NULL;
}

struct ms_slot *ms_fallback_alloc(struct ms_heap *heap, const struct ms_request *request, int *status_p)
{
    const struct ladder *ladder = heap->arena ? &of_stream : &of_context;
    struct fallback c = {.heap = heap, .request = request, .status = CUDA_SUCCESS};
    if (MS_UNLIKELY(!atomic_load_explicit(&heap->preallocated, memory_order_relaxed)))
        ms_grow_preallocated(heap);
    struct ms_slot *slot = fallback(&c, ladder->first);
    if (!slot && no_memory(&c))
        slot = out_of_memory(&c, ladder);
    *status_p = c.status;
    return slot;
}

/* Memory that another thread gave back since the vendor was asked, or is giving back, is as good as what is
 * given back here. */
bool ms_room_make(int device, bool wait, struct ms_room *room)
{
    uint64_t pause = 0;
    bool made = false, pending = !room->deadline || ms_clock_ns() < room->deadline;
    if (!room->deadline)
        room->deadline = ms_clock_ns() + ms_policy->oom_wait_ms * 1000000u;
    while (pending) {
        bool ended = ms_driver_frees_ended(device) != room->ended;
        pending = room_may_come(device);
        made = ms_keep_make_room(device, UINT64_MAX) || ended;
        pending = wait && !made &&
                  (pending || room_may_come(device) || ms_driver_frees_since(device, room->ended)) &&
                  again(room->deadline, &pause);
    }
    if (made && wait)
        ms_driver_frees_await(device, true, room->deadline);
    if (made)
        room->ended = ms_driver_frees_ended(device);
    return made;
}
