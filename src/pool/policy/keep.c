/* keep.c - how much of what is vacant stays ours.
 *
 * The vendor's own free may wait for the device, so memory goes back only when a fresh fence over the context
 * is done at once, or where the program has just waited for the context itself; otherwise it stays. Even then
 * it goes back in a stream of our own where the driver can do that: other threads may start work meanwhile
 * that only the program ends. What a graph may know, and what MEMSHIM_PREALLOC asked for, stays always. No
 * lock is held where the vendor is called.
 *
 * All that is decided here is decided for a device: over its contexts and kinds of memory, and with what
 * other threads are about to ask for. Before more is asked of the vendor, what would be reserved beyond what
 * the program has, or had at most, goes back. When the program waits, whole free segments beyond MEMSHIM_KEEP
 * do; a loop that asks for them again each time keeps them for a minute, while nobody else is on the
 * device. */
#include <sched.h>

#include "base/clock.h"
#include "pool/mapped/mapped.h"
#include "pool/stream/stream_arena.h"
#include "pool/external/external.h"
#include "pool/api/internal.h"
#include "pool/stream/driver_frees.h"

enum { VICTIMS = 64 };

static bool may_go(const struct ms_segment *segment)
{
    return !segment->permanent && !segment->captured;
}

/* The one whose loss costs least: the smallest that is enough, else the largest. Heap's lock held. */
static struct ms_segment *victim(struct ms_heap *heap, uint64_t bytes)
{
    struct ms_segment *largest = NULL;
    for (uint32_t i = heap->extents.vacant_count; i-- > 0;) {
        struct ms_segment *segment = heap->extents.vacant[i];
        if (!may_go(segment))
            continue;
        if (largest && segment->bytes < bytes)
            break;
        largest = segment;
    }
    return largest;
}

static uint32_t keep_choose(struct ms_heap *heap, uint64_t bytes, struct ms_segment **victims,
                            uint64_t *chosen_p)
{
    uint32_t count = 0;
    ms_lock(&heap->lock);
    while (heap->extents.leaving && !heap->extents.leaving->captured && count < VICTIMS) {
        struct ms_segment *segment = heap->extents.leaving;
        heap->extents.leaving = segment->leaving_next;
        heap->extents.leaving_bytes -= segment->bytes;
        ms_segment_unlink(heap, segment);
        victims[count++] = segment;
        *chosen_p += segment->bytes;
    }
    while (count < VICTIMS && *chosen_p < bytes) {
        struct ms_segment *segment = victim(heap, bytes - *chosen_p);
        if (!segment)
            break;
        ms_vacant_remove(&heap->extents, segment);
        ms_segment_unlink(heap, segment);
        victims[count++] = segment;
        *chosen_p += segment->bytes;
    }
    if (count)
        ms_driver_frees_begin(heap->device);
    ms_unlock(&heap->lock);
    return count;
}

/* `quiet`: else only what can go asynchronously. */
static uint64_t keep_give_back(struct ms_heap *heap, uint64_t bytes, bool quiet)
{
    struct ms_segment *victims[VICTIMS];
    uint64_t given = 0, went;
    uint32_t count;
    do {
        uint64_t chosen = given;
        count = keep_choose(heap, bytes, victims, &chosen);
        went = ms_segment_return(heap, victims, count, quiet);
        if (count)
            ms_driver_frees_end(heap->device);
        given += went;
    } while (count == VICTIMS && went);
    if (given < bytes && quiet)
        given += ms_backing_give_back(heap, bytes - given);
    if (given) {
        atomic_fetch_add_explicit(&heap->trims, 1, memory_order_relaxed);
        ms_figures_changed(heap);
    }
    return given;
}

static bool any_may_go(struct ms_heap *heap)
{
    ms_lock(&heap->lock);
    bool any = heap->extents.leaving || victim(heap, 0) != NULL || ms_backing_free_bytes(heap) > 0;
    ms_unlock(&heap->lock);
    return any;
}

bool ms_keep_waits(struct ms_heap *heap)
{
    return any_may_go(heap) && !ms_fence_captured(heap);
}

uint64_t ms_keep_give_back(struct ms_heap *heap, uint64_t bytes, bool quiet_known)
{
    if (!bytes || !any_may_go(heap) || (!quiet_known && !ms_fence_quiet(heap)))
        return 0;
    return keep_give_back(heap, bytes, true);
}

