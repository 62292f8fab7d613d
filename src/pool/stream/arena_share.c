/* arena_share.c - who else may have what a stream has freed, and what that stream has to wait for first.
 *
 * A stream arena's memory is its own stream's at once; for others it is free behind the work that its own
 * stream had when it was freed. Where the device is short, and there are several streams, an event is
 * recorded right behind each free of a larger block, and a list says which addresses were freed when. Memory
 * whose event is done may be given to any stream; and where the pool's rule allows it, memory whose event is
 * not done is given to a stream that waits for it on the device. Nobody is made to wait for an event that was
 * recorded later than the free: the stream may have been given something since that ends only when the one
 * that waits goes on.
 *
 * A stream that is idle may have left much vacant, and the next stream should have that before the driver is
 * asked. A block that is lent belongs to its stream arena all the same: freed on the other stream it is
 * nobody's until an event is done, so that both take more meanwhile. So what is vacant changes its stream
 * arena whole, with all that will be carved of it, if nothing is under way there, and goes on as if the
 * driver had given it to the other stream. What a graph may know stays where it is.
 *
 * Takes the streams' lock, and then each heap's by itself; calls of the vendor's are those of an event. */
#include <string.h>

#include "base/arena.h"
#include "pool/stream/stream_arena.h"
#include "pool/api/internal.h"

enum { PIECES = 512, TRIES = 8, PLACES = 64 };

/** A piece of memory that was freed at this point; `exact`: its mark was recorded right there. */
struct piece {
    uint64_t begin, end, point;
    bool exact;
};

struct ms_waits {
    struct ms_fence_timeline *time; /* of the stream that has the stream arena, or had it last: its points */
    uint64_t horizon;               /* what is not listed has no later one */
    uint32_t next;
    struct piece pieces[PIECES];
};

/* --- pieces: lock held --------------------------------------------------------------------------------- */

static void put_piece(struct ms_waits *waits, uint64_t begin, uint64_t end, uint64_t point, bool exact)
{
    struct piece *piece = &waits->pieces[waits->next];
    /* Slots of one span come one after another. */
    const uint32_t latest = (waits->next + PIECES - 1) % PIECES;
    if (!exact && waits->pieces[latest].begin == begin && waits->pieces[latest].end == end)
        piece = &waits->pieces[latest];
    else
        waits->next = (waits->next + 1) % PIECES;
    if (piece->point > waits->horizon && (piece->begin != begin || piece->end != end))
        waits->horizon = piece->point;
    *piece = (struct piece){begin, end, point, exact};
}

/* The latest that was freed of what lies there. */
static struct piece latest_in(const struct ms_waits *waits, uint64_t begin, uint64_t end)
{
    struct piece latest = {.point = waits->horizon};
    for (uint32_t i = 0; i < PIECES; i++) {
        const struct piece *piece = &waits->pieces[i];
        if (piece->begin < end && begin < piece->end && piece->point > latest.point)
            latest = *piece;
    }
    return latest;
}

/* --- what is freed -------------------------------------------------------------------------------------- */

/* Lock held. Everything in the stream arena was freed by `horizon`. */
static void arena_wait_begin(struct ms_waits *waits, struct ms_stream *stream, uint64_t horizon)
{
    memset(waits->pieces, 0, sizeof(waits->pieces));
    waits->next = 0;
    waits->horizon = horizon;
    waits->time = &stream->time;
}

void ms_wait_bound(struct ms_stream_arena *arena)
{
    const struct ms_mempool *pool = arena->pool;
    struct ms_waits *waits = atomic_load_explicit(&arena->waits, memory_order_relaxed);
    if (!waits && !atomic_load_explicit(&pool->marked, memory_order_relaxed))
        return;
    if (!waits && (waits = ms_arena_alloc(sizeof(*waits))) == NULL)
        return;
    /* what another stream left in it was over before */
    arena_wait_begin(waits, atomic_load_explicit(&arena->stream, memory_order_relaxed), 0);
    atomic_store_explicit(&arena->waits, waits, memory_order_release);
}

