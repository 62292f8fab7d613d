/* graphs.c - the graphs that exist; see watch.h.
 *
 * Owns a hash table of handles, in chunks of the arena that are used again; one lock (MS_RANK_OBJECT), under
 * which nobody is called. */
#include "hooks/follow/graphs.h"

#include "base/keyed.h"
#include "base/lock.h"
#include "pool/api/pool.h"

/* By its handle. */
struct graph {
    struct ms_keyed by;
    uint64_t context;
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct ms_keyed_table graphs = MS_KEYED_TABLE(struct graph, 128, 256);

void ms_graph_made(uint64_t handle, uint64_t context)
{
    struct graph *graph;
    bool is_new;

    ms_lock(&lock);
    is_new = !*ms_keyed_find(&graphs, handle) && (graph = ms_keyed_add(&graphs, handle)) != NULL;
    if (is_new)
        graph->context = context;
    ms_unlock(&lock);
    if (is_new)
        ms_pool_graph_alive(context, 1);
}

uint64_t ms_graph_ended(uint64_t handle)
{
    uint64_t context = 0;
    void **place;

    ms_lock(&lock);
    place = ms_keyed_find(&graphs, handle);
    if (*place) {
        context = ((const struct graph *)*place)->context;
        ms_keyed_drop(&graphs, place);
    }
    ms_unlock(&lock);
    if (context)
        ms_pool_graph_alive(context, -1);
    return context;
}

/* Its heap is gone, and with it what it counted. Handles of graphs may come back. */
unsigned ms_graphs_context_ended(uint64_t context)
{
    unsigned count = 0;

    ms_lock(&lock);
    for (unsigned b = 0; b < graphs.bucket_count; b++) {
        for (void **place = &graphs.buckets[b]; *place;) {
            struct graph *graph = *place;
            if (graph->context != context) {
                place = &graph->by.next;
                continue;
            }
            ms_keyed_drop(&graphs, place);
            count++;
        }
    }
    ms_unlock(&lock);
    return count;
}

static void graphs_reset(void)
{
    ms_lock_reset(&lock);
    ms_keyed_reset(&graphs);
}
MS_AT_FORK(MS_FORK_SERVICE, graphs_reset);
