/* arena_move.c - memory of one stream's stream arena that becomes another's, whole.
 *
 * A stream that is idle may have left much vacant, and the next stream should have that before the driver is
 * asked. A block that is lent belongs to its stream arena all the same: freed on the other stream it is
 * nobody's until an event is done, so that both take more meanwhile. So what is vacant changes its stream
 * arena, with all that will be carved of it, if nothing is under way there, and goes on as if the driver had
 * given it to the other stream.
 *
 * Floor 2, for fallback.c. Takes the streams' lock, and then each heap's by itself; calls of the vendor's
 * are those of an event. What a graph may know stays where it is. Nothing is allocated. */
#include "config.h"

#include "pool/stream/stream_arena.h"

static uint64_t longest(const struct ms_stream_arena *arena, const struct ms_request *request)
{
    uint64_t unit = atomic_load_explicit(&arena->pool->unit, memory_order_acquire),
             most = MS_MOVE_TIMES * request->granted;
    if (request->single)
        return request->granted;
    return most > unit ? most : unit;
}

/* Found by nobody from here on, and still the heap's. */
static struct ms_segment *set_aside(struct ms_heap *heap, uint64_t least, uint64_t most)
{
    struct ms_segment *segment = NULL;
    ms_lock(&heap->lock);
    for (uint32_t i = 0; i < heap->extents.vacant_count && !segment && !ms_fence_captured(heap); i++) {
        struct ms_segment *each = heap->extents.vacant[i];
        if (each->bytes >= least && each->bytes <= most && !each->captured && !each->permanent)
            segment = each;
    }
    if (segment)
        ms_vacant_remove(&heap->extents, segment);
    ms_unlock(&heap->lock);
    return segment;
}

static void put_back(struct ms_heap *heap, struct ms_segment *segment)
{
    ms_lock(&heap->lock);
    ms_vacant_put(&heap->extents, segment);
    ms_unlock(&heap->lock);
}

/* No block lies in it: nobody who has an address asks for its heap meanwhile. */
static void arena_move_segment(struct ms_heap *from, struct ms_heap *to, struct ms_segment *segment)
{
    ms_lock(&from->lock);
    ms_segment_unlink(from, segment);
    ms_unlock(&from->lock);
    ms_segment_place(segment, to, segment->address, segment->bytes);
    ms_page_set(segment->address, segment->bytes, segment);
    ms_lock(&to->lock);
    ms_segment_link(to, segment);
    ms_unlock(&to->lock);
    ms_figures_changed(from);
    ms_figures_changed(to);
}

bool ms_stream_arena_move(struct ms_stream_arena *from, struct ms_stream_arena *to,
                          const struct ms_request *request)
{
    uint64_t least = ms_round_up(request->granted, MS_PAGE_BYTES);
    struct ms_segment *segment = set_aside(from->heap, least, longest(to, request));
    if (!segment)
        return false;
    ms_lock(&ms_streams_lock);
    bool idle = ms_wait_is_over(from, segment->address, segment->address + segment->bytes) ||
                ms_stream_arena_is_idle(from);
    ms_unlock(&ms_streams_lock);
    if (!idle) {
        put_back(from->heap, segment);
        return false;
    }
    atomic_fetch_add(&to->leaving, 1); /* it is not empty, whatever it looks like */
    ms_wait_note_growth(to, segment->address, segment->bytes);
    /* From here on it is anybody's, who may even give it back. */
    arena_move_segment(from->heap, to->heap, segment);
    atomic_fetch_sub(&to->leaving, 1);
    return true;
}
