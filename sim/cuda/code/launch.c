/*
 * Launches. A kernel takes its place in its stream and the time MEMSIM_COST gives it; but for the few of
 * body.c it reads and writes nothing.
 */
#include "sim/cuda/code/code.h"
#include "sim/cuda/graph/graph.h"

#define THREADS_BLOCK 1024U
#define DIM_Z_MOST    64U
#define GRID_X_MOST   2147483647U
#define GRID_YZ_MOST  65535U

struct shape {
    unsigned grid[3], block[3], shared_bytes;
};

struct kernel_op {
    struct sim_op op;
    CUfunction function; /* as the program gave it; for its own questions */
    struct shape shape;
    const struct sim_body *body; /* NULL: it touches nothing */
    uint64_t arguments[SIM_BODY_ARGUMENTS];
    void *pointers[SIM_BODY_ARGUMENTS]; /* to them, in the form in which they were passed */
};

static CUresult run_kernel(struct sim_op *op, struct sim_queue *queue)
{
    const struct kernel_op *kernel = (struct kernel_op *)op;
    uint64_t cost = sim_fault_cost(SIM_FN_KERNEL);

    if (cost)
        sim_spend(cost);
    CUresult status = sim_fault_work(SIM_FN_KERNEL);
    return status == CUDA_SUCCESS && kernel->body ? kernel->body->run(kernel->arguments, queue) : status;
}

static bool is_possible(const struct shape *shape)
{
    const unsigned *grid = shape->grid, *block = shape->block;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];

    return grid[0] && grid[1] && grid[2] && threads && grid[0] <= GRID_X_MOST && grid[1] <= GRID_YZ_MOST &&
           grid[2] <= GRID_YZ_MOST && block[0] <= THREADS_BLOCK && block[1] <= THREADS_BLOCK &&
           block[2] <= DIM_Z_MOST && threads <= THREADS_BLOCK;
}

/* A launch as a piece of work, checked. */
static CUresult make(CUfunction handle, const struct shape *shape, struct CUctx_st *ctx, void **parameters,
                     void **extra, struct sim_op **work_p)
{
    struct kernel_op plan = {.function = handle, .shape = *shape};
    struct sim_function *function;
    CUresult status = sim_function_get(handle, ctx, &function);

    if (status != CUDA_SUCCESS)
        return status;
    plan.body = sim_body_find(function->name);
    if ((parameters && extra) || !is_possible(shape) ||
        shape->shared_bytes > (unsigned)function->dynamic_bytes ||
        (plan.body && !sim_body_arguments(plan.body, parameters, extra, plan.arguments)))
        status = CUDA_ERROR_INVALID_VALUE;
    sim_object_put(function);
    if (status != CUDA_SUCCESS)
        return status;
    struct kernel_op *op = sim_op_new(sizeof *op, run_kernel);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    plan.op = op->op;
    plan.op.node = CU_GRAPH_NODE_TYPE_KERNEL;
    plan.op.quick = !plan.body && !sim_fault_asked(SIM_FN_KERNEL);
    *op = plan;
    *work_p = &op->op;
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction handle, const struct shape *shape, CUstream stream, bool per_thread,
                       void **parameters, void **extra)
{
    struct sim_op *work = NULL;
    struct CUctx_st *ctx;
    CUresult status = sim_context_current(&ctx);

    if (status == CUDA_SUCCESS)
        status = make(handle, shape, ctx, parameters, extra, &work);
    return status == CUDA_SUCCESS ? sim_stream_enqueue(stream, per_thread, work) : status;
}

CUresult sim_kernel_work(const CUDA_KERNEL_NODE_PARAMS *params, struct CUctx_st *ctx, struct sim_op **work_p)
{
    const struct shape shape = {{params->gridDimX, params->gridDimY, params->gridDimZ},
                                {params->blockDimX, params->blockDimY, params->blockDimZ},
                                params->sharedMemBytes};

    return make(params->func ? params->func : (CUfunction)params->kern, &shape, ctx, params->kernelParams,
                params->extra, work_p);
}

/** The parameters of a launch. The arguments of a kernel that touches nothing are not known: there are
 * none. */
void sim_kernel_params(const struct sim_op *work, CUDA_KERNEL_NODE_PARAMS *params)
{
    struct kernel_op *kernel = (struct kernel_op *)(uintptr_t)work;
    struct sim_function *function = sim_object_get(kernel->function, SIM_KERNEL);
    const struct shape *shape = &kernel->shape;

    *params = (CUDA_KERNEL_NODE_PARAMS){
        .func = function ? NULL : kernel->function,
        .kern = function ? (CUkernel)kernel->function : NULL,
        .gridDimX = shape->grid[0],
        .gridDimY = shape->grid[1],
        .gridDimZ = shape->grid[2],
        .blockDimX = shape->block[0],
        .blockDimY = shape->block[1],
        .blockDimZ = shape->block[2],
        .sharedMemBytes = shape->shared_bytes,
    };
    if (function)
        sim_object_put(function);
    for (unsigned i = 0; kernel->body && i < kernel->body->count; i++) {
        kernel->pointers[i] = &kernel->arguments[i];
        params->kernelParams = kernel->pointers;
    }
}

static CUresult launch_configured(const CUlaunchConfig *config, CUfunction handle, bool per_thread,
                                  void **parameters, void **extra)
{
    if (!config || (config->numAttrs && !config->attrs))
        return CUDA_ERROR_INVALID_VALUE;
    return launch(handle,
                  &(struct shape){{config->gridDimX, config->gridDimY, config->gridDimZ},
                                  {config->blockDimX, config->blockDimY, config->blockDimZ},
                                  config->sharedMemBytes},
                  config->hStream, per_thread, parameters, extra);
}

SIM_PAIR(cuLaunchKernel, ptsz,
         (CUfunction handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
          unsigned shared, CUstream stream, void **parameters, void **extra),
         launch(handle, &(struct shape){{gx, gy, gz}, {bx, by, bz}, shared}, stream, per_thread, parameters,
                extra))
SIM_PAIR(cuLaunchKernelEx, ptsz,
         (const CUlaunchConfig *config, CUfunction handle, void **parameters, void **extra),
         launch_configured(config, handle, per_thread, parameters, extra))
SIM_PAIR(cuLaunchCooperativeKernel, ptsz,
         (CUfunction handle, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
          unsigned shared, CUstream stream, void **parameters),
         launch(handle, &(struct shape){{gx, gy, gz}, {bx, by, bz}, shared}, stream, per_thread, parameters,
                NULL))
