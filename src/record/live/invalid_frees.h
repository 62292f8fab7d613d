/* invalid_frees.h - frees that were refused, of what had been freed before or of an address inside a block.
 *
 * Floor 2. Nothing is kept for this but what the record has anyway: a row still says what lived in it until
 * it is used again, and a site which block was freed last. Only a free that was refused is looked into. */
#ifndef MS_RECORD_LIVE_INVALID_FREES_H
#define MS_RECORD_LIVE_INVALID_FREES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "record/live/internal.h"

/** One pair of places: where was freed, and where the block was allocated. The last rows have what found
 * none. */
struct ms_invalid_free_row {
    _Atomic uint64_t count; /* written last; 0: there is no such row */
    uint64_t bytes;         /* of the blocks, added up */
    uint64_t t_ns;          /* of the first, as the rest: */
    uint64_t given;         /* what the program gave */
    uint64_t begin;
    uint64_t block_bytes; /* of a use, where all that is counted is of one block: the stack of its free */
    ms_stack_id stack;    /* of the free, or of the use */
    uint32_t site;        /* of the allocation, in shard 0; UINT32_MAX if that is not known */
    uint16_t api;         /* the function that was to free it */
    int16_t device;
    uint8_t rule;  /* enum ms_invalid_free_rule */
    uint8_t space; /* enum ms_space */
    uint16_t unused;
};
_Static_assert(sizeof(struct ms_invalid_free_row) == MS_TABLE_INVALID_FREES_ROW_BYTES, "a row of the ledger");

enum { MS_INVALID_FREES_MAX = MS_TABLE_INVALID_FREES_ROWS };

/** Copies the rows that there are, at most MS_INVALID_FREES_MAX; the rests come last. Waits for the lock at
 * most `timeout_ms`; false without. */
bool ms_invalid_frees_copy(struct ms_invalid_free_row *rows, uint32_t *count_p, unsigned timeout_ms);

/** Blocks went without having been freed: what is remembered of their addresses from before may be wrong. */
void ms_invalid_frees_forget(uint64_t now_ns);

#endif
