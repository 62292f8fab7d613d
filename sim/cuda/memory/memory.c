/*
 * Device memory as programs ask for it: cuMemAlloc and its kin, cuMemFree, cuMemGetInfo, address ranges, and
 * the 32-bit entries, to which no address of ours can be given.
 */
#include "sim/cuda/books.h"
#include "sim/cuda/graph/graph.h"

#define PITCH_ALIGN 512UL

/* A request that fails leaves no address behind: 0 stands there. */
static CUresult alloc(CUdeviceptr *address_p, size_t bytes)
{
    struct CUctx_st *ctx;
    struct sim_block *block;
    CUresult status = sim_context_current(&ctx);

    if (address_p)
        *address_p = 0;
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

/* The block that a free means, marked so that a second free of it finds nothing. Plain memory may go with its
 * context from here on, so its kind is told apart. */
static CUresult claim(CUdeviceptr address, struct sim_block **block_p, enum sim_block_kind *kind_p)
{
    sim_memory_write_lock();
    struct sim_block *block = sim_block_base(address);
    bool ours = block && (block->kind == SIM_BLOCK_DEVICE || block->kind == SIM_BLOCK_MANAGED ||
                          block->kind == SIM_BLOCK_POOL || block->kind == SIM_BLOCK_IMPORTED);
    if (ours)
        block->claimed = true;
    ours = ours || (block && block->kind == SIM_BLOCK_GRAPH); /* which lives on */
    *kind_p = ours ? block->kind : SIM_BLOCK_HOST;
    sim_memory_unlock();
    *block_p = block;
    return ours ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Plain memory whose context has nothing to wait for is freed at once. Otherwise *owner_p is that context,
 * referenced. */
static bool free_idle(CUdeviceptr address, struct CUctx_st **owner_p)
{
    bool freed = false;

    *owner_p = NULL;
    sim_memory_write_lock();
    struct sim_block *block = sim_block_base(address);
    if (block && block->kind == SIM_BLOCK_DEVICE) { /* its context lives as long as it */
        freed = !atomic_load(&block->ctx->pending);
        if (freed)
            sim_heap_free(block);
        else
            *owner_p = sim_object_ref(block->ctx);
    }
    sim_memory_unlock();
    return freed;
}

/* Plain memory, claimed, after its context's work; that context may have ended meanwhile, and taken it
 * along. */
static CUresult free_claimed(CUdeviceptr address, struct CUctx_st *owner)
{
    sim_context_drain(owner);
    sim_memory_write_lock();
    struct sim_block *block = sim_block_at(address);
    if (block && block->claimed && block->range.start == address && block->kind == SIM_BLOCK_DEVICE)
        sim_heap_free(block);
    sim_memory_unlock();
    return sim_context_error(owner);
}

static CUresult release_other(struct sim_block *block, enum sim_block_kind kind, struct CUctx_st *ctx)
{
    if (kind == SIM_BLOCK_GRAPH)
        return sim_graph_memory_free_now(block->owner);
    if (kind == SIM_BLOCK_POOL) /* needs no waiting: the program vouches that its work is over */
        return sim_pool_free_now(block);
    sim_context_drain(ctx);
    return kind == SIM_BLOCK_IMPORTED ? sim_pool_drop_import(block, ctx->legacy) : sim_managed_free(block);
}

/* Plain memory's context, which lives as long as it; NULL if there is no such memory. */
static struct CUctx_st *context_of(CUdeviceptr address)
{
    sim_memory_read_lock();
    const struct sim_block *block = sim_block_base(address);
    struct CUctx_st *ctx = block && block->kind == SIM_BLOCK_DEVICE ? block->ctx : NULL;
    sim_memory_unlock();
    return ctx;
}

/* A free waits for the context that the memory belongs to, whichever is current, or none. */
CUresult sim_heap_release(CUdeviceptr address)
{
    struct CUctx_st *ctx, *owner;
    struct sim_block *block;
    enum sim_block_kind kind;
    CUresult status = sim_context_current(&ctx);

    if (status == CUDA_ERROR_INVALID_CONTEXT &&
        address) /* none is current: it is the memory's own that counts */
        status = (ctx = context_of(address)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (status != CUDA_SUCCESS)
        return status;
    SIM_REFUSE_UNSAFE();
    if (!address)
        return CUDA_SUCCESS;
    if (free_idle(address, &owner))
        return sim_context_error(ctx);
    status = claim(address, &block, &kind);
    if (status == CUDA_SUCCESS)
        status = kind == SIM_BLOCK_DEVICE ? free_claimed(address, owner ? owner : ctx)
                                          : release_other(block, kind, ctx);
    if (owner)
        sim_object_put(owner);
    return status;
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
    struct sim_books books;
    struct CUctx_st *ctx;
    CUresult status = sim_context_current(&ctx);

    if (status != CUDA_SUCCESS)
        return status;
    bool kept = sim_books_kept();
    sim_memory_read_lock();
    if (kept)
        sim_books_look(ctx->device, &books);
    size_t others = kept ? books.others : sim_books_others(ctx->device->ordinal),
           used = ctx->device->used_bytes + others;
    sim_memory_unlock();
    if (free_p)
        *free_p = used < sim_config.memory_bytes ? sim_config.memory_bytes - used : 0;
    if (total_p)
        *total_p = sim_config.memory_bytes;
    if (kept)
        sim_books_write(ctx->device, &books);
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
    if (!block || block->freed || block->claimed || block->kind == SIM_BLOCK_REGISTERED ||
        sim_block_is_idle_node(block)) {
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

/* --- the 32-bit interface: nothing we have fits into its addresses -------------------------------------- */

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
