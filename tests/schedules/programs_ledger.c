/* programs_ledger.c - the record: what several tasks tell it is in it, once, whoever was interrupted
 * where. */
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/objects/objects.h"
#include "base/thread/aux_stack.h"
#include "book_rows.h"
#include "engine.h"
#include "record/file/journal.h"
#include "record/live/shards.h"
#include "record/footprint/footprints.h"
#include "programs.h"
#include "tests/unit/ledger_check.h"

enum { MS_NS = 1000000, OWN = 8 /* blocks of the book for each task */ };

void ledger_program_check(void)
{
    char why[200];
    if (!book_holds(why, sizeof why) || !book_exports_hold(why, sizeof why))
        engine_fail("%s", why);
    else if (ledger_check() != 0)
        engine_fail("the ledger's sums do not add up");
    else if (ms_store_memory_only() || ms_store_error)
        engine_fail("the file did not grow");
    else if (strcmp(ms_journal_path(), book_path()) != 0)
        engine_fail("the record has another file than its first");
    else if (!book_parent_is_left())
        engine_fail("the file of the parent has changed since the fork");
}

static void prepare(void)
{
    book_start(true, "MEMSHIM_TIMELINE=2048");
}

/* --- shards
 * ------------------------------------------------------------------------------------------------ */

/* As a thread that had to wait often. */
static void choose_shard(unsigned shard)
{
    ms_shard_mine.shard = (uint8_t)shard;
}

static void record(void *arg)
{
    unsigned me = (unsigned)(size_t)arg, first = me * OWN;
    book_take(first, me, false);
    book_take(first + 1, 3, false);
    book_give(first);
    book_take(first + 2, 3, true);
    book_give(first + 1);
}

static void record_in_shard(void *arg)
{
    choose_shard((unsigned)(size_t)arg);
    record(arg);
}

static void record_in_last(void *arg)
{
    choose_shard(MS_SHARDS - 1);
    record(arg);
}

static void start_same(void)
{
    for (size_t i = 0; i < 3; i++)
        engine_task(i ? record_in_last : record, (void *)i);
}

static void start_shards(void)
{
    for (size_t i = 0; i < 3; i++)
        engine_task(record_in_shard, (void *)i);
}

static void record_once(void *arg)
{
    choose_shard(1);
    book_take((unsigned)(size_t)arg, 3, false);
}

static void start_opening_shard(void)
{
    engine_task(record_once, (void *)0);
    engine_task(record_once, (void *)1);
}

/* One shard is there already, and owned by its thread. */
static void prepare_owned(void)
{
    prepare();
    choose_shard(1);
    for (unsigned i = 0; i < 40; i++) {
        book_take(60, 5, false);
        book_give(60);
    }
    choose_shard(0);
}

/* --- blocks across tasks
 * ---------------------------------------------------------------------------------- */

enum { ADDRESSES = 2, TURNS = 4 };
static atomic_bool taken[ADDRESSES]; /* by the vendor's book, which is right */

/* The vendor gives an address out again as soon as it was freed; anybody may free it. */
static void pass_around(void *arg)
{
    unsigned me = (unsigned)(size_t)arg;
    for (unsigned turn = 0; turn < TURNS; turn++) {
        unsigned i = (turn + me) % ADDRESSES;
        if (!atomic_exchange(&taken[i], true))
            book_take(i, me, false);
        else if (book_give(i))
            atomic_store(&taken[i], false);
    }
}

static void start_across(void)
{
    for (size_t i = 0; i < 3; i++)
        engine_task(pass_around, (void *)i);
}

/* Of blocks.c: keys of one shard that all belong at one place of its index, so that each free moves
 * others. */
static uint64_t crowded_key(unsigned number)
{
    uint64_t key = 0x7d0000000000u;
    for (unsigned found = 0;; key += 512) {
        uint64_t h = key * 0x9e3779b97f4a7c15u;
        h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
        if (h >> 58 == 5 && h % 32 == 7 && found++ == number)
            return key;
    }
}

static void prepare_crowded_stripe(void)
{
    prepare();
    for (unsigned i = 0; i < 8; i++)
        book_block(i)->key = crowded_key(i);
    for (unsigned i = 0; i < 8; i += 2)
        book_take(i, 0, false);
}