/* Vacant segments go back to the vendor; where the context is not quiet, asynchronously, if the vendor can do
 * that. */
static uint64_t give_back_anyhow(struct ms_heap *heap, uint64_t bytes)
{
    uint64_t given = ms_keep_give_back(heap, bytes, false);
    if (given < bytes && !ms_fence_captured(heap))
        given += keep_give_back(heap, bytes - given, false);
    return given;
}

/* --- before more is asked of the vendor --- */

/* A device's bytes, of all heaps and all threads together. */
struct standing {
    uint64_t live;     /* of the program, and asked for at this moment; what its own pools hold they would
                          hold natively, too */
    uint64_t reserved; /* what the vendor gave, or is asked for */
    uint64_t buffers;  /* other libraries' that nobody has */
    uint64_t vacant;   /* those, and whole free segments of contexts */
    uint64_t keep;     /* MEMSHIM_KEEP */
};

static struct standing standing_of(int device)
{
    struct ms_device *d = &ms_devices[device];
    struct ms_pool_figures buffers = {0};
    struct standing s = {0};
    struct ms_heap *heap;
    ms_external_add_figures(device, &buffers);
    s.vacant = s.buffers = ms_external_idle_bytes(device);
    s.live = atomic_load_explicit(&d->asked_live_bytes, memory_order_relaxed) + buffers.reserved_bytes -
             ms_least(s.vacant, buffers.reserved_bytes);
    for (uint32_t i = 0; (heap = ms_heap_next(&i)) != NULL;) {
        if (atomic_load_explicit(&heap->device, memory_order_relaxed) != device)
            continue;
        uint64_t live = ms_heap_live(heap).requested;
        ms_lock(&heap->lock);
        s.keep = heap->keep_bytes;
        s.live += heap->arena ? heap->reserved_bytes : live;
        if (!heap->arena)
            s.vacant +=
                heap->extents.vacant_bytes + heap->extents.leaving_bytes + ms_backing_free_bytes(heap);
        ms_unlock(&heap->lock);
    }
    s.reserved = atomic_load_explicit(&d->reserved_bytes, memory_order_relaxed) +
                 atomic_load_explicit(&d->asked_reserved_bytes, memory_order_relaxed);
    return s;
}

/* The bytes that should go back before the vendor is asked: as much as would be reserved beyond what the
 * program has then, or had at most, with a share of that for what lies free between blocks. For a chunk it is
 * what was ever reserved instead: chunks that go back for smaller ones leave a full device in pieces that are
 * too short for blocks of a middling size. No more may be vacant than what is live and MEMSHIM_KEEP; of other
 * libraries' buffers, which are asked for by their size, as much as that stays. */
