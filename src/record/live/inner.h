/* inner.h - inner blocks: pieces of the program's blocks that an allocator of the program's own gave on, and
 * the heaps that they are of.
 *
 * Floor 2. A framework's caching allocator asks the vendor for segments and gives the program tensors in
 * them. A tensor is an inner block: it is recorded as any other (ledger.h), in the same tables and by the
 * same functions, but in a layer of its own (base/devices.h), so that it is never added to the segment in
 * which it lies. A heap is the memory of one such allocator on one device. May be called where ledger.h's
 * functions may; nothing is allocated but rows. */
#ifndef MS_RECORD_LIVE_INNER_H
#define MS_RECORD_LIVE_INNER_H

#include "record/live/internal.h"

enum { MS_HEAP_NAME_BYTES = 64 };

struct MS_CACHELINE ms_heap_row {
    _Atomic uint32_t state; /* 1 once it says what it is */
    int16_t device;         /* of the outer layer; MS_DEVICE_NONE where that is not known */
    uint16_t api;           /* who reports its blocks */
    char name[MS_HEAP_NAME_BYTES];
    /* Of its segments, as the allocator says; 0 if it does not. */
    _Atomic uint64_t reserved_bytes, peak_reserved_bytes;
    uint64_t live_bytes, live_count; /* of its blocks; filled in where it is copied */
    uint64_t unused[3];
};
_Static_assert(sizeof(struct ms_heap_row) == MS_TABLE_HEAPS_ROW_BYTES, "a row of the ledger");

/** The heap of that name, device and reporter, which is made the first time; the name is cut to what fits.
 * 0 without room for one more. */
uint32_t ms_heap_open(const char *name, int device, uint16_t api);
/** The heap on `device` of the same name and reporter as `heap`; 0 for one that does not exist. */
uint32_t ms_heap_on(uint32_t heap, int device);
/** The allocator says that its segments have so many bytes. `heap` may be 0. */
void ms_heap_reserved(uint32_t heap, uint64_t bytes);
/** It says that they have so many more, or fewer. */
void ms_heap_reserved_more(uint32_t heap, int64_t bytes);
/** Copies `count` rows. */
void ms_heaps_copy(struct ms_heap_row *rows, uint32_t count);
/** Of a file that was read: nothing in the rows is beyond what it may be. */
void ms_heaps_clean(void);

/** A piece at `address` was given to the program, of heap `heap` (0: of none that is known). A piece that is
 * live there ends, as one whose end was not told. The upper half of `heap` is the reporter's own, by which
 * what it has several of under one name is told apart in ms_inner_free_all. Where `ends_with_block` it ends
 * with the block that it lies in, if its end is not told before; from the first such on, no block of the
 * process goes the fast path. */
void ms_inner_alloc(uint64_t heap, uint64_t address, uint64_t bytes, int device, uint16_t api,
                    uint32_t thread, ms_stack_id stack, bool ends_with_block);
/** It was given back. False if none was live there. */
bool ms_inner_free(uint64_t address);
/** A block ends, whose memory is nobody else's yet: what is left of such pieces in it ends. No lock held. */
void ms_inner_end_within(const struct ms_block *block);
/** All pieces of that heap (upper half included) were given back. Goes through the whole record. */
void ms_inner_free_all(uint64_t heap);
/** It has so many bytes from now on, and is the same piece. */
bool ms_inner_resize(uint64_t address, uint64_t bytes);
/** Who has it calls it so (ms_phase_text). */
bool ms_inner_name(uint64_t address, uint32_t name);
/** The api of who reported the piece that is live at `address`; -1 if none is. */
int ms_inner_api(uint64_t address);
/** The heap of an inner block; 0 for none. */
static inline uint32_t ms_inner_heap(const struct ms_block *block)
{
    return (uint32_t)block->context;
}

#endif
