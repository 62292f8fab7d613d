/* mapped.h - memory made of handles that are mapped into a range of addresses: MEMSHIM_BACKING=vmm.
 *
 * Floor 2, for src/pool/ and its tests alone. A heap reserves one *range*, far longer than the device's
 * memory, and it is one chunk of the heap's for as long as the context lives. Handles of one *page* or
 * more are mapped into it where they are needed: its runs are free, in use, or a *hole*, behind which no
 * memory lies. What is taken out of a bin while the vendor is called is *held*. A block never moves; a handle
 * behind which nothing lies may be unmapped and mapped elsewhere, unless a graph may know it. The vendor maps
 * and unmaps it as a whole only.
 *
 *   mapped = pages of the range that have a handle = bytes of its runs that are no holes
 *
 * Small blocks lie beyond the range's border, so that what is free before it stays in whole pages. Fields are
 * under the heap's lock, except those of pages in an extent that is held, which are its holder's. */
#ifndef MS_POOL_MAPPED_MAPPED_H
#define MS_POOL_MAPPED_MAPPED_H

#include "pool/api/internal.h"

/** OFF: the heap's memory is the vendor's own allocations. WANTED: a range is reserved when memory is asked
 * for. */
enum ms_backing_state { MS_BACKING_OFF, MS_BACKING_WANTED, MS_BACKING_ON };

struct ms_backing_page {
    CUmemGenericAllocationHandle handle; /* that begins here, or 0 */
    uint32_t pages;                      /* of that */
    uint32_t back;                       /* of a page that is mapped: pages to where its handle begins */
    bool mapped;
    bool captured; /* where a handle begins: a graph may know what it is mapped to */
};

/** A byte range that the observer knows as one segment: mapped pages without a hole between them. */
struct ms_byte_range {
    uint64_t address, bytes;
};

struct ms_backing {
    uint64_t address, bytes, page_bytes;
    uint64_t border;    /* address */
    uint64_t top, high; /* no page was ever mapped between these and the border, or the end */
    struct ms_segment *segment;
    struct ms_backing_page *pages;
    ms_unit *units;
    uint64_t room_bytes, room_page_bytes; /* what `pages` and `units` were made for */
    struct ms_extent *holes;              /* linked by next and previous */
    uint64_t mapped_bytes, floor_bytes;   /* floor: MEMSHIM_PREALLOC's */
    bool lax;                             /* whatever is free suits */
    bool rdma;                            /* handles are made for GPUDirect RDMA */
    bool failed;                          /* said already */
    uint64_t moved_pages;
    uint8_t peers[MS_DEVICES_MAX]; /* contexts of each other device that were given access */
    uint32_t peers_version;
    /* The stretches that the observer was told of. */
    struct ms_byte_range *told;
    uint32_t told_count, told_room, told_order;
    bool telling, changed;
};

/** The held runs that a growth takes apart and puts together. */
enum { MS_SOURCES = 128 };
struct ms_growth {
    struct ms_extent *region;         /* was a hole; gets handles */
    struct ms_extent *before, *after; /* free ones beside it that the block reaches into; or NULL */
    struct ms_extent *sources[MS_SOURCES];
    uint32_t source_count;
    uint64_t moved; /* pages that come out of sources; the rest is made */
    uint64_t made, lost;
    uint64_t emptied;      /* pages that were unmapped from sources */
    uint32_t handle_pages; /* no handle is made of more */
};

static inline bool ms_backing_on(const struct ms_heap *heap)
{
    return atomic_load_explicit(&heap->backing_state, memory_order_acquire) != MS_BACKING_OFF;
}

static inline struct ms_backing_page *ms_backing_page(const struct ms_backing *b, uint64_t address)
{
    return &b->pages[(address - b->address) / b->page_bytes];
}

/** The handles in [at, end), one behind the other; both are ends of handles, and pages without one are passed
 * over. Whoever goes through them may forget the handle that `page` has. */
struct ms_handles {
    const struct ms_backing *b;
    uint64_t at, end;             /* what is still to come */
    struct ms_backing_page *page; /* this one: its first page, where it lies, and how long it is */
    uint64_t address, bytes;
};

static inline bool ms_handles_next(struct ms_handles *h)
{
    while (h->at < h->end && !ms_backing_page(h->b, h->at)->handle)
        h->at += h->b->page_bytes;
    if (h->at >= h->end)
        return false;
    h->page = ms_backing_page(h->b, h->at);
    h->address = h->at;
    h->bytes = h->page->pages * h->b->page_bytes;
    h->at += h->bytes;
    return true;
}

