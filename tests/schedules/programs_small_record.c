/* programs_small_record.c - one step of the record's protocols each, of two tasks: small enough for all
 * schedules with up to three preemptions (rule `every`).
 *
 * Blocks are told to the ledger directly, where the book would make two calls depend on each other that need
 * not. */
#include <stddef.h>

#include "base/objects/objects.h"
#include "book.h"
#include "engine.h"
#include "record/live/internal.h"
#include "record/live/shards.h"
#include "programs.h"
#include "tests/unit/ledger_check.h"

enum { BYTES = 4096, STACKS = 3, SITES_LEFT = 1, SITES_BEFORE = MS_TABLE_SITES_ROWS - 4096 };
#define KEY ((uint64_t)0x7f0000000000)

static ms_stack_id stacks[STACKS];
static unsigned live;
static _Atomic uint32_t is_free;

static void serve(unsigned i, unsigned stack)
{
    const struct ms_block block = {.key = KEY + i * BYTES,
                                   .bytes = BYTES,
                                   .requested = BYTES,
                                   .context = 1,
                                   .stack = stacks[stack],
                                   .space = MS_SPACE_ADDRESS,
                                   .kind = MS_KIND_DEVICE};
    if (!ms_ledger_serve(&block))
        engine_fail("block %u found no room", i);
}

/* A record of one block, which was counted in the first shard. */
static void prepare(void)
{
    book_start(true, "MEMSHIM_TIMELINE=16");
    for (unsigned i = 0; i < STACKS; i++)
        stacks[i] = book_stack(i);
    serve(0, 0);
    live = 3;
}

static void check_figures(void)
{
    struct ms_account sum;
    ms_account_sum(0, &sum);
    if (sum.device.live_count != live || sum.device.live_bytes != (uint64_t)live * BYTES ||
        sum.device.peak_live_bytes != (uint64_t)live * BYTES || !ms_account_is_bounded(0))
        engine_fail("of %u blocks %llu are live, with %llu bytes, and %llu at most", live,
                    (unsigned long long)sum.device.live_count, (unsigned long long)sum.device.live_bytes,
                    (unsigned long long)sum.device.peak_live_bytes);
}

static void check(void)
{
    check_figures();
    if (ledger_check() != 0)
        engine_fail("the ledger's sums do not add up");
}

/* --- shards
 * ------------------------------------------------------------------------------------------------ */

static void serve_in_shard(void *arg)
{
    unsigned shard = (unsigned)(size_t)arg;
    ms_shard_mine.shard = (uint8_t)shard;
    serve(1 + shard, 1);
}

static void start_shard(void)
{
    engine_task(serve_in_shard, (void *)1);
    engine_task(serve_in_shard, (void *)0);
}

static void start_shards(void)
{
    engine_task(serve_in_shard, (void *)1);
    engine_task(serve_in_shard, (void *)2);
}

static void serve_in_first(void *arg)
{
    ms_shard_mine.shard = 1;
    serve(1 + (unsigned)(size_t)arg, 1);
}

static void start_same_shard(void)
{
    engine_task(serve_in_first, (void *)0);
    engine_task(serve_in_first, (void *)1);
}

/* --- full tables, and such as grow
 * ------------------------------------------------------------------------ */

static void leave_rows(enum ms_table table, uint64_t there, uint64_t left)
{
    uint64_t first, rows = ms_table_rows(table);
    if (there > left + rows)
        ms_table_take(table, there - left - rows, &first);
}

static void prepare_full(void)
{
    prepare();
    leave_rows(MS_TABLE_SITES, SITES_BEFORE, SITES_LEFT);
}

static void prepare_growing(void)
{
    prepare();
    leave_rows(MS_TABLE_SITES, ms_table_reserved(MS_TABLE_SITES), 0);
}

static void serve_from(void *arg)
{
    unsigned stack = (unsigned)(size_t)arg;
    serve(stack, stack);
}

static void start_sites(void)
{
    engine_task(serve_from, (void *)1);
    engine_task(serve_from, (void *)2);
}

static void check_full(void)
{
    check_figures();
    if (ms_sites_merged() != 1 || ms_sites_dropped())
        engine_fail("%llu allocations share a site", (unsigned long long)ms_sites_merged());
}

static void check_grown(void)
{
    check_figures();
    if (ms_sites_merged() || ms_sites_dropped() || ms_store_memory_only() || ms_store_error)
        engine_fail("a site found no room");
}

/* --- an address is given out again
 * ------------------------------------------------------------------------ */

static struct ms_block block_at(unsigned stack)
{
    return (struct ms_block){
        .key = KEY - BYTES, .bytes = BYTES, .requested = BYTES, .context = 1, .stack = stacks[stack]};
}

static void prepare_again(void)
{
    prepare();
    struct ms_block block = block_at(1);
    ms_ledger_alloc(&block);
    live = 2;
}

