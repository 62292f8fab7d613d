/*
 * Contexts: their life, their sticky error, and which one is current to a thread.
 *
 * A primary context is one object per device that is activated and deactivated; each activation has a new id,
 * by which everything made in it is told from what comes later. Plain contexts live once. Lock: contexts, the
 * outermost.
 */
#include <pthread.h>
#include <stdlib.h>

#include "sim/cuda/sim.h"
#include "sim/cuda/device/usage.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t closed = PTHREAD_COND_INITIALIZER;

void sim_context_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sim_context_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/** Makes a context object that is not alive yet. The caller owns the reference. */
CUresult sim_context_new(struct sim_device *device, unsigned flags, unsigned version, struct CUctx_st **ctx_p)
{
    if (device->spoiled)
        return device->spoiled;
    struct CUctx_st *ctx = sim_object_new(sizeof *ctx, SIM_CONTEXT, NULL);
    if (!ctx)
        return CUDA_ERROR_OUT_OF_MEMORY;
    ctx->device = device;
    ctx->flags = flags;
    ctx->api_version = version;
    *ctx_p = ctx;
    return CUDA_SUCCESS;
}

/** Brings a context to life: a new id, no error, an empty legacy stream. The caller holds the contexts'
 * lock. */
CUresult sim_context_open(struct CUctx_st *ctx)
{
    static const size_t limits[SIM_LIMITS] = {
        [CU_LIMIT_STACK_SIZE] = 1024,
        [CU_LIMIT_PRINTF_FIFO_SIZE] = 7340032,
        [CU_LIMIT_MALLOC_HEAP_SIZE] = 8388608,
        [CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
        [CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
        [CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
    };

    while (ctx->closing)
        pthread_cond_wait(&closed, &lock);
    ctx->legacy = sim_queue_new(ctx, false, true);
    if (!ctx->legacy)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < SIM_LIMITS; i++)
        ctx->limits[i] = limits[i];
    ctx->id = sim_next_id();
    CUdeviceptr own;
    if (sim_heap_own(ctx, SIM_FOR_CONTEXT, sim_config.context_bytes, &own) != CUDA_SUCCESS) {
        sim_queue_put(ctx->legacy);
        ctx->legacy = NULL;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    ctx->cache = CU_FUNC_CACHE_PREFER_NONE;
    atomic_store(&ctx->error, 0);
    atomic_store(&ctx->peers, 0);
    sim_usage_context(ctx->device->ordinal, 1);
    atomic_store(&ctx->alive, true);
    return CUDA_SUCCESS;
}

/** Begins the end of a context: from here on nobody can use it. True for the one who owes
 * sim_context_close. */
bool sim_context_doom(struct CUctx_st *ctx)
{
    bool mine = ctx && atomic_exchange(&ctx->alive, false);

    if (mine) {
        ctx->closing = true;
        sim_usage_context(ctx->device->ordinal, -1);
    }
    return mine;
}

/** Ends a doomed context: waits for its work, then takes its streams and memory away. No lock is held
 * meanwhile. */
void sim_context_close(struct CUctx_st *ctx)
{
    sim_capture_forget_context(ctx);
    sim_context_drain(ctx);
    sim_queue_close_all(ctx);
    sim_queue_gate_prune(ctx, true);
    sim_queue_put(ctx->legacy);
    ctx->legacy = NULL;
    sim_ipc_drop_context(ctx);
    sim_host_drop_context(ctx);
    sim_heap_drop_context(ctx);
    sim_pool_settle(ctx->device);
    sim_context_lock();
    ctx->closing = false;
    pthread_cond_broadcast(&closed);
    sim_context_unlock();
}

/** The context's sticky error, or 0. */
CUresult sim_context_error(struct CUctx_st *ctx)
{
    return (CUresult)atomic_load(&ctx->error);
}

/** Marks the context as broken; the first error stays. */
void sim_context_fail(struct CUctx_st *ctx, CUresult status)
{
    int none = 0;

    atomic_compare_exchange_strong(&ctx->error, &none, (int)status);
}

CUresult sim_context_peek(struct CUctx_st **ctx_p)
{
    struct sim_thread *thread = sim_thread();

    if (!thread)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (thread->in_host_function)
        return CUDA_ERROR_NOT_PERMITTED;
    if (!thread->depth || !thread->stack[thread->depth - 1])
        return CUDA_ERROR_INVALID_CONTEXT;
    struct CUctx_st *ctx = thread->stack[thread->depth - 1];
    if (!atomic_load(&ctx->alive) || !atomic_load(&sim_context_home(ctx)->alive))
        return ctx->device->spoiled ? CUDA_ERROR_DEVICE_UNAVAILABLE : CUDA_ERROR_CONTEXT_IS_DESTROYED;
    *ctx_p = sim_context_home(ctx);
    return CUDA_SUCCESS;
}

struct CUctx_st *sim_context_green(void)
{
    const struct sim_thread *thread = sim_thread();
    struct CUctx_st *ctx = thread && thread->depth ? thread->stack[thread->depth - 1] : NULL;

    return ctx && ctx->home ? ctx : NULL;
}

CUresult sim_context_current(struct CUctx_st **ctx_p)
{
    CUresult status = sim_context_peek(ctx_p);

    return status == CUDA_SUCCESS ? sim_context_error(*ctx_p) : status;
}

/* The thread's stack keeps a reference, so that a destroyed context can still be told from a new one. */
static CUresult push(struct CUctx_st *ctx)
{
    struct sim_thread *thread = sim_thread();

    if (!thread || thread->depth == sizeof thread->stack / sizeof thread->stack[0])
        return CUDA_ERROR_OUT_OF_MEMORY;
    thread->stack[thread->depth++] = ctx ? sim_object_ref(ctx) : NULL;
    return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *ctx_p)
{
    struct sim_thread *thread = sim_thread();

    if (!thread || !thread->depth || !thread->stack[thread->depth - 1])
        return CUDA_ERROR_INVALID_CONTEXT;
    struct CUctx_st *ctx = thread->stack[--thread->depth];
    if (ctx_p)
        *ctx_p = ctx;
    sim_object_put(ctx);
    return CUDA_SUCCESS;
}

static CUresult create(CUcontext *ctx_p, unsigned flags, CUdevice ordinal, unsigned version)
{
    struct sim_device *device = sim_device(ordinal);
    struct CUctx_st *ctx;

    if (!ctx_p || (flags & ~(unsigned)CU_CTX_FLAGS_MASK))
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult status = sim_context_new(device, flags, version, &ctx);
    if (status != CUDA_SUCCESS)
        return status;
    sim_context_lock();
    status = sim_context_open(ctx);
    sim_context_unlock();
    if (status == CUDA_SUCCESS)
        status = push(ctx);
    if (status != CUDA_SUCCESS) {
        sim_object_put(ctx);
        return status;
    }
    sim_object_publish(ctx);
    *ctx_p = ctx;
    return CUDA_SUCCESS;
}

static CUresult destroy(CUcontext handle)
{
    struct CUctx_st *ctx = sim_object_get(handle, SIM_CONTEXT);
    struct sim_thread *thread = sim_thread();

    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (ctx->primary || ctx->home || !thread || thread->in_host_function || !sim_object_retire(ctx)) {
        CUresult status = ctx->primary || ctx->home ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_NOT_PERMITTED;
        sim_object_put(ctx);
        return status;
    }
    sim_context_lock();
    bool mine = sim_context_doom(ctx);
    sim_context_unlock();
    if (mine)
        sim_context_close(ctx);
    if (thread->depth && thread->stack[thread->depth - 1] == ctx)
        pop(NULL);
    sim_object_put(ctx); /* the handle's */
    sim_object_put(ctx); /* ours */
    return CUDA_SUCCESS;
}

static CUresult set_current(CUcontext handle)
{
    struct sim_thread *thread = sim_thread();
    struct CUctx_st *ctx = handle ? sim_object_get(handle, SIM_CONTEXT) : NULL;
    CUresult status = CUDA_SUCCESS;

    if (handle && !ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!thread)
        status = CUDA_ERROR_OUT_OF_MEMORY;
    if (thread && thread->depth) {
        struct CUctx_st *old = thread->stack[--thread->depth];
        if (old)
            sim_object_put(old);
    }
    if (status == CUDA_SUCCESS && ctx)
        status = push(ctx);
    if (ctx)
        sim_object_put(ctx);
    return status;
}

static CUresult push_handle(CUcontext handle)
{
    struct CUctx_st *ctx = sim_object_get(handle, SIM_CONTEXT);

    if (!ctx)
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult status = push(ctx);
    sim_object_put(ctx);
    return status;
}

SIM_API(cuCtxCreate_v4)(CUcontext *ctx_p, CUctxCreateParams *params, unsigned flags, CUdevice device)
{
    SIM_ENTER(cuCtxCreate_v4);
    if (params && (params->numExecAffinityParams || params->cigParams))
        return CUDA_ERROR_NOT_SUPPORTED;
    return create(ctx_p, flags, device, 13000);
}

SIM_API(cuCtxCreate_v3)
(CUcontext *ctx_p, CUexecAffinityParam *params, int count, unsigned flags, CUdevice device)
{
    SIM_ENTER(cuCtxCreate_v3);
    if (params && count)
        return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
    return create(ctx_p, flags, device, 11040);
}

SIM_API(cuCtxCreate_v2)(CUcontext *ctx_p, unsigned flags, CUdevice device)
{
    SIM_ENTER(cuCtxCreate_v2);
    return create(ctx_p, flags, device, 3020);
}

SIM_API(cuCtxCreate)(CUcontext *ctx_p, unsigned flags, CUdevice device)
{
    SIM_ENTER(cuCtxCreate);
    return create(ctx_p, flags, device, 3010);
}

SIM_API(cuCtxDestroy_v2)(CUcontext ctx)
{
    SIM_ENTER(cuCtxDestroy_v2);
    return destroy(ctx);
}

SIM_API(cuCtxDestroy)(CUcontext ctx)
{
    SIM_ENTER(cuCtxDestroy);
    return destroy(ctx);
}

SIM_API(cuCtxPushCurrent_v2)(CUcontext ctx)
{
    SIM_ENTER(cuCtxPushCurrent_v2);
    return push_handle(ctx);
}

SIM_API(cuCtxPushCurrent)(CUcontext ctx)
{
    SIM_ENTER(cuCtxPushCurrent);
    return push_handle(ctx);
}

SIM_API(cuCtxPopCurrent_v2)(CUcontext *ctx_p)
{
    SIM_ENTER(cuCtxPopCurrent_v2);
    return pop(ctx_p);
}

SIM_API(cuCtxPopCurrent)(CUcontext *ctx_p)
{
    SIM_ENTER(cuCtxPopCurrent);
    return pop(ctx_p);
}

SIM_API(cuCtxSetCurrent)(CUcontext ctx)
{
    SIM_ENTER(cuCtxSetCurrent);
    return set_current(ctx);
}

SIM_API(cuCtxGetCurrent)(CUcontext *ctx_p)
{
    SIM_ENTER(cuCtxGetCurrent);
    struct sim_thread *thread = sim_thread();

    if (!ctx_p || !thread)
        return CUDA_ERROR_INVALID_VALUE;
    *ctx_p = thread->depth ? thread->stack[thread->depth - 1] : NULL;
    return CUDA_SUCCESS;
}
