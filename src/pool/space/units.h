/* units.h - from an address in a chunk to the extent in use that it lies in.
 *
 * Floor 2, for src/pool/ and its tests alone; knows no GPU and no streams. A chunk is so many units of 64
 * KiB. What is in use is at least a unit long, so at most one such run begins in each: that is the unit's
 * entry, and a bit says that there is one, so that the last that begins before an address is found by whole
 * words. The bits lie before the entries, the first unit's in the word next to them, so that whoever has the
 * one without a lock has the other. Written under the heap's lock. */
#ifndef MS_POOL_SPACE_UNITS_H
#define MS_POOL_SPACE_UNITS_H

#include "pool/space/records.h"

enum { MS_UNITS_OF_WORD = 64 };

/** Bytes of bits before the entries, in whole cache lines. */
static inline uint64_t ms_units_front(uint64_t entry_bytes)
{
    return ms_round_up(entry_bytes / sizeof(ms_unit) / 8 + 1, 64);
}

static inline _Atomic uint64_t *ms_units_word(ms_unit *units, uint64_t unit)
{
    return (_Atomic uint64_t *)units - 1 - unit / MS_UNITS_OF_WORD;
}

static inline uint64_t ms_units_bit(uint64_t unit)
{
    return (uint64_t)1 << unit % MS_UNITS_OF_WORD;
}

/** The entry of the unit in which an extent of a chunk begins. Heap's lock held. */
static inline ms_unit *ms_units_of(const struct ms_extent *extent, uint64_t *unit_p)
{
    const struct ms_segment *segment = extent->segment;
    *unit_p = (ms_extent_address(extent) - segment->address) / MS_UNIT_BYTES;
    return atomic_load_explicit(&segment->units, memory_order_relaxed);
}

/** An extent of a chunk is in use from now on; and no more. */
static inline void ms_units_set(struct ms_extent *extent)
{
    uint64_t unit;
    ms_unit *units = ms_units_of(extent, &unit);
    _Atomic uint64_t *word = ms_units_word(units, unit);
    atomic_store_explicit(&units[unit], extent, memory_order_release);
    atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) | ms_units_bit(unit),
                          memory_order_release);
}

static inline void ms_units_clear(const struct ms_extent *extent)
{
    uint64_t unit;
    ms_unit *units = ms_units_of(extent, &unit);
    _Atomic uint64_t *word = ms_units_word(units, unit);
    atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) & ~ms_units_bit(unit),
                          memory_order_release);
    atomic_store_explicit(&units[unit], NULL, memory_order_release);
}

/** The extent that begins in the unit or last before it; NULL: none. No lock. */
static inline struct ms_extent *ms_units_last(ms_unit *units, uint64_t unit)
{
    uint64_t here = UINT64_MAX >> (MS_UNITS_OF_WORD - 1 - unit % MS_UNITS_OF_WORD), bits;
    for (uint64_t left = unit / MS_UNITS_OF_WORD + 1; left; left--, here = UINT64_MAX) {
        uint64_t first = (left - 1) * MS_UNITS_OF_WORD;
        bits = atomic_load_explicit(ms_units_word(units, first), memory_order_acquire) & here;
        if (bits)
            return atomic_load_explicit(&units[first + 63 - (uint64_t)__builtin_clzll(bits)],
                                        memory_order_acquire);
    }
    return NULL;
}

#endif
