/* graph_uses.c - see graph_uses.h.
 *
 * Runs in the program's threads, in a hook scope of memshim's own. Owns a hash table by graph, in records of
 * the arena that are used again, under one lock (MS_RANK_OBJECT), under which nobody is called. */
#include "hooks/follow/graph_uses.h"

#include <string.h>

#include "base/keyed.h"
#include "base/lock.h"
#include "hooks/follow/graph_nodes.h"
#include "pool/api/pool.h"
#include "pool/stream/stream.h"

enum { OF_GRAPH = 512, ALL = 1 << 16 };

/* To an executable graph, by its handle. */
struct given {
    struct ms_keyed by;
    uint64_t address;
    uint32_t life; /* as ms_uses_life says */
    uint8_t rule;
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct ms_keyed_table all = MS_KEYED_TABLE(struct given, 64);

static bool is_known_locked(uint64_t exec, uint32_t life, unsigned *of_graph_p)
{
    for (void **place = ms_keyed_find(&all, exec); *place; place = ms_keyed_after(place, exec)) {
        if (((const struct given *)*place)->life == life)
            return true;
        ++*of_graph_p;
    }
    return false;
}

void ms_graph_uses_add(uint64_t exec, uint64_t address, enum ms_invalid_free_rule rule)
{
    uint32_t life;
    unsigned of_graph = 0;
    struct given *given;

    if (!address || !(ms_pool_owns(address) || ms_stream_owns(address)) || !(life = ms_uses_life(address)))
        return;
    ms_lock(&lock);
    if (!is_known_locked(exec, life, &of_graph) && of_graph < OF_GRAPH && all.count < ALL &&
        (given = ms_keyed_add(&all, exec)) != NULL)
        *given = (struct given){given->by, address, life, (uint8_t)rule};
    ms_unlock(&lock);
}

void ms_graph_uses_ended(uint64_t exec)
{
    ms_lock(&lock);
    for (void **place = ms_keyed_find(&all, exec); *place; place = ms_keyed_from(place, exec))
        ms_keyed_drop(&all, place);
    ms_unlock(&lock);
}

unsigned ms_graph_uses_launched(uint64_t exec, uint64_t begun, struct ms_invalid_free *invalid_frees,
                                unsigned most)
{
    unsigned found = 0;

    ms_lock(&lock);
    for (void **place = ms_keyed_find(&all, exec); *place && found < most;
         place = ms_keyed_after(place, exec)) {
        const struct given *given = *place;
        if (ms_uses_over(given->life, given->address, begun, &invalid_frees[found]))
            invalid_frees[found++].rule = (enum ms_invalid_free_rule)given->rule;
    }
    ms_unlock(&lock);
    return found;
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

/* The driver tells parameters by a function for each type; here all get the form in which nodes are made.
 * False for types that use no memory. */
static bool read_node(const struct ms_gpu *gpu, CUgraphNode node, CUgraphNodeType type,
                      CUgraphNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS_v2 kernel = {.kern = NULL};

    memset(params, 0, sizeof(*params));
    params->type = type;
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        if (!gpu->graph_kernel_params || gpu->graph_kernel_params(node, &kernel) != CUDA_SUCCESS)
            return false;
        params->kernel.func = kernel.func;
        params->kernel.kern = kernel.kern;
        params->kernel.kernelParams = kernel.kernelParams;
        params->kernel.extra = kernel.extra;
        return true;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return gpu->graph_memcpy_params &&
               gpu->graph_memcpy_params(node, &params->memcpy.copyParams) == CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        CUDA_MEMSET_NODE_PARAMS fill;
        if (!gpu->graph_memset_params || gpu->graph_memset_params(node, &fill) != CUDA_SUCCESS)
            return false;
        params->memset.dst = fill.dst;
        params->memset.pitch = fill.pitch;
        params->memset.elementSize = fill.elementSize;
        params->memset.width = fill.width;
        params->memset.height = fill.height;
        return true;
    }
    default:
        return false;
    }
}

static void graph_uses_note(const struct ms_gpu *gpu, CUgraphNode node, CUgraphNodeType type, void *arg)
{
    CUgraphNodeParams params;
    const uint64_t *exec = arg;

    if (read_node(gpu, node, type, &params))
        ms_use_of_exec(gpu, *exec, &params);
}

void ms_graph_uses_made(const struct ms_gpu *gpu, uint64_t exec, uint64_t graph)
{
    ms_graph_uses_ended(exec);
    if (exec)
        ms_graph_nodes(gpu, graph, graph_uses_note, &exec);
}

static void graph_uses_reset(void)
{
    ms_lock_reset(&lock);
    ms_keyed_reset(&all);
}
MS_AT_FORK(MS_FORK_SERVICE, graph_uses_reset);
