/* The simulated driver: starting up, devices, contexts and their stacks. */
#include <sys/wait.h>

#include "driver.h"

static void before_init(void)
{
    CUcontext ctx;
    CUdevice device;
    int version = 0, threads_before = thread_count();

    answers(cuDeviceGet(&device, 0), CUDA_ERROR_NOT_INITIALIZED);
    answers(cuCtxGetCurrent(&ctx), CUDA_ERROR_NOT_INITIALIZED);
    answers(cuDriverGetVersion(&version), CUDA_SUCCESS);
    is_int(version, 13000, "the version is 13.0");
    answers(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    answers(cuInit(0), CUDA_SUCCESS);
    answers(cuInit(0), CUDA_SUCCESS);
    is_int(thread_count(), threads_before, "starting up starts no thread");
}

static void devices(void)
{
    CUdevice device = -1, again = -1;
    int count = 0, major = 0, value = -1;
    size_t bytes = 0;
    char name[64] = "", bus[32] = "";
    CUuuid first, second;

    answers(cuDeviceGetCount(&count), CUDA_SUCCESS);
    is_int(count, 2, "MEMSIM_DEVICES is heard");
    answers(cuDeviceGet(&device, 2), CUDA_ERROR_INVALID_DEVICE);
    answers(cuDeviceGet(&device, 1), CUDA_SUCCESS);
    answers(cuDeviceTotalMem_v2(&bytes, 0), CUDA_SUCCESS);
    is_u64(bytes, 1UL << 30, "MEMSIM_MEMORY is heard");
    answers(cuDeviceGetName(name, sizeof name, 0), CUDA_SUCCESS);
    ok(name[0], "a device has a name");
    answers(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0), CUDA_SUCCESS);
    is_int(major, 9, "compute capability 9");
    for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; i++)
        if (cuDeviceGetAttribute(&value, (CUdevice_attribute)i, 0) != CUDA_SUCCESS)
            ok(false, "attribute %d has a value", i);
    answers(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0), CUDA_ERROR_INVALID_VALUE);
    answers(cuDeviceGetUuid_v2(&first, 0), CUDA_SUCCESS);
    answers(cuDeviceGetUuid_v2(&second, 1), CUDA_SUCCESS);
    ok(memcmp(&first, &second, sizeof first), "devices have different UUIDs");
    answers(cuDeviceGetPCIBusId(bus, sizeof bus, 1), CUDA_SUCCESS);
    answers(cuDeviceGetByPCIBusId(&again, bus), CUDA_SUCCESS);
    is_int(again, 1, "the bus id leads back to the device");
}

static void stacks(void)
{
    CUcontext first, second, top = NULL;
    CUdeviceptr p;

    answers(cuMemAlloc_v2(&p, 1), CUDA_ERROR_INVALID_CONTEXT);
    answers(cuCtxCreate_v4(&first, NULL, 0, 0), CUDA_SUCCESS);
    answers(cuCtxGetCurrent(&top), CUDA_SUCCESS);
    is_ptr(top, first, "a new context is current");
    answers(cuCtxCreate_v2(&second, CU_CTX_SCHED_SPIN, 1), CUDA_SUCCESS);
    answers(cuCtxPopCurrent_v2(&top), CUDA_SUCCESS);
    is_ptr(top, second, "the newest lies on top");
    cuCtxGetCurrent(&top);
    is_ptr(top, first, "below it the first");
    answers(cuCtxPushCurrent_v2(second), CUDA_SUCCESS);
    answers(cuMemAlloc_v2(&p, 1), CUDA_SUCCESS);
    answers(cuCtxDestroy_v2(second), CUDA_SUCCESS);
    cuCtxGetCurrent(&top);
    is_ptr(top, first, "a destroyed context leaves the top of the stack");
    answers(cuCtxDestroy_v2(second), CUDA_ERROR_INVALID_CONTEXT);
    answers(cuCtxPushCurrent_v2(second), CUDA_ERROR_INVALID_CONTEXT);
    answers(cuCtxSetCurrent((CUcontext)&p), CUDA_ERROR_INVALID_CONTEXT);
    answers(cuCtxDestroy_v2(first), CUDA_SUCCESS);
    cuCtxGetCurrent(&top);
    is_ptr(top, NULL, "nothing is left");
    answers(cuCtxPopCurrent_v2(&top), CUDA_ERROR_INVALID_CONTEXT);
}

