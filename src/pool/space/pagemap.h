/* pagemap.h - from any address to the segment that it may lie in: see pagemap.c.
 *
 * Floor 2, for src/pool alone. Reading takes no lock: a leaf is there for ever, and so are the records that
 * its pages name. */
#ifndef MS_POOL_SPACE_PAGEMAP_H
#define MS_POOL_SPACE_PAGEMAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct ms_segment;

enum { MS_PAGE_LEAF_BITS = 14, MS_PAGE_ROOT_BITS = 13, MS_PAGE_BITS = 21 };
struct ms_page_leaf {
    struct ms_segment *_Atomic pages[1 << MS_PAGE_LEAF_BITS];
};
extern MS_HIDDEN struct ms_page_root {
    struct ms_page_leaf *_Atomic leaves[1 << MS_PAGE_ROOT_BITS];
} ms_page_root;

static inline struct ms_segment *ms_page_segment(uint64_t address)
{
    uint64_t page = address >> MS_PAGE_BITS;
    if (MS_UNLIKELY(page >> (MS_PAGE_LEAF_BITS + MS_PAGE_ROOT_BITS)))
        return NULL;
    struct ms_page_leaf *leaf =
        atomic_load_explicit(&ms_page_root.leaves[page >> MS_PAGE_LEAF_BITS], memory_order_acquire);
    if (!leaf)
        return NULL;
    return atomic_load_explicit(&leaf->pages[page & ((1 << MS_PAGE_LEAF_BITS) - 1)], memory_order_acquire);
}

/** False if the system has no memory for it; then nothing changed. */
bool ms_page_set(uint64_t address, uint64_t bytes, struct ms_segment *segment);
/** Clears the entries that are still this segment's: when a context has ended, another may have its addresses
 * already. */
void ms_page_clear(uint64_t address, uint64_t bytes, struct ms_segment *segment);

#endif
