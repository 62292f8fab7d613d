/* test_sites.c - more call sites than the table has rows: what finds none counts together, and nothing is
 * lost. */
#include "config.h"

#include <string.h>

#include "base/options/options.h"
#include "record/live/shards.h"
#include "record/file/process.h"
#include "tests/unit/ledger_check.h"
#include "tests/unit/ledger_fixture.h"

enum { BEYOND = 3000, BYTES = 16 };

static uint32_t serve(uint64_t key, ms_stack_id stack, int on, unsigned api)
{
    struct ms_block block = make_block(key, BYTES, stack, on);
    block.api = (uint16_t)api;
    return ms_ledger_serve(&block);
}

static uint64_t leaked_on(int on)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < snapshot.site_count; i++)
        bytes += snapshot.sites[i].site.device == on ? snapshot.sites[i].site.live_bytes : 0;
    return bytes;
}

static const struct ms_site *without_stack(int on, unsigned api)
{
    for (uint32_t i = 0; i < snapshot.site_count; i++) {
        const struct ms_site *site = &snapshot.sites[i].site;
        if (!site->stack && site->device == on && site->api == api)
            return site;
    }
    return site_of(UINT32_MAX);
}

static uint32_t beyond[BEYOND];

static void fill(void)
{
    for (uint32_t i = 1; i <= MS_SITES_OWN_MAX; i++)
        serve((uint64_t)i << 12, i, 0, 0);
    is_u64(ms_sites_merged(), 0, "as many sites as are told apart have a row each");
    for (uint32_t i = 0; i < BEYOND; i++)
        beyond[i] = serve((uint64_t)(i + 1) << 32, MS_SITES_OWN_MAX + 1 + i, (int)i % 2, i % 3 == 0);
    look();
    is_u64(ms_sites_merged(), BEYOND, "all others count together");
    is_u64(ms_blocks_dropped() + ms_sites_dropped(), 0, "and none is lost");
    is_u64(leaked_on(0), (uint64_t)(MS_SITES_OWN_MAX + BEYOND / 2) * BYTES,
           "what the sites of a device hold is what it holds");
    is_u64(device(0)->live_bytes, leaked_on(0), "as the device says");
    is_u64(leaked_on(1), BEYOND / 2 * BYTES, "on each device");
    is_u64(without_stack(1, 1)->live_count, BEYOND / 6, "they count by device and function");
    is_u64(without_stack(1, 0)->live_count, BEYOND / 2 - BEYOND / 6, "each");
    is_int(ledger_check(), 0, "all sums add up");
}

/* A thread in a shard of its own, whose rows find no room either. */
static void fill_another_shard(void)
{
    uint32_t known, unknown;
    ms_shard_mine.shard = 3;
    known = serve(UINT64_C(1) << 60, 1, 0, 0);
    unknown = serve(UINT64_C(1) << 61, UINT32_MAX - 1, 0, 0);
    look();
    is_u64(site_of(1)->live_count, 2, "a site that has a row is the same in every lane");
    is_int(ledger_check(), 0, "all sums add up");
    ok(ms_ledger_unserve(known, UINT64_C(1) << 60, NULL) &&
           ms_ledger_unserve(unknown, UINT64_C(1) << 61, NULL),
       "and the blocks are found again");
    ms_shard_mine.shard = 0;
}

static void empty(void)
{
    unsigned found = 0;
    for (uint32_t i = 0; i < BEYOND; i++)
        found += ms_ledger_unserve(beyond[i], (uint64_t)(i + 1) << 32, NULL);
    is_u64(found, BEYOND, "every block can be freed");
    look();
    ok(!leaked_on(1) && without_stack(0, 0)->free_count == without_stack(0, 0)->total_count,
       "and its end is counted");
    is_int(ledger_check(), 0, "all sums add up");
    ms_snapshot_release(&snapshot);
}

/* Which maxima are exact, and which are bounds. */
static void test_bounds(void)
{
    start();
    serve(1 << 12, 1, 0, 0);
    serve(2 << 12, 2, 0, 0);
    ms_shard_mine.shard = 2;
    serve(3 << 12, 1, 0, 0);
    ms_shard_mine.shard = 0;
    look();
    unsigned bounds = 0;
    for (uint32_t i = 0; i < snapshot.site_count; i++)
        bounds += snapshot.sites[i].max_is_bound ? snapshot.sites[i].site.stack : 0;
    is_u64(bounds, 1, "a maximum is a bound where two lanes counted, and there alone");
    is_u64(site_of(1)->max_bytes, 2 * BYTES, "and no less than what was held");
    ms_snapshot_release(&snapshot);
}

int main(void)
{
    plan(0);
    ms_options_load(NULL, NULL, NULL);
    start();
    fill();
    fill_another_shard();
    empty();
    test_bounds();
    return done();
}
