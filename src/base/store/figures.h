/* figures.h - the figures of memory in the pool, as the pool fills them, the ledger keeps them and the report
 * tells them: structures and their tables, made of figures.def. Also the segments that they are of.
 *
 * Floor 0. No lock, no allocation. Tables serve whoever does the same with every figure: adds up, bounds,
 * writes. */
#ifndef MS_BASE_STORE_FIGURES_H
#define MS_BASE_STORE_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How a segment is used, and what its memory is made of: a block is cut out of a span, or an extent, or is
 * by itself. */
enum ms_pool_tier { MS_TIER_SLAB, MS_TIER_EXTENT, MS_TIER_DEDICATED, MS_TIER_COUNT };

/** States of the bytes that the vendor gave, adding up to them. */
struct ms_parts {
#define MS_PART(name, key, meaning) uint64_t name;
#include "base/store/figures.def"
};

/** Figures of one device, or of one heap. `peak_parts` are those when `peak_reserved_bytes` was reached. */
struct ms_pool_figures {
    uint64_t reserved_bytes, peak_reserved_bytes;
    struct ms_parts parts, peak_parts;
#define MS_HITS()                            uint64_t hits[MS_TIER_COUNT];
#define MS_FIGURE(name, adds, told, meaning) uint64_t name;
#include "base/store/figures.def"
};

/** Figures of one of the program's own pools for one stream; `pool` and `stream` are numbers, of memshim's
 * and the driver's. */
struct ms_stream_figures {
    uint64_t pool, stream;
#define MS_STREAM_HITS()                            uint64_t hits[MS_TIER_COUNT];
#define MS_STREAM_FIGURE(name, adds, told, meaning) uint64_t name;
#include "base/store/figures.def"
    int16_t device;
    bool by_program, ended; /* the pool is no device's default one; the stream is gone */
    bool former;            /* a sum over streams of pools that were destroyed, whose memory is others' now */
};

/** Memory that the vendor gave at once. */
struct ms_segment_record {
    uint64_t address, bytes, context;
    int16_t device;
    uint8_t tier; /* enum ms_pool_tier */
    bool pinned;
    bool vmm; /* mapped by handle: gone, and there again, when it has grown */
};
/** A piece of a segment: a block, or bytes that are no block's. */
enum ms_piece_state { MS_PIECE_LIVE, MS_PIECE_PENDING, MS_PIECE_FREE, MS_PIECE_PINNED, MS_PIECE_STATES };
struct ms_piece_record {
    const struct ms_segment_record *segment;
    uint64_t offset, bytes, requested;
    uint32_t record_id; /* of a live block, 0 for none */
    uint8_t state;      /* enum ms_piece_state */
};

enum ms_figure_adds { MS_FIGURE_SUM, MS_FIGURE_MOST };
enum ms_figure_told {
    MS_FIGURE_WITHIN,
    MS_FIGURE_TIER,
    MS_FIGURE_POOL = 2,
    MS_FIGURE_OWN = 4,
    MS_FIGURE_STREAM = 8,
    MS_FIGURE_BOTH = MS_FIGURE_POOL | MS_FIGURE_STREAM
};
struct ms_figure {
    const char *key;
    uint16_t at; /* of its member in the structure */
    uint8_t adds, told;
    bool is_count; /* of what happened, which only grows */
};
/** The figures of a structure. */
struct ms_figure_list {
    const struct ms_figure *rows;
    unsigned count;
};
extern const struct ms_figure_list ms_figure_parts, ms_figure_pool, ms_figure_stream;

/** As many are in the stream's list: the members between `stream` and `device`. */
enum { MS_STREAM_FIGURES = offsetof(struct ms_stream_figures, device) / sizeof(uint64_t) - 2 };

static inline uint64_t *ms_figure_of(const struct ms_figure *row, void *structure)
{
    return (uint64_t *)((char *)structure + row->at);
}
static inline uint64_t ms_figure_in(const struct ms_figure *row, const void *structure)
{
    return *(const uint64_t *)((const char *)structure + row->at);
}
/** Adds the figures of a structure to those of another. */
void ms_figure_add(const struct ms_figure_list *list, void *sum, const void *more);
/** Takes off as much of each count as `part` has of it, perhaps in another structure. */
void ms_figure_less(const struct ms_figure_list *list, void *sum, const struct ms_figure_list *part_list,
                    const void *part);
/** Bounds what a file says; returns the sum of all of them, modulo 2^64. */
uint64_t ms_figure_bound(const struct ms_figure_list *list, void *structure, uint64_t most);

#endif
