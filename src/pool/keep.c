/* keep.c - how much of what is vacant stays ours.
 *
 * The vendor's own free may wait for the device, so memory goes back only when a fresh fence over the context
 * is done at once, or where the program has just waited for the context itself; otherwise it stays. Even then
 * it goes back in a stream of our own where the driver can do that: other threads may start work meanwhile
 * that only the program ends. What a graph may know, and what MEMSHIM_PREALLOC asked for, stays always. No
 * lock is held where the vendor is called.
 *
 * At a synchronisation of the program's what is vacant beyond live memory and MEMSHIM_KEEP goes back. A
 * training loop's valley would make that a habit: when memory that was given back is asked for again, the
 * heap learns to keep as much, and forgets it again after a minute in which it did not matter. */
#include "config.h"

#include "base/clock.h"
#include "pool/backing.h"
#include "pool/flow.h"
#include "pool/foreign.h"
#include "pool/internal.h"
#include "pool/returns.h"

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

static uint32_t choose(struct ms_heap *heap, uint64_t bytes, bool exceed, struct ms_segment **victims,
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
        if (!segment || (!exceed && segment->bytes > bytes - *chosen_p))
            break;
        ms_vacant_remove(&heap->extents, segment);
        ms_segment_unlink(heap, segment);
        victims[count++] = segment;
        *chosen_p += segment->bytes;
    }
    if (count)
        ms_returns_begin(heap->device);
    ms_unlock(&heap->lock);
    return count;
}

/* `quiet`: else only what can go asynchronously. */
static uint64_t give_back(struct ms_heap *heap, uint64_t bytes, bool exceed, bool quiet)
{
    struct ms_segment *victims[VICTIMS];
    uint64_t given = 0, went;
    uint32_t count;
    do {
        uint64_t chosen = given;
        count = choose(heap, bytes, exceed, victims, &chosen);
        went = ms_segment_return(heap, victims, count, quiet);
        if (count)
            ms_returns_end(heap->device);
        given += went;
    } while (count == VICTIMS && went);
    if (given < bytes && quiet)
        given += ms_backing_give_back(heap, bytes - given, exceed);
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
    return give_back(heap, bytes, true, true);
}

/* ... and where it is not quiet, asynchronously, if the vendor can do that. */
static uint64_t give_back_anyhow(struct ms_heap *heap, uint64_t bytes)
{
    uint64_t given = ms_keep_give_back(heap, bytes, false);
    if (given < bytes && !ms_fence_captured(heap))
        given += give_back(heap, bytes - given, true, false);
    return given;
}

/* What should go back before `bytes` more are asked of the vendor: as much as would be reserved beyond what
 * ever was, or is live. Memory that was reserved once already costs a program nothing that it did not have
 * before, as long as no more is vacant than what is live and MEMSHIM_KEEP. Heap's lock held. */
static uint64_t over_for(const struct ms_heap *heap, uint64_t bytes)
{
    uint64_t live = ms_heap_live(heap).requested + bytes, after = heap->reserved_bytes + bytes,
             allowed = live > heap->peak_reserved_bytes ? live : heap->peak_reserved_bytes;
    uint64_t over = after > allowed ? after - allowed : 0, most = live + heap->keep_bytes;
    if (heap->extents.vacant_bytes > most && over < heap->extents.vacant_bytes - most)
        over = heap->extents.vacant_bytes - most;
    return over < heap->extents.vacant_bytes ? over : heap->extents.vacant_bytes;
}

void ms_keep_before_growth(struct ms_heap *heap, uint64_t bytes)
{
    ms_lock(&heap->lock);
    if (heap->trim_reserved_bytes && heap->reserved_bytes + bytes <= heap->trim_reserved_bytes) {
        /* What was given back at a synchronisation is wanted again: keep it the next time. */
        heap->keep_extra_bytes = heap->trim_reserved_bytes;
        heap->keep_extra_ns = ms_clock_ns();
        heap->trim_reserved_bytes = 0;
    }
    uint64_t over = over_for(heap, bytes);
    bool leaving = heap->extents.leaving != NULL;
    ms_unlock(&heap->lock);
    if (over || leaving) /* the device may be busy with what needs none of it */
        give_back_anyhow(heap, over ? over : 1);
}

void ms_keep_at_sync(struct ms_heap *heap)
{
    uint64_t live = ms_heap_live(heap).requested, now = 0;
    ms_lock(&heap->lock); /* another thread may be making the heap */
    uint64_t allowed = live + heap->keep_bytes;
    ms_limbo_retire(&heap->cache);
    if (heap->keep_extra_bytes) {
        now = ms_clock_ns();
        if (now - heap->keep_extra_ns > MS_KEEP_FORGET_NS)
            heap->keep_extra_bytes = 0;
        else if (heap->keep_extra_bytes > allowed)
            allowed = heap->keep_extra_bytes;
    }
    uint64_t reserved = heap->reserved_bytes, over = reserved > allowed ? reserved - allowed : 0;
    bool leaving = heap->extents.leaving != NULL;
    ms_unlock(&heap->lock);
    if (!over && !leaving)
        return;
    ms_lease_flush(&heap->cache);
    uint64_t given = give_back(heap, over, false, true);
    ms_lock(&heap->lock);
    if (given && over && heap->trim_reserved_bytes < reserved)
        heap->trim_reserved_bytes = reserved;
    ms_unlock(&heap->lock);
}

/* What is free by now lies in segments, as far as nobody has to be waited for. */
static void gather(struct ms_heap *heap)
{
    ms_fence_close(heap);
    ms_fence_poll(heap);
    ms_lease_flush(&heap->cache);
}

uint64_t ms_keep_make_room(int device, uint64_t bytes)
{
    uint64_t given = 0;
    struct ms_heap *heap;
    for (uint32_t i = 0; given < bytes && (heap = ms_heap_visit(&i, device)) != NULL;) {
        /* what graphs may know, and nobody has, is no more than the driver would have unmapped at its free */
        if (!ms_fence_captured(heap))
            ms_captured_forget(heap);
        gather(heap);
        given += give_back_anyhow(heap, bytes - given);
        ms_heap_leave(heap);
    }
    if (given < bytes)
        given += ms_stream_trim(device);
    return given < bytes ? given + ms_foreign_trim(device, 0) : given;
}
