/* The simulated driver: kernels that run until the host releases them, and kernels that touch memory. */
#include <stdlib.h>

#include "driver.h"
#include "kernels.h"

static CUfunction hold_kernel, fill_kernel, sum_kernel, trap_kernel;

static void load(void)
{
    CUmodule module;

    must(cuModuleLoadData(&module, kernels_ptx));
    must(cuModuleGetFunction(&hold_kernel, module, "memsim_hold"));
    must(cuModuleGetFunction(&fill_kernel, module, "memsim_fill"));
    must(cuModuleGetFunction(&sum_kernel, module, "memsim_sum"));
    must(cuModuleGetFunction(&trap_kernel, module, "memsim_trap"));
}

static CUresult launch(CUfunction kernel, CUstream stream, uint64_t a, uint64_t b, uint64_t c)
{
    void *arguments[] = {&a, &b, &c};

    return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

static uint32_t *flag(void)
{
    uint32_t *word;

    must(cuMemHostAlloc((void **)&word, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    __atomic_store_n(word, 0, __ATOMIC_RELEASE);
    return word;
}

static CUdeviceptr device_of(void *host)
{
    CUdeviceptr address;

    must(cuMemHostGetDevicePointer_v2(&address, host, 0));
    return address;
}

static void held_by_the_host(void)
{
    uint32_t *word = flag();
    CUstream held, other;
    CUevent event;
    CUdeviceptr p;

    must(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    must(cuMemAlloc_v2(&p, 64));
    answers(launch(hold_kernel, held, device_of(word), 7, 0), CUDA_SUCCESS);
    must(cuEventRecord(event, held));
    pause_ms(20);
    answers(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
    answers(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    answers(launch(fill_kernel, other, p, 3, 16), CUDA_SUCCESS);
    answers(cuStreamSynchronize(other), CUDA_SUCCESS);
    __atomic_store_n(word, 6, __ATOMIC_RELEASE);
    pause_ms(5);
    answers(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
    __atomic_store_n(word, 7, __ATOMIC_RELEASE);
    answers(cuStreamSynchronize(held), CUDA_SUCCESS);
    answers(cuEventQuery(event), CUDA_SUCCESS);

    /* released by another stream, through a word of the device's */
    must(cuMemsetD32Async(p, 0, 16, held));
    answers(cuStreamSynchronize(held), CUDA_SUCCESS);
    answers(launch(hold_kernel, held, p + 4, 9, 0), CUDA_SUCCESS);
    answers(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
    answers(cuStreamWriteValue32_v2(other, p + 4, 9, 0), CUDA_SUCCESS);
    answers(cuStreamSynchronize(held), CUDA_SUCCESS);

    double start = now_ms();
    answers(launch(hold_kernel, held, p, 1, 20000000), CUDA_SUCCESS);
    answers(cuStreamSynchronize(held), CUDA_SUCCESS);
    ok(now_ms() - start >= 19, "a limit ends it, not before its time");
    must(cuEventDestroy_v2(event));
    must(cuStreamDestroy_v2(held));
    must(cuStreamDestroy_v2(other));
    must(cuMemFree_v2(p));
    must(cuMemFreeHost(word));
}

static void arguments_in_a_buffer(void)
{
    struct {
        uint64_t words;
        uint32_t value;
        uint64_t count;
    } packed;
    size_t bytes = sizeof packed;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     CU_LAUNCH_PARAM_END};
    CUdeviceptr p;
    uint64_t sum = 0;

    must(cuMemAlloc_v2(&p, 4096));
    packed.words = p;
    packed.value = 5;
    packed.count = 1000;
    answers(cuLaunchKernel(fill_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra), CUDA_SUCCESS);
    answers(launch(sum_kernel, NULL, p, 1000, p + 4000), CUDA_SUCCESS);
    must(cuMemcpyDtoH_v2(&sum, p + 4000, 8));
    is_u64(sum, 5000, "the arguments may lie in a buffer");
    bytes = 8;
    answers(cuLaunchKernel(fill_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, extra), CUDA_ERROR_INVALID_VALUE);
    answers(cuLaunchKernel(fill_kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    must(cuMemFree_v2(p));
}

/* A context of its own, current: a primary one is not had again after a fault. */
static CUcontext renew(CUdevice device)
{
    CUcontext ctx;

    must(cuCtxCreate_v2(&ctx, 0, device));
    load();
    return ctx;
}

static void breaks(CUresult expected, const char *what)
{
    CUdevice device;

    must(cuCtxGetDevice(&device));
    is_int(cuCtxSynchronize(), expected, "%s breaks the context", what);
    is_int(cuStreamSynchronize(NULL), expected, "and that sticks");
    renew(device);
}

static void touching_what_is_gone(void)
{
    CUdeviceptr p, q;
    uint32_t *word;

    answers(cuLaunchKernel(trap_kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_SUCCESS);
    breaks(CUDA_ERROR_LAUNCH_FAILED, "a trap");

    must(cuMemAlloc_v2(&p, 4 * MIB));
    must(cuMemFree_v2(p));
    answers(launch(fill_kernel, NULL, p, 1, 16), CUDA_SUCCESS);
    breaks(CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel that writes freed memory");

    must(cuMemAlloc_v2(&p, 4 * MIB));
    answers(launch(fill_kernel, NULL, p + 4 * MIB - 8, 1, 3), CUDA_SUCCESS);
    breaks(CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel that writes past the end");

    /* freed in stream order by one stream while a kernel of another is still at it */
    CUstream a, b;
    must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    word = flag();
    must(cuMemAllocAsync(&q, 1 * MIB, a));
    must(cuStreamSynchronize(a));
    answers(launch(hold_kernel, b, device_of(word), 1, 0), CUDA_SUCCESS);
    answers(launch(sum_kernel, b, q, 1024, q), CUDA_SUCCESS);
    must(cuMemFreeAsync(q, a));
    must(cuStreamSynchronize(a));
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    breaks(CUDA_ERROR_ILLEGAL_ADDRESS, "work whose memory was freed before its turn");
}

/* Mapped by handle, and unmapped while a kernel that will touch it waits behind another. */
static void unmapped_meanwhile(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;
    CUstream stream;
    uint32_t *word = flag();

    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuMemCreate(&handle, 2 * MIB, &prop, 0));
    must(cuMemAddressReserve(&p, 2 * MIB, 0, 0, 0));
    must(cuMemMap(p, 2 * MIB, 0, handle, 0));
    must(cuMemSetAccess(p, 2 * MIB, &access, 1));
    answers(launch(fill_kernel, stream, p, 1, 16), CUDA_SUCCESS);
    answers(cuStreamSynchronize(stream), CUDA_SUCCESS);
    answers(launch(hold_kernel, stream, device_of(word), 1, 0), CUDA_SUCCESS);
    answers(launch(fill_kernel, stream, p, 1, 16), CUDA_SUCCESS);
    answers(cuMemUnmap(p, 2 * MIB), CUDA_SUCCESS);
    must(cuMemRelease(handle));
    must(cuMemAddressFree(p, 2 * MIB));
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    breaks(CUDA_ERROR_ILLEGAL_ADDRESS, "work whose memory was unmapped before its turn");
}

static void peers(void)
{
    CUcontext first, second;
    CUdeviceptr p, sum;
    uint64_t total = 0;

    must(cuCtxGetCurrent(&first));
    must(cuMemAlloc_v2(&p, 4096));
    must(cuMemsetD32_v2(p, 2, 1024));
    must(cuCtxSynchronize());
    must(cuCtxCreate_v2(&second, 0, 1));
    load();
    must(cuMemAlloc_v2(&sum, 8));
    must(cuCtxEnablePeerAccess(first, 0));
    answers(launch(sum_kernel, NULL, p, 1024, sum), CUDA_SUCCESS);
    must(cuMemcpyDtoH_v2(&total, sum, 8));
    is_u64(total, 2048, "a kernel reads a peer's memory");
    must(cuCtxDisablePeerAccess(first));
    answers(launch(sum_kernel, NULL, p, 1024, sum), CUDA_SUCCESS);
    breaks(CUDA_ERROR_ILLEGAL_ADDRESS, "a peer's memory without permission");
    must(cuCtxSetCurrent(first));
    load();
}

static void pool_access(void)
{
    CUmemoryPool pool;
    CUcontext first, second;
    CUdeviceptr p, sum;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 1}, CU_MEM_ACCESS_FLAGS_PROT_READ};
    CUmemAccess_flags flags;
    uint64_t total = 0;

    must(cuCtxGetCurrent(&first));
    must(cuDeviceGetDefaultMemPool(&pool, 0));
    must(cuMemAllocAsync(&p, 4096, NULL));
    must(cuMemsetD32_v2(p, 3, 1024));
    must(cuCtxSynchronize());
    answers(cuMemPoolSetAccess(pool, &access, 1), CUDA_SUCCESS);
    answers(cuMemPoolGetAccess(&flags, pool, &access.location), CUDA_SUCCESS);
    is_int(flags, CU_MEM_ACCESS_FLAGS_PROT_READ, "the access that was set");
    must(cuCtxCreate_v2(&second, 0, 1));
    load();
    must(cuMemAlloc_v2(&sum, 8));
    answers(launch(sum_kernel, NULL, p, 1024, sum), CUDA_SUCCESS);
    must(cuMemcpyDtoH_v2(&total, sum, 8));
    is_u64(total, 3072, "a pool's access list is enough to read, without peer access");
    answers(launch(fill_kernel, NULL, p, 1, 1024), CUDA_SUCCESS);
    answers(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    renew(1);
    must(cuMemAlloc_v2(&sum, 8));
    must(cuCtxEnablePeerAccess(first, 0));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    must(cuMemPoolSetAccess(pool, &access, 1));
    answers(launch(sum_kernel, NULL, p, 1024, sum), CUDA_SUCCESS);
    is_int(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS, "peer access alone does not reach a pool");
    must(cuCtxSetCurrent(first));
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
    must(cuMemFree_v2(p));
}

int main(void)
{
    setenv("MEMSIM_DEVICES", "2", 1);
    plan(0);
    begin();
    load();
    held_by_the_host();
    arguments_in_a_buffer();
    touching_what_is_gone();
    unmapped_meanwhile();
    peers();
    pool_access();
    return done();
}
