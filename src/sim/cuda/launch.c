/*
 * Launches. A kernel takes its place in its stream and the time MEMSIM_COST gives it; but for the few of
 * body.c it reads and writes nothing.
 */
#include "code.h"

#define THREADS_BLOCK 1024U
#define DIM_Z_MOST    64U
#define GRID_X_MOST   2147483647U
#define GRID_YZ_MOST  65535U

struct shape {
    unsigned grid[3], block[3], shared_bytes;
};

struct kernel_op {
    struct sim_op op;
    const struct sim_body *body; /* NULL: it touches nothing */
    uint64_t arguments[SIM_BODY_ARGUMENTS];
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

static CUresult launch(CUfunction handle, const struct shape *shape, CUstream stream, bool per_thread,
                       void **parameters, void **extra)
{
    struct kernel_op plan = {.body = NULL};
    struct sim_function *function;
    struct CUctx_st *ctx;
    CUresult status = sim_context_current(&ctx);

    if (status == CUDA_SUCCESS)
        status = sim_function_get(handle, ctx, &function);
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
    if (op) {
        plan.op = op->op;
        *op = plan;
    }
    return sim_stream_enqueue(stream, per_thread, (struct sim_op *)op);
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
