/* programs_run.c - runs of a program from the first call to the end, which reach the tables of the ledger:
 * for `crash`, which looks after each store at what a process that was killed there would leave. */
#include <stddef.h>

#include "book.h"
#include "engine.h"
#include "record/live/shards.h"
#include "record/footprint/footprints.h"
#include "record/file/trace.h"
#include "programs.h"

enum { MS_NS = 1000000, BEGIN = 100 };

static void pass_time(unsigned ms)
{
    engine_wait(NULL, 0, (uint64_t)ms * MS_NS, __builtin_return_address(0));
}

/* Memory of the host's, of another device, with blocks whose free is refused, and what a context takes
 * along. */
static void record_kinds(void)
{
    book_block(40)->kind = MS_KIND_PINNED;
    book_block(41)->device = 1;
    book_block(42)->kind = MS_KIND_ASYNC;
    for (unsigned i = 40; i < 44; i++)
        book_take(i, i % 3, false);
    book_refuse(41);
    book_give(42);
    book_misfree(42, 6);
    book_misfree(42, 6);
    book_give(40);
    book_taking(1, 0, 1);
    book_taking(1, 0x100, 2);
    ms_ledger_module_gone(0x100);
    ms_ledger_footprints_died(1);
    book_take(0, 1, true);
    book_take(2, 1, false);
    book_die(1);
}

static void tell_events(void)
{
    book_device(0);
    book_device(1);
    for (unsigned i = 0; i < 3; i++) {
        book_call((uint16_t)i, i != 1, i == 2, BEGIN + i);
        book_blind_spot(i);
        book_segment(i, true);
        book_pool((uint64_t)(i + 1) << 21);
        book_flow(i % 2, BEGIN + i);
        book_oom((uint16_t)i, i);
        book_export(i);
        book_diagnostic(i);
        book_code(i);
    }
    book_segment(1, false);
    book_revoke(1);
    book_export(3);
    for (unsigned i = 1; i < 6; i++)
        book_code(i);
    book_segment(1, true);
}

static void run_all(void *arg)
{
    (void)arg;
    book_take(10, 0, false);
    tell_events();
    record_kinds();
    for (unsigned i = 0; i < 6; i++) {
        book_take(11 + i, i, i % 2);
        pass_time(5);
        book_give(11 + i);
    }
    book_give(10);
    ms_trace_finish();
    book_end();
}

/* More sites and blocks than the tables' first extents have room for. */
static void run_long(void *arg)
{
    unsigned me = (unsigned)(size_t)arg;
    ms_shard_mine.shard = (uint8_t)me;
    for (unsigned turn = 0; turn < 3; turn++) {
        for (unsigned i = 0; i < 16; i++)
            book_take(me * 16 + i, me * 16 + i, i % 2);
        pass_time(turn + 1);
        for (unsigned i = 0; i < 16; i++)
            book_give(me * 16 + (i * 5 + turn) % 16);
    }
}

/* Blocks of which some are freed by the other, in lanes of their own: their events wait for one lock. */
static void run_traced(void *arg)
{
    unsigned me = (unsigned)(size_t)arg;
    ms_shard_mine.shard = (uint8_t)me;
    for (unsigned i = 0; i < 3; i++) {
        book_take(me * 8 + i, me, i % 2);
        if (i)
            book_give(me * 8 + i);
    }
    book_give((1 - me) * 8);
    for (unsigned turn = 0; turn < 2; turn++) { /* which the trace knows by now */
        book_take(me * 8 + 1, me, true);
        book_give(me * 8 + 1);
    }
}

static void prepare(void)
{
    book_start(false, "MEMSHIM_TIMELINE=16");
}

static void prepare_traced(void)
{
    book_start(false, "MEMSHIM_TRACE=/ledgers/trace");
}

static void prepare_two(void)
{
    book_start(true, "MEMSHIM_TRACE=/ledgers/trace");
}

static void start_all(void)
{
    engine_task(run_all, NULL);
}

static void start_long(void)
{
    for (size_t i = 0; i < 3; i++)
        engine_task(run_long, (void *)i);
}

static void start_traced(void)
{
    for (size_t i = 0; i < 2; i++)
        engine_task(run_traced, (void *)i);
}

/* A trace says what happened, in an order in which it can have. */
static void check(void)
{
    char why[200];
    ms_trace_finish();
    if (!book_holds(why, sizeof why) || !book_exports_hold(why, sizeof why) ||
        !book_trace_holds(why, sizeof why))
        engine_fail("%s", why);
}

const struct program run_programs[] = {
    {"run", "everything that a program may tell, by one", prepare, start_all, check, RIGHT},
    {"run-traced", "likewise, with a trace", prepare_traced, start_all, check, RIGHT},
    {"traced-by-two", "blocks that two record in a trace, freed by either", prepare_two, start_traced, check,
     RIGHT},
    {"run-long", "blocks of many sites, by three in lanes of their own", prepare, start_long, check, RIGHT},
    {NULL, NULL, NULL, NULL, NULL, RIGHT},
};
