/* invalid_free.c - see invalid_free.h.
 *
 * Runs in the program's threads, inside a hook scope. No lock of its own, no allocation. */
#include "hooks/observe/invalid_free.h"

#include "hooks/follow/graph_memory.h"
#include "hooks/init.h"
#include "hooks/lookup/resolve.h"
#include "pool/external/external.h"
#include "pool/api/pool.h"

static void invalid_free_count(const struct ms_invalid_free *invalid_free, unsigned row, const void *frame,
                               const void *caller)
{
    ms_ledger_invalid_free(invalid_free, (uint16_t)row, ms_stack_capture(frame, caller));
}

/* Under the name, and with the stack, of the outermost frame, whose function has not returned. */
static const struct ms_call *invalid_free_named(const struct ms_call *call)
{
    return ms_thread.outermost ? ms_thread.outermost : call;
}

/* Calls that a library's free makes inside are its own; when it has failed, it is asked about what the
 * program gave it. */
static bool is_inside_buffer(const struct ms_call *call)
{
    return invalid_free_named(call) != call &&
           ms_rows[invalid_free_named(call)->row]->class == MS_CLASS_BUFFER_FREE;
}

static void count_call(const struct ms_invalid_free *invalid_free, const struct ms_call *call)
{
    invalid_free_count(invalid_free, invalid_free_named(call)->row, invalid_free_named(call)->frame,
                       invalid_free_named(call)->caller);
}

/* Somebody else has the address by now: a graph, or memory that is mapped there. */
static bool is_taken(uint64_t address)
{
    uint64_t number, begin;
    bool mapped;

    return ms_graph_memory_is_unknown(address) || (ms_handle_at(address, &number, &begin, &mapped) && mapped);
}

MS_NOINLINE void ms_invalid_free_of_call(const struct ms_call *call, enum ms_space space, uint64_t key)
{
    struct ms_invalid_free invalid_free;

    if (key && !is_inside_buffer(call) && !(space == MS_SPACE_ADDRESS && is_taken(key)) &&
        ms_ledger_invalid_free_find(space, key, false, &invalid_free))
        count_call(&invalid_free, call);
}

/* cudaErrorInitializationError, CUDA_ERROR_NOT_INITIALIZED, hipErrorNotInitialized. */
enum { NOT_INITIALIZED = 3 };

MS_NOINLINE void ms_invalid_free_forked(struct ms_call *call, int status)
{
    struct ms_call *outer = ms_thread.outermost ? ms_thread.outermost : call;
    unsigned api = ms_rows[call->row]->api;
    struct ms_invalid_free refused = {
        .rule = MS_INVALID_FREE_FORKED, .site = UINT32_MAX, .device = MS_DEVICE_NONE};

    if (status != NOT_INITIALIZED || outer->told || !ms_init_is_forked() ||
        (api != MS_API_CUDA_DRIVER && api != MS_API_CUDA_RUNTIME && api != MS_API_HIP))
        return;
    outer->told = true;
    count_call(&refused, call);
}

MS_NOINLINE void ms_invalid_free_of_handle(const struct ms_call *call, uint64_t key)
{
    struct ms_invalid_free invalid_free;

    if (is_inside_buffer(call) || !ms_ledger_invalid_free_find(MS_SPACE_HANDLE, key, true, &invalid_free))
        return;
    invalid_free.given = call->args.key;
    count_call(&invalid_free, call);
}

/* Recorded by its address where the pool has it, and else as the memory that is mapped there. */
MS_NOINLINE void ms_invalid_free_of_buffer(const struct ms_call *call)
{
    uint64_t number, begin, key = call->args.key;
    struct ms_invalid_free invalid_free;
    bool mapped;

    if (!key || is_inside_buffer(call))
        return;
    if (!ms_handle_at(key, &number, &begin, &mapped)) {
        ms_invalid_free_of_call(call, MS_SPACE_ADDRESS, key);
        return;
    }
    if ((mapped && begin == key) ||
        !ms_ledger_invalid_free_find(MS_SPACE_HANDLE, number, true, &invalid_free))
        return;
    invalid_free.rule = mapped ? MS_INVALID_FREE_INTERIOR : MS_INVALID_FREE_DOUBLE;
    invalid_free.space = MS_SPACE_ADDRESS;
    invalid_free.given = key;
    invalid_free.begin = begin;
    count_call(&invalid_free, call);
}

