/* graph_owed.c - see graph_owed.h.
 *
 * Runs in the program's threads. Owns a hash table by executable graph, in records of the arena that are used
 * again, under one lock (MS_RANK_OBJECT), under which nobody is called. */
#include "hooks/follow/graph_owed.h"

#include "base/keyed.h"
#include "base/lock.h"
#include "hooks/follow/graph_nodes.h"

enum { ALL = 1 << 16 };

/* Of an executable graph, by its handle. */
struct part {
    struct ms_keyed by;
    uint64_t address;
    bool is_free;
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct ms_keyed_table parts = MS_KEYED_TABLE(struct part, 64);

/* An allocation and its free in one graph leave nothing. */
static void graph_owed_add(uint64_t exec, uint64_t address, bool is_free)
{
    void **place;
    struct part *part;

    ms_lock(&lock);
    for (place = ms_keyed_find(&parts, exec); (part = *place) != NULL; place = ms_keyed_after(place, exec)) {
        if (part->address == address && part->is_free != is_free)
            break;
    }
    if (part) {
        ms_keyed_drop(&parts, place);
    } else if (parts.count < ALL && (part = ms_keyed_add(&parts, exec)) != NULL) {
        part->address = address;
        part->is_free = is_free;
    }
    ms_unlock(&lock);
}

static void graph_owed_note(const struct ms_gpu *gpu, CUgraphNode node, CUgraphNodeType type, void *arg)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.dptr = 0};
    CUdeviceptr address = 0;
    const uint64_t *exec = arg;

    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && gpu->graph_alloc_params &&
        gpu->graph_alloc_params(node, &params) == CUDA_SUCCESS && params.dptr)
        graph_owed_add(*exec, params.dptr, false);
    else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE && gpu->graph_free_params &&
             gpu->graph_free_params(node, &address) == CUDA_SUCCESS && address)
        graph_owed_add(*exec, address, true);
}

void ms_graph_owed_made(const struct ms_gpu *gpu, uint64_t exec, uint64_t graph)
{
    ms_graph_owed_ended(exec);
    ms_graph_nodes(gpu, graph, graph_owed_note, &exec);
}

void ms_graph_owed_ended(uint64_t exec)
{
    ms_lock(&lock);
    for (void **place = ms_keyed_find(&parts, exec); *place; place = ms_keyed_from(place, exec))
        ms_keyed_drop(&parts, place);
    ms_unlock(&lock);
}

/* Frees come first, since a launch may allocate again what another graph's memory was. */
unsigned ms_graph_owed(uint64_t exec, unsigned from, struct ms_owed *owed)
{
    unsigned found = 0;

    ms_lock(&lock);
    for (int turn = 0; turn < 2; turn++)
        for (void **place = ms_keyed_find(&parts, exec); *place && found < MS_OWED_AT_ONCE;
             place = ms_keyed_after(place, exec)) {
            const struct part *part = *place;
            if (part->is_free == (turn == 1))
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
    ms_keyed_reset(&parts);
}
MS_AT_FORK(MS_FORK_SERVICE, graph_owed_reset);
