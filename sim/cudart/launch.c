/*
 * Kernel launches. A launch takes its place in the stream and its time, and touches no memory; that is the
 * driver's business, here it only finds the kernel. The stack of call configurations belongs to the calling
 * thread.
 */
#include "sim/cudart/runtime.h"

struct configuration {
    struct dim3 grid;
    struct dim3 block;
    size_t shared_bytes;
    cudaStream_t stream;
};

/* One configuration is pushed and popped around the arguments of a launch; nesting comes from arguments that
 * launch. */
enum { MAX_NESTED = 4 };
static __thread struct configuration pushed[MAX_NESTED];
static __thread unsigned depth;

SIM_API unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared_bytes,
                                             struct CUstream_st *stream)
{
    if (depth == MAX_NESTED)
        return 1;
    pushed[depth].grid = grid;
    pushed[depth].block = block;
    pushed[depth].shared_bytes = shared_bytes;
    pushed[depth].stream = stream;
    depth++;
    return 0;
}

SIM_API cudaError_t __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared_bytes,
                                               void *stream)
{
    SIM_CHECK(depth > 0, cudaErrorMissingConfiguration);
    depth--;
    *grid = pushed[depth].grid;
    *block = pushed[depth].block;
    *shared_bytes = pushed[depth].shared_bytes;
    *(cudaStream_t *)stream = pushed[depth].stream;
    return cudaSuccess;
}

static bool is_empty(struct dim3 dim)
{
    return dim.x == 0 || dim.y == 0 || dim.z == 0;
}

static cudaError_t launch_kernel(int half, CUkernel kernel, struct dim3 grid, struct dim3 block,
                                 void **arguments, size_t shared_bytes, cudaStream_t stream)
{
    SIM_CHECK(!is_empty(grid) && !is_empty(block), cudaErrorInvalidConfiguration);
    SIM_TRY(SIM_DRV_OF(half, cuLaunchKernel, (CUfunction)kernel, grid.x, grid.y, grid.z, block.x, block.y,
                       block.z, (unsigned)shared_bytes, stream, arguments, NULL));
    return cudaSuccess;
}

static cudaError_t launch(int half, const void *func, struct dim3 grid, struct dim3 block, void **arguments,
                          size_t shared_bytes, cudaStream_t stream)
{
    CUkernel kernel;

    SIM_TRY(sim_context());
    SIM_TRY(sim_kernel(func, &kernel));
    return launch_kernel(half, kernel, grid, block, arguments, shared_bytes, stream);
}

static cudaError_t launch_handle(int half, cudaKernel_t kernel, struct dim3 grid, struct dim3 block,
                                 void **arguments, size_t shared_bytes, cudaStream_t stream)
{
    SIM_TRY(sim_context());
    SIM_CHECK(kernel, cudaErrorInvalidDeviceFunction);
    return launch_kernel(half, kernel, grid, block, arguments, shared_bytes, stream);
}

static cudaError_t launch_cooperative(int half, const void *func, struct dim3 grid, struct dim3 block,
                                      void **arguments, size_t shared_bytes, cudaStream_t stream)
{
    CUkernel kernel;

    SIM_TRY(sim_context());
    SIM_TRY(sim_kernel(func, &kernel));
    SIM_CHECK(!is_empty(grid) && !is_empty(block), cudaErrorInvalidConfiguration);
    SIM_TRY(SIM_DRV_OF(half, cuLaunchCooperativeKernel, (CUfunction)kernel, grid.x, grid.y, grid.z, block.x,
                       block.y, block.z, (unsigned)shared_bytes, stream, arguments));
    return cudaSuccess;
}

_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "launch attributes have one layout");

static CUlaunchConfig driver_config(const cudaLaunchConfig_t *config)
{
    CUlaunchConfig result = {0};

    result.gridDimX = config->gridDim.x;
    result.gridDimY = config->gridDim.y;
    result.gridDimZ = config->gridDim.z;
    result.blockDimX = config->blockDim.x;
    result.blockDimY = config->blockDim.y;
    result.blockDimZ = config->blockDim.z;
    result.sharedMemBytes = (unsigned)config->dynamicSmemBytes;
    result.hStream = config->stream;
    result.attrs = (CUlaunchAttribute *)config->attrs;
    result.numAttrs = config->numAttrs;
    return result;
}

static cudaError_t launch_configured(int half, const cudaLaunchConfig_t *config, const void *func,
                                     void **arguments)
{
    CUlaunchConfig driver;
    CUkernel kernel;

    SIM_TRY(sim_context());
    SIM_CHECK(config, cudaErrorInvalidValue);
    SIM_TRY(sim_kernel(func, &kernel));
    SIM_CHECK(!is_empty(config->gridDim) && !is_empty(config->blockDim), cudaErrorInvalidConfiguration);
    driver = driver_config(config);
    SIM_TRY(SIM_DRV_OF(half, cuLaunchKernelEx, &driver, (CUfunction)kernel, arguments, NULL));
    return cudaSuccess;
}

SIM_API cudaError_t cudaOccupancyMaxPotentialClusterSize(int *size, const void *func,
                                                         const cudaLaunchConfig_t *config)
{
    CUlaunchConfig driver;
    CUkernel kernel;

    SIM_TRY(sim_context());
    SIM_CHECK(size && config, cudaErrorInvalidValue);
    SIM_TRY(sim_kernel(func, &kernel));
    driver = driver_config(config);
    SIM_TRY(SIM_DRV(cuOccupancyMaxPotentialClusterSize, size, (CUfunction)kernel, &driver));
    return cudaSuccess;
}

SIM_API cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *func,
                                                   const cudaLaunchConfig_t *config)
{
    CUlaunchConfig driver;
    CUkernel kernel;

    SIM_TRY(sim_context());
    SIM_CHECK(clusters && config, cudaErrorInvalidValue);
    SIM_TRY(sim_kernel(func, &kernel));
    driver = driver_config(config);
    SIM_TRY(SIM_DRV(cuOccupancyMaxActiveClusters, clusters, (CUfunction)kernel, &driver));
    return cudaSuccess;
}

SIM_TWINS(cudaLaunchKernel, _ptsz, launch,
          (const void *func, struct dim3 grid, struct dim3 block, void **arguments, size_t shared_bytes,
           cudaStream_t stream),
          func, grid, block, arguments, shared_bytes, stream)
SIM_TWINS(__cudaLaunchKernel, _ptsz, launch_handle,
          (cudaKernel_t kernel, struct dim3 grid, struct dim3 block, void **arguments, size_t shared_bytes,
           cudaStream_t stream),
          kernel, grid, block, arguments, shared_bytes, stream)
SIM_TWINS(cudaLaunchCooperativeKernel, _ptsz, launch_cooperative,
          (const void *func, struct dim3 grid, struct dim3 block, void **arguments, size_t shared_bytes,
           cudaStream_t stream),
          func, grid, block, arguments, shared_bytes, stream)
SIM_TWINS(cudaLaunchKernelExC, _ptsz, launch_configured,
          (const cudaLaunchConfig_t *config, const void *func, void **arguments), config, func, arguments)
