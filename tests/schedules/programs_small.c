/* programs_small.c - one step of a protocol each, of two tasks, or three: small enough for all schedules with
 * up to three preemptions (rule `every`). */
#include <stddef.h>

#include "base/thread/bias.h"
#include "base/objects/objects.h"
#include "calls.h"
#include "engine.h"
#include "pool/api/pool.h"
#include "programs.h"
#include "unwind/stack.h"

/* --- memory of a context
 * ---------------------------------------------------------------------------------- */

CALLS_PROGRAM(hit_and_free, 256, false, "t0 t5 g5", "g0", "t5", "")
CALLS_PROGRAM(free_and_free, 256, false, "t0 t5", "g0", "g5", "")
CALLS_PROGRAM(hit_and_hit, 256, false, "t0 t5 g0 g5 s", "t0", "t5", "")
CALLS_PROGRAM(epoch_closes, 256, false, "t0 t1 i", "g0", "s", "")
CALLS_PROGRAM(epoch_closes_twice, 256, false, "t3 t4 i", "g3 i", "g4 s", "")
CALLS_PROGRAM(limbo_freed, 256, false, "t4 t3 i g4 f", "t4", "g3", "")
CALLS_PROGRAM(limbo_for_two, 256, false, "t0 t1 i g0 g1 f", "t0", "t1", "")
CALLS_PROGRAM(limbo_work_ends, 256, false, "t0 i g0", "f", "t0", "")
CALLS_PROGRAM(capture_and_free, 256, false, "t0 i", "c e", "g0", "")
CALLS_PROGRAM(capture_and_wait, 256, false, "t0 i g0", "c e", "s", "")
CALLS_PROGRAM(context_and_look, 256, false, "2 t0", "2 k", "l0", "")
CALLS_PROGRAM(context_and_free, 256, false, "2 t0", "2 k", "g0", "")
CALLS_PROGRAM(pin_and_free, 256, false, "t0", "p0 u", "g0", "")
CALLS_PROGRAM(pin_and_trim, 256, false, "t6", "p6 g6 u", "x", "")
CALLS_PROGRAM(room_for_two, 24, false, "t6 g6 s", "t6", "t6", "")
CALLS_PROGRAM(room_is_freed, 24, false, "t6", "g6", "t6", "")
CALLS_PROGRAM(room_from_limbo, 24, false, "t6 i g6", "f", "t6", "")
CALLS_PROGRAM(room_elsewhere, 2, false, "2 t0 i g0", "2 f", "t0", "")
CALLS_PROGRAM(room_goes_back, 24, false, "t6 g6 s", "x", "t6", "")
CALLS_PROGRAM(room_goes_otherwise, 24, false, "t6 g6 s", "x", "a6", "")
CALLS_PROGRAM(pages_go_back, 4, true, "t4 g4 s", "x", "t4", "")
CALLS_PROGRAM(room_is_waited_for, 24, false, "t6 i g6", "s", "t6", "")
CALLS_PROGRAM(room_waits_and_goes_back, 24, false, "t6 i g6", "s x", "t6", "")
CALLS_PROGRAM(trim_and_take, 256, false, "t3 g3 s", "x", "t3", "")
CALLS_PROGRAM(first_and_first, 256, false, "", "t0", "t1", "")
CALLS_PROGRAM(first_chunk, 256, false, "t0 g0 s x", "t0", "t0", "")
CALLS_PROGRAM(chunk_and_run, 256, false, "t3", "t7", "t0", "")
CALLS_PROGRAM(first_run, 256, false, "t3", "t0", "t1", "")
CALLS_PROGRAM(first_same_run, 256, false, "t3", "t0", "t0", "")
CALLS_PROGRAM(stop_and_free, 256, false, "t2", "o", "g2", "")
CALLS_PROGRAM(stop_and_take, 256, false, "t0 g0", "o", "t0", "")
CALLS_PROGRAM(pages_and_peer, 256, true, "t3", "r", "t4", "")
CALLS_PROGRAM(pages_are_freed, 256, true, "t6 i g6 f", "x", "t4", "")
CALLS_PROGRAM(both_free, 256, false, "t0", "d0", "d0", "")