/* Lock held. From here on frees are listed. Who is in the middle of one that is not has issued all that used
 * the block before this, so that a mark from now on is behind it. */
static void arena_wait_start(struct ms_stream_arena *arena)
{
    struct ms_stream *stream = atomic_load_explicit(&arena->stream, memory_order_relaxed);
    struct ms_waits *waits;
    if (atomic_load_explicit(&arena->waits, memory_order_relaxed) || !stream ||
        !(waits = ms_arena_alloc(sizeof(*waits))))
        return;
    arena_wait_begin(waits, stream, ms_fence_timeline_point(&stream->time));
    atomic_store(&arena->waits, waits);
    ms_stream_mark(stream);
}

static bool is_short(const struct ms_mempool *pool, const struct ms_heap *heap)
{
    return atomic_load_explicit(&pool->bounded, memory_order_relaxed) ||
           ms_heap_left(heap) < heap->total_bytes / MS_WAIT_SHORT_SHARE;
}

void ms_wait_weigh(struct ms_stream_arena *arena)
{
    struct ms_mempool *pool = arena->pool;
    if (atomic_load_explicit(&pool->marked, memory_order_relaxed) ||
        atomic_load_explicit(&ms_stream_count, memory_order_relaxed) < 2 || !is_short(pool, arena->heap))
        return;
    ms_lock(&ms_streams_lock);
    atomic_store_explicit(&pool->marked, true, memory_order_relaxed);
    for (struct ms_stream_arena *each = ms_mempool_arenas(pool); each; each = each->next_of_pool)
        arena_wait_start(each);
    ms_unlock(&ms_streams_lock);
}

/* Lock held. */
static void arena_wait_note(struct ms_stream_arena *arena, uint64_t begin, uint64_t bytes, bool mark,
                            bool exact)
{
    struct ms_stream *stream = atomic_load_explicit(&arena->stream, memory_order_relaxed);
    struct ms_waits *waits = atomic_load_explicit(&arena->waits, memory_order_relaxed);
    if (!stream || !waits)
        return;
    uint64_t point = ms_fence_timeline_point(waits->time);
    bool marked = mark && ms_stream_mark(stream);
    put_piece(waits, begin, begin + bytes, point, marked && exact);
}

void ms_wait_note_free(struct ms_stream_arena *arena, const struct ms_pool_block *block)
{
    const struct ms_slot *slot = (const struct ms_slot *)(uintptr_t)block->own_item;
    const struct ms_extent *extent = slot->extent;
    bool small = extent->class_index != MS_NO_CLASS;
    ms_lock(&ms_streams_lock);
    arena_wait_note(arena, small ? ms_extent_address(extent) : block->address,
                    small ? ms_extent_bytes(extent) : block->granted, !small, true);
    ms_unlock(&ms_streams_lock);
}

void ms_wait_note_growth(struct ms_stream_arena *arena, uint64_t address, uint64_t bytes)
{
    if (!atomic_load_explicit(&arena->waits, memory_order_acquire))
        return;
    ms_lock(&ms_streams_lock);
    arena_wait_note(arena, address, bytes, true, false);
    ms_unlock(&ms_streams_lock);
}

/* --- who may have it ------------------------------------------------------------------------------------ */

bool ms_wait_is_over(const struct ms_stream_arena *arena, uint64_t begin, uint64_t end)
{
    struct ms_waits *waits = atomic_load_explicit(&arena->waits, memory_order_relaxed);
    return waits && ms_fence_timeline_is_reached(waits->time, latest_in(waits, begin, end).point, 0);
}

bool ms_wait_order(struct ms_stream *stream, struct ms_fence_timeline *time, uint64_t point)
{
    const struct ms_gpu *gpu = stream->time.gpu;
    struct ms_context_scope visit;
    if (point <= ms_fence_timeline_reached(time))
        return true;
    CUevent event = ms_fence_timeline_exact(time, point);
    if (!event || !gpu->stream_wait_event || !ms_stream_reachable(stream))
        return false;
    ms_context_scope_begin(&visit, gpu, ms_stream_context(stream));
    bool ordered =
        gpu->stream_wait_event(ms_gpu_stream(gpu, ms_stream_handle(stream)), event, 0) == CUDA_SUCCESS;
    ms_context_scope_end(&visit);
    return ordered;
}

