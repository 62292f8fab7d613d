/* graphs.c - the graphs that exist; see watch.h.
 *
 * Owns a hash table of handles, in chunks of the arena that are used again; one lock (MS_RANK_OBJECT), under
 * which nobody is called. */
#include "hooks/watch.h"

#include <string.h>

#include "base/records.h"
#include "base/lock.h"
#include "pool/pool.h"

#define BUCKETS 256

struct graph {
    struct graph *next;
    uint64_t handle, context;
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct graph *graphs[BUCKETS];
static struct ms_records records = MS_RECORDS(struct graph, next, 128);

static struct graph **bucket_of(uint64_t handle)
{
    return &graphs[(handle * 0x9e3779b97f4a7c15u >> 48) % BUCKETS];
}

void ms_graph_made(uint64_t handle, uint64_t context)
{
    struct graph **bucket = bucket_of(handle), *graph;
    bool is_new;

    ms_lock(&lock);
    for (graph = *bucket; graph && graph->handle != handle; graph = graph->next)
        ;
    is_new = !graph && (graph = ms_records_take(&records)) != NULL;
    if (is_new) {
        *graph = (struct graph){.next = *bucket, .handle = handle, .context = context};
        *bucket = graph;
    }
    ms_unlock(&lock);
    if (is_new)
        ms_pool_graph_alive(context, 1);
}

uint64_t ms_graph_ended(uint64_t handle)
{
    uint64_t context = 0;

    ms_lock(&lock);
    for (struct graph **link = bucket_of(handle); *link; link = &(*link)->next) {
        struct graph *graph = *link;
        if (graph->handle != handle)
            continue;
        context = graph->context;
        *link = graph->next;
        ms_records_drop(&records, graph);
        break;
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
    for (unsigned b = 0; b < BUCKETS; b++) {
        for (struct graph **link = &graphs[b]; *link;) {
            struct graph *graph = *link;
            if (graph->context != context) {
                link = &graph->next;
                continue;
            }
            *link = graph->next;
            ms_records_drop(&records, graph);
            count++;
        }
    }
    ms_unlock(&lock);
    return count;
}

static void graphs_reset(void)
{
    ms_lock_reset(&lock);
    memset(graphs, 0, sizeof(graphs));
    records.spare = NULL;
}
MS_AT_FORK(MS_FORK_SERVICE, graphs_reset);
