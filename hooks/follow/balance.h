/* balance.h - what of a device is in use as its driver says, and whose that is: when the driver is asked, and
 * what of the answer is this process's (record/footprint/balance.h).
 *
 * Floor 3. The driver is asked where a context begins, where memory that the driver gave has grown by more
 * than an eighth since it was asked, and where the program waits, if something has changed since; and where
 * there was no memory. Each of these calls the driver anyway. While another thread's call to the driver may
 * change what is in use, no answer is taken. */
#ifndef MS_HOOKS_FOLLOW_BALANCE_H
#define MS_HOOKS_FOLLOW_BALANCE_H

#include <stdatomic.h>

#include "base/compiler.h"
#include "hooks/dispatch.h"
#include "record/footprint/balance.h"

/** Calls to drivers that may change what is in use, of which a frame is open: begun, and over. */
extern MS_HIDDEN _Atomic uint64_t ms_balance_begun, ms_balance_over;
static inline void ms_balance_call_begins(void)
{
    atomic_fetch_add_explicit(&ms_balance_begun, 1, memory_order_seq_cst);
}
static inline void ms_balance_call_ends(void)
{
    atomic_fetch_add_explicit(&ms_balance_over, 1, memory_order_seq_cst);
}

/** More is held of the device than before, by so much in the pool. Any thread, under the pool's locks too. */
void ms_balance_grew(int device);
/** Not 0: it is time to ask. */
extern MS_HIDDEN _Atomic uint32_t ms_balance_due;
/** Asks about the calling thread's device. Inside a hook scope, no lock held. */
void ms_balance_look(const struct ms_gpu *gpu, unsigned row, const void *frame, const void *caller);
/** As ms_balance_look, but about `device` in `context`, which need not be the calling thread's. */
void ms_balance_scan(const struct ms_gpu *gpu, int device, uint64_t context);
static inline void ms_balance_see(const struct ms_gpu *gpu, unsigned row, const void *frame,
                                  const void *caller)
{
    if (MS_UNLIKELY(atomic_load_explicit(&ms_balance_due, memory_order_relaxed)))
        ms_balance_look(gpu, row, frame, caller);
}
/** The program has waited: asks if what is held has changed. Likewise. */
void ms_balance_waited(const struct ms_gpu *gpu, unsigned row, const void *frame, const void *caller);

struct ms_stillness ms_balance_stillness(int device);
/** Still then, nothing has begun or changed since, and still now. What a stream gives back, and code that a
 * launch loads, is in none of these. */
bool ms_balance_was_still(const struct ms_stillness *since, int device);

/** Finds out what is held of the device now, all terms but the last; false if a call is under way that
 * changes it. Asks the driver about its pools alone. */
bool ms_balance_of(int device, struct ms_balance *balance_p);
/** As ms_balance_of, and finds out what is in use as the driver says, all of one moment; false if somebody
 * was at it each time. `total_bytes` is 0 if the driver cannot say. `context`: one of the device's, 0 if the
 * calling thread is there. Inside a hook scope, no lock held. */
bool ms_balance_query(const struct ms_gpu *gpu, int device, uint64_t context, struct ms_balance *balance_p);

#endif
