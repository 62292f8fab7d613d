/* locks.c - see locks.h. src/base/lock tells of each lock that is taken and released (MS_SCHEDULES). An
 * owner's own way into a biased lock is not told. */
#include "config.h"

#include "base/lock.h"
#include "engine.h"
#include "locks.h"

#ifndef MS_DEBUG_CHECKS
#undef ms_lock_note_taken
#undef ms_lock_note_released
static unsigned held[TASKS][MS_RANK_COUNT];

static void note(const struct ms_lock *lock, unsigned change)
{
    int task = engine_current();
    if (task >= 0)
        held[task][lock->rank] += change;
}

void ms_lock_note_taken(const struct ms_lock *lock)
{
    note(lock, 1);
}

void ms_lock_note_released(const struct ms_lock *lock)
{
    note(lock, -1u);
}

/* Those of docs/internals/vendor-calls.md. */
void locks_at_vendor(void)
{
    int task = engine_current();
    for (unsigned rank = 1; task >= 0 && rank < MS_RANK_COUNT; rank++) {
        if (held[task][rank] && rank != MS_RANK_POOL_FENCE && rank != MS_RANK_POOL_STREAMS)
            engine_fail("a lock of rank %u is held across a call of the vendor's", rank);
    }
}
#else
void locks_at_vendor(void)
{
}
#endif
