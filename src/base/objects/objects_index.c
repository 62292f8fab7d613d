/* objects_index.c - see objects_index.h. */
#include <stdatomic.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/objects/objects_index.h"

/* 48 bits of addresses by pages of 4 KiB: three levels of 12 bits. */
enum { PAGE_LOG = 12, LEVEL_LOG = 12, WIDTH = 1 << LEVEL_LOG, PAGES_MAX = 1 << 22 };
#define ADDRESS_END (UINT64_C(1) << (PAGE_LOG + 3 * LEVEL_LOG))

struct leaf {
    _Atomic uint32_t rows[WIDTH]; /* + 1 */
};
struct branch {
    struct leaf *_Atomic leaves[WIDTH];
};

static struct branch *_Atomic root[WIDTH];
static _Atomic bool is_used;

static struct leaf *leaf_of(uint64_t page)
{
    struct branch *branch = atomic_load_explicit(&root[page >> 2 * LEVEL_LOG], memory_order_acquire);
    return branch
               ? atomic_load_explicit(&branch->leaves[page >> LEVEL_LOG & (WIDTH - 1)], memory_order_acquire)
               : NULL;
}

static struct leaf *make_leaf(uint64_t page)
{
    struct branch *_Atomic *at = &root[page >> 2 * LEVEL_LOG];
    struct branch *branch = atomic_load_explicit(at, memory_order_relaxed);
    if (!branch) {
        branch = ms_arena_alloc(sizeof *branch);
        if (!branch)
            return NULL;
        atomic_store_explicit(at, branch, memory_order_release);
    }
    struct leaf *leaf = ms_arena_alloc(sizeof *leaf);
    if (leaf)
        atomic_store_explicit(&branch->leaves[page >> LEVEL_LOG & (WIDTH - 1)], leaf, memory_order_release);
    return leaf;
}

static uint32_t row_in(const struct leaf *leaf, uint64_t page)
{
    return atomic_load_explicit(&leaf->rows[page & (WIDTH - 1)], memory_order_acquire) - 1;
}

uint32_t ms_objects_index_find(uint64_t address)
{
    const struct leaf *leaf = address < ADDRESS_END ? leaf_of(address >> PAGE_LOG) : NULL;
    return leaf ? row_in(leaf, address >> PAGE_LOG) : MS_OBJECTS_NONE;
}

void ms_objects_index_each(uint64_t start, uint64_t end, void (*visit)(void *arg, uint32_t row), void *arg)
{
    if (start >= end || end > ADDRESS_END)
        return;
    uint64_t last = (end - 1) >> PAGE_LOG;
    for (uint64_t page = start >> PAGE_LOG; page <= last; page++) {
        const struct leaf *leaf = leaf_of(page);
        uint32_t row = leaf ? row_in(leaf, page) : MS_OBJECTS_NONE;
        if (!leaf)
            page |= WIDTH - 1;
        else if (row != MS_OBJECTS_NONE)
            visit(arg, row);
    }
}

bool ms_objects_index_put(uint64_t start, uint64_t end, uint32_t row)
{
    if (start >= end || end > ADDRESS_END || (end - start) >> PAGE_LOG >= PAGES_MAX)
        return false;
    uint64_t last = (end - 1) >> PAGE_LOG;
    atomic_store_explicit(&is_used, true, memory_order_relaxed);
    for (uint64_t page = start >> PAGE_LOG; page <= last; page++) {
        struct leaf *leaf = leaf_of(page);
        if (!leaf && !(leaf = make_leaf(page)))
            return false;
        atomic_store_explicit(&leaf->rows[page & (WIDTH - 1)], row + 1, memory_order_release);
    }
    return true;
}

void ms_objects_index_reset(void)
{
    if (!atomic_exchange_explicit(&is_used, false, memory_order_relaxed))
        return;
    for (unsigned i = 0; i < WIDTH; i++)
        atomic_store_explicit(&root[i], NULL, memory_order_relaxed);
}
