/* pagemap.c - from any address to the segment that it may lie in, in two loads and without a lock.
 *
 * Pages of 2 MiB over 48 bits: a root of 2^13 leaves, each of 2^14 entries, taken from the arena when first
 * needed and kept for ever. Segments begin on a page and are at least a page long, so no two of them share
 * one; their last page may be shared with memory of others, so callers look at the segment's own bounds.
 * Entries are written under the heap's lock. */
#include "base/arena.h"
#include "base/at_fork.h"
#include "base/count.h"
#include "pool/space/pagemap.h"

enum { LEAF_BITS = MS_PAGE_LEAF_BITS, ROOT_BITS = MS_PAGE_ROOT_BITS, PAGE_BITS = MS_PAGE_BITS };

struct ms_page_root ms_page_root;

static struct ms_page_leaf *leaf_of(uint64_t page, bool make)
{
    if (page >> (LEAF_BITS + ROOT_BITS))
        return NULL;
    struct ms_page_leaf *_Atomic *at = &ms_page_root.leaves[page >> LEAF_BITS];
    struct ms_page_leaf *leaf = atomic_load_explicit(at, memory_order_acquire);
    if (leaf || !make)
        return leaf;
    leaf = ms_arena_alloc(sizeof *leaf);
    struct ms_page_leaf *other = NULL;
    if (leaf && !atomic_compare_exchange_strong(at, &other, leaf))
        leaf = other; /* two heaps at once: what was mapped in vain stays zero and unused */
    return leaf;
}

static struct ms_segment *_Atomic *entry_of(uint64_t page)
{
    struct ms_page_leaf *leaf = leaf_of(page, false);
    return leaf ? &leaf->pages[page & ((1 << LEAF_BITS) - 1)] : NULL;
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
        struct ms_segment *_Atomic *at = entry_of(page);
        struct ms_segment *expected = segment;
        if (at)
            atomic_compare_exchange_strong(at, &expected, NULL);
    }
}

static void page_reset(void)
{
    for (unsigned i = 0; i < MS_ARRAY_LEN(ms_page_root.leaves); i++)
        atomic_store_explicit(&ms_page_root.leaves[i], NULL, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_POOL, page_reset);