static bool has_marks(const struct ms_stream_arena *home, const struct ms_stream_arena *arena)
{
    return home != arena && atomic_load_explicit(&home->waits, memory_order_acquire);
}

static void put_back(struct ms_stream_arena *home, struct ms_slot *const *slots, uint32_t count)
{
    struct ms_tcache *tcache = ms_tcache_lock(&home->heap->cache);
    for (uint32_t i = 0; i < count; i++)
        ms_tcache_put_ready(&home->heap->cache, tcache, slots[i]);
    ms_tcache_unlock(tcache);
}

/* Of what another stream arena has free, where it is over; a few places are looked at, since that may lie
 * behind what is not. */
static struct ms_slot *over_elsewhere(struct ms_stream_arena *home, const struct ms_request *request)
{
    struct ms_slot *aside[TRIES], *slot = NULL;
    uint32_t count = 0;
    while (count < TRIES && (slot = ms_fallback_from_heap(home->heap, request)) != NULL) {
        uint64_t begin = ms_slot_address(slot);
        ms_lock(&ms_streams_lock);
        bool over = ms_wait_is_over(home, begin, begin + slot->extent->slot_bytes);
        ms_unlock(&ms_streams_lock);
        if (over)
            break;
        aside[count++] = slot;
        slot = NULL;
    }
    if (count)
        put_back(home, aside, count);
    return slot;
}

/* The point right behind the free of all that lies there, which was one block; false if there is none. */
static bool exact_point(const struct ms_waits *waits, const struct ms_slot *slot, uint64_t *point_p)
{
    uint64_t begin = ms_slot_address(slot), end = begin + slot->extent->slot_bytes;
    struct piece latest = latest_in(waits, begin, end);
    *point_p = latest.point;
    return latest.exact && begin >= latest.begin && end <= latest.end;
}

static uint64_t length_of(const struct piece *piece)
{
    return piece->end - piece->begin;
}

/* Of the blocks that were freed, and would do, the next larger one. */
static const struct piece *next_larger(const struct ms_waits *waits, uint64_t bytes, const struct piece *than)
{
    const struct piece *best = NULL;
    for (uint32_t i = 0; i < PIECES; i++) {
        const struct piece *piece = &waits->pieces[i];
        bool later = !than || length_of(piece) > length_of(than) ||
                     (length_of(piece) == length_of(than) && piece > than);
        if (piece->exact && length_of(piece) >= bytes && later &&
            (!best || length_of(piece) < length_of(best)))
            best = piece;
    }
    return best;
}

/* Of what was freed there, what is still free. */
static struct ms_slot *arena_wait_take_of(struct ms_heap *heap, const struct piece *piece, uint64_t bytes,
                                          bool single)
{
    struct ms_slot *slot = NULL;
    ms_lock(&heap->lock);
    struct ms_segment *segment = ms_page_segment(piece->begin);
    uint32_t use = segment ? atomic_load_explicit(&segment->use, memory_order_relaxed) : MS_SEGMENT_NONE;
    if (segment && segment->heap == heap && use == MS_SEGMENT_FREE && single) {
        slot = segment->bytes >= bytes ? ms_dedicated_open(&heap->extents, segment) : NULL;
    } else if (segment && segment->heap == heap && !single) {
        bool chunk = use == MS_SEGMENT_CHUNK;
        if (use == MS_SEGMENT_FREE) {
            ms_vacant_remove(&heap->extents, segment);
            chunk = ms_extent_open(&heap->extents, segment);
            if (!chunk)
                ms_vacant_put(&heap->extents, segment);
        }
        struct ms_extent *extent =
            chunk ? ms_extent_take_within(&heap->extents, segment, piece->begin, piece->end, bytes) : NULL;
        slot = extent ? &extent->only : NULL;
        ms_extent_close(&heap->extents, segment);
    }
    ms_unlock(&heap->lock);
    return slot;
}

