/* ledger_fixture.h - a ledger that starts empty, blocks for it, and a snapshot of it to look at. One test
 * includes it. */
#ifndef MEMSHIM_TESTS_LEDGER_FIXTURE_H
#define MEMSHIM_TESTS_LEDGER_FIXTURE_H

#include "base/at_fork.h"
#include "record/reader/snapshot.h"
#include "tests/tap.h"

static const struct ms_api_info apis[] = {{"alloc", "test"}, {"free", "test"}, {"pin", "test"}};
static struct ms_snapshot snapshot;

static struct ms_block make_block(uint64_t key, uint64_t bytes, ms_stack_id stack, int device)
{
    return (struct ms_block){.key = key,
                             .bytes = bytes,
                             .requested = bytes,
                             .context = 1,
                             .stack = stack,
                             .device = (int16_t)device};
}

/* No site: no figures, and a device that none has. */
static const struct ms_site *site_of(ms_stack_id stack)
{
    static const struct ms_site none = {.device = -2};

    for (uint32_t i = 0; i < snapshot.site_count; i++) {
        if (snapshot.sites[i].site.stack == stack)
            return &snapshot.sites[i].site;
    }
    return &none;
}

static const struct ms_amount *device(int index)
{
    return &snapshot.devices[index].account.device;
}

static void look(void)
{
    ms_snapshot_release(&snapshot);
    if (ms_snapshot_take(&snapshot, 1000, 1000) != 0)
        bail("no memory for a snapshot");
}

static void start(void)
{
    ms_store_reset();
    ms_at_fork_run(MS_FORK_RECORD);
    ms_ledger_init(apis, 3);
}

#endif