/* There is memory for the request, or will be in no time. */
static void check_served(void)
{
    struct ms_pool_figures figures;
    calls_check();
    ms_pool_figures(0, &figures);
    if (!figures.parts.requested)
        engine_fail("a request is refused, for which there is memory");
}

#define SERVED_ROW(symbol, name, text)                                                                       \
    {                                                                                                        \
        name, text, prepare_##symbol, start_##symbol, check_served, RIGHT                                    \
    }

/* --- stacks
 * ----------------------------------------------------------------------------------------------- */

enum { DEPTH = 2, NODES_BEFORE = 2046 };
static ms_stack_id ids[2];
static unsigned nodes_before;

/* Two stacks with the outer frame in common. */
static void intern(void *arg)
{
    size_t me = (size_t)arg;
    uintptr_t frames[DEPTH] = {0x40000000u + me, 0x40001000u};
    ids[me % 2] = ms_stack_intern(frames, DEPTH);
}

static void intern_same(void *arg)
{
    uintptr_t frames[DEPTH] = {0x40000000u, 0x40001000u};
    ids[(size_t)arg] = ms_stack_intern(frames, DEPTH);
}

static void prepare_stacks(void)
{
    ms_objects_refresh();
    nodes_before = ms_stack_count();
}

/* The index of nodes is to be half full, and the table at the end of its memory. */
static void prepare_stacks_grow(void)
{
    ms_objects_refresh();
    for (uintptr_t i = 0; i < NODES_BEFORE; i++) {
        uintptr_t frame = 0x50000000u + i;
        ms_stack_intern(&frame, 1);
    }
    nodes_before = ms_stack_count();
}

static void start_interning(void)
{
    engine_task(intern, (void *)0);
    engine_task(intern, (void *)1);
}

static void start_interning_same(void)
{
    engine_task(intern_same, (void *)0);
    engine_task(intern_same, (void *)1);
}

static void expect_nodes(unsigned count)
{
    if (ms_stack_count() - nodes_before != count || ms_stack_dropped())
        engine_fail("there are %u nodes for %u", ms_stack_count() - nodes_before, count);
}

static void check_interned(void)
{
    for (size_t me = 0; me < 2; me++) {
        ms_stack_id id = ids[me];
        uintptr_t frame = 0;
        uint32_t generation;
        if (ms_stack_node(id, &id, &frame, &generation) != 0 || frame != 0x40000000u + me ||
            ms_stack_node(id, &id, &frame, &generation) != 0 || frame != 0x40001000u || id)
            engine_fail("stack %zu reads back as another", me);
    }
    expect_nodes(3);
}

static void check_interned_same(void)
{
    if (ids[0] != ids[1])
        engine_fail("a stack has two numbers");
    expect_nodes(2);
}

/* --- a lock that has an owner
 * ----------------------------------------------------------------------------- */

enum { LONG_STREAK = 1 << 20 };
static struct ms_bias bias;
static int inside, total;

static void prepare_bias(void)
{
    bias.lock = (struct ms_lock)MS_LOCK_INIT(MS_RANK_POOL_TCACHE);
    ms_bias_start();
}

static void work(void)
{
    if (inside++)
        engine_fail("two are inside");
    engine_point(__builtin_return_address(0));
    total++;
    if (--inside)
        engine_fail("two were inside");
}

/* The third time it is its own: of the streak that it takes, the middle is left out. */
static void own(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 3; i++) {
        ms_bias_lock(&bias, MS_BIAS_TCACHE);
        work();
        if (i == 1)
            bias.streak = LONG_STREAK;
        ms_bias_unlock(&bias, MS_BIAS_TCACHE);
    }
}

static void take_away(void *arg)
{
    (void)arg;
    ms_bias_lock_plainly(&bias, MS_BIAS_TCACHE);
    work();
    ms_bias_unlock_plainly(&bias);
}

static void start_bias(void)
{
    engine_task(own, NULL);
    engine_task(take_away, NULL);
}

static void check_bias(void)
{
    if (total != 4)
        engine_fail("%d of 4 came in", total);
}

