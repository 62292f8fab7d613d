/* address_cache.h - from the first byte of a live block to its slot, in one load, mostly: see
 * address_cache.c.
 *
 * Floor 2, for src/pool alone. What is found here is a guess, and has to be looked at. */
#ifndef MS_POOL_SPACE_ADDRESS_CACHE_H
#define MS_POOL_SPACE_ADDRESS_CACHE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct ms_slot;

enum { MS_ADDRESS_CACHE_WAYS = 5, MS_ADDRESS_CACHE_TAG_BITS = 16 };

/** A cache line: slots, each above a tag of its block's address, and what the recorder knows the blocks
 * by. */
struct MS_CACHELINE ms_address_cache_set {
    _Atomic uint64_t entries[MS_ADDRESS_CACHE_WAYS];
    _Atomic uint32_t tickets[MS_ADDRESS_CACHE_WAYS];
};
/** The table: where its sets begin, at a cache line, and in the bits below that how far a hash is shifted to
 * the right, which leaves the number of its set. There always is one. */
extern MS_HIDDEN _Atomic uintptr_t ms_address_cache;
#define MS_ADDRESS_CACHE_SHIFT ((uintptr_t)63)

static inline uint64_t ms_address_cache_hash(uint64_t address)
{
    return address * 0x9e3779b97f4a7c15u; /* blocks begin at multiples of 512: the low bits are none */
}
static inline uint16_t ms_address_cache_tag(uint64_t hash)
{
    return (uint16_t)(hash >> 25);
}
static MS_INLINE struct ms_address_cache_set *ms_address_cache_set_of(uintptr_t table, uint64_t hash)
{
    return (struct ms_address_cache_set *)(table & ~MS_ADDRESS_CACHE_SHIFT) +
           (hash >> (table & MS_ADDRESS_CACHE_SHIFT));
}

/** The slot that the table has for the address, as it seems, and where; or else NULL and the rest unset. */
static MS_INLINE struct ms_slot *ms_address_cache_find(uint64_t address, struct ms_address_cache_set **set_p,
                                                       unsigned *way_p)
{
    uint64_t hash = ms_address_cache_hash(address);
    struct ms_address_cache_set *set =
        ms_address_cache_set_of(atomic_load_explicit(&ms_address_cache, memory_order_acquire), hash);
    for (unsigned way = 0; way < MS_ADDRESS_CACHE_WAYS; way++) {
        uint64_t entry = atomic_load_explicit(&set->entries[way], memory_order_relaxed);
        if (MS_LIKELY((uint16_t)entry == ms_address_cache_tag(hash) && entry >> MS_ADDRESS_CACHE_TAG_BITS)) {
            *set_p = set;
            *way_p = way;
            return (struct ms_slot *)(uintptr_t)(entry >> MS_ADDRESS_CACHE_TAG_BITS);
        }
    }
    return NULL;
}

static inline void ms_address_cache_set(struct ms_address_cache_set *set, unsigned way, uint64_t hash,
                                        const struct ms_slot *slot, uint32_t record_id)
{
    atomic_store_explicit(&set->tickets[way], record_id, memory_order_relaxed);
    atomic_store_explicit(&set->entries[way],
                          (uint64_t)(uintptr_t)slot << MS_ADDRESS_CACHE_TAG_BITS | ms_address_cache_tag(hash),
                          memory_order_relaxed);
}
/** One will be given there: the line for it is on its way. */
static MS_INLINE void ms_address_cache_fetch(uint64_t address)
{
    __builtin_prefetch(ms_address_cache_set_of(atomic_load_explicit(&ms_address_cache, memory_order_acquire),
                                               ms_address_cache_hash(address)),
                       1);
}
/** A block was given at an address of this hash, and the first way is not free. */
void ms_address_cache_note_somewhere(uintptr_t table, uint64_t hash, const struct ms_slot *slot,
                                     uint32_t record_id);
/** A block was given at this address, by this record id. */
static MS_INLINE void ms_address_cache_note(uint64_t address, const struct ms_slot *slot, uint32_t record_id)
{
    uintptr_t table = atomic_load_explicit(&ms_address_cache, memory_order_acquire);
    uint64_t hash = ms_address_cache_hash(address);
    struct ms_address_cache_set *set = ms_address_cache_set_of(table, hash);
    if (MS_LIKELY(!atomic_load_explicit(&set->entries[0], memory_order_relaxed)))
        ms_address_cache_set(set, 0, hash, slot, record_id);
    else
        ms_address_cache_note_somewhere(table, hash, slot, record_id);
}
/** Drops the entry that ms_address_cache_find has found. */
static inline void ms_address_cache_drop(struct ms_address_cache_set *set, unsigned way)
{
    atomic_store_explicit(&set->entries[way], 0, memory_order_relaxed);
}

#endif