static void free_it(void *arg)
{
    struct ms_block block;
    (void)arg;
    if (!ms_ledger_free_begin(MS_SPACE_ADDRESS, KEY - BYTES, &block))
        engine_fail("the block is not there");
    else if (block.stack != stacks[1])
        engine_fail("another's block is freed");
    atomic_store(&is_free, 1);
}

/* As soon as the vendor may give the address out. */
static void take_again(void *arg)
{
    struct ms_block block = block_at(2);
    (void)arg;
    while (!atomic_load(&is_free))
        engine_wait((const uint32_t *)&is_free, 0, UINT64_MAX / 4, __builtin_return_address(0));
    ms_ledger_alloc(&block);
    if (!ms_ledger_find(MS_SPACE_ADDRESS, block.key, &block) || block.stack != stacks[2])
        engine_fail("what is found is not what was taken last");
}

static void look_it_up(void *arg)
{
    struct ms_block block;
    (void)arg;
    if (ms_ledger_find(MS_SPACE_ADDRESS, KEY - BYTES, &block) && block.bytes != BYTES)
        engine_fail("what is found is half of a block");
}

static void start_again(void)
{
    engine_task(free_it, NULL);
    engine_task(take_again, NULL);
}

static void start_looked_up(void)
{
    engine_task(free_it, NULL);
    engine_task(look_it_up, NULL);
}

static void check_freed(void)
{
    struct ms_account sum;
    ms_account_sum(0, &sum);
    if (sum.device.live_count != 1 || ledger_check() != 0)
        engine_fail("what was freed counts");
}

static void check_again(void)
{
    struct ms_account sum;
    ms_account_sum(0, &sum);
    if (sum.device.live_count != 2 || sum.device.peak_live_bytes != 2 * BYTES || ledger_check() != 0)
        engine_fail("what was freed and taken again counts twice, or not at all");
}

/* --- exports
 * ---------------------------------------------------------------------------------------------- */

static void prepare_exports(void)
{
    book_start(true, "MEMSHIM_TIMELINE=16");
}

static void export_it(void *arg)
{
    book_export((unsigned)(size_t)arg);
}

static void export_and_revoke(void *arg)
{
    (void)arg;
    book_export(0);
    book_revoke(0);
}

static void check_exports(void)
{
    char why[200];
    if (!book_exports_hold(why, sizeof why))
        engine_fail("%s", why);
}

static void import_it(void *arg)
{
    (void)arg;
    check_exports();
}

static void start_exports(void)
{
    engine_task(export_it, (void *)0);
    engine_task(export_it, (void *)1);
}

static void start_imports(void)
{
    engine_task(export_and_revoke, NULL);
    engine_task(import_it, NULL);
}

/* --- fork
 * ------------------------------------------------------------------------------------------------- */

static void record_one(void *arg)
{
    (void)arg;
    book_take(1, 1, true);
}

static void fork_it(void *arg)
{
    (void)arg;
    book_fork();
    book_take(2, 2, true);
}

static void check_book(void)
{
    char why[200];
    if (!book_holds(why, sizeof why))
        engine_fail("%s", why);
    else if (ledger_check() != 0)
        engine_fail("the ledger's sums do not add up");
    else if (!book_parent_is_left())
        engine_fail("the file of the parent has changed since the fork");
}

static void start_fork(void)
{
    engine_task(record_one, NULL);
    engine_task(fork_it, NULL);
}

static void list_loaded(void *arg)
{
    (void)arg;
    ms_objects_changed();
    ms_objects_refresh();
}

static void start_fork_beside_list(void)
{
    engine_task(list_loaded, NULL);
    engine_task(fork_it, NULL);
}

const struct program small_record_programs[] = {
    {"small-lane-opens", "one records in a lane that is not open yet, one in the first", prepare, start_shard,
     check, RIGHT},
    {"small-lanes-open", "two open lanes of their own", prepare, start_shards, check, RIGHT},
    {"small-lane-opens-twice", "two open the same lane", prepare, start_same_shard, check, RIGHT},
    {"small-sites-full", "two record where one more site has room", prepare_full, start_sites, check_full,
     RIGHT},
    {"small-file-grows", "two record at new sites where the table is at its end", prepare_growing,
     start_sites, check_grown, RIGHT},
    {"small-address-again", "an address is freed and taken again", prepare_again, start_again, check_again,
     RIGHT},
    {"small-address-found", "an address is looked up while it is freed", prepare_again, start_looked_up,
     check_freed, RIGHT},
    {"small-exports", "two export a block each", prepare_exports, start_exports, check_exports, RIGHT},
    {"small-imports", "a block is exported and revoked while another process reads the file", prepare_exports,
     start_imports, check_exports, RIGHT},
    {"small-forked", "one forks while another records", prepare_exports, start_fork, check_book, RIGHT},
    {"small-forked-listing", "one forks while another lists what is loaded", prepare_exports,
     start_fork_beside_list, check_book, RIGHT},
    {NULL, NULL, NULL, NULL, NULL, RIGHT},
};
