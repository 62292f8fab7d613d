/*
 * Questions about a context: device, flags, id, version, limits, caches; waiting for all of its work.
 */
#include "sim/cuda/sim.h"

/* A primary context is its device's for ever: it names the device also while it is not active, after a reset
 * or before the next retain. */
static CUresult device_of(const struct CUctx_st *ctx, CUresult status, CUdevice *device_p)
{
    if (status != CUDA_SUCCESS && (status != CUDA_ERROR_CONTEXT_IS_DESTROYED || !ctx || !ctx->primary))
        return status;
    *device_p = ctx->device->ordinal;
    return CUDA_SUCCESS;
}

static CUresult get_current_device(CUdevice *device_p)
{
    const struct sim_thread *thread = sim_thread();
    struct CUctx_st *ctx = thread && thread->depth ? thread->stack[thread->depth - 1] : NULL;
    CUresult status = sim_context_peek(&ctx);

    if (!device_p)
        return status == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : status;
    return device_of(ctx, status, device_p);
}

SIM_API(cuCtxGetDevice)(CUdevice *device_p)
{
    SIM_ENTER(cuCtxGetDevice);
    return get_current_device(device_p);
}

/* The context of a handle, referenced; NULL means the current one. */
static CUresult context_of(CUcontext handle, struct CUctx_st **ctx_p)
{
    if (!handle) {
        CUresult status = sim_context_peek(ctx_p);
        if (status == CUDA_SUCCESS)
            sim_object_ref(*ctx_p);
        return status;
    }
    *ctx_p = sim_object_get(handle, SIM_CONTEXT);
    if (!*ctx_p)
        return CUDA_ERROR_INVALID_CONTEXT;
    if ((*ctx_p)->alive)
        return CUDA_SUCCESS;
    sim_object_put(*ctx_p);
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

SIM_API(cuCtxGetDevice_v2)(CUdevice *device_p, CUcontext handle)
{
    SIM_ENTER(cuCtxGetDevice_v2);
    struct CUctx_st *ctx = handle ? sim_object_get(handle, SIM_CONTEXT) : NULL;

    if (!device_p || (handle && !ctx)) {
        if (ctx)
            sim_object_put(ctx);
        return device_p ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
    }
    if (!handle)
        return get_current_device(device_p);
    CUresult status = device_of(ctx, ctx->alive ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED, device_p);
    sim_object_put(ctx);
    return status;
}

SIM_API(cuCtxGetId)(CUcontext handle, unsigned long long *id_p)
{
    SIM_ENTER(cuCtxGetId);
    struct CUctx_st *ctx;
    CUresult status = id_p ? context_of(handle, &ctx) : CUDA_ERROR_INVALID_VALUE;

    if (status != CUDA_SUCCESS)
        return status;
    *id_p = ctx->id;
    sim_object_put(ctx);
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetApiVersion)(CUcontext handle, unsigned *version_p)
{
    SIM_ENTER(cuCtxGetApiVersion);
    struct CUctx_st *ctx;
    CUresult status = version_p ? context_of(handle, &ctx) : CUDA_ERROR_INVALID_VALUE;

    if (status != CUDA_SUCCESS)
        return status;
    *version_p = ctx->api_version;
    sim_object_put(ctx);
    return CUDA_SUCCESS;
}

static CUresult synchronize(struct CUctx_st *ctx)
{
    CUresult status = sim_capture_check_context(ctx);

    if (status == CUDA_SUCCESS)
        status = sim_unsafe();
    if (status != CUDA_SUCCESS)
        return status;
    sim_context_drain(ctx);
    sim_context_see(ctx);
    sim_pool_settle(ctx->device);
    return sim_context_error(sim_context_home(ctx));
}

SIM_API(cuCtxSynchronize)(void)
{
    SIM_ENTER_CTX(cuCtxSynchronize);
    struct CUctx_st *green = sim_context_green();

    return synchronize(green ? green : ctx);
}

SIM_API(cuCtxSynchronize_v2)(CUcontext handle)
{
    SIM_ENTER(cuCtxSynchronize_v2);
    struct CUctx_st *ctx;
    CUresult status = context_of(handle, &ctx);

    if (status != CUDA_SUCCESS)
        return status;
    status = synchronize(ctx);
    sim_object_put(ctx);
    return status;
}

SIM_API(cuCtxGetFlags)(unsigned *flags_p)
{
    SIM_ENTER_CTX(cuCtxGetFlags);
    if (!flags_p)
        return CUDA_ERROR_INVALID_VALUE;
    *flags_p = ctx->flags;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetFlags)(unsigned flags)
{
    SIM_ENTER_CTX(cuCtxSetFlags);
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    ctx->flags = flags;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetLimit)(size_t *value_p, CUlimit limit)
{
    SIM_ENTER_CTX(cuCtxGetLimit);
    if (!value_p)
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned)limit >= CU_LIMIT_SHMEM_SIZE)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value_p = ctx->limits[limit];
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetLimit)(CUlimit limit, size_t value)
{
    SIM_ENTER_CTX(cuCtxSetLimit);
    if ((unsigned)limit >= CU_LIMIT_SHMEM_SIZE)
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    ctx->limits[limit] = value;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetCacheConfig)(CUfunc_cache *config_p)
{
    SIM_ENTER_CTX(cuCtxGetCacheConfig);
    if (!config_p)
        return CUDA_ERROR_INVALID_VALUE;
    *config_p = ctx->cache;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetCacheConfig)(CUfunc_cache config)
{
    SIM_ENTER_CTX(cuCtxSetCacheConfig);
    if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
        return CUDA_ERROR_INVALID_VALUE;
    ctx->cache = config;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxGetSharedMemConfig)(CUsharedconfig *config_p)
{
    SIM_ENTER_CTX(cuCtxGetSharedMemConfig);
    (void)ctx;
    if (!config_p)
        return CUDA_ERROR_INVALID_VALUE;
    *config_p = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
    return CUDA_SUCCESS;
}

SIM_API(cuCtxSetSharedMemConfig)(CUsharedconfig config)
{
    SIM_ENTER_CTX(cuCtxSetSharedMemConfig);
    (void)ctx;
    return (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
                                                                        : CUDA_SUCCESS;
}

SIM_API(cuCtxResetPersistingL2Cache)(void)
{
    SIM_ENTER_CTX(cuCtxResetPersistingL2Cache);
    (void)ctx;
    return CUDA_SUCCESS;
}
