/* address_cache.c - the short way from an address to its slot.
 *
 * The page map leads to a slot over a segment, its units and an extent, each of which is known only when the
 * one before it has arrived from memory. So the slots of blocks that are live are kept in a table by their
 * addresses as well, five to a cache line. It is written without a lock and may forget: two threads may write
 * one place, a line may be full. Where nothing is found the long way is gone, and whatever is found is held
 * against the page map and the slot itself.
 *
 * The table grows while most of its lines are full; the old one stays with whoever reads it, and what it knew
 * is found the long way. At most 16 MiB, for a million live blocks; a third of that in tables before. The
 * first one is there from the beginning, with lines enough for threads to meet in few of them. */
#include <string.h>

#include "base/arena.h"
#include "base/lock.h"
#include "pool/space/address_cache.h"

enum {
    FIRST_BITS = 11,
    MOST_BITS = 18,
    GROWTH_BITS = 2,
    LOOK_EVERY = 64,
    LOOKED_AT = 16,
    FULL = LOOKED_AT * MS_ADDRESS_CACHE_WAYS / 5 * 4
};

static struct ms_address_cache_set first[1 << FIRST_BITS];
/* (A sum, since an address may be added to where it is not known yet.) */
_Atomic uintptr_t ms_address_cache = (uintptr_t)first + (64 - FIRST_BITS);
static _Atomic uint32_t crowded;
static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_POOL_TABLES);

static unsigned bits_of(uintptr_t table)
{
    return 64 - (unsigned)(table & MS_ADDRESS_CACHE_SHIFT);
}

/* Instead of `old`, unless another thread was first. */
static MS_NOINLINE void address_cache_grow(uintptr_t old)
{
    unsigned bits = bits_of(old) + GROWTH_BITS;
    if (bits > MOST_BITS)
        bits = MOST_BITS;
    ms_lock(&lock);
    if (atomic_load_explicit(&ms_address_cache, memory_order_relaxed) == old) {
        uintptr_t sets = (uintptr_t)ms_arena_alloc(((size_t)1 << bits) * sizeof first[0]);
        if (sets)
            atomic_store_explicit(&ms_address_cache, sets | (64 - bits), memory_order_release);
    }
    ms_unlock(&lock);
}

/* A line is full: now and then, whether those around it are as well. */
static MS_NOINLINE void look_around(uintptr_t table, uint64_t hash)
{
    unsigned bits = bits_of(table), used = 0;
    if (bits >= MOST_BITS || atomic_fetch_add_explicit(&crowded, 1, memory_order_relaxed) % LOOK_EVERY)
        return;
    uint64_t number = hash >> (64 - bits);
    for (uint64_t i = 0; i < LOOKED_AT; i++) {
        const struct ms_address_cache_set *set =
            ms_address_cache_set_of(table, 0) + ((number + i) & (((uint64_t)1 << bits) - 1));
        for (unsigned way = 0; way < MS_ADDRESS_CACHE_WAYS; way++)
            used += atomic_load_explicit(&set->entries[way], memory_order_relaxed) != 0;
    }
    if (used >= FULL)
        address_cache_grow(table);
}

void ms_address_cache_note_somewhere(uintptr_t table, uint64_t hash, const struct ms_slot *slot,
                                     uint32_t record_id)
{
    struct ms_address_cache_set *set = ms_address_cache_set_of(table, hash);
    unsigned way = 1;
    while (way < MS_ADDRESS_CACHE_WAYS && atomic_load_explicit(&set->entries[way], memory_order_relaxed))
        way++;
    if (MS_UNLIKELY(way == MS_ADDRESS_CACHE_WAYS)) {
        way = (unsigned)(hash >> 17) % MS_ADDRESS_CACHE_WAYS;
        look_around(table, hash);
    }
    ms_address_cache_set(set, way, hash, slot, record_id);
}

static void near_reset(void)
{
    ms_lock_reset(&lock);
    memset((void *)first, 0, sizeof first);
    atomic_store_explicit(&ms_address_cache, (uintptr_t)first + (64 - FIRST_BITS), memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_POOL, near_reset);
