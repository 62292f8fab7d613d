/* pagemap.c - from any address to the segment that it may lie in, in two loads and without a lock.
 *
 * Pages of 2 MiB over 48 bits: a root of 2^13 leaves, each of 2^14 entries, taken from the arena when first
 * needed and kept for ever. Segments begin on a page and are at least a page long, so no two of them share
 * one; their last page may be shared with memory of others, so callers look at the segment's own bounds.
 * Entries are written under the heap's lock. */
#include "config.h"

#include "base/arena.h"
#include "pool/internal.h"

enum { LEAF_BITS = 14, ROOT_BITS = 13, PAGE_BITS = 21 };

typedef struct ms_segment *_Atomic entry;

static entry *_Atomic root[1 << ROOT_BITS];

static entry *leaf_of(uint64_t page, bool make)
{
    if (page >> (LEAF_BITS + ROOT_BITS))
        return NULL;
    entry *_Atomic *at = &root[page >> LEAF_BITS];
    entry *leaf = atomic_load_explicit(at, memory_order_acquire);
    if (leaf || !make)
        return leaf;
    leaf = ms_arena_alloc(sizeof(entry) << LEAF_BITS);
    entry *other = NULL;
    if (leaf && !atomic_compare_exchange_strong(at, &other, leaf))
        leaf = other; /* two heaps at once: what was mapped in vain stays zero and unused */
    return leaf;
}

struct ms_segment *ms_page_segment(uint64_t address)
{
    uint64_t page = address >> PAGE_BITS;
    entry *leaf = leaf_of(page, false);
    if (!leaf)
        return NULL;
    return atomic_load_explicit(&leaf[page & ((1 << LEAF_BITS) - 1)], memory_order_acquire);
}

static entry *entry_of(uint64_t page)
{
    entry *leaf = leaf_of(page, false);
    return leaf ? &leaf[page & ((1 << LEAF_BITS) - 1)] : NULL;
}

bool ms_page_set(uint64_t address, uint64_t bytes, struct ms_segment *segment)
{
    if (address + bytes < address)
        return false;
    for (uint64_t page = address >> PAGE_BITS;; page = ((page >> LEAF_BITS) + 1) << LEAF_BITS) {
        if (page > (address + bytes - 1) >> PAGE_BITS)
            break;
        if (!leaf_of(page, true))
            return false;
    }
    for (uint64_t page = address >> PAGE_BITS; page <= (address + bytes - 1) >> PAGE_BITS; page++)
        atomic_store_explicit(entry_of(page), segment, memory_order_release);
    return true;
}

void ms_page_clear(uint64_t address, uint64_t bytes, struct ms_segment *segment)
{
    for (uint64_t page = address >> PAGE_BITS; page <= (address + bytes - 1) >> PAGE_BITS; page++) {
        entry *at = entry_of(page);
        struct ms_segment *expected = segment;
        if (at)
            atomic_compare_exchange_strong(at, &expected, NULL);
    }
}

void ms_page_reset(void)
{
    for (unsigned i = 0; i < MS_ARRAY_LEN(root); i++)
        atomic_store_explicit(&root[i], NULL, memory_order_relaxed);
}
