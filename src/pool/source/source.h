/* source.h - where the memory of a heap comes from: what it does, and what holds of what it gives.
 *
 * Floor 2, for src/pool/ alone. One for each kind: the vendor's allocations in a context, and those of a
 * vendor whose free waits for the device (segment.c); what a program's own pool gives in the order of a
 * stream (stream_arena.c). Functions are called without a lock, and call the vendor; a status is the
 * vendor's. */
#ifndef MS_POOL_SOURCE_SOURCE_H
#define MS_POOL_SOURCE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct ms_heap;
struct ms_segment;

/** Memory that was given: a whole number of pages, and the allocation of the vendor's that has to go back for
 * them. */
struct ms_given {
    uint64_t address, base, base_bytes;
};

struct ms_source {
    int (*take)(struct ms_heap *heap, uint64_t bytes, struct ms_given *given_p);
    /** "Not ready" where it cannot go now. */
    int (*give)(struct ms_heap *heap, const struct ms_segment *segment);
    /** How many, from the first on, went where nobody waits for them. NULL: none ever. */
    uint32_t (*give_aside)(struct ms_heap *heap, struct ms_segment *const *segments, uint32_t count);
    /** True if what is vacant can go back now. Looks again, with naps, for `ns`. */
    bool (*is_quiet)(struct ms_heap *heap, uint64_t ns);
    /** True if the vendor answers for what it gave as the pool relies on. NULL: it does. */
    bool (*is_known)(struct ms_heap *heap, const struct ms_segment *segment);
    /** Blocks are packed by 512 bytes, and nothing has to be an allocation of its own. */
    bool packed;
};

extern const struct ms_source ms_source_context, ms_source_device, ms_source_pool;

#endif
