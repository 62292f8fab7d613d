/* programs_hits.c - what a thread answers out of what it has at hand (src/fastpath/), with pool and
 * record together, while others want what it uses: a row for each way in which that is taken away, and random
 * words.
 *
 * The first task is the thread whose thread cache and shard they are. The small ones end with three
 * preemptions (rule `every`). */
#include <stddef.h>

#include "base/thread/guard.h"
#include "calls.h"
#include "engine.h"
#include "pool/api/internal.h"
#include "programs.h"

MS_UNSYNCHRONIZED bool hits_have_ready(uint64_t bytes)
{
    const struct ms_fast_cache *fast = &ms_thread.fast;
    if (!fast->of_context.heap || bytes > MS_SLAB_MAX_BYTES)
        return false;
    const struct ms_batch *batch = fast->of_context.tcache->magazines[ms_slab_class(bytes)].ready;
    return batch && batch->count;
}

#define HITS(name, capacity, before, first, second, third)                                                   \
    static void prepare_##name(void)                                                                         \
    {                                                                                                        \
        calls_prepare_hits((uint64_t)(capacity) << 20, before);                                              \
    }                                                                                                        \
    static void start_##name(void)                                                                           \
    {                                                                                                        \
        const char *const others[] = {second, third};                                                        \
        calls_task(first);                                                                                   \
        for (unsigned i = 0; i < CALLS_TASKS - 1 && *others[i]; i++)                                         \
            calls_new_thread(others[i]);                                                                     \
    }

HITS(stopped, 256, "t0", "g0 t1", "o", "")
HITS(trimmed, 256, "t0", "t1 g0", "x", "")
HITS(shard, 256, "t0", "t1 g0", "t5", "")
HITS(freed, 256, "t0", "t1", "g0", "")
HITS(twice, 256, "t0", "d0", "d0", "")
HITS(captured, 256, "t0 i", "g0", "c e", "")
HITS(pinned, 256, "t0", "g0 s t0", "p0 i u", "")
HITS(waited, 256, "t0 i", "g0 t5", "s", "")
HITS(context, 256, "t0 t1", "g0 g1", "k", "")
HITS(run_stopped, 256, "t3", "g3 t4", "o", "")
HITS(run_trimmed, 256, "t3 t4", "g4 t7 g3", "x", "")
HITS(run_shard, 256, "t3 t4", "g3 t7 g4 t3", "t5 g5", "")
HITS(run_freed, 256, "t3 t4", "g3 t7", "g4", "")
HITS(run_twice, 256, "t3", "d3", "d3", "")
HITS(run_pinned, 256, "t3 i", "g3 s t3", "p3 i u", "")
HITS(run_context, 256, "t3 t4", "g3 g4", "k", "")
HITS(runs, 256, "t3 t4 i", "g3 t7 g4 t3 g7 t4 g3", "t6 g6 o g4 t3 s", "x q t0 g0 i g3")
HITS(many, 256, "t0 t1 i", "g0 t0 g1 t2 t1 g2 g0 t0", "t5 g5 o g1 t1 s", "x q t3 g0 i g3")
HITS(taken, 256, "t0 t1", "t5 g5 t2 g2 t5 g5 t2 g2 t5 g5 t2 g2", "t0 x g1 t1 x g0", "s o i s o")

const struct program hits_programs[] = {
    CALLS_ROW(stopped, "hit-and-stop", "a thread hits while the pool is stopped"),
    CALLS_ROW(trimmed, "hit-and-trim", "a thread hits while what is idle goes back"),
    CALLS_ROW(shard, "hit-and-lane", "a thread hits while another counts in its lane"),
    CALLS_ROW(freed, "hit-and-free", "a thread hits while another frees what came from its lease"),
    CALLS_ROW(twice, "hit-freed-twice", "a block is freed by a hit and by another"),
    CALLS_ROW(captured, "hit-and-capture", "a free hits while a capture begins and ends"),
    CALLS_ROW(pinned, "hit-and-pin", "a free hits while its block is exported, and its like is asked for"),
    CALLS_ROW(waited, "hit-and-wait", "a thread hits while another waits for the context"),
    CALLS_ROW(context, "hit-context-ends", "frees hit while their context ends"),
    CALLS_ROW(run_stopped, "hit-run-and-stop", "a thread hits for large blocks while the pool is stopped"),
    CALLS_ROW(run_trimmed, "hit-run-and-trim", "... while what is idle goes back"),
    CALLS_ROW(run_shard, "hit-run-and-lane", "... while another counts in its lane"),
    CALLS_ROW(run_freed, "hit-run-and-free", "... while another frees what it was given"),
    CALLS_ROW(run_twice, "hit-run-freed-twice", "a large block is freed by a hit and by another"),
    CALLS_ROW(run_pinned, "hit-run-and-pin", "a free of a large block hits while it is exported"),
    CALLS_ROW(run_context, "hit-run-context-ends", "frees of large blocks hit while their context ends"),
    CALLS_ROW(runs, "hits-runs", "a thread hits for large blocks while two others do all kinds of things"),
    CALLS_ROW(many, "hits-own", "a thread hits while two others do all kinds of things"),
    CALLS_ROW(taken, "hits-taken", "... and has its lease and lane taken away again and again"),
    {NULL, NULL, NULL, NULL, NULL, RIGHT},
};
