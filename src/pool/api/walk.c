/* walk.c - what lies in the segments, piece by piece.
 *
 * All locks of a heap are held while its pieces are told, and those of all heaps where the caller has stopped
 * the pool: the listener calls nobody. Segments come in the order in which the vendor gave them, newest
 * first; pieces in order of address. */
#include "pool/api/internal.h"
#include "pool/external/external.h"

typedef void (*tell_func)(void *arg, const struct ms_piece_record *piece);

static enum ms_piece_state walk_state_of(enum ms_slot_state state)
{
    switch (state) {
    case MS_SLOT_LIVE:
    case MS_SLOT_RETIRING:
        return MS_PIECE_LIVE;
    case MS_SLOT_PENDING:
        return MS_PIECE_PENDING;
    case MS_SLOT_PINNED:
        return MS_PIECE_PINNED;
    default:
        return MS_PIECE_FREE;
    }
}

static void walk_run(struct ms_extent *extent, struct ms_piece_record *piece, tell_func tell, void *arg)
{
    uint64_t begin = ms_extent_address(extent) - piece->segment->address;
    if (extent->free || extent->vacuum != MS_VACUUM_NONE) {
        *piece = (struct ms_piece_record){.segment = piece->segment,
                                          .offset = begin,
                                          .bytes = ms_extent_bytes(extent),
                                          .state = MS_PIECE_FREE};
        tell(arg, piece);
        return;
    }
    for (uint32_t i = 0; i < ms_extent_slot_count(extent); i++) {
        const struct ms_slot *slot = ms_extent_slot(extent, i);
        piece->offset = begin + i * extent->slot_bytes;
        piece->bytes = extent->slot_bytes;
        piece->state = walk_state_of(ms_slot_state(slot));
        piece->requested =
            piece->state == MS_PIECE_LIVE ? atomic_load_explicit(&slot->requested, memory_order_relaxed) : 0;
        piece->record_id =
            piece->state == MS_PIECE_LIVE ? atomic_load_explicit(&slot->record_id, memory_order_relaxed) : 0;
        tell(arg, piece);
    }
    /* The bytes that a span has behind its last slot. */
    uint64_t told = ms_extent_slot_count(extent) * extent->slot_bytes;
    if (told < ms_extent_bytes(extent)) {
        *piece = (struct ms_piece_record){.segment = piece->segment,
                                          .offset = begin + told,
                                          .bytes = ms_extent_bytes(extent) - told,
                                          .state = MS_PIECE_FREE};
        tell(arg, piece);
    }
}

/* Without memory behind it, or with what is not the heap's yet. */
static bool is_hole(const struct ms_extent *extent)
{
    return extent->vacuum == MS_VACUUM_HOLE || extent->vacuum == MS_VACUUM_FILLING;
}

/* A range is a segment for each stretch without a hole. */
static void walk_range(const struct ms_segment *segment, struct ms_segment_record *about, tell_func tell,
                       void *arg)
{
    struct ms_piece_record piece = {.segment = about};
    about->vmm = true;
    about->bytes = 0;
    for (struct ms_extent *extent = segment->first; extent; extent = extent->after) {
        if (is_hole(extent)) {
            about->bytes = 0;
            continue;
        }
        if (!about->bytes) {
            about->address = ms_extent_address(extent);
            for (const struct ms_extent *more = extent; more && !is_hole(more); more = more->after)
                about->bytes += ms_extent_bytes(more);
        }
        walk_run(extent, &piece, tell, arg);
    }
}

static void walk_segment(const struct ms_heap *heap, const struct ms_segment *segment, tell_func tell,
                         void *arg)
{
    uint32_t use = atomic_load_explicit(&segment->use, memory_order_relaxed);
    struct ms_segment_record about = {.address = segment->address,
                                      .bytes = segment->bytes,
                                      .context = heap->context,
                                      .device = (int16_t)heap->device,
                                      .tier = use == MS_SEGMENT_CHUNK ? MS_TIER_EXTENT : MS_TIER_DEDICATED,
                                      .pinned = segment->captured};
    struct ms_piece_record piece = {.segment = &about, .bytes = segment->bytes, .state = MS_PIECE_FREE};
    if (segment->backing) {
        walk_range(segment, &about, tell, arg);
        return;
    }
    if (!segment->first)
        tell(arg, &piece);
    for (struct ms_extent *extent = segment->first; extent; extent = extent->after)
        walk_run(extent, &piece, tell, arg);
}

void ms_pool_walk(tell_func tell, void *arg)
{
    struct ms_heap *heap;
    for (uint32_t i = 0; (heap = ms_heap_next(&i)) != NULL;) {
        ms_heap_lock_all(heap);
        ms_tcache_settle(&heap->cache, ms_stop_done(heap));
        for (const struct ms_segment *segment = heap->extents.segments; segment; segment = segment->next)
            walk_segment(heap, segment, tell, arg);
        ms_heap_unlock_all(heap);
    }
    ms_external_walk(tell, arg);
}
