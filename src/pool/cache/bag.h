/* bag.h - blocks on their way through limbo.
 *
 * Floor 2, for src/pool/ and its tests alone. Whose lock a bag is under says who has it: a lease, or its
 * heap's list of what is in limbo. */
#ifndef MS_POOL_CACHE_BAG_H
#define MS_POOL_CACHE_BAG_H

#include <stdint.h>

enum { MS_BAG_ITEMS = 61 };

struct ms_slot;

/** Of one class, or any that have none. */
struct ms_bag {
    struct ms_bag *next;
    uint64_t epoch; /* the newest of its items */
    uint32_t count;
    uint16_t lease, class_index; /* in limbo: whose it was, by the heap's number, and of what it is */
    struct ms_slot *items[MS_BAG_ITEMS];
};

/** An empty one; NULL without memory. Any thread, any lock of the pool's but the tables'. */
struct ms_bag *ms_bag_new(void);
void ms_bag_drop(struct ms_bag *bag);
/** In a fork child: those that there were are nobody's. */
void ms_bags_reset(void);

#endif
