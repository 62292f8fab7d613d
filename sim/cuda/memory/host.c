/*
 * Host memory that the driver knows: pinned, registered, and managed. Pinned and managed memory lie in an
 * arena of their own, so that what was freed is an error for a copy and not a crash; a pointer is the same on
 * host and device.
 */
#include <stdlib.h>

#include "sim/cuda/sim.h"

#define HOST_PAGE   4096UL
#define HOST_WINDOW (1UL << 40)

static struct sim_arena host_arena = {.fd = -1};

/* Memory that belongs to a context, in the host's arena. */
static CUresult take(struct CUctx_st *ctx, enum sim_block_kind kind, size_t bytes, unsigned flags,
                     struct sim_block **block_p)
{
    size_t taken = (bytes + HOST_PAGE - 1) & ~(HOST_PAGE - 1), offset;
    CUresult status = CUDA_SUCCESS;

    if (taken < bytes || taken > HOST_WINDOW)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_memory_write_lock();
    if (!host_arena.base)
        status = sim_arena_open(&host_arena, NULL, HOST_WINDOW);
    struct sim_block *block = NULL;
    if (status == CUDA_SUCCESS &&
        sim_arena_take(&host_arena, taken, bytes >= SIM_VMM_PAGE ? SIM_VMM_PAGE : HOST_PAGE, &offset)) {
        if (sim_arena_show(&host_arena, offset, taken))
            block = sim_block_new(kind, (uintptr_t)host_arena.base + offset, bytes);
        if (!block)
            sim_arena_give(&host_arena, offset, taken);
    }
    if (block) {
        block->ctx = ctx;
        block->ctx_id = ctx->id;
        block->flags = flags;
        block->arena = &host_arena;
        block->arena_offset = offset;
        block->arena_bytes = taken;
    }
    sim_memory_unlock();
    *block_p = block;
    return block ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static void give_locked(struct sim_block *block)
{
    if (block->arena)
        sim_arena_give(block->arena, block->arena_offset, block->arena_bytes);
    sim_block_drop(block);
}

static CUresult alloc_pinned(void **pointer_p, size_t bytes, unsigned flags)
{
    const unsigned known =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    struct CUctx_st *ctx;
    struct sim_block *block;
    CUresult status = sim_context_current(&ctx);

    if (status != CUDA_SUCCESS)
        return status;
    if (!pointer_p || (flags & ~known))
        return CUDA_ERROR_INVALID_VALUE;
    SIM_REFUSE_UNSAFE();
    if (!bytes) {
        *pointer_p = NULL;
        return CUDA_SUCCESS;
    }
    status = take(ctx, SIM_BLOCK_HOST, bytes, flags, &block);
    if (status == CUDA_SUCCESS)
        *pointer_p = (void *)block->range.start;
    return status;
}

SIM_API(cuMemHostAlloc)(void **pointer_p, size_t bytes, unsigned flags)
{
    SIM_ENTER(cuMemHostAlloc);
    return alloc_pinned(pointer_p, bytes, flags);
}

SIM_API(cuMemAllocHost_v2)(void **pointer_p, size_t bytes)
{
    SIM_ENTER(cuMemAllocHost_v2);
    return alloc_pinned(pointer_p, bytes, 0);
}

SIM_API(cuMemAllocHost)(void **pointer_p, unsigned bytes)
{
    SIM_ENTER(cuMemAllocHost);
    return alloc_pinned(pointer_p, bytes, 0);
}

SIM_API(cuMemFreeHost)(void *pointer)
{
    SIM_ENTER_CTX(cuMemFreeHost);
    if (!pointer)
        return CUDA_SUCCESS;
    SIM_REFUSE_UNSAFE();
    sim_memory_write_lock();
    struct sim_block *block = sim_block_base((uintptr_t)pointer);
    bool ours = block && block->kind == SIM_BLOCK_HOST;
    if (ours)
        block->claimed = true;
    sim_memory_unlock();
    if (!ours)
        return CUDA_ERROR_INVALID_VALUE;
    sim_context_drain(ctx);
    sim_memory_write_lock();
    give_locked(block);
    sim_memory_unlock();
    return CUDA_SUCCESS;
}

static CUresult register_memory(void *pointer, size_t bytes, unsigned flags)
{
    const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                           CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    struct CUctx_st *ctx;
    CUresult status = sim_context_current(&ctx);

    if (status != CUDA_SUCCESS)
        return status;
    if (!pointer || !bytes || (flags & ~known) || (uintptr_t)pointer + bytes < (uintptr_t)pointer)
        return CUDA_ERROR_INVALID_VALUE;
    if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
        return CUDA_ERROR_NOT_SUPPORTED;
    SIM_REFUSE_UNSAFE();
    sim_memory_write_lock();
    struct sim_block *block = NULL;
    if (sim_block_in_windows((uintptr_t)pointer))
        status = CUDA_ERROR_INVALID_VALUE;
    else
        block = sim_block_new(SIM_BLOCK_REGISTERED, (uintptr_t)pointer, bytes);
    if (block) {
        block->ctx = ctx;
        block->ctx_id = ctx->id;
        block->flags = flags;
    } else if (status == CUDA_SUCCESS) {
        status = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    sim_memory_unlock();
    return status;
}

SIM_API(cuMemHostRegister_v2)(void *pointer, size_t bytes, unsigned flags)
{
    SIM_ENTER(cuMemHostRegister_v2);
    return register_memory(pointer, bytes, flags);
}

SIM_API(cuMemHostRegister)(void *pointer, size_t bytes, unsigned flags)
{
    SIM_ENTER(cuMemHostRegister);
    return register_memory(pointer, bytes, flags);
}

SIM_API(cuMemHostUnregister)(void *pointer)
{
    SIM_ENTER_CTX(cuMemHostUnregister);
    SIM_REFUSE_UNSAFE();
    CUresult status = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;

    if (!pointer)
        return CUDA_ERROR_INVALID_VALUE;
    sim_context_drain(ctx);
    sim_memory_write_lock();
    struct sim_block *block = sim_block_base((uintptr_t)pointer);
    if (block && block->kind == SIM_BLOCK_REGISTERED) {
        give_locked(block);
        status = CUDA_SUCCESS;
    }
    sim_memory_unlock();
    return status;
}

/* The pinned or registered block around a host pointer, while the lock is held. */
static struct sim_block *known_host(const void *pointer)
{
    struct sim_block *block = sim_block_at((uintptr_t)pointer);

    return block && !block->claimed && (block->kind == SIM_BLOCK_HOST || block->kind == SIM_BLOCK_REGISTERED)
               ? block
               : NULL;
}

SIM_API(cuMemHostGetDevicePointer_v2)(CUdeviceptr *address_p, void *pointer, unsigned flags)
{
    SIM_ENTER_CTX(cuMemHostGetDevicePointer_v2);
    (void)ctx;
    if (!address_p || !pointer || flags)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_read_lock();
    bool known = known_host(pointer) != NULL;
    sim_memory_unlock();
    if (!known)
        return CUDA_ERROR_INVALID_VALUE;
    *address_p = (CUdeviceptr)(uintptr_t)pointer;
    return CUDA_SUCCESS;
}

SIM_API(cuMemHostGetDevicePointer)(CUdeviceptr_v1 *address_p, void *pointer, unsigned flags)
{
    SIM_ENTER_CTX(cuMemHostGetDevicePointer);
    (void)ctx;
    if (!address_p || !pointer || flags || (uintptr_t)pointer > UINT32_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_read_lock();
    bool known = known_host(pointer) != NULL;
    sim_memory_unlock();
    if (!known)
        return CUDA_ERROR_INVALID_VALUE;
    *address_p = (CUdeviceptr_v1)(uintptr_t)pointer;
    return CUDA_SUCCESS;
}

SIM_API(cuMemHostGetFlags)(unsigned *flags_p, void *pointer)
{
    SIM_ENTER_CTX(cuMemHostGetFlags);
    (void)ctx;
    CUresult status = CUDA_ERROR_INVALID_VALUE;

    if (!flags_p || !pointer)
        return status;
    sim_memory_read_lock();
    struct sim_block *block = known_host(pointer);
    if (block) {
        *flags_p = block->flags | CU_MEMHOSTALLOC_DEVICEMAP; /* unified addressing maps all of it */
        status = CUDA_SUCCESS;
    }
    sim_memory_unlock();
    return status;
}

SIM_API(cuMemAllocManaged)(CUdeviceptr *address_p, size_t bytes, unsigned flags)
{
    SIM_ENTER_CTX(cuMemAllocManaged);
    SIM_REFUSE_UNSAFE();
    struct sim_block *block;

    if (!address_p || !bytes || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult status = take(ctx, SIM_BLOCK_MANAGED, bytes, flags, &block);
    if (status != CUDA_SUCCESS)
        return status;
    block->device = ctx->device->ordinal;
    *address_p = block->range.start;
    return CUDA_SUCCESS;
}

/** Frees a managed block; the work that may touch it is over. */
CUresult sim_managed_free(struct sim_block *block)
{
    sim_memory_write_lock();
    give_locked(block);
    sim_memory_unlock();
    return CUDA_SUCCESS;
}

static CUresult attach(CUstream stream, bool per_thread, CUdeviceptr address, size_t bytes, unsigned flags)
{
    CUresult status = sim_stream_check(stream, per_thread);

    if (status != CUDA_SUCCESS)
        return status;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_write_lock();
    struct sim_block *block = sim_block_base(address);
    if (!block || block->kind != SIM_BLOCK_MANAGED || (bytes && bytes != block->range.bytes))
        status = CUDA_ERROR_INVALID_VALUE;
    else
        block->flags = flags;
    sim_memory_unlock();
    return status;
}

SIM_PAIR(cuStreamAttachMemAsync, ptsz, (CUstream stream, CUdeviceptr address, size_t bytes, unsigned flags),
         attach(stream, per_thread, address, bytes, flags))

/** Frees what a context that dies still holds. */
void sim_host_drop_context(struct CUctx_st *ctx)
{
    sim_memory_write_lock();
    for (struct sim_block *block = sim_block_next(NULL), *next; block; block = next) {
        next = sim_block_next(block);
        if (block->ctx_id == ctx->id &&
            (block->kind == SIM_BLOCK_HOST || block->kind == SIM_BLOCK_REGISTERED ||
             block->kind == SIM_BLOCK_MANAGED))
            give_locked(block);
    }
    sim_memory_unlock();
}
