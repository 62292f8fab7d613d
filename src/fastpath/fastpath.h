/* fastpath.h - a request, or a free, that the calling thread answers out of what it has at hand.
 *
 * Floor 2.5, for the hooks: of the pool and of the record at once. It is the slow path (hooks/serve/serve.c)
 * where nothing has to be asked, waited for or looked for: the same stores in the same order. What cannot be
 * answered so leaves everything as it was, goes the slow path, and that one says what is at hand for the next
 * call (ms_fast_learn). */
#ifndef MS_FASTPATH_FASTPATH_H
#define MS_FASTPATH_FASTPATH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/thread/guard.h"
#include "unwind/stack.h"
#include "vendor/gpu.h"

struct ms_pool_wait;

/** The order that a request is in: a stream and a pool, as the program names them (pool/stream/stream.h). */
struct ms_fast_order {
    uint64_t stream, pool;
};

/** A request of device memory of the context that is current, as the driver says, by function `api`, which
 * was called so (ms_stack_capture): the address, with a record and a record id; or 0, and nothing has
 * happened. `me` is the calling thread, inside nothing of memshim's but this, with its guard closed
 * (guard.h) and the places of its errno and its cancellation known. */
uint64_t ms_fast_alloc(struct ms_thread *me, const struct ms_gpu *gpu, uint64_t bytes, const void *frame,
                       const void *caller, uint16_t api);
/** As ms_fast_alloc, but in a context and from a stack that are known. */
uint64_t ms_fast_alloc_in(struct ms_thread *me, uint64_t context, uint64_t bytes, ms_stack_id stack,
                          uint16_t api);
/** As ms_fast_alloc, in the order of a stream. The thread need have nothing at hand, but the places of its
 * errno and its cancellation. */
uint64_t ms_fast_alloc_ordered(struct ms_thread *me, const struct ms_gpu *gpu, struct ms_fast_order order,
                               uint64_t bytes, const void *frame, const void *caller, uint16_t api);
/** The outcome of a free: nothing has happened; it is done; it is, and ms_fast_look is to be called. */
enum ms_fast { MS_FAST_NONE, MS_FAST_DONE, MS_FAST_LOOK };
enum ms_fast ms_fast_free(struct ms_thread *me, uint64_t address);
/** A free in the order of `stream`; behind MS_FAST_LOOK the stream is handed to ms_fast_look_ordered. */
enum ms_fast ms_fast_free_ordered(struct ms_thread *me, const struct ms_gpu *gpu, uint64_t address,
                                  uint64_t stream);
/** Looks at the pending list behind a free; inside a hook scope, and with nothing in between. Whether the
 * free has to wait, see ms_pool_wait_begin. */
bool ms_fast_look(struct ms_fast_cache *fast, struct ms_pool_wait *wait_p);
/** Behind a free in stream order, whose pool the program has destroyed: its memory goes back. Likewise. */
void ms_fast_look_ordered(struct ms_thread *me, uint64_t stream);
/** The heap of the context, which a call in the order of a stream has put aside, is at hand again: false if
 * there is none. Inside a hook scope. */
bool ms_fast_choose_context(struct ms_thread *me);
/** The request was answered by the slow path: what that used is at hand for the next, if it may be. Inside a
 * hook scope. */
void ms_fast_learn(struct ms_thread *me);
void ms_fast_learn_ordered(struct ms_thread *me, const struct ms_gpu *gpu, struct ms_fast_order order);

#endif
