/* book_rows.h - what the book holds; between book.c, which writes it, and book_check.c, which asks. */
#ifndef MS_TESTS_SCHEDULES_BOOK_ROWS_H
#define MS_TESTS_SCHEDULES_BOOK_ROWS_H

#include "book.h"
#include "engine.h"
#include "record/ipc/ipc_exports.h"

enum {
    BOOK_SITES = 64,
    BOOK_SEGMENTS = 8,
    BOOK_FLOWS = 4,
    BOOK_LINES = 4,
    BOOK_EXPORTS = 8,
    BOOK_DEATHS = 8,
    BOOK_CODES = 8,
    BOOK_HEAPS = 4,
    BOOK_TRACED = 512 /* blocks that a trace may have */
};

/* Of calls that returned, and of those that began. */
struct range {
    uint64_t least, most;
};

enum presence { BOOK_GONE, BOOK_COMING, BOOK_THERE, BOOK_GOING };

struct book_block {
    struct ms_block block; /* stack: a number of the book's */
    enum presence is;
    unsigned changes; /* of `is` */
    bool is_unsure;   /* it changed while it was looked at */
    uint32_t record_id;
};

struct book_site {
    struct ms_block like; /* stack, api, kind, device */
    struct range count, bytes, freed, died;
};

struct book {
    struct book_block blocks[BOOK_BLOCKS];
    struct book_site sites[BOOK_SITES];
    unsigned site_count;
    struct range live[BOOK_PLACES], peak[BOOK_PLACES]; /* of device memory */
    struct range calls[BOOK_APIS], call_bytes[BOOK_APIS], failures[BOOK_APIS], served[BOOK_APIS];
    struct range takings;
    struct range ooms, invalid_frees, deaths, refused; /* refused: frees that the driver refused */
    enum presence segments[BOOK_SEGMENTS], lines[BOOK_LINES], devices[BOOK_DEVICES];
    enum presence diagnostics[BOOK_LINES], codes[BOOK_CODES];
    struct range pool_told, arenas[BOOK_FLOWS];
    enum presence heaps[BOOK_HEAPS];
    struct range heap_most[BOOK_HEAPS]; /* of the bytes of its segments */
    enum presence exports[BOOK_EXPORTS];
    unsigned export_changes[BOOK_EXPORTS];
    unsigned char tokens[BOOK_EXPORTS][MS_TOKEN_BYTES];
    uint32_t export_rows[BOOK_EXPORTS];
    enum presence ended;
    bool is_open, is_child;
    uint64_t parent_sum; /* of the bytes of the parent's file */
};
extern struct book book;

/** touch.c: what each call of the program's begins with. */
void book_touch(void);

/** What the book would have it say. */
unsigned book_frames(unsigned stack, uintptr_t *frames);
struct ms_segment_record book_segment_record(unsigned i);
struct ms_ipc_export book_export_record(unsigned i);
const char *book_line(unsigned i);
const char *book_path(void);
/** Says why something is wrong, to whoever asked; false. */
void book_tell(char *why, size_t why_bytes);
bool book_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool book_may_be(enum presence is, bool found, const char *what, unsigned i);
/** book_texts.c: what the record says in words. */
bool book_texts_hold(const struct book *view);
/** Of all bytes of the file of the first process. */
uint64_t book_sum_of_first(void);

#endif