static void crowd_stripe(void *arg)
{
    unsigned me = (unsigned)(size_t)arg;
    book_give(4 * me);
    book_take(4 * me + 1, 0, false);
    book_give(4 * me + 2);
    book_take(4 * me, 0, false);
}

static void start_crowded_stripe(void)
{
    engine_task(crowd_stripe, (void *)0);
    engine_task(crowd_stripe, (void *)1);
}

static atomic_bool handed[OWN];

static void serve(void *arg)
{
    (void)arg;
    choose_shard(1);
    for (unsigned i = 0; i < 4; i++) {
        book_take(i, i % 2, true);
        atomic_store(&handed[i], true);
    }
}

static void unserve(void *arg)
{
    unsigned me = (unsigned)(size_t)arg;
    for (unsigned i = 0; i < 4; i++) {
        if (atomic_load(&handed[i]) && i % 2 == me)
            book_give(i);
        else
            book_take(8 * (me + 1) + i, me, true);
    }
}

static void start_served(void)
{
    engine_task(serve, NULL);
    engine_task(unserve, (void *)0);
    engine_task(unserve, (void *)1);
}

static void refuse(void *arg)
{
    (void)arg;
    book_refuse(0);
    book_refuse(1);
}

static void free_all(void *arg)
{
    (void)arg;
    book_give(1);
    book_take(20, 2, false);
    book_give(0);
}

static void prepare_some(void)
{
    prepare();
    for (unsigned i = 0; i < 4; i++)
        book_take(i, i % 2, i > 1);
}

static void start_refused(void)
{
    engine_task(refuse, NULL);
    engine_task(free_all, NULL);
}

static void kill_context(void *arg)
{
    book_die((uint64_t)(size_t)arg);
}

static void start_dying(void)
{
    engine_task(kill_context, (void *)1);
    engine_task(free_all, NULL);
    engine_task(unserve, (void *)0);
}

/* What was to die with its context is freed, and a block of another context's has its row in the record. */
static void use_again(void *arg)
{
    (void)arg;
    book_give(2);
    book_take(8, 0, true);
}

static void start_used_again(void)
{
    engine_task(kill_context, (void *)1);
    engine_task(use_again, NULL);
}

/* One of three forks, wherever the others are; its child records what it did, and has nothing of theirs. */
static void fork_and_record(void *arg)
{
    record(arg);
    book_fork();
    record(arg);
    book_export(1);
    choose_shard(2);
    book_take(30, 3, true);
}

static void start_forking(void)
{
    engine_task(record_in_shard, (void *)1);
    engine_task(record_in_shard, (void *)2);
    engine_task(fork_and_record, (void *)0);
}

/* --- growing
 * ---------------------------------------------------------------------------------------------- */

static void open_and_record(void *arg)
{
    unsigned me = (unsigned)(size_t)arg;
    book_call((uint16_t)me, true, false, 10);
    book_device(0);
    book_take(me * OWN, me, false);
    book_give(me * OWN);
}

static void prepare_untouched(void)
{
    book_start(false, "MEMSHIM_TIMELINE=16");
}

static void start_opening(void)
{
    for (size_t i = 0; i < 3; i++)
        engine_task(open_and_record, (void *)i);
}

/* All rows that are there but `left` are given out. */
static void leave_rows(enum ms_table table, uint64_t there, uint64_t left)
{
    uint64_t first, rows = ms_table_rows(table);
    if (there > left + rows)
        ms_table_take(table, there - left - rows, &first);
}

static void prepare_growing(void)
{
    prepare();
    book_take(60, 5, false);
    leave_rows(MS_TABLE_BLOCKS, ms_table_reserved(MS_TABLE_BLOCKS), 0);
    leave_rows(MS_TABLE_SITES, ms_table_reserved(MS_TABLE_SITES), 1);
}

static void grow(void *arg)
{
    unsigned me = (unsigned)(size_t)arg;
    choose_shard(me);
    for (unsigned i = 0; i < 3; i++)
        book_take(me * 20 + i, me * 4 + i, false);
    book_give(me * 20);
}

