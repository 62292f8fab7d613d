/* hit.h - a request, or a free, that the calling thread can answer out of what it has at hand.
 *
 * Floor 2, for the hooks: of the pool and of the record at once. It is ms_pool_hit and ms_ledger_serve_plain,
 * or ms_pool_free_hit and ms_ledger_unserve, where nothing has to be asked, waited for or looked for; see
 * hit.c. */
#ifndef MS_POOL_BLOCKS_HIT_H
#define MS_POOL_BLOCKS_HIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/thread/guard.h"
#include "vendor/gpu.h"
#include "unwind/stack.h"

struct ms_pool_wait;

/** A request of device memory of the context that is current, as the driver says, by function `api`, which
 * was called so (ms_stack_capture): the address, with a record and a record id; or 0, and nothing has
 * happened. `me` is the calling thread, inside nothing of memshim's but this. */
uint64_t ms_hit_alloc(struct ms_thread *me, const struct ms_gpu *gpu, uint64_t bytes, const void *frame,
                      const void *caller, uint16_t api);
/** As ms_hit_alloc, but in a context and from a stack that are known. */
uint64_t ms_hit_alloc_in(struct ms_thread *me, uint64_t context, uint64_t bytes, ms_stack_id stack,
                         uint16_t api);
/** The outcome of a free: nothing has happened; it is done; it is, and the pending list is to be looked
 * at. */
enum ms_hit { MS_HIT_NONE, MS_HIT_DONE, MS_HIT_PENDING };
enum ms_hit ms_hit_free(struct ms_thread *me, uint64_t address);
/** Looks at the pending list behind a free that was a hit; inside a hook scope, and with nothing in between.
 * Whether the free has to wait, see ms_pool_wait_begin. */
bool ms_hit_look(struct ms_fast_cache *fast, struct ms_pool_wait *wait_p);
/** The request was answered another way: what that used is at hand for the next, if it may be. */
void ms_hit_learn(struct ms_thread *me);

#endif
