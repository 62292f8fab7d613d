/* graph_execs.c - see graph_execs.h.
 *
 * Runs in the program's threads, in a hook scope of memshim's own. Owns two tables by executable graph under
 * one lock (MS_RANK_OBJECT), under which nobody is called; the driver is asked in a visit. */
#include "hooks/follow/graph_execs.h"

#include <string.h>
#include <sys/mman.h>

#include "base/keyed.h"
#include "base/lock.h"
#include "pool/api/pool.h"
#include "pool/stream/stream.h"
#include "vendor/context_scope.h"

enum { OF_GRAPH = 512, ALL = 1 << 16 };

/* Memory that an executable graph has to do with, by its handle. */
struct part {
    struct ms_keyed by;
    uint64_t address;
    uint32_t life; /* of what it was given: as ms_uses_life says */
    uint8_t rule;
    bool is_free; /* of what its launch leaves */
};

/* The largest allocation of an executable graph, by its handle. */
struct largest {
    struct ms_keyed by;
    uint64_t bytes;
    int device;
};

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_OBJECT);
static struct ms_keyed_table all_largest = MS_KEYED_TABLE(struct largest, 64, 256);
static struct ms_keyed_table owings = MS_KEYED_TABLE(struct part, 64, 256),
                             all_given = MS_KEYED_TABLE(struct part, 64, 256);

static void forget(struct ms_keyed_table *table, uint64_t exec)
{
    ms_lock(&lock);
    ms_keyed_drop_all(table, exec);
    ms_unlock(&lock);
}

/* --- nodes ---------------------------------------------------------------------------------------------- */

enum { NODES_MAX = 1 << 20, DEPTH = 3 };

/* As many as there are: mapped, since a stack of the program's may be small. NULL for none. */
static CUgraphNode *map_nodes(const struct ms_gpu *gpu, CUgraph graph, size_t *count_p)
{
    CUgraphNode *nodes;
    size_t found = 0;

    if (gpu->graph_nodes(graph, NULL, &found) != CUDA_SUCCESS || !found || found > NODES_MAX)
        return NULL;
    *count_p = found;
    nodes = mmap(NULL, found * sizeof(*nodes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nodes == MAP_FAILED)
        return NULL;
    if (gpu->graph_nodes(graph, nodes, count_p) == CUDA_SUCCESS && *count_p == found)
        return nodes;
    munmap(nodes, found * sizeof(*nodes));
    return NULL;
}

typedef void (*node_func_t)(const struct ms_gpu *gpu, CUgraphNode node, CUgraphNodeType type, void *arg);

static void go_through(const struct ms_gpu *gpu, CUgraph graph, unsigned depth, node_func_t each, void *arg)
{
    size_t found;
    CUgraphNode *nodes = depth < DEPTH ? map_nodes(gpu, graph, &found) : NULL;
    CUgraphNodeType type;
    CUgraph child;

    for (size_t i = 0; nodes && i < found; i++) {
        if (gpu->graph_node_type(nodes[i], &type) != CUDA_SUCCESS)
            continue;
        if (type != CU_GRAPH_NODE_TYPE_GRAPH)
            each(gpu, nodes[i], type, arg);
        else if (gpu->graph_child && gpu->graph_child(nodes[i], &child) == CUDA_SUCCESS)
            go_through(gpu, child, depth + 1, each, arg);
    }
    if (nodes)
        munmap(nodes, found * sizeof(*nodes));
}

/* Calls `each` for every node, but for those that hold a graph, whose own nodes come instead. A graph of more
 * than a million nodes, or that lies deeper than three, is left out. The program's call that has just made
 * something of the graph holds it meanwhile. */
static void each_node(const struct ms_gpu *gpu, uint64_t graph, node_func_t each, void *arg)
{
    struct ms_context_scope visit;

    if (!graph || !gpu || !gpu->graph_nodes || !gpu->graph_node_type)
        return;
    ms_context_scope_begin(&visit, gpu, 0);
    go_through(gpu, (CUgraph)(uintptr_t)graph, 0, each, arg);
    ms_context_scope_end(&visit);
}

/* --- what a launch leaves ------------------------------------------------------------------------------- */

/* An allocation and its free in one graph leave nothing. */
static void graph_owed_add(uint64_t exec, uint64_t address, bool is_free)
{
    void **place;
    struct part *part;

    ms_lock(&lock);
    for (place = ms_keyed_find(&owings, exec); (part = *place) != NULL; place = ms_keyed_after(place, exec)) {
        if (part->address == address && part->is_free != is_free)
            break;
    }
    if (part) {
        ms_keyed_drop(&owings, place);
    } else if (owings.count < ALL && (part = ms_keyed_add(&owings, exec)) != NULL) {
        part->address = address;
        part->is_free = is_free;
    }
    ms_unlock(&lock);
}

static void note_largest(const struct ms_gpu *gpu, uint64_t exec, const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    bool is_device = params->poolProps.location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    struct largest *largest;

    ms_lock(&lock);
    largest = *ms_keyed_find(&all_largest, exec);
    if (!largest && is_device && all_largest.count < ALL && (largest = ms_keyed_add(&all_largest, exec)))
        *largest = (struct largest){.by = largest->by};
    if (largest && is_device && params->bytesize > largest->bytes) {
        largest->bytes = params->bytesize;
        largest->device = ms_device_number(ms_gpu_maker(gpu), params->poolProps.location.id);
    }
    ms_unlock(&lock);
}

uint64_t ms_graph_largest(uint64_t exec, int *device_p)
{
    const struct largest *largest;
    uint64_t bytes = 0;

    ms_lock(&lock);
    if ((largest = *ms_keyed_find(&all_largest, exec)) != NULL) {
        bytes = largest->bytes;
        *device_p = largest->device;
    }
    ms_unlock(&lock);
    return bytes;
}

static void graph_owed_note(const struct ms_gpu *gpu, CUgraphNode node, CUgraphNodeType type, void *arg)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.dptr = 0};
    CUdeviceptr address = 0;
    const uint64_t *exec = arg;

    if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && gpu->graph_alloc_params &&
        gpu->graph_alloc_params(node, &params) == CUDA_SUCCESS && params.dptr) {
        graph_owed_add(*exec, params.dptr, false);
        note_largest(gpu, *exec, &params);
    } else if (type == CU_GRAPH_NODE_TYPE_MEM_FREE && gpu->graph_free_params &&
               gpu->graph_free_params(node, &address) == CUDA_SUCCESS && address)
        graph_owed_add(*exec, address, true);
}

