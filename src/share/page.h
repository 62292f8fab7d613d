/* page.h - the page of a device: a row for each process that memshim serves there, which all of them map.
 *
 * Floor 2. The page is a file of one fixed length (docs/internals/share-format.md). A row belongs to the
 * process that holds the kernel's lock on the byte of its number (member.c). All words of a row are written
 * by its process alone, but for the last line, in which others ask. Who wants to know how much is taken reads
 * all rows. Whatever is read may be another's mistake: sums saturate, and no number read here is an index. */
#ifndef MS_SHARE_PAGE_H
#define MS_SHARE_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"

#define MS_SHARE_MAGIC  "memshare"
#define MS_SHARE_PREFIX "memshim-share-" /* of the file's name */
enum { MS_SHARE_VERSION = 1, MS_SHARE_ROWS = 127, MS_SHARE_NAME = 24 };

struct ms_share_row {
    /* Of its process. */
    _Atomic uint64_t is_taken;   /* 0: nobody's; written last by who joins, and by who clears it */
    _Atomic uint64_t turn;       /* raised when a request begins to be decided, and when it is: odd between */
    _Atomic uint64_t used_bytes; /* with what is about to be asked of the vendor */
    _Atomic uint64_t undecided_bytes; /* of what is used, what is being decided */
    _Atomic uint64_t guarantee_bytes; /* what is kept for it, used or not */
    _Atomic uint64_t most_bytes;      /* its limit; UINT64_MAX without one */
    _Atomic uint64_t cached_bytes;    /* of what is used, what it could give back now */
    _Atomic uint64_t given_bytes;     /* what it gave back because others asked, in all */
    _Atomic uint64_t contexts_bytes;  /* of what is used, what contexts and modules take */
    /* Who it is, for people: numbers of processes mean nothing in another namespace of them. */
    uint64_t pid;
    _Atomic uint64_t token; /* which of all processes that ever had the row */
    char name[MS_SHARE_NAME];
    /* Of what is used, what the vendor is asked for now: where a device's memory is the host's. */
    _Atomic uint64_t asked_bytes;
    uint64_t unused_own;
    /* Of others: how much they want back, how often anybody asked; and up to which time the process has heard
     * it, which it writes itself. */
    MS_CACHELINE _Atomic uint64_t wanted_bytes;
    _Atomic uint64_t asked_ns; /* CLOCK_MONOTONIC: when the first ask was made that it has not heard */
    _Atomic uint32_t asks, heard;
    uint64_t unused[5];
};
_Static_assert(sizeof(struct ms_share_row) == 192, "the file's form is fixed");

struct ms_share_head {
    char magic[8];
    uint32_t version, row_bytes;
    uint8_t uuid[16]; /* the device's, as the vendor tells it */
    _Atomic uint64_t total_bytes;
    _Atomic uint64_t others_bytes; /* what processes take that have no row, as far as anybody saw */
    _Atomic uint64_t rows_taken;   /* no row from here on was ever anybody's */
    uint64_t unused[17];
};
_Static_assert(sizeof(struct ms_share_head) == 192, "the file's form is fixed");

struct ms_share_page {
    struct ms_share_head head;
    struct ms_share_row rows[MS_SHARE_ROWS];
};
_Static_assert(sizeof(struct ms_share_page) == 192 * (MS_SHARE_ROWS + 1), "the file's form is fixed");

/** How many rows may be somebody's. */
static inline unsigned ms_share_rows(const struct ms_share_page *page)
{
    uint64_t rows = atomic_load_explicit(&page->head.rows_taken, memory_order_relaxed);
    return rows < MS_SHARE_ROWS ? (unsigned)rows : MS_SHARE_ROWS;
}

#endif