static void start_growing(void)
{
    for (size_t i = 0; i < 3; i++)
        engine_task(grow, (void *)i);
}

/* Shards of one device take turns when they are opened, those of two do not. */
static void start_two_devices(void)
{
    for (unsigned i = 20; i < 24; i++)
        book_block(i)->device = 1;
    start_growing();
}

/* --- full tables
 * ------------------------------------------------------------------------------------------ */

static void prepare_full(void)
{
    prepare();
    book_take(60, 5, false);
    leave_rows(MS_TABLE_SITES, MS_TABLE_SITES_ROWS - 4096, 1);
}

/* The rows are not gone through: there are a hundred thousand. */
static void check_full(void)
{
    uint64_t live = book_block(60)->bytes;
    struct ms_account sum;
    for (unsigned i = 0; i < 3; i++)
        live += book_block(i * 20 + 1)->bytes + book_block(i * 20 + 2)->bytes;
    ms_account_sum(0, &sum);
    if (sum.device.live_bytes != live || ms_blocks_count(MS_LAYER_OUTER) != 7 || !ms_account_is_bounded(0))
        engine_fail("%llu bytes are live, of %llu", (unsigned long long)sum.device.live_bytes,
                    (unsigned long long)live);
    else if (ms_sites_merged() < 4 || ms_sites_dropped())
        engine_fail("%llu allocations share a site", (unsigned long long)ms_sites_merged());
}

static void prepare_crowded(void)
{
    prepare();
    leave_rows(MS_TABLE_BLOCKS, MS_TABLE_BLOCKS_ROWS, 16);
}

static void crowd(void *arg)
{
    unsigned me = (unsigned)(size_t)arg;
    struct ms_block block = {.kind = MS_KIND_DEVICE, .context = 1};
    for (unsigned i = 0; i < 10; i++) {
        block.key = (uint64_t)(me * 10 + i + 1) << 20;
        block.bytes = block.requested = 100;
        ms_ledger_alloc(&block);
    }
}

static void start_crowded(void)
{
    engine_task(crowd, (void *)0);
    engine_task(crowd, (void *)1);
}

/* The slots are not gone through: there are sixteen million. */
static void check_crowded(void)
{
    struct ms_block found;
    struct ms_account sum;
    unsigned known = 0;
    for (uint64_t i = 1; i <= 20; i++)
        known += ms_ledger_find(MS_SPACE_ADDRESS, i << 20, &found) && found.key == i << 20;
    ms_account_sum(0, &sum);
    if (known != 16 || sum.device.live_count != 16 || ms_blocks_dropped() != 4)
        engine_fail("of 20 blocks for 16 places %u are known and %llu were dropped", known,
                    (unsigned long long)ms_blocks_dropped());
    else if (sum.device.live_bytes != 1600 || sum.device.peak_live_bytes != 1600 || !ms_account_is_bounded(0))
        engine_fail("what found no room counts in the peak, or may");
}

/* --- beside
 * ----------------------------------------------------------------------------------------------- */

/* A report of the process while it works. */
static void report(void *arg)
{
    char why[200];
    (void)arg;
    if (!book_holds(why, sizeof why))
        engine_fail("beside: %s", why);
}

static void start_beside(void)
{
    engine_task(record_in_shard, (void *)1);
    engine_task(record_in_shard, (void *)2);
    engine_task(report, NULL);
}

static void export_some(void *arg)
{
    unsigned me = (unsigned)(size_t)arg;
    for (unsigned turn = 0; turn < 2; turn++) {
        book_export(me);
        book_export(me + 2);
        book_revoke(me);
        book_revoke(me + 2);
    }
    book_export(me);
}

/* Another process opens what it was told of: the file is read while it changes. */
static void import_some(void *arg)
{
    char why[200];
    (void)arg;
    for (unsigned i = 0; i < 3; i++) {
        if (!book_exports_hold(why, sizeof why))
            engine_fail("beside: %s", why);
    }
}

static void start_exports(void)
{
    engine_task(export_some, (void *)0);
    engine_task(export_some, (void *)1);
    engine_task(import_some, NULL);
}