/* A block that is live was refused for another reason: the state of the context, a capture, a stream. */
static bool is_live(uint64_t address)
{
    struct ms_pool_block block;

    return ms_pool_find(address, &block) && block.address == address;
}

MS_NOINLINE void ms_invalid_free_served(const struct ms_call *outer, unsigned row, const void *frame,
                                        const void *caller, uint64_t address)
{
    struct ms_invalid_free invalid_free;

    if (is_live(address) || !ms_ledger_invalid_free_find(MS_SPACE_ADDRESS, address, false, &invalid_free))
        return;
    if (outer)
        invalid_free_count(&invalid_free, outer->row, outer->frame, outer->caller);
    else
        invalid_free_count(&invalid_free, row, frame, caller);
}

bool ms_block_range_find(uint64_t address, struct ms_block_range *range_p)
{
    const struct ms_gpu *gpu = ms_library_driver();
    struct ms_external_block buffer;
    struct ms_pool_block block;
    unsigned type = 0;
    uint64_t number, first, end;
    size_t bytes;
    CUdeviceptr begin;

    *range_p = (struct ms_block_range){.device = MS_DEVICE_NONE};
    if (ms_pool_find(address, &block)) {
        *range_p = (struct ms_block_range){block.address, block.granted, block.device, 0};
    } else if (ms_external_find(address, &buffer)) {
        *range_p = (struct ms_block_range){buffer.address, buffer.granted, buffer.device, 0};
    } else if (ms_handle_span(address, &number, &first, &end)) {
        *range_p = (struct ms_block_range){first, end - first, MS_DEVICE_NONE, number};
    } else if (gpu && gpu->pointer_attribute && !ms_pool_owns(address)) {
        if (gpu->pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) != CUDA_SUCCESS ||
            type == CU_MEMORYTYPE_HOST)
            return false;
        type = 0;
        if (gpu->pointer_attribute(&type, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address) ==
                CUDA_SUCCESS &&
            type && gpu->address_range && gpu->address_range(&begin, &bytes, address) == CUDA_SUCCESS)
            *range_p = (struct ms_block_range){begin, bytes, MS_DEVICE_NONE, 0};
    }
    return true;
}

/* Under which block it was allocated, if that is known. */
static void name_block(struct ms_invalid_free *invalid_free, const struct ms_block_range *range)
{
    struct ms_invalid_free block;

    invalid_free->begin = range->begin;
    invalid_free->block_bytes = range->bytes;
    if (!ms_ledger_invalid_free_find(range->number ? MS_SPACE_HANDLE : MS_SPACE_ADDRESS,
                                     range->number ? range->number : range->begin, true, &block))
        return;
    invalid_free->site = block.site;
    invalid_free->device = block.device;
}

MS_NOINLINE uint32_t ms_invalid_free_of_registration(const struct ms_call *call)
{
    struct ms_invalid_free invalid_free = {.rule = MS_INVALID_FREE_LEFT,
                                           .given = call->args.key,
                                           .begin = call->args.key,
                                           .bytes = call->args.bytes,
                                           .site = UINT32_MAX,
                                           .device = MS_DEVICE_NONE};
    ms_stack_id stack;
    struct ms_block_range range;
    uint32_t where;

    if (invalid_free_named(call) != call || !call->args.key)
        return 0;
    stack = ms_stack_capture(call->frame, call->caller);
    where = ms_ledger_invalid_free(&invalid_free, call->row, stack);
    if (!ms_block_range_find(call->args.key, &range)) {
        invalid_free.rule = MS_INVALID_FREE_HOST;
        ms_ledger_invalid_free(&invalid_free, call->row, stack);
    } else if (range.bytes && call->args.bytes > range.begin + range.bytes - call->args.key) {
        invalid_free.rule = MS_INVALID_FREE_BEYOND;
        name_block(&invalid_free, &range);
        ms_ledger_invalid_free(&invalid_free, call->row, stack);
    }
    return where;
}
