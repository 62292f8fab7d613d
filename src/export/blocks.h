/* blocks.h - segments[] of a report as whole, tiled memory, and what is known of when its blocks came and
 * went.
 *
 * Floor 4, command line only. Reports are not trusted: what overlaps or sticks out is left out, and what no
 * block covers is free. */
#ifndef MS_EXPORT_BLOCKS_H
#define MS_EXPORT_BLOCKS_H

#include "export/events.h"
#include "export/model.h"

enum ms_block_state { MS_BLOCK_LIVE, MS_BLOCK_PENDING, MS_BLOCK_FREE };

struct ms_map_block {
    uint64_t address, bytes, requested;
    enum ms_block_state state;
    size_t site;     /* in the model; SIZE_MAX if not known */
    int64_t born_ns; /* of a live one; else 0 */
    uint64_t stream; /* its handle */
};

struct ms_map_segment {
    size_t device; /* row of devices[] */
    uint64_t address, bytes;
    const char *tier;
    size_t first, count; /* blocks: map->blocks[first .. first + count), in order, from end to end */
};

enum ms_map_kind { MS_MAP_ALLOC, MS_MAP_FREE, MS_MAP_OOM };

/** An event. A block that is gone lay where the trace says, if that is in a segment that is still there; else
 * it has an address that is nobody else's, and was a segment by itself. */
struct ms_map_event {
    int64_t ns;
    enum ms_map_kind kind;
    bool alone; /* the block was a segment by itself */
    size_t device, site, order;
    uint64_t address, bytes, stream, left; /* left: what the device had, of MS_MAP_OOM */
};

struct ms_map {
    struct ms_map_segment *segments;
    struct ms_map_block *blocks;
    struct ms_map_event *events; /* by device, then in the order of time */
    size_t segment_count, block_count, event_count;
};

/** Put it together; `events` may be NULL: then only what is live has appeared. Returns 0, or -1 without
 * memory. */
int ms_map_open(struct ms_map *map, const struct ms_model *model, const struct ms_events *events);
void ms_map_close(struct ms_map *map);

#endif
