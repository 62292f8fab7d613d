/* rows.h - each function that allocates of a device, as a program calls it, and the function that gives that
 * back: for calls.c. */
#ifndef MS_TESTS_LIMIT_ROWS_H
#define MS_TESTS_LIMIT_ROWS_H

#include <stddef.h>
#include <stdint.h>

/** A piece of memory that a call gave. */
struct thing {
    union {
        uint64_t bits;
        unsigned low;
        void *pointer;
    };
    size_t pitch;
    unsigned low_pitch;
};

enum interface { OF_CUDA, OF_HIP, OF_ACL };

struct row {
    const char *name;
    int (*take)(struct thing *thing, size_t bytes);
    int (*give)(struct thing *thing);
};

/** How one interface begins, says what it has, and waits. */
struct vendor {
    const char *library;
    int (*begin)(void);
    int (*memory)(size_t *free_p, size_t *total_p);
    int (*wait)(void);
    const struct row *rows; /* until one has no name */
};

extern const struct vendor cuda_vendor, hip_vendor, acl_vendor;

/* Rows of so many bytes: the sizes that are asked for are multiples. */
#define ROW_BYTES ((size_t)65536)

/* A row, out of an expression for each half: `t` is the thing, `n` the bytes. */
#define FUNCTION(symbol, taking, giving)                                                                     \
    static int take_##symbol(struct thing *t, size_t n)                                                      \
    {                                                                                                        \
        return (int)(taking);                                                                                \
    }                                                                                                        \
    static int give_##symbol(struct thing *t)                                                                \
    {                                                                                                        \
        return (int)(giving);                                                                                \
    }
#define ROW(symbol, ...) {#symbol, take_##symbol, give_##symbol},

#endif