static void *other_thread(void *ctx)
{
    CUcontext none = ctx;
    CUdeviceptr p;

    cuCtxGetCurrent(&none);
    is_ptr(none, NULL, "a new thread has no context");
    answers(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
    answers(cuMemAlloc_v2(&p, 4096), CUDA_SUCCESS);
    answers(cuMemFree_v2(p), CUDA_SUCCESS);
    return NULL;
}

static void primary(void)
{
    CUcontext ctx, again;
    CUdeviceptr p, q;
    unsigned flags;
    unsigned long long before = 0, after = 0;
    int active = -1;
    CUdevice device = -1;
    size_t free_before, free_after, total;
    pthread_t thread;

    answers(cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
    is_int(active, 0, "the primary context sleeps");
    answers(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
    answers(cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_SUCCESS);
    answers(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
    is_ptr(again, ctx, "there is one primary context");
    answers(cuCtxDestroy_v2(ctx), CUDA_ERROR_INVALID_CONTEXT);
    answers(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
    pthread_create(&thread, NULL, other_thread, ctx);
    pthread_join(thread, NULL);
    must(cuCtxGetId(ctx, &before));
    must(cuMemGetInfo_v2(&free_before, &total));
    must(cuMemAlloc_v2(&p, 64 * MIB));
    answers(cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
    answers(cuMemAlloc_v2(&q, 1), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    answers(cuCtxGetDevice(&device), CUDA_SUCCESS);
    is_int(device, 0, "a primary context that is not active names its device");
    device = -1;
    answers(cuCtxGetDevice_v2(&device, ctx), CUDA_SUCCESS);
    is_int(device, 0, "also by its handle");
    answers(cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
    is_ptr(again, ctx, "a reset keeps the handle");
    must(cuCtxGetId(ctx, &after));
    ok(after != before, "and gives the context another id");
    must(cuMemGetInfo_v2(&free_after, &total));
    is_u64(free_after, free_before, "a reset frees device memory");
    answers(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    for (int i = 0; i < 3; i++)
        answers(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
    cuDevicePrimaryCtxGetState(0, &flags, &active);
    is_int(active, 0, "the last release puts it to sleep");
}

struct freeing {
    CUcontext current;
    CUdeviceptr p;
    CUresult status;
    atomic_bool over;
};

static void *free_it(void *data)
{
    struct freeing *freeing = data;

    must(cuCtxSetCurrent(freeing->current));
    freeing->status = cuMemFree_v2(freeing->p);
    atomic_store(&freeing->over, true);
    return NULL;
}

/* Memory of one context is freed with the other current, while only one of them has work. */
static bool free_waits(CUcontext owner, CUcontext current, CUcontext busy)
{
    struct freeing freeing = {.current = current};
    atomic_int go = 0;
    CUstream stream;
    pthread_t thread;

    must(cuCtxSetCurrent(owner));
    must(cuMemAlloc_v2(&freeing.p, 4 * MIB));
    must(cuCtxSetCurrent(busy));
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuLaunchHostFunc(stream, hold, &go));
    pthread_create(&thread, NULL, free_it, &freeing);
    for (int i = 0; i < 50 && !atomic_load(&freeing.over); i++)
        pause_ms(1);
    bool waits = !atomic_load(&freeing.over);
    atomic_store(&go, 1);
    pthread_join(thread, NULL);
    must(freeing.status);
    must(cuStreamSynchronize(stream)); /* who did not wait leaves the host function at `go` */
    must(cuStreamDestroy_v2(stream));
    return waits;
}

/* One that ends while it is waited for takes the memory along, and the free is over all the same. */
static void owner_ends(CUcontext other)
{
    struct freeing freeing = {.current = other};
    atomic_int go = 0;
    CUcontext owner;
    CUstream stream;
    pthread_t thread;

    must(cuCtxCreate_v2(&owner, 0, 0));
    must(cuMemAlloc_v2(&freeing.p, 4 * MIB));
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuLaunchHostFunc(stream, hold, &go));
    pthread_create(&thread, NULL, free_it, &freeing);
    pause_ms(5);
    atomic_store(&go, 1);
    must(cuCtxDestroy_v2(owner));
    pthread_join(thread, NULL);
    ok(freeing.status == CUDA_SUCCESS || freeing.status == CUDA_ERROR_INVALID_VALUE, /* it came too late */
       "a free and the end of the memory's context meet");
}

static void frees(void)
{
    CUcontext first = begin(), second;
    size_t before, after, total;

    must(cuMemGetInfo_v2(&before, &total));
    must(cuCtxCreate_v2(&second, 0, 0));
    ok(free_waits(second, first, second), "a free waits for the context that the memory belongs to");
    ok(!free_waits(second, first, first), "and not for the one that is current");
    ok(free_waits(first, second, first), "the same the other way round");
    must(cuCtxSetCurrent(first));
    for (int i = 0; i < 10; i++)
        owner_ends(first);
    must(cuCtxDestroy_v2(second));
    must(cuCtxSetCurrent(first));
    must(cuMemGetInfo_v2(&after, &total));
    is_u64(after, before, "and nothing is lost");
    must(cuDevicePrimaryCtxRelease_v2(0));
    must(cuCtxSetCurrent(NULL));
}

static void after_fork(void)
{
    CUcontext ctx = begin();
    CUdeviceptr p;
    int status = 0;

    must(cuMemAlloc_v2(&p, MIB));
    must(cuMemsetD8_v2(p, 1, MIB));
    pid_t child = fork();
    if (!child) {
        CUcontext none;
        bool right = cuInit(0) == CUDA_ERROR_NOT_INITIALIZED &&
                     cuCtxGetCurrent(&none) == CUDA_ERROR_NOT_INITIALIZED &&
                     cuMemFree_v2(p) == CUDA_ERROR_NOT_INITIALIZED &&
                     cuCtxSynchronize() == CUDA_ERROR_NOT_INITIALIZED &&
                     cuCtxSetCurrent(ctx) == CUDA_ERROR_NOT_INITIALIZED;
        _exit(right ? 0 : 1);
    }
    waitpid(child, &status, 0);
    ok(WIFEXITED(status) && !WEXITSTATUS(status), "in a child made by fork nothing is initialised");
    answers(cuMemFree_v2(p), CUDA_SUCCESS);
    answers(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
}

int main(void)
{
    plan(0);
    setenv("MEMSIM_DEVICES", "2", 1);
    setenv("MEMSIM_MEMORY", "1G", 1);
    before_init();
    devices();
    stacks();
    primary();
    frees();
    after_fork();
    return done();
}
