/*
 * Device memory as programs ask for it: cuMemAlloc and its kin, cuMemFree, cuMemGetInfo, address ranges, and
 * the 32-bit entries, to which no address of ours can be given.
 */
#include "graph.h"

#define PITCH_ALIGN 512UL

static CUresult alloc(CUdeviceptr *address_p, size_t bytes)
{
    struct CUctx_st *ctx;
    struct sim_block *block;
    CUresult status = sim_context_current(&ctx);

    if (status != CUDA_SUCCESS)
        return status;
    if (!address_p || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    SIM_REFUSE_UNSAFE();
    status = sim_heap_alloc(ctx, bytes, &block);
    if (status == CUDA_SUCCESS)
        *address_p = block->range.start;
    return status;
}

static CUresult alloc_pitch(CUdeviceptr *address_p, size_t *pitch_p, size_t width, size_t height,
                            unsigned element)
{
    size_t pitch = (width + PITCH_ALIGN - 1) & ~(PITCH_ALIGN - 1), bytes;

    if (!address_p || !pitch_p || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    if (pitch < width || __builtin_mul_overflow(pitch, height, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult status = alloc(address_p, bytes);
    if (status == CUDA_SUCCESS)
        *pitch_p = pitch;
    return status;
}

/* The block that a free means, marked so that a second free of it finds nothing. */
static CUresult claim(CUdeviceptr address, struct sim_block **block_p)
{
    sim_memory_write_lock();
    struct sim_block *block = sim_block_base(address);
    bool ours = block && (block->kind == SIM_BLOCK_DEVICE || block->kind == SIM_BLOCK_MANAGED ||
                          block->kind == SIM_BLOCK_POOL || block->kind == SIM_BLOCK_IMPORTED);
    if (ours)
        block->claimed = true;
    ours = ours || (block && block->kind == SIM_BLOCK_GRAPH); /* which lives on */
    sim_memory_unlock();
    *block_p = block;
    return ours ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Plain memory, and nothing in the context to wait for. */
static bool free_idle(CUdeviceptr address)
{
    sim_memory_write_lock();
    struct sim_block *block = sim_block_base(address);
    bool ours = block && block->kind == SIM_BLOCK_DEVICE;
    if (ours)
        sim_heap_free(block);
    sim_memory_unlock();
    return ours;
}

CUresult sim_heap_release(CUdeviceptr address)
{
    struct CUctx_st *ctx;
    struct sim_block *block;
    CUresult status = sim_context_current(&ctx);

    if (status != CUDA_SUCCESS || !address)
        return status;
    SIM_REFUSE_UNSAFE();
    if (!atomic_load(&ctx->pending) && free_idle(address))
        return sim_context_error(ctx);
    status = claim(address, &block);
    if (status != CUDA_SUCCESS)
        return status;
    if (block->kind == SIM_BLOCK_GRAPH)
        return sim_graph_memory_free_now(block->owner);
    if (block->kind == SIM_BLOCK_POOL) /* needs no waiting: the program vouches that its work is over */
        return sim_pool_free_now(block);
    sim_context_drain(ctx);
    if (block->kind == SIM_BLOCK_IMPORTED)
        return sim_pool_drop_import(block, ctx->legacy);
    if (block->kind == SIM_BLOCK_MANAGED)
        return sim_managed_free(block);
    sim_memory_write_lock();
    sim_heap_free(block);
    sim_memory_unlock();
    return sim_context_error(ctx);
}

SIM_API(cuMemAlloc_v2)(CUdeviceptr *address_p, size_t bytes)
{
    SIM_ENTER(cuMemAlloc_v2);
    return alloc(address_p, bytes);
}

SIM_API(cuMemAllocPitch_v2)
(CUdeviceptr *address_p, size_t *pitch_p, size_t width, size_t height, unsigned element)
{
    SIM_ENTER(cuMemAllocPitch_v2);
    return alloc_pitch(address_p, pitch_p, width, height, element);
}

SIM_API(cuMemFree_v2)(CUdeviceptr address)
{
    SIM_ENTER(cuMemFree_v2);
    return sim_heap_release(address);
}

static CUresult get_info(size_t *free_p, size_t *total_p)
{
    struct CUctx_st *ctx;
    CUresult status = sim_context_current(&ctx);

    if (status != CUDA_SUCCESS)
        return status;
    if (!free_p || !total_p)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_read_lock();
    *free_p = sim_config.memory_bytes - ctx->device->used_bytes;
    sim_memory_unlock();
    *total_p = sim_config.memory_bytes;
    return CUDA_SUCCESS;
}

SIM_API(cuMemGetInfo_v2)(size_t *free_p, size_t *total_p)
{
    SIM_ENTER(cuMemGetInfo_v2);
    return get_info(free_p, total_p);
}

static CUresult address_range(CUdeviceptr *base_p, size_t *bytes_p, CUdeviceptr address)
{
    struct CUctx_st *ctx;
    CUresult status = sim_context_current(&ctx);

    if (status != CUDA_SUCCESS)
        return status;
    sim_memory_read_lock();
    struct sim_block *block = sim_block_at(address);
    if (!block || block->freed || block->claimed || block->kind == SIM_BLOCK_REGISTERED) {
        status = CUDA_ERROR_NOT_FOUND;
    } else {
        if (base_p)
            *base_p = block->range.start;
        if (bytes_p)
            *bytes_p = block->range.bytes;
    }
    sim_memory_unlock();
    return status;
}

SIM_API(cuMemGetAddressRange_v2)(CUdeviceptr *base_p, size_t *bytes_p, CUdeviceptr address)
{
    SIM_ENTER(cuMemGetAddressRange_v2);
    return address_range(base_p, bytes_p, address);
}

/* --- the 32-bit interface: nothing we have fits into its addresses
 * --------------------------------------------- */

SIM_API(cuMemAlloc)(CUdeviceptr_v1 *address_p, unsigned bytes)
{
    SIM_ENTER_CTX(cuMemAlloc);
    (void)ctx;
    return address_p && bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuMemAllocPitch)
(CUdeviceptr_v1 *address_p, unsigned *pitch_p, unsigned width, unsigned height, unsigned element)
{
    SIM_ENTER_CTX(cuMemAllocPitch);
    (void)ctx;
    if (!address_p || !pitch_p || !width || !height || (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_API(cuMemFree)(CUdeviceptr_v1 address)
{
    SIM_ENTER(cuMemFree);
    return sim_heap_release(address);
}

SIM_API(cuMemGetInfo)(unsigned *free_p, unsigned *total_p)
{
    SIM_ENTER(cuMemGetInfo);
    size_t free_bytes, total_bytes;
    CUresult status = free_p && total_p ? get_info(&free_bytes, &total_bytes) : CUDA_ERROR_INVALID_VALUE;

    if (status != CUDA_SUCCESS)
        return status;
    *free_p = free_bytes < UINT32_MAX ? (unsigned)free_bytes : UINT32_MAX;
    *total_p = total_bytes < UINT32_MAX ? (unsigned)total_bytes : UINT32_MAX;
    return CUDA_SUCCESS;
}

SIM_API(cuMemGetAddressRange)(CUdeviceptr_v1 *base_p, unsigned *bytes_p, CUdeviceptr_v1 address)
{
    SIM_ENTER(cuMemGetAddressRange);
    (void)base_p;
    (void)bytes_p;
    return address_range(NULL, NULL, address);
}