/** The address where the handle begins that is mapped at `address`. */
static inline uint64_t ms_handle_begin(const struct ms_backing *b, uint64_t address)
{
    const struct ms_backing_page *page = ms_backing_page(b, address);
    return b->address + (uint64_t)(page - page->back - b->pages) * b->page_bytes;
}

/** The address where the handle ends that is mapped at `address`. */
static inline uint64_t ms_handle_end(const struct ms_backing *b, uint64_t address)
{
    uint64_t begin = ms_handle_begin(b, address);
    return begin + ms_backing_page(b, begin)->pages * b->page_bytes;
}

/* mapped.c */
/** At the first request of a heap's life: whether its memory is to be made of handles. Heap's lock held. */
void ms_backing_want(struct ms_heap *heap);
/** The heap's record, made if need be; NULL without memory. Heap's lock held. */
struct ms_backing *ms_backing_record(struct ms_heap *heap);
/** A slot for the request, out of pages that are moved where the context is quiet, and made where those are
 * not enough. NULL with the vendor's status; not out of memory: the vendor's own allocation is to be asked
 * for. No lock held, calls the vendor. */
struct ms_slot *ms_backing_alloc(struct ms_heap *heap, const struct ms_request *request, int *status_p);
/** MEMSHIM_PREALLOC: so much is mapped and stays. False if it cannot be. No lock held. */
bool ms_backing_prealloc(struct ms_heap *heap, uint64_t bytes);
/** Handles behind which nothing lies go back to the vendor, of `bytes` together, rather more than less. The
 * context must be quiet. Returns the bytes. No lock held. */
uint64_t ms_backing_give_back(struct ms_heap *heap, uint64_t bytes);
/** True if a free extent is where blocks of `bytes` are to lie. Heap's lock held, as for the next five. */
bool ms_backing_suits(const struct ms_extent *extent, uint64_t bytes);
/** In pages in which nothing lies and that may be unmapped; and how many of them may go back to the
 * vendor. */
uint64_t ms_backing_movable_bytes(const struct ms_heap *heap);
uint64_t ms_backing_free_bytes(const struct ms_heap *heap);
/** True if the device has plenty left beside `bytes` more. */
bool ms_backing_has_plenty(const struct ms_heap *heap, uint64_t bytes);
/** In pages without anything that is live, pending or pinned; for figures. */
uint64_t ms_backing_unused_bytes(const struct ms_heap *heap);
/** A graph may know what is in use now (or this very run), or no graph is left. */
void ms_backing_captured(struct ms_heap *heap, bool captured);
void ms_backing_capture_run(const struct ms_extent *extent);
/** The context is gone: nobody finds the range any more, all locks held; then its pages go back, no lock
 * held. */
void ms_backing_detach(struct ms_heap *heap);
void ms_backing_retire(struct ms_heap *heap);

/* mapped_pages.c: heap's lock held. */
/** Holds handles behind which nothing lies, as many as `growth` has room for and at most `count` pages of
 * them. */
void ms_pages_collect(struct ms_heap *heap, struct ms_growth *growth, uint64_t count);
/** Holds one handle behind which nothing lies, of at least `least` pages and at most `most`, the shortest
 * such one. */
void ms_pages_collect_one(struct ms_heap *heap, struct ms_growth *growth, uint64_t least, uint64_t most);
/** A held run becomes a hole. */
void ms_pages_make_hole(struct ms_backing *b, struct ms_extent *extent);
/** Plans the place where `bytes` fit with the fewest pages more: holds what it takes. False if there are no
 * addresses. */
bool ms_pages_plan(struct ms_heap *heap, uint64_t bytes, uint64_t align, struct ms_growth *growth);
/** Held runs become what they are now. */
void ms_pages_settle(struct ms_heap *heap, struct ms_growth *growth, bool filled);

/* mapped_calls.c: the vendor's calls, no lock held. */
/** Reserves a range and fills in what it is; false with nothing reserved. */
bool ms_map_open(struct ms_heap *heap, struct ms_backing *made);
void ms_map_close(struct ms_heap *heap, const struct ms_backing *b);
/** Puts handles behind the region of `growth`; false with the vendor's status, then all that was taken or
 * made has gone back to it. */
bool ms_map_fill(struct ms_heap *heap, struct ms_growth *growth, int *status_p);
/** Gives the pages of the sources back. */
void ms_map_empty(struct ms_heap *heap, struct ms_growth *growth);
/** All pages, after the end of the context. */
void ms_map_retire(struct ms_heap *heap);
/** Lets the devices that have access reach [address, address + bytes). Needs no heap's lock; false with the
 * vendor's status. */
bool ms_map_access(const struct ms_heap *heap, uint64_t address, uint64_t bytes, int *status_p);

#endif
