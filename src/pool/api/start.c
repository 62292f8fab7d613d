/* start.c - the pool's policy and observer.
 *
 * Floor 2. Called once before anything else: no lock is taken. What is noted goes to the observer, with
 * whatever locks the caller holds. */
#include "pool/stream/stream_arena.h"
#include "pool/external/external.h"
#include "pool/space/address_cache.h"
#include "pool/fence/wait.h"

const struct ms_pool_policy *ms_policy;
const struct ms_pool_observer *ms_observer;

void ms_pool_init(const struct ms_pool_policy *policy, const struct ms_pool_observer *observer)
{
    ms_policy = policy;
    ms_observer = observer;
}

void ms_pool_note(const char *line)
{
    if (ms_observer && ms_observer->note)
        ms_observer->note(line);
}

void ms_pool_warn(const char *line)
{
    if (ms_observer && ms_observer->warn)
        ms_observer->warn(line);
}
