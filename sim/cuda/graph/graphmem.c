/*
 * Memory that graphs allocate and free. Its address is fixed when the node is made; it is there from the
 * moment when a launch reaches that node until something frees it: a node of the same graph or of another,
 * cuMemFreeAsync, cuMemFree, or the next launch. A device keeps what graphs have given back until it is
 * trimmed. All figures and states are under the memory lock.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/graph/graph.h"

#define STEP_BYTES (32UL << 20)

struct sim_graph_memory {
    atomic_uint refs;
    const struct CUgraph_st *graph,
        *freeing; /* whose node allocates it, and one whose node frees it; compared only */
    struct sim_device *device;
    struct sim_block *block;
    size_t offset, bytes; /* in the device's arena; rounded */
    CUDA_MEM_ALLOC_NODE_PARAMS params;
    CUmemAccessDesc *access;
    unsigned readable, writable;
    unsigned busy; /* launches that allocate it and have not freed it */
    bool out;      /* allocated by a launch; nothing that frees it was called for yet */
};

struct memory_op {
    struct sim_op op;
    struct sim_graph_memory *memory; /* referenced */
};

struct sim_graph_memory *sim_graph_memory_ref(struct sim_graph_memory *memory)
{
    atomic_fetch_add(&memory->refs, 1);
    return memory;
}

void sim_graph_memory_put(struct sim_graph_memory *memory)
{
    if (atomic_fetch_sub(&memory->refs, 1) != 1)
        return;
    sim_memory_write_lock();
    if (memory->block)
        sim_block_drop(memory->block);
    sim_arena_give(&memory->device->arena, memory->offset, memory->bytes);
    sim_memory_unlock();
    free(memory->access);
    free(memory);
}

CUdeviceptr sim_graph_memory_address(const struct sim_graph_memory *memory)
{
    return memory->params.dptr;
}

struct sim_graph_memory *sim_graph_memory_at(CUdeviceptr address)
{
    sim_memory_read_lock();
    const struct sim_block *block = sim_block_at(address);
    struct sim_graph_memory *memory =
        block && block->kind == SIM_BLOCK_GRAPH && block->range.start == address ? block->owner : NULL;
    sim_memory_unlock();
    return memory;
}

void sim_graph_memory_params(const struct sim_graph_memory *memory, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    *params = memory->params;
}

/* --- making --------------------------------------------------------------------------------------------- */

static CUresult read_access(struct sim_graph_memory *memory, const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    size_t count = params->accessDescCount;

    memory->readable = memory->writable = 1U << memory->device->ordinal;
    memory->access = malloc((count + 1) * sizeof *memory->access);
    if (!memory->access)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const CUmemAccessDesc *desc = &params->accessDescs[i];
        if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !sim_device(desc->location.id))
            return CUDA_ERROR_INVALID_VALUE;
        if (desc->flags & CU_MEM_ACCESS_FLAGS_PROT_READ)
            memory->readable |= 1U << desc->location.id;
        if (desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
            memory->writable |= 1U << desc->location.id;
        memory->access[i] = *desc;
    }
    return CUDA_SUCCESS;
}

