/* slabs.c - memory for the values of a report that is read; see slabs.h.
 *
 * Floor 4, command line only. A report is millions of values of a few sizes. Each size has slabs of its own,
 * whose blocks need no header and go back to one list: a slab says at its beginning what size its blocks
 * have, and a bit for each region of the address space says whether it holds slabs. What is larger, and what
 * comes when the system gives no region, is malloc's. */
#include "report/read/slabs.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define REGION_SHIFT 26
#define REGION_BYTES ((size_t)1 << REGION_SHIFT)
#define SLAB_BYTES   ((size_t)1 << 16)
#define GRAIN        8
#define BLOCK_MAX    512
#define ADDRESS_BITS 48 /* of user space, on every machine that memshim runs on, unless one asks for more */

struct slab {
    size_t size;
    size_t unused; /* keeps the blocks at multiples of 16 where their size is one */
};

struct spare {
    struct spare *next;
};

static struct {
    struct spare *spare;
    char *fresh, *end; /* of the newest slab of that size */
} sizes[BLOCK_MAX / GRAIN + 1];

static char *region, *region_end;
static bool refused; /* the system gave no region: it is not asked again */
static uint64_t has_slabs[((size_t)1 << (ADDRESS_BITS - REGION_SHIFT)) / 64];

static bool slabs_is_ours(const void *block)
{
    uintptr_t at = (uintptr_t)block >> REGION_SHIFT;

    return at >> (ADDRESS_BITS - REGION_SHIFT) == 0 && has_slabs[at / 64] >> (at % 64) & 1;
}

/* The next region, aligned to its size: twice as much is asked for and what is too much given back. */
static bool open_region(void)
{
    char *start = refused ? MAP_FAILED
                          : mmap(NULL, 2 * REGION_BYTES, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t before = (REGION_BYTES - ((uintptr_t)start & (REGION_BYTES - 1))) & (REGION_BYTES - 1);
    uintptr_t at;

    refused = start == MAP_FAILED;
    if (refused)
        return false;
    if (before)
        munmap(start, before);
    munmap(start + before + REGION_BYTES, REGION_BYTES - before);
    at = (uintptr_t)(start + before) >> REGION_SHIFT;
    if (at >> (ADDRESS_BITS - REGION_SHIFT)) {
        munmap(start + before, REGION_BYTES);
        refused = true;
        return false;
    }
    has_slabs[at / 64] |= (uint64_t)1 << (at % 64);
    region = start + before;
    madvise(region, REGION_BYTES, MADV_HUGEPAGE); /* as well without: a tenth of the page faults */
    region_end = region + REGION_BYTES;
    return true;
}

static void *from_new_slab(size_t class)
{
    struct slab *slab;

    if (region == region_end && !open_region())
        return malloc(class * GRAIN);
    slab = (struct slab *)region;
    region += SLAB_BYTES;
    slab->size = class * GRAIN;
    sizes[class].fresh = (char *)(slab + 1) + class * GRAIN;
    sizes[class].end = (char *)slab + SLAB_BYTES;
    return slab + 1;
}

static void *slabs_take(size_t bytes)
{
    size_t class = bytes ? (bytes + GRAIN - 1) / GRAIN : 1;
    struct spare *spare;
    char *fresh;

    if (bytes > BLOCK_MAX)
        return malloc(bytes);
    spare = sizes[class].spare;
    if (spare) {
        sizes[class].spare = spare->next;
        return spare;
    }
    fresh = sizes[class].fresh;
    if ((size_t)(sizes[class].end - fresh) < class * GRAIN)
        return from_new_slab(class);
    sizes[class].fresh = fresh + class * GRAIN;
    return fresh;
}

static void slabs_give_back(void *block)
{
    struct spare *spare = block;
    size_t class;

    if (!slabs_is_ours(block)) {
        free(block);
        return;
    }
    class = ((struct slab *)((uintptr_t)block & ~(SLAB_BYTES - 1)))->size / GRAIN;
    spare->next = sizes[class].spare;
    sizes[class].spare = spare;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define WATCHED 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WATCHED 1
#endif
#ifndef WATCHED
#define WATCHED 0
#endif

void ms_slabs_begin(void)
{
    if (!WATCHED)
        json_set_alloc_funcs(slabs_take, slabs_give_back);
}

void ms_slabs_end(void)
{
    if (!WATCHED)
        json_set_alloc_funcs(malloc, slabs_give_back);
}
