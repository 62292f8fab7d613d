/*
 * Kernels take the time that MEMSIM_COST gives them, in their stream, and touch nothing. What a compiler's
 * start-up code registers is remembered by nobody: a kernel is whatever address it is launched by.
 */
#include "sim/hip/hip.h"
#include "sim/cuda/sim.h"

#define THREADS_BLOCK 1024u

static CUresult run(struct sim_op *op, struct sim_queue *queue)
{
    uint64_t cost = sim_fault_cost(SIM_FN_KERNEL);

    (void)op, (void)queue;
    if (cost)
        sim_spend(cost);
    return sim_fault_work(SIM_FN_KERNEL);
}

static int launch(const void *function, dim3 grid, dim3 block, hipStream_t stream, bool per_thread)
{
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    struct sim_op *op;

    if (!function)
        return 98; /* hipErrorInvalidDeviceFunction */
    if (!grid.x || !grid.y || !grid.z || !threads || threads > THREADS_BLOCK)
        return 9; /* hipErrorInvalidConfiguration */
    if (!(op = sim_op_new(sizeof *op, run)))
        return hipErrorOutOfMemory;
    op->quick = !sim_fault_asked(SIM_FN_KERNEL);
    op->node = SIM_NO_NODE;
    return (int)sim_stream_enqueue(hip_stream(stream), per_thread, op);
}

/* The attributes are the device's; of the kernel itself nothing is known, and it needs nothing (HIP runtime
 * API reference, "Execution Control"). */
HIP_API hipFuncGetAttributes(hipFuncAttributes *attributes, const void *function)
{
    HIP_ENTER_DEVICE(hipFuncGetAttributes);
    if (!attributes)
        return hip_leave(hipErrorInvalidValue);
    if (!function)
        return hip_leave(98); /* hipErrorInvalidDeviceFunction */
    *attributes = (hipFuncAttributes){
        .maxThreadsPerBlock = (int)THREADS_BLOCK,
        .maxDynamicSharedSizeBytes = sim_card_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
    };
    return hip_leave(hipSuccess);
}

HIP_API hipLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared_bytes,
                        hipStream_t stream)
{
    (void)args, (void)shared_bytes;
    HIP_ENTER_DEVICE(hipLaunchKernel);
    return hip_leave(launch(function, grid, block, stream, false));
}

HIP_API hipLaunchKernel_spt(const void *function, dim3 grid, dim3 block, void **args, size_t shared_bytes,
                            hipStream_t stream)
{
    (void)args, (void)shared_bytes;
    HIP_ENTER_DEVICE(hipLaunchKernel_spt);
    return hip_leave(launch(function, grid, block, stream, true));
}

static int launch_between(const void *function, dim3 grid, dim3 block, hipStream_t stream, hipEvent_t start,
                          hipEvent_t stop)
{
    int status = start ? (int)cuEventRecord((CUevent)start, hip_stream(stream)) : hipSuccess;

    if (status == hipSuccess)
        status = launch(function, grid, block, stream, false);
    if (status == hipSuccess && stop)
        status = (int)cuEventRecord((CUevent)stop, hip_stream(stream));
    return status;
}

HIP_API hipExtLaunchKernel(const void *function, dim3 grid, dim3 block, void **args, size_t shared_bytes,
                           hipStream_t stream, hipEvent_t start, hipEvent_t stop, int flags)
{
    (void)args, (void)shared_bytes, (void)flags;
    HIP_ENTER_DEVICE(hipExtLaunchKernel);
    return hip_leave(launch_between(function, grid, block, stream, start, stop));
}

static unsigned blocks(unsigned threads, unsigned in_block)
{
    return in_block ? threads / in_block + (threads % in_block != 0) : 0;
}

/* Of C++ (hip_ext.h): its grid is counted in threads. */
#define HIP_MODULE_LAUNCH(name, ...)                                                                         \
    HIP_API name(hipFunction_t function, uint32_t global_x, uint32_t global_y, uint32_t global_z,            \
                 uint32_t local_x, uint32_t local_y, uint32_t local_z, size_t shared_bytes,                  \
                 hipStream_t stream, void **args, void **extra, hipEvent_t start,                            \
                 hipEvent_t stop __VA_ARGS__)                                                                \
    {                                                                                                        \
        dim3 block = {local_x, local_y, local_z};                                                            \
        dim3 grid = {blocks(global_x, local_x), blocks(global_y, local_y), blocks(global_z, local_z)};       \
                                                                                                             \
        (void)args, (void)extra, (void)shared_bytes;                                                         \
        HIP_ENTER_DEVICE(name);                                                                              \
        return hip_leave(launch_between(function, grid, block, stream, start, stop));                        \
    }
HIP_MODULE_LAUNCH(hipExtModuleLaunchKernel, , uint32_t flags __attribute__((unused)))
HIP_MODULE_LAUNCH(hipHccModuleLaunchKernel)

/* --- what a compiled program's constructors and launches call --- */

struct configuration {
    dim3 grid, block;
    size_t shared_bytes;
    hipStream_t stream;
};
static _Thread_local struct configuration pushed;
static const char registered;

#define HIP_START_UP __attribute__((visibility("default")))
HIP_START_UP void **__hipRegisterFatBinary(const void *data);
HIP_START_UP void __hipUnregisterFatBinary(void **modules);
HIP_START_UP void __hipRegisterFunction(void **modules, const void *host, char *device, const char *name,
                                        unsigned limit, void *a, void *b, void *c, void *d, int *e);
HIP_START_UP hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                                   hipStream_t stream);
HIP_START_UP hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes,
                                                  hipStream_t *stream);

void **__hipRegisterFatBinary(const void *data)
{
    return data ? (void **)(uintptr_t)&registered : NULL;
}

void __hipUnregisterFatBinary(void **modules)
{
    (void)modules;
}

void __hipRegisterFunction(void **modules, const void *host, char *device, const char *name, unsigned limit,
                           void *a, void *b, void *c, void *d, int *e)
{
    (void)modules, (void)host, (void)device, (void)name, (void)limit, (void)a, (void)b, (void)c, (void)d,
        (void)e;
}

hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, hipStream_t stream)
{
    pushed = (struct configuration){grid, block, shared_bytes, stream};
    return hipSuccess;
}

hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes, hipStream_t *stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared_bytes = pushed.shared_bytes;
    *stream = pushed.stream;
    return hipSuccess;
}