/* An address for it, with nothing behind. */
static CUresult place(struct sim_graph_memory *memory, size_t bytes)
{
    struct sim_arena *arena;

    sim_memory_write_lock();
    CUresult status = sim_heap_arena(memory->device, &arena);
    memory->bytes = sim_heap_round(bytes);
    if (status == CUDA_SUCCESS &&
        !sim_arena_take(arena, memory->bytes, sim_heap_align(bytes), &memory->offset))
        status = CUDA_ERROR_OUT_OF_MEMORY;
    if (status == CUDA_SUCCESS) {
        memory->block = sim_block_new(SIM_BLOCK_GRAPH, (uintptr_t)arena->base + memory->offset, bytes);
        if (!memory->block) {
            sim_arena_give(arena, memory->offset, memory->bytes);
            status = CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    if (status == CUDA_SUCCESS) {
        memory->block->device = memory->device->ordinal;
        memory->block->readable = memory->block->writable = 0;
        memory->block->owner = memory;
    }
    sim_memory_unlock();
    return status;
}

CUresult sim_graph_memory_new(const CUDA_MEM_ALLOC_NODE_PARAMS *params, const struct CUgraph_st *graph,
                              struct sim_graph_memory **memory_p)
{
    const CUmemPoolProps *props = &params->poolProps;
    bool known = props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                 props->handleTypes == CU_MEM_HANDLE_TYPE_NONE &&
                 props->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    struct sim_device *device = known ? sim_device(props->location.id) : NULL;

    if (!device || !params->bytesize || (params->accessDescCount && !params->accessDescs))
        return CUDA_ERROR_INVALID_VALUE;
    if (params->bytesize > sim_config.memory_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sim_graph_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    atomic_init(&memory->refs, 1);
    memory->graph = graph;
    memory->device = device;
    CUresult status = read_access(memory, params);
    if (status == CUDA_SUCCESS)
        status = place(memory, params->bytesize);
    if (status != CUDA_SUCCESS) {
        free(memory->access);
        free(memory);
        return status;
    }
    memory->params = *params;
    memory->params.accessDescs = memory->access;
    memory->params.dptr = memory->block->range.start;
    *memory_p = memory;
    return CUDA_SUCCESS;
}

bool sim_graph_memory_claim(struct sim_graph_memory *memory, const struct CUgraph_st *graph)
{
    sim_memory_write_lock();
    bool good = memory->freeing != memory->graph && memory->freeing != graph;
    if (good)
        memory->freeing = graph;
    sim_memory_unlock();
    return good;
}

void sim_graph_memory_disclaim(struct sim_graph_memory *memory, const struct CUgraph_st *graph)
{
    sim_memory_write_lock();
    if (memory->freeing == graph)
        memory->freeing = NULL;
    sim_memory_unlock();
}

/* --- taking and giving ---------------------------------------------------------------------------------- */

static bool freed_inside(const struct sim_graph_memory *memory)
{
    return memory->freeing == memory->graph;
}

/* Capacity for one more launch: from what graphs have given back, or from the device, in steps of 32 MiB
 * where it has so much. */
static CUresult charge(struct sim_graph_memory *memory)
{
    struct sim_graph_usage *usage = &memory->device->graphs;
    size_t spare = usage->reserved - usage->busy, need = memory->bytes > spare ? memory->bytes - spare : 0,
           steps = (need + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;
    CUresult status = need ? sim_heap_charge(memory->device, steps) : CUDA_SUCCESS;

    if (status != CUDA_SUCCESS)
        status = sim_heap_charge(memory->device, steps = need);
    if (status != CUDA_SUCCESS)
        return status;
    usage->reserved += steps;
    usage->busy += memory->bytes;
    if (usage->reserved > usage->reserved_high)
        usage->reserved_high = usage->reserved;
    if (usage->reserved > usage->used_high)
        usage->used_high = usage->reserved;
    return CUDA_SUCCESS;
}

static void end_busy(struct sim_graph_memory *memory)
{
    if (!--memory->busy)
        memory->device->graphs.busy -= memory->bytes;
}

CUresult sim_graph_memory_launch(struct sim_graph_memory *memory, bool take)
{
    CUresult status = CUDA_SUCCESS;

    sim_memory_write_lock();
    if (!take) {
        if (!freed_inside(memory) && !memory->out)
            status = CUDA_ERROR_INVALID_VALUE;
        else
            memory->out = false;
    } else if (memory->out) {
        status = CUDA_ERROR_INVALID_VALUE;
    } else {
        status = memory->busy ? CUDA_SUCCESS : charge(memory);
        if (status == CUDA_SUCCESS) {
            memory->busy++;
            memory->out = !freed_inside(memory);
            sim_graph_memory_ref(memory); /* for the time until it is freed */
        }
    }
    sim_memory_unlock();
    return status;
}

void sim_graph_memory_relent(struct sim_graph_memory *memory, bool take)
{
    sim_memory_write_lock();
    if (take) {
        memory->out = false;
        end_busy(memory);
    } else {
        memory->out = !freed_inside(memory);
    }
    sim_memory_unlock();
    if (take)
        sim_graph_memory_put(memory);
}

bool sim_graph_memory_is_out(const struct sim_graph_memory *memory)
{
    sim_memory_read_lock();
    bool out = memory->out;
    sim_memory_unlock();
    return out;
}

static CUresult run_take(struct sim_op *op, struct sim_queue *queue)
{
    struct sim_graph_memory *memory = ((struct memory_op *)op)->memory;

    (void)queue;
    sim_memory_write_lock();
    bool shown = sim_arena_show(&memory->device->arena, memory->offset, memory->bytes);
    if (shown) {
        memory->block->readable = memory->readable;
        memory->block->writable = memory->writable;
    }
    sim_memory_unlock();
    return shown ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Whoever touches it from here on is wrong. */
static void give(struct sim_graph_memory *memory)
{
    sim_memory_write_lock();
    memory->block->readable = memory->block->writable = 0;
    sim_arena_hide(&memory->device->arena, memory->offset, memory->bytes);
    end_busy(memory);
    sim_memory_unlock();
    sim_graph_memory_put(memory);
}

static CUresult run_give(struct sim_op *op, struct sim_queue *queue)
{
    (void)queue;
    give(((struct memory_op *)op)->memory);
    return CUDA_SUCCESS;
}

static void dispose_op(struct sim_op *op)
{
    sim_graph_memory_put(((struct memory_op *)op)->memory);
}

struct sim_op *sim_graph_memory_op(struct sim_graph_memory *memory, bool take)
{
    struct memory_op *op = sim_op_new(sizeof *op, take ? run_take : run_give);

    if (!op)
        return NULL;
    op->op.always = true;
    op->op.dispose = dispose_op;
    op->memory = sim_graph_memory_ref(memory);
    return &op->op;
}

/* The one who frees it outside its graph; false if there is nothing to free. */
static bool claim_free(struct sim_graph_memory *memory)
{
    sim_memory_write_lock();
    bool out = memory->out;
    memory->out = false;
    sim_memory_unlock();
    return out;
}

CUresult sim_graph_memory_free_later(struct sim_graph_memory *memory, struct sim_queue *queue)
{
    if (!claim_free(memory))
        return CUDA_ERROR_INVALID_VALUE;
    struct sim_op *op = sim_graph_memory_op(memory, false);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_queue_push(queue, op);
    return CUDA_SUCCESS;
}

CUresult sim_graph_memory_free_now(struct sim_graph_memory *memory)
{
    if (!claim_free(memory))
        return CUDA_ERROR_INVALID_VALUE;
    give(memory);
    return CUDA_SUCCESS;
}
