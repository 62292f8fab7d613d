/* near.h - from the first byte of a live block to its slot, in one load, mostly: see near.c.
 *
 * Floor 2, for src/pool alone. What is found here is a guess, and has to be looked at. */
#ifndef MS_POOL_NEAR_H
#define MS_POOL_NEAR_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct ms_slot;

enum { MS_NEAR_WAYS = 5, MS_NEAR_TAG_BITS = 16 };

/** A cache line: slots, each above a tag of its block's address, and what the recorder knows the blocks
 * by. */
struct MS_CACHELINE ms_near_set {
    _Atomic uint64_t entries[MS_NEAR_WAYS];
    _Atomic uint32_t tickets[MS_NEAR_WAYS];
};
struct MS_CACHELINE ms_near_table {
    uint32_t shift; /* of a hash, which leaves the number of its set */
    struct ms_near_set sets[];
};
extern MS_HIDDEN struct ms_near_table *_Atomic ms_near;

static inline uint64_t ms_near_hash(uint64_t address)
{
    return (address >> 9) * 0x9e3779b97f4a7c15u;
}

/** Where the block's entry is, or else NULL and `way_p` unset. */
static MS_INLINE struct ms_near_set *ms_near_find(uint64_t address, unsigned *way_p)
{
    struct ms_near_table *table = atomic_load_explicit(&ms_near, memory_order_acquire);
    uint64_t hash = ms_near_hash(address);
    if (MS_UNLIKELY(!table))
        return NULL;
    struct ms_near_set *set = &table->sets[hash >> table->shift];
    for (unsigned way = 0; way < MS_NEAR_WAYS; way++) {
        uint64_t entry = atomic_load_explicit(&set->entries[way], memory_order_relaxed);
        if ((uint16_t)entry == (uint16_t)(hash >> 16) && entry >> MS_NEAR_TAG_BITS) {
            *way_p = way;
            return set;
        }
    }
    return NULL;
}

static inline struct ms_slot *ms_near_slot(const struct ms_near_set *set, unsigned way)
{
    return (struct ms_slot *)(uintptr_t)(atomic_load_explicit(&set->entries[way], memory_order_relaxed) >>
                                         MS_NEAR_TAG_BITS);
}

static inline void ms_near_set(struct ms_near_set *set, unsigned way, uint64_t hash,
                               const struct ms_slot *slot, uint32_t ticket)
{
    atomic_store_explicit(&set->tickets[way], ticket, memory_order_relaxed);
    atomic_store_explicit(&set->entries[way],
                          (uint64_t)(uintptr_t)slot << MS_NEAR_TAG_BITS | (uint16_t)(hash >> 16),
                          memory_order_relaxed);
}
/** A block was given at this address, by this ticket; the first way is free, mostly. */
void ms_near_note_somewhere(uint64_t address, const struct ms_slot *slot, uint32_t ticket);
static MS_INLINE void ms_near_note(uint64_t address, const struct ms_slot *slot, uint32_t ticket)
{
    struct ms_near_table *table = atomic_load_explicit(&ms_near, memory_order_acquire);
    uint64_t hash = ms_near_hash(address);
    struct ms_near_set *set = MS_LIKELY(table != NULL) ? &table->sets[hash >> table->shift] : NULL;
    if (MS_LIKELY(set && !atomic_load_explicit(&set->entries[0], memory_order_relaxed)))
        ms_near_set(set, 0, hash, slot, ticket);
    else
        ms_near_note_somewhere(address, slot, ticket);
}
/** What ms_near_find has found. */
static inline void ms_near_drop(struct ms_near_set *set, unsigned way)
{
    if (MS_LIKELY(set != NULL))
        atomic_store_explicit(&set->entries[way], 0, memory_order_relaxed);
}
void ms_near_reset(void);

#endif
