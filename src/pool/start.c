/* start.c - the pool's policy and observer, and a new beginning in a fork child.
 *
 * Floor 2. Called once before anything else, and in a child of which nothing but the calling thread is left:
 * no lock is taken. What is noted goes to the observer, with whatever locks the caller holds. */
#include "config.h"

#include "pool/flow.h"
#include "pool/foreign.h"
#include "pool/space/near.h"
#include "pool/wait.h"

const struct ms_pool_policy *ms_policy;
const struct ms_pool_observer *ms_observer;

void ms_pool_init(const struct ms_pool_policy *policy, const struct ms_pool_observer *observer)
{
    ms_policy = policy;
    ms_observer = observer;
}

void ms_pool_reset(void)
{
    ms_stop_reset();
    ms_figures_reset();
    ms_heap_reset();
    ms_page_reset();
    ms_address_cache_reset();
    ms_table_reset();
    ms_batches_reset();
    ms_pins_reset();
    ms_mempool_reset();
    ms_stream_reset();
    ms_external_reset();
    ms_wait_for_work_reset();
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
