/* asks.h - processes on one device ask each other for memory that is free in them.
 *
 * Floor 2. Who was refused by the vendor writes into the rows of others how much it wants, and waits until
 * they have heard, each for no longer than a bound from the first ask on that it has not heard. So one that
 * was stopped, or makes no call for long, delays others once. Nobody gives back what is in use. What others
 * have beyond their guarantee is asked for first. */
#ifndef MS_SHARE_ASKS_H
#define MS_SHARE_ASKS_H

#include "share/admission.h"

struct ms_asks_result {
    unsigned asked, heard;  /* processes */
    uint64_t brought_bytes; /* what those that were asked have given back since */
};
/** Asks whoever lives, and waits. With `beyond`, only for what others have beyond their guarantees: what they
 * give back of the rest is kept for them all the same. Who ends meanwhile has heard. */
struct ms_asks_result ms_asks_make(struct ms_admission *self, uint64_t bytes, bool beyond, uint64_t wait_ns);

/** True if there is an ask that this process has not heard. */
static inline bool ms_asks_wait_here(const struct ms_admission *self)
{
    const struct ms_share_row *own = &self->page->rows[self->row];
    return atomic_load_explicit(&own->asks, memory_order_relaxed) !=
           atomic_load_explicit(&own->heard, memory_order_relaxed);
}
/** The bytes that others want by now. `*asks_p` goes to ms_asks_answered, once something was given back or
 * nothing. */
uint64_t ms_asks_hear(struct ms_admission *self, uint32_t *asks_p);
void ms_asks_answered(struct ms_admission *self, uint32_t asks, uint64_t given_bytes);
/** Waits in the kernel until there is an ask that this process has not heard, for `wait_ns` at most. */
void ms_asks_await(struct ms_admission *self, uint64_t wait_ns);

#endif