const struct program small_programs[] = {
    CALLS_ROW(hit_and_free, "small-hit-and-free", "a block is freed while its like is taken"),
    CALLS_ROW(free_and_free, "small-free-and-free", "two free blocks of one size"),
    CALLS_ROW(hit_and_hit, "small-hit-and-hit", "two take blocks of one size"),
    CALLS_ROW(epoch_closes, "small-epoch-closes", "an epoch closes while a free comes"),
    CALLS_ROW(epoch_closes_twice, "small-epoch-closes-twice", "two close an epoch"),
    CALLS_ROW(limbo_freed, "small-limbo-freed", "limbo is released while another frees"),
    CALLS_ROW(limbo_for_two, "small-limbo-for-two", "limbo is released for two"),
    CALLS_ROW(limbo_work_ends, "small-limbo-work-ends", "work ends while what it kept in limbo is asked for"),
    CALLS_ROW(capture_and_free, "small-capture-and-free", "a capture begins and ends while a free comes"),
    CALLS_ROW(capture_and_wait, "small-capture-and-wait",
              "a capture begins and ends while another waits for the context"),
    CALLS_ROW(context_and_look, "small-context-and-look", "a context dies while its block is looked up"),
    CALLS_ROW(context_and_free, "small-context-and-free", "a context dies while its block is freed"),
    CALLS_ROW(pin_and_free, "small-pin-and-free", "a block is exported while another frees it"),
    CALLS_ROW(pin_and_trim, "small-pin-and-trim", "an exported block is freed while what is idle goes back"),
    CALLS_ROW(room_for_two, "small-room-for-two", "two want the last memory"),
    CALLS_ROW(room_is_freed, "small-room-is-freed", "memory is short while another frees"),
    SERVED_ROW(room_from_limbo, "small-room-from-limbo", "memory is short until work ends"),
    SERVED_ROW(room_elsewhere, "small-room-elsewhere", "memory is short until another context's work ends"),
    SERVED_ROW(room_goes_back, "small-room-goes-back", "memory is short while what is idle goes back"),
    CALLS_ROW(room_goes_otherwise, "small-room-goes-otherwise",
              "memory of another kind is short while what is idle goes back"),
    SERVED_ROW(pages_go_back, "small-pages-go-back", "memory is short while pages go back"),
    SERVED_ROW(room_is_waited_for, "small-room-is-waited-for",
               "memory is short while another waits for the context"),
    SERVED_ROW(room_waits_and_goes_back, "room-waits-and-goes-back",
               "memory is short while another waits for the context, and gives back"),
    CALLS_ROW(trim_and_take, "small-trim-and-take", "what is idle goes back while it is taken"),
    CALLS_ROW(first_and_first, "first-and-first", "two ask for the first memory"),
    CALLS_ROW(first_chunk, "small-first-chunk", "two want a chunk where there is none"),
    CALLS_ROW(chunk_and_run, "small-chunk-and-run",
              "one wants a chunk, and one a run of the one that there is"),
    CALLS_ROW(first_run, "small-first-run", "two want the first run of their sizes in a chunk"),
    CALLS_ROW(first_same_run, "small-first-same-run", "two want the first run of a size in a chunk"),
    CALLS_ROW(stop_and_free, "small-stop-and-free", "the pool is stopped while a free comes"),
    CALLS_ROW(stop_and_take, "small-stop-and-take", "the pool is stopped while a block is taken"),
    CALLS_ROW(pages_and_peer, "small-pages-and-peer", "another device is let to pages while pages come"),
    CALLS_ROW(pages_are_freed, "small-pages-are-freed", "pages go back while pages are asked for"),
    CALLS_ROW(both_free, "small-both-free", "two free the same block"),
    {"small-stacks", "two intern stacks that have a frame in common", prepare_stacks, start_interning,
     check_interned, RIGHT},
    {"small-stack", "two intern the same stack", prepare_stacks, start_interning_same, check_interned_same,
     RIGHT},
    {"small-stacks-grow", "two intern stacks while the index and the table grow", prepare_stacks_grow,
     start_interning, check_interned, RIGHT},
    {"small-bias", "a lock is taken from its owner", prepare_bias, start_bias, check_bias, RIGHT},
    {NULL, NULL, NULL, NULL, NULL, RIGHT},
};
