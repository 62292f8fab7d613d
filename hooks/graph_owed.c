/* graph_owed.c - see graph_owed.h.
 *
 * Runs in the program's threads. Owns a hash table by executable graph, in records of the arena that are used
 * again, under one lock (MS_RANK_OBJECT), under which nobody is called. */
#include "hooks/graph_owed.h"

#include <string.h>

#include "base/lock.h"
#include "base/records.h"
#include "hooks/graph_nodes.h"

enum { BUCKETS = 256, ALL = 1 << 16 };

struct part {
    struct part *next;
    uint64_t exec, address;
    bool is_free;
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct part *all[BUCKETS];
static struct ms_records records = MS_RECORDS(struct part, next, 64);
static unsigned count;

static struct part **bucket_of(uint64_t exec)
{
    return &all[(exec * 0x9e3779b97f4a7c15u >> 48) % BUCKETS];
}

static void drop_locked(struct part **link)
{
    struct part *part = *link;

    *link = part->next;
    ms_records_drop(&records, part);
    count--;
}

/* An allocation and its free in one graph leave nothing. */
static void add(uint64_t exec, uint64_t address, bool is_free)
{
    struct part **link, *part;

    ms_lock(&lock);
    link = bucket_of(exec);
    while (*link && ((*link)->exec != exec || (*link)->address != address || (*link)->is_free == is_free))
        link = &(*link)->next;
    if (*link) {
        drop_locked(link);
    } else if (count < ALL && (part = ms_records_take(&records)) != NULL) {
        *part = (struct part){*bucket_of(exec), exec, address, is_free};
        *bucket_of(exec) = part;
        count++;
    }
    ms_unlock(&lock);
}

static void note(const struct ms_gpu *gpu, CUgraphNode node, CUgraphNodeType type, void *arg)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.dptr = 0};
    CUdeviceptr address = 0;
    const uint64_t *exec = arg;

    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && gpu->graph_alloc_params &&
        gpu->graph_alloc_params(node, &params) == CUDA_SUCCESS && params.dptr)
        add(*exec, params.dptr, false);
    else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE && gpu->graph_free_params &&
             gpu->graph_free_params(node, &address) == CUDA_SUCCESS && address)
        add(*exec, address, true);
}

void ms_graph_owed_made(const struct ms_gpu *gpu, uint64_t exec, uint64_t graph)
{
    ms_graph_owed_ended(exec);
    ms_graph_nodes(gpu, graph, note, &exec);
}

void ms_graph_owed_ended(uint64_t exec)
{
    ms_lock(&lock);
    for (struct part **link = bucket_of(exec); *link;) {
        if ((*link)->exec == exec)
            drop_locked(link);
        else
            link = &(*link)->next;
    }
    ms_unlock(&lock);
}

/* Frees come first, since a launch may allocate again what another graph's memory was. */
unsigned ms_graph_owed(uint64_t exec, unsigned from, struct ms_owed *owed)
{
    unsigned found = 0;

    ms_lock(&lock);
    for (int turn = 0; turn < 2; turn++)
        for (const struct part *part = *bucket_of(exec); part && found < MS_OWED_AT_ONCE; part = part->next) {
            if (part->exec != exec || part->is_free == (turn == 1))
                continue;
            if (from)
                from--;
            else
                owed[found++] = (struct ms_owed){part->address, part->is_free};
        }
    ms_unlock(&lock);
    return found;
}

static void graph_owed_reset(void)
{
    ms_lock_reset(&lock);
    memset(all, 0, sizeof(all));
    records.spare = NULL;
    count = 0;
}
MS_AT_FORK(MS_FORK_SERVICE, graph_owed_reset);
