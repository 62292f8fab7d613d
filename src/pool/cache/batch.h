/* batch.h - blocks on their way through the pending list.
 *
 * Floor 2, for src/pool/ and its tests alone. Whose lock a batch is under says who has it: a thread cache, or
 * its heap's list of what is pending. */
#ifndef MS_POOL_CACHE_BATCH_H
#define MS_POOL_CACHE_BATCH_H

#include <stdint.h>

enum { MS_BATCH_ITEMS = 61 };

struct ms_slot;

/** Of one class, or any that have none. */
struct ms_batch {
    struct ms_batch *next;
    uint64_t epoch; /* the newest of its items */
    uint32_t count;
    uint16_t tcache, class_index; /* pending: whose it was, by the heap's number, and of what it is */
    struct ms_slot *items[MS_BATCH_ITEMS];
};

/** An empty one; NULL without memory. Any thread, any lock of the pool's but the tables'. */
struct ms_batch *ms_batch_new(void);
void ms_batch_drop(struct ms_batch *batch);

#endif
