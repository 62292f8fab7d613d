/* captures.h - the captures that are open: the one list, and the one count; see captures.c.
 *
 * Floor 2, the pool's clock. Changed and read as a whole under the streams' lock; whether one is open in a
 * context anybody may ask, without a lock. */
#ifndef MS_POOL_CLOCK_CAPTURES_H
#define MS_POOL_CLOCK_CAPTURES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "vendor/context_scope.h"

/** True if a capture is open that began at the stream. `context` is the stream's, never 0; of a stream that
 * every thread has (0 to 2) the calling thread's is meant. Streams' lock held. */
bool ms_capture_is_open(uint64_t stream, uint64_t context);
/** A capture that began at the stream is open from now on, or is over. The lock under which fences are
 * recorded in the context is held as well. Without memory for it, one counts as open everywhere and for
 * ever. */
void ms_capture_set(uint64_t stream, uint64_t context, bool open);
/** The context is gone, and its captures with it. Streams' lock held. */
void ms_captures_context_died(uint64_t context);
/** In a fork child: none is open. */
void ms_captures_reset(void);

/** Around a call of the vendor's that records, asks or waits for an event: false if it is not to be made, for
 * a capture is open that it would harm (gpu.h, `captures_are_frail`). Such a call is brief, and a capture
 * begins behind it. */
bool ms_captures_let(const struct ms_gpu *gpu);
void ms_captures_let_end(const struct ms_gpu *gpu);
/** The program is about to begin a capture, which counts as open from now on: true if nobody is inside such a
 * call. Again and again, until it is, or for so long as the caller wants to wait. Streams' lock held. */
bool ms_captures_announce(void);
/** The vendor has answered; what ms_capture_set says holds again. Streams' lock held. */
void ms_captures_answered(void);

bool ms_captures_in_slowly(uint64_t context);
/** True if a capture is open in the context; 0: in any. Under the lock of the context's fence that stays so;
 * without it, it is what was so a moment ago. */
static inline bool ms_captures_in(uint64_t context)
{
    return MS_UNLIKELY(atomic_load_explicit(&ms_open_captures, memory_order_relaxed) > 0) &&
           ms_captures_in_slowly(context);
}

#endif