/* --- everything else
 * -------------------------------------------------------------------------------------- */

static void happen(void *arg)
{
    unsigned me = (unsigned)(size_t)arg;
    for (unsigned i = 0; i < 2; i++) {
        book_call((uint16_t)i, i == me, i != me, 100 + i);
        book_blind_spot(i + me);
        book_diagnostic(i + me);
        book_code(i + me);
        book_segment(2 * me + i, true);
        book_pool((uint64_t)(i + 1) << 21);
        book_flow(me, 100 + i);
        book_oom((uint16_t)i, 2 * me + i);
    }
    book_device(me);
    book_give(me);
    book_misfree(me, 8 + me);
    book_taking(me + 1, 0, me);
    book_taking(me + 1, 0x100 + me, 2 + me);
    book_taking(me + 1, 0x200 + me, 2 + me);
    ms_ledger_module_gone(0x100 + me);
    book_segment(2 * me, false);
    book_segment(2 * me, true);
}

static void start_happening(void)
{
    engine_task(happen, (void *)0);
    engine_task(happen, (void *)1);
}

/* Time passes, until stretches become longer. */
static void last(void *arg)
{
    unsigned me = (unsigned)(size_t)arg;
    choose_shard(me);
    for (unsigned i = 0; i < 5; i++) {
        book_take(me * OWN + i, me, false);
        engine_wait(NULL, 0, (3 + i) * MS_NS, __builtin_return_address(0));
        book_give(me * OWN + i);
    }
}

static void prepare_lasting(void)
{
    book_start(true, "MEMSHIM_TIMELINE=16");
}

static void start_lasting(void)
{
    engine_task(last, (void *)0);
    engine_task(last, (void *)1);
}

const struct program ledger_programs[] = {
    {"lanes", "three record in lanes of their own, of which two are not open yet", prepare, start_shards,
     ledger_program_check, RIGHT},
    {"lanes-owned", "three record in lanes, of which one was a thread's own", prepare_owned, start_shards,
     ledger_program_check, RIGHT},
    {"address-again", "an address is allocated and freed by three in turn", prepare, start_across,
     ledger_program_check, RIGHT},
    {"lanes-same", "three record, of which two open the same lane", prepare, start_same, ledger_program_check,
     RIGHT},
    {"lane-opens", "two record one block each in a lane that is not open yet", prepare, start_opening_shard,
     ledger_program_check, RIGHT},
    {"one-shard", "two record blocks that are at one place of an index", prepare_crowded_stripe,
     start_crowded_stripe, ledger_program_check, RIGHT},
    {"served-across", "blocks are served by one and freed by two others", prepare, start_served,
     ledger_program_check, RIGHT},
    {"refused", "frees are refused while others free", prepare_some, start_refused, ledger_program_check,
     RIGHT},
    {"row-again", "a context dies while its block is freed and another's has its row", prepare_some,
     start_used_again, ledger_program_check, RIGHT},
    {"context-dies", "a context dies while its blocks are freed and others made", prepare_some, start_dying,
     ledger_program_check, RIGHT},
    {"forked-ledger", "one forks while two others record", prepare, start_forking, ledger_program_check,
     RIGHT},
    {"file-opens", "three record for the first time", prepare_untouched, start_opening, ledger_program_check,
     RIGHT},
    {"file-grows", "three record where tables are at their ends", prepare_growing, start_two_devices,
     ledger_program_check, RIGHT},
    {"sites-full", "three record where one more site has room", prepare_full, start_growing, check_full,
     RIGHT},
    {"blocks-full", "two record more than has room", prepare_crowded, start_crowded, check_crowded, RIGHT},
    {"reported", "two record while the record is reported", prepare, start_beside, ledger_program_check,
     RIGHT},
    {"exports", "two export and revoke while another process reads the file", prepare, start_exports,
     ledger_program_check, RIGHT},
    {"events", "two tell of all that is no block", prepare_some, start_happening, ledger_program_check,
     RIGHT},
    {"timeline", "two record while stretches of time become longer", prepare_lasting, start_lasting,
     ledger_program_check, RIGHT},
    {NULL, NULL, NULL, NULL, NULL, RIGHT},
};
