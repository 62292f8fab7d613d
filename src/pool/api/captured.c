/* captured.c - captures and graphs: what one may know keeps its addresses.
 *
 * What is in use while a capture is open is known to the graph that comes of it: it is marked, and not given
 * back while there are graphs, of its context, or of any where memory is in stream order. Captures begin and
 * end under the streams' lock and that of their context's fence; which are open the clock knows
 * (clock/captures.h). */
#include "pool/mapped/mapped.h"
#include "pool/stream/stream_arena.h"

static int graphs; /* of all contexts; streams' lock */

static void captured_mark(struct ms_heap *heap, bool captured)
{
    ms_lock(&heap->lock);
    for (struct ms_segment *segment = heap->extents.segments; segment; segment = segment->next) {
        if (!captured || atomic_load_explicit(&segment->use, memory_order_relaxed) >= MS_SEGMENT_CHUNK)
            segment->captured = captured;
    }
    ms_backing_captured(heap, captured);
    ms_unlock(&heap->lock);
}

void ms_captured_forget(struct ms_heap *heap)
{
    captured_mark(heap, false);
}

/* Streams' lock held. Every stream arena of every pool. */
static void mark_flows(bool captured)
{
    struct ms_mempool *pool;
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        for (struct ms_stream_arena *arena = ms_mempool_arenas(pool); arena; arena = arena->next_of_pool)
            captured_mark(arena->heap, captured);
    }
}

static void forget_flows(void)
{
    if (graphs <= 0 && !ms_captures_in(0))
        mark_flows(false);
}

/* Fence's lock held. */
static void captured_forget(struct ms_heap *heap)
{
    if (atomic_load_explicit(&heap->fence.graphs, memory_order_relaxed) <= 0 && !ms_fence_captured(heap))
        captured_mark(heap, false);
}

/* Whose fence this thread holds; a capture may begin in a context before the first allocation. */
static MS_TLS struct ms_heap *entered;

void ms_pool_capture_enter(uint64_t context)
{
    ms_lock(&ms_streams_lock);
    entered = ms_heap_known(context);
    if (entered)
        ms_lock(&entered->fence.lock);
}

static void captured_change(uint64_t context, uint64_t stream, bool open)
{
    ms_capture_set(stream, context, open);
    if (open)
        mark_flows(true);
    else
        forget_flows();
    if (entered && open)
        captured_mark(entered, true);
    else if (entered)
        captured_forget(entered);
}

void ms_pool_capture_leave(uint64_t context, uint64_t stream, bool open)
{
    struct ms_heap *heap = entered;
    if (open != ms_capture_is_open(stream, context))
        captured_change(context, stream, open);
    ms_captures_answered(); /* behind that: one that began counts as open all the time */
    entered = NULL;
    if (heap)
        ms_unlock(&heap->fence.lock);
    ms_unlock(&ms_streams_lock);
}

void ms_pool_graphs_lost(int count)
{
    ms_lock(&ms_streams_lock);
    graphs -= count;
    forget_flows();
    ms_unlock(&ms_streams_lock);
}

void ms_pool_graph_alive(uint64_t context, int count)
{
    struct ms_heap *heap = ms_heap_known(context);
    ms_lock(&ms_streams_lock);
    graphs += count;
    forget_flows();
    ms_unlock(&ms_streams_lock);
    if (!heap)
        return;
    ms_lock(&heap->fence.lock);
    atomic_fetch_add_explicit(&heap->fence.graphs, count, memory_order_relaxed);
    captured_forget(heap);
    ms_unlock(&heap->fence.lock);
}
