/* streams_types.h - what the driver of streams.h keeps of its streams and events. streams.c includes it, and
 * nobody else. */
#ifndef MS_TESTS_POOL_STREAMS_TYPES_H
#define MS_TESTS_POOL_STREAMS_TYPES_H

#include "base/at_fork.h"
#include "streams.h"

/* Asked of every 512 bytes, or of nothing but what is the thread's own or never changes: nothing that
 * tests/schedules counts as a call. */
#define QUIET __attribute__((no_instrument_function))

/* How far other streams have to be before this one goes on. */
struct sight {
    uint64_t id, seq;
};
struct stream {
    uint64_t id, issued, done;
    struct sight sees[MODEL_STREAMS];
    uintptr_t context;
    bool live, capturing;
    uint64_t freed_seq; /* how far it was with the latest free */
};
struct event {
    struct event *next, **link; /* of all that were not destroyed: the pool forgets some when it is reset */
    unsigned stream;            /* index; MODEL_STREAMS: over the context */
    uint64_t id, seq, all[MODEL_STREAMS], ids[MODEL_STREAMS];
    struct sight sees[MODEL_STREAMS]; /* what its stream had waited for then */
    uintptr_t context;
};
struct last {
    uint64_t id, seq;
    uint8_t stream;
};

#endif