/* Lock held. Out of a block that another stream freed, behind that free. The driver would wait for one
 * block's free as well, but not for several that lie side by side. */
static struct ms_slot *behind(struct ms_stream_arena *arena, struct ms_stream_arena *home,
                              const struct ms_request *request)
{
    struct ms_stream *stream = atomic_load_explicit(&arena->stream, memory_order_relaxed);
    struct ms_waits *waits = atomic_load_explicit(&home->waits, memory_order_relaxed);
    uint64_t bytes = request->granted < MS_UNIT_BYTES ? MS_UNIT_BYTES : request->granted;
    const struct piece *piece = stream ? next_larger(waits, bytes, NULL) : NULL;
    for (int i = 0; i < PLACES && piece; i++, piece = next_larger(waits, bytes, piece)) {
        struct ms_slot *slot = arena_wait_take_of(home->heap, piece, bytes, request->single);
        uint64_t point;
        if (slot && exact_point(waits, slot, &point) && ms_wait_order(stream, waits->time, point))
            return slot;
        if (slot)
            put_back(home, &slot, 1);
    }
    return NULL;
}

static struct ms_slot *behind_others(struct ms_stream_arena *arena, const struct ms_request *request)
{
    struct ms_slot *slot = NULL;
    for (struct ms_stream_arena *home = ms_mempool_arenas(arena->pool); home && !slot;
         home = home->next_of_pool) {
        if (!has_marks(home, arena))
            continue;
        ms_tcache_flush(&home->heap->cache);
        ms_lock(&ms_streams_lock);
        slot = behind(arena, home, request);
        ms_unlock(&ms_streams_lock);
    }
    return slot ? slot : ms_cross_free_take(arena, request, UINT64_MAX, true);
}

/* If memshim itself takes no more (MEMSHIM_LIMIT), the driver has memory for which nobody waits. */
struct ms_slot *ms_wait_take(struct ms_stream_arena *arena, const struct ms_request *request)
{
    const struct ms_mempool *pool = arena->pool;
    bool refused = atomic_load_explicit(&arena->heap->ceiling_bytes, memory_order_relaxed) != 0;
    struct ms_slot *slot = ms_cross_free_take(arena, request, UINT64_MAX, false);
    if (slot)
        return slot;
    for (struct ms_stream_arena *home = ms_mempool_arenas(arena->pool); home && !slot;
         home = home->next_of_pool)
        slot = has_marks(home, arena) ? over_elsewhere(home, request) : NULL;
    if (slot) {
        atomic_fetch_add_explicit(&arena->borrowed, 1, memory_order_relaxed);
        return slot;
    }
    if (!refused || !atomic_load_explicit(&pool->internal, memory_order_relaxed))
        return NULL;
    if ((slot = behind_others(arena, request)) != NULL)
        atomic_fetch_add_explicit(&arena->waited, 1, memory_order_relaxed);
    return slot;
}

/* --- what changes its stream arena ---------------------------------------------------------------------- */

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

static void put_back_segment(struct ms_heap *heap, struct ms_segment *segment)
{
    ms_lock(&heap->lock);
    ms_vacant_put(&heap->extents, segment);
    ms_unlock(&heap->lock);
}

/* No block lies in it: nobody who has an address asks for its heap meanwhile. */
static void move_segment(struct ms_heap *from, struct ms_heap *to, struct ms_segment *segment)
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
        put_back_segment(from->heap, segment);
        return false;
    }
    atomic_fetch_add(&to->leaving, 1); /* it is not empty, whatever it looks like */
    ms_wait_note_growth(to, segment->address, segment->bytes);
    /* From here on it is anybody's, who may even give it back. */
    move_segment(from->heap, to->heap, segment);
    atomic_fetch_sub(&to->leaving, 1);
    return true;
}