void ms_graph_owed_made(const struct ms_gpu *gpu, uint64_t exec, uint64_t graph)
{
    ms_graph_owed_ended(exec);
    each_node(gpu, graph, graph_owed_note, &exec);
}

void ms_graph_owed_ended(uint64_t exec)
{
    forget(&owings, exec);
    forget(&all_largest, exec);
}

/* Frees come first, since a launch may allocate again what another graph's memory was. */
unsigned ms_graph_owed(uint64_t exec, unsigned from, struct ms_owed *owed)
{
    unsigned found = 0;

    ms_lock(&lock);
    for (int turn = 0; turn < 2; turn++)
        for (void **place = ms_keyed_find(&owings, exec); *place && found < MS_OWED_AT_ONCE;
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

/* --- what it was given ---------------------------------------------------------------------------------- */

static bool is_known_locked(uint64_t exec, uint32_t life, unsigned *of_graph_p)
{
    for (void **place = ms_keyed_find(&all_given, exec); *place; place = ms_keyed_after(place, exec)) {
        if (((const struct part *)*place)->life == life)
            return true;
        ++*of_graph_p;
    }
    return false;
}

void ms_graph_uses_add(uint64_t exec, uint64_t address, enum ms_invalid_free_rule rule)
{
    uint32_t life;
    unsigned of_graph = 0;
    struct part *given;

    if (!address || !(ms_pool_owns(address) || ms_stream_owns(address)) || !(life = ms_uses_life(address)))
        return;
    ms_lock(&lock);
    if (!is_known_locked(exec, life, &of_graph) && of_graph < OF_GRAPH && all_given.count < ALL &&
        (given = ms_keyed_add(&all_given, exec)) != NULL)
        *given = (struct part){given->by, address, life, (uint8_t)rule, false};
    ms_unlock(&lock);
}

void ms_graph_uses_ended(uint64_t exec)
{
    forget(&all_given, exec);
}

unsigned ms_graph_uses_launched(uint64_t exec, uint64_t begun, struct ms_invalid_free *invalid_frees,
                                unsigned most)
{
    unsigned found = 0;

    ms_lock(&lock);
    for (void **place = ms_keyed_find(&all_given, exec); *place && found < most;
         place = ms_keyed_after(place, exec)) {
        const struct part *given = *place;
        if (ms_uses_over(given->life, given->address, begun, &invalid_frees[found]))
            invalid_frees[found++].rule = (enum ms_invalid_free_rule)given->rule;
    }
    ms_unlock(&lock);
    return found;
}

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
        each_node(gpu, graph, graph_uses_note, &exec);
}

static void graph_execs_reset(void)
{
    ms_lock_reset(&lock);
    ms_keyed_reset(&owings);
    ms_keyed_reset(&all_largest);
    ms_keyed_reset(&all_given);
}
MS_AT_FORK(MS_FORK_SERVICE, graph_execs_reset);