static uint64_t over_for(int device, const struct standing *s, bool chunk)
{
    struct ms_device *d = &ms_devices[device];
    uint64_t peak = atomic_load_explicit(&d->peak_live_bytes, memory_order_relaxed);
    while (peak < s->live &&
           !atomic_compare_exchange_weak_explicit(&d->peak_live_bytes, &peak, s->live, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
    uint64_t reserved_once = ms_figures_peak(device), live_once = peak + peak / MS_KEEP_PEAK_SHARE,
             once = chunk ? reserved_once : ms_least(live_once, reserved_once),
             allowed = s->live > once ? s->live : once, most = s->live + s->keep,
             reserved = s->reserved - ms_least(ms_least(s->buffers, s->keep), s->reserved),
             over = reserved > allowed ? reserved - allowed : 0,
             idle = s->vacant > most ? s->vacant - most : 0;
    return over > idle ? over : idle;
}

/* Of all contexts but `own`, and of other libraries' buffers. */
static uint64_t give_back_on(int device, const struct ms_heap *own, uint64_t bytes)
{
    struct ms_heap *heap;
    uint64_t given = 0;
    for (uint32_t i = 0; given < bytes && (heap = ms_heap_ref(&i, device)) != NULL;) {
        if (heap != own)
            given += give_back_anyhow(heap, bytes - given);
        ms_heap_leave(heap);
    }
    if (given < bytes && ms_external_any()) {
        uint64_t idle = ms_external_idle_bytes(device), more = bytes - given;
        given += ms_external_trim(device, idle > more ? idle - more : 0);
    }
    return given;
}

/* Memory that is free by now goes into its segments, as far as nobody has to be waited for. */
static void keep_gather(struct ms_heap *heap)
{
    ms_fence_close(heap);
    ms_fence_poll(heap);
    ms_tcache_flush(&heap->cache);
}

static void gather_on(int device, const struct ms_heap *waited_for)
{
    struct ms_heap *heap;
    for (uint32_t i = 0; (heap = ms_heap_ref(&i, device)) != NULL;) {
        if (heap == waited_for)
            ms_tcache_flush(&heap->cache);
        else
            keep_gather(heap);
        ms_heap_leave(heap);
    }
}

/* Blocks that other threads have just freed are over in a moment, where the device has nothing to do; and
 * what they give back is the vendor's soon, which would give other memory until then. False if nothing comes
 * of it. */
static bool wait_for_others(int device, struct ms_heap *own, uint64_t since)
{
    uint64_t ended = ms_driver_frees_ended(device), waited = ms_clock_ns() - since;
    while (ms_driver_frees_under_way(device) ? waited < MS_RETURN_NS
                                             : own && ms_fence_pending(own) && waited < MS_KEEP_LOOK_NS) {
        sched_yield();
        if ((own && ms_fence_poll(own)) || ms_driver_frees_ended(device) != ended)
            return true;
        waited = ms_clock_ns() - since;
    }
    return false;
}

static void keep_make_room(int device, struct ms_heap *own, bool chunk)
{
    uint64_t since = 0;
    for (bool gathered = false;;) {
        struct standing s = standing_of(device);
        uint64_t over = over_for(device, &s, chunk);
        /* No large segment goes back for a page or two of another kind of memory. */
        if (over <= (own ? 0 : MS_KEEP_SLACK_BYTES))
            return;
        since = since ? since : ms_clock_ns();
        /* Pages that are mapped are moved to where they are missing instead (mapped.h). */
        uint64_t given = own && !ms_backing_on(own) ? give_back_anyhow(own, over) : 0;
        if (given < over)
            given += give_back_on(device, own, over - given);
        if (given)
            continue;
        if (gathered && !wait_for_others(device, own, since))
            return;
        gather_on(device, NULL);
        gathered = true;
    }
}

/* --- learning --- */

/* Memory that a wait gave back and that is asked for again was worth keeping: as much as is reserved
 * again. */
static void keep_learn(int device)
{
    struct ms_device *d = &ms_devices[device];
    uint64_t trimmed = atomic_load_explicit(&d->trimmed_bytes, memory_order_relaxed),
             reserved = atomic_load_explicit(&d->reserved_bytes, memory_order_relaxed) +
                        atomic_load_explicit(&d->asked_reserved_bytes, memory_order_relaxed);
    if (!trimmed)
        return;
    if (reserved > trimmed)
        atomic_store_explicit(&d->trimmed_bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&d->learned_bytes, ms_least(reserved, trimmed), memory_order_relaxed);
    atomic_store_explicit(&d->learned_ns, ms_clock_ns(), memory_order_relaxed);
}

/* Nobody else has much of the device, or more than when that was asked first: what is neither free nor the
 * pool's is this process's contexts and what the vendor gave it besides, or another process's. */
static bool keep_is_alone(struct ms_heap *heap)
{
    struct ms_device *d = &ms_devices[heap->device];
    const struct ms_gpu *gpu = heap->gpu;
    size_t free_bytes = 0, total_bytes = 0;
    struct ms_context_scope visit;
    if (!gpu->mem_get_info)
        return false;
    ms_context_scope_begin(&visit, gpu, heap->context);
    bool known = gpu->mem_get_info(&free_bytes, &total_bytes) == CUDA_SUCCESS;
    ms_context_scope_end(&visit);
    uint64_t ours = atomic_load_explicit(&d->reserved_bytes, memory_order_relaxed) + free_bytes,
             others = total_bytes > ours ? total_bytes - ours : 0,
             least = atomic_load_explicit(&d->others_bytes, memory_order_relaxed);
    if (known && (!least || others + 1 < least))
        atomic_store_explicit(&d->others_bytes, least = others + 1, memory_order_relaxed);
    return known && others < least + MS_KEEP_OTHERS_BYTES && others <= total_bytes / MS_KEEP_OTHERS_SHARE;
}

/* The answer holds for a while: a driver takes as long over it as over a free. */
static bool was_alone(struct ms_heap *heap)
{
    struct ms_device *d = &ms_devices[heap->device];
    uint64_t now = ms_clock_ns();
    if (now < atomic_load_explicit(&d->alone_until_ns, memory_order_relaxed))
        return true;
    bool alone = keep_is_alone(heap);
    atomic_store_explicit(&d->alone_until_ns, alone ? now + MS_KEEP_ALONE_NS : 0, memory_order_relaxed);
    return alone;
}

/* The bytes that may stay reserved, as a loop has asked for them again and again; 0: MEMSHIM_KEEP alone
 * counts. */
static uint64_t learned(struct ms_heap *heap)
{
    struct ms_device *d = &ms_devices[heap->device];
    uint64_t bytes = atomic_load_explicit(&d->learned_bytes, memory_order_relaxed),
             since = atomic_load_explicit(&d->learned_ns, memory_order_relaxed);
    if (!bytes || ms_policy->keep_is_set)
        return 0;
    if (ms_clock_ns() - since <= MS_KEEP_FORGET_NS && was_alone(heap))
        return bytes;
    atomic_store_explicit(&d->learned_bytes, 0, memory_order_relaxed);
    return 0;
}

void ms_keep_before_growth(struct ms_heap *heap, bool chunk)
{
    keep_learn(heap->device);
    ms_lock(&heap->lock);
    bool leaving = heap->extents.leaving != NULL;
    ms_unlock(&heap->lock);
    if (leaving)
        give_back_anyhow(heap, 1);
    keep_make_room(heap->device, heap, chunk);
}

void ms_keep_before_followed(int device, uint64_t bytes)
{
    if (!atomic_load_explicit(&ms_devices[device].reserved_bytes, memory_order_relaxed))
        return;
    ms_device_ask(device, bytes, bytes);
    keep_make_room(device, NULL, false);
    ms_device_answered(device, bytes);
    ms_device_unask(device, bytes);
}

/* --- when the program has waited --- */

/* Whole free segments beyond MEMSHIM_KEEP, or beyond what was learned. */
static uint64_t over_at_sync(struct ms_heap *heap, const struct standing *s)
{
    uint64_t over = s->vacant > s->keep ? s->vacant - s->keep : 0, most = over ? learned(heap) : 0,
             beyond = s->reserved > most ? s->reserved - most : 0;
    return most && beyond < over ? beyond : over;
}

void ms_keep_at_sync(struct ms_heap *heap)
{
    int device = heap->device;
    ms_lock(&heap->lock); /* another thread may be making the heap */
    ms_pending_retire(&heap->cache);
    bool leaving = heap->extents.leaving != NULL;
    ms_unlock(&heap->lock);
    struct standing s = standing_of(device);
    if (s.reserved <= s.live + s.keep && !leaving)
        return;
    gather_on(device, heap);
    s = standing_of(device);
    uint64_t over = over_at_sync(heap, &s), given = over || leaving ? keep_give_back(heap, over, true) : 0;
    if (given < over)
        given += give_back_on(device, heap, over - given);
    if (given && atomic_load_explicit(&ms_devices[device].trimmed_bytes, memory_order_relaxed) < s.reserved)
        atomic_store_explicit(&ms_devices[device].trimmed_bytes, s.reserved, memory_order_relaxed);
}

uint64_t ms_keep_left(int device)
{
    struct standing s = standing_of(device);
    return s.keep > s.vacant ? s.keep - s.vacant : 0;
}

/* --- where memory is short --- */

uint64_t ms_keep_make_room(int device, uint64_t bytes)
{
    uint64_t given = 0;
    struct ms_heap *heap;
    for (uint32_t i = 0; given < bytes && (heap = ms_heap_ref(&i, device)) != NULL;) {
        /* what graphs may know, and nobody has, is no more than the driver would have unmapped at its free */
        if (!ms_fence_captured(heap))
            ms_captured_forget(heap);
        keep_gather(heap);
        given += give_back_anyhow(heap, bytes - given);
        ms_heap_leave(heap);
    }
    if (given < bytes)
        given += ms_stream_trim(device);
    return given < bytes ? given + ms_external_trim(device, 0) : given;
}
