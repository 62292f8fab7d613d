/*
 * corners.c - memory in the order of streams where programs seldom go: on streams and pools of another
 * device, beside the legacy stream of a capture, in contexts that end, from threads that end; and every
 * attribute of a pointer. Prints "what value" lines for same.py, which wants the same natively and under
 * memshim.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/hip/as_cuda.h"
#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB            ((size_t)1 << 20)
#define SAY(name, ...) printf("%s %d\n", name, (int)(__VA_ARGS__))

static cudaStream_t stream;

static int holds(const void *p, unsigned char value)
{
    unsigned char read = 0;

    return cudaMemcpy(&read, p, 1, cudaMemcpyDeviceToHost) == cudaSuccess && read == value;
}

/* A stream of device 0 while device 1 is current, and the other way round; a pool of one, a stream of the
 * other. */
static void devices(void)
{
    cudaMemPool_t pools[2] = {NULL, NULL};
    cudaStream_t there = NULL;
    void *p = NULL, *q = NULL;
    int device = -1;

    cudaSetDevice(1);
    cudaStreamCreateWithFlags(&there, cudaStreamNonBlocking);
    SAY("devices.alloc", cudaMallocAsync(&p, 10000, stream));
    SAY("devices.ask", cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)p));
    SAY("devices.is", device);
    SAY("devices.null", cudaMallocAsync(&q, 10000, NULL));
    SAY("devices.ask_null",
        cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)q));
    SAY("devices.null_is", device);
    SAY("devices.free_on_the_other", cudaFreeAsync(p, there));
    SAY("devices.free", cudaFreeAsync(q, there));
    for (int i = 0; i < 2; i++)
        cudaDeviceGetDefaultMemPool(&pools[i], i);
    SAY("devices.pool_elsewhere", cudaMallocFromPoolAsync(&p, 5000, pools[1], stream));
    SAY("devices.ask_pool",
        cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)p));
    SAY("devices.pool_is", device);
    SAY("devices.wait", cudaStreamSynchronize(stream));
    SAY("devices.set_at_home", cudaMemsetAsync(p, 5, 5000, there));
    SAY("devices.wait_there", cudaStreamSynchronize(there));
    SAY("devices.holds", holds(p, 5));
    SAY("devices.free_pool", cudaFreeAsync(p, there));
    SAY("devices.synchronize", cudaDeviceSynchronize());
    cudaSetDevice(0);
    SAY("devices.synchronize_other", cudaDeviceSynchronize());
    /* behind a stream of the other device, which is not current */
    SAY("devices.block", cudaMalloc(&p, 5000));
    SAY("devices.block_free_on_the_other", cudaFreeAsync(p, there));
    SAY("devices.block_is_free", cudaFree(p) != cudaSuccess);
    cudaGetLastError();
    cudaStreamDestroy(there);
}

/* What an address says of itself; pointers and numbers are only looked at for being there, and the same
 * twice. */
static void attributes(void)
{
    static const char *const names[] = {
        "context",      "type",         "device_pointer", "host_pointer", "p2p",         "sync_memops",
        "buffer_id",    "managed",      "ordinal",        "legacy_ipc",   "range_start", "range_size",
        "mapped",       "handle_types", "gpudirect",      "access",       "pool",        "mapping_size",
        "mapping_base", "memory_block", "decompress"};
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 0}};
    cudaMemPool_t pool = NULL;
    struct cudaPointerAttributes runtime;
    void *p = NULL, *q = NULL;

    cudaMemPoolCreate(&pool, &props);
    cudaMallocFromPoolAsync(&p, 100000, pool, stream);
    cudaMallocFromPoolAsync(&q, 100000, pool, stream);
    cudaStreamSynchronize(stream);
    for (int which = 1; which <= 21; which++) {
        unsigned char one[64] = {0}, other[64] = {0};
        uint64_t value = 0, another = 0;
        int status;

        if (which == 5)
            continue; /* the kernel's tokens */
        status = (int)cuPointerGetAttribute(one, (CUpointer_attribute)which, (CUdeviceptr)p + 500);
        cuPointerGetAttribute(other, (CUpointer_attribute)which, (CUdeviceptr)q + 500);
        memcpy(&value, one, 8);
        memcpy(&another, other, 8);
        printf("attribute.%s %d\n", names[which - 1], status);
        printf("attribute.%s.differs %d\n", names[which - 1], value != another);
        if (which == 2 || which == 6 || (which >= 8 && which <= 10) || (which >= 12 && which <= 16) ||
            which == 21)
            printf("attribute.%s.is %llu\n", names[which - 1], (unsigned long long)value);
        if (which == 3 || which == 11)
            printf("attribute.%s.offset %lld\n", names[which - 1], (long long)(value - (uintptr_t)p));
        if (which == 17)
            printf("attribute.%s.is_it %d\n", names[which - 1], value == (uintptr_t)pool);
    }
    SAY("attributes.runtime", cudaPointerGetAttributes(&runtime, (char *)p + 500));
    SAY("attributes.runtime_type", runtime.type);
    SAY("attributes.runtime_device", runtime.device);
    SAY("attributes.runtime_pointer", runtime.devicePointer == (char *)p + 500 && !runtime.hostPointer);
    CUmemGenericAllocationHandle handle = 0;
    SAY("attributes.retain", cuMemRetainAllocationHandle(&handle, p) != 0);
    SAY("attributes.memops",
        cuPointerSetAttribute(&(unsigned){1}, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)p));
    SAY("attributes.free", cudaFreeAsync(p, stream));
    SAY("attributes.free_other", cudaFreeAsync(q, stream));
    cudaStreamSynchronize(stream);
    SAY("attributes.destroy", cudaMemPoolDestroy(pool));
}

/* A blocking stream captures: the legacy stream would wait for it. */
static void beside_legacy(enum cudaStreamCaptureMode mode, const char *name)
{
    cudaStream_t blocking = NULL;
    cudaGraph_t graph = NULL;
    void *p = NULL, *q = NULL;

    cudaStreamCreate(&blocking);
    cudaMallocAsync(&q, 4000, NULL);
    cudaDeviceSynchronize();
    printf("%s.begin %d\n", name, (int)cudaStreamBeginCapture(blocking, mode));
    printf("%s.alloc %d\n", name, (int)cudaMallocAsync(&p, 4000, NULL));
    printf("%s.end %d\n", name, (int)cudaStreamEndCapture(blocking, &graph));
    if (graph)
        cudaGraphDestroy(graph);
    graph = NULL;
    printf("%s.begin_again %d\n", name, (int)cudaStreamBeginCapture(blocking, mode));
    printf("%s.free %d\n", name, (int)cudaFreeAsync(q, NULL));
    printf("%s.end_again %d\n", name, (int)cudaStreamEndCapture(blocking, &graph));
    if (graph)
        cudaGraphDestroy(graph);
    cudaGetLastError();
    cudaDeviceSynchronize();
    cudaStreamDestroy(blocking);
}

/* ... and so would whoever looks at what lies in it, from another device: an idle legacy stream has what
 * another one asks for. */
static void beside_legacy_elsewhere(void)
{
    cudaStream_t blocking = NULL;
    cudaGraph_t graph = NULL;
    void *p = NULL;

    cudaStreamCreate(&blocking);
    SAY("elsewhere.alloc", cudaMallocAsync(&p, 64 * MIB, NULL));
    SAY("elsewhere.free", cudaFreeAsync(p, NULL));
    cudaDeviceSynchronize();
    SAY("elsewhere.begin", cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
    cudaSetDevice(1);
    SAY("elsewhere.of_another_stream", cudaMallocAsync(&p, 4 * MIB, stream));
    SAY("elsewhere.free_again", cudaFreeAsync(p, stream));
    cudaSetDevice(0);
    SAY("elsewhere.end", cudaStreamEndCapture(blocking, &graph));
    if (graph)
        cudaGraphDestroy(graph);
    cudaGetLastError();
    cudaDeviceSynchronize();
    cudaStreamDestroy(blocking);
}

#ifndef TEST_HIP
/* A context of the program's own, which ends while a block from one of its streams lives. */
static void contexts(void)
{
    CUcontext own = NULL;
    CUstream inside = NULL;
    CUdeviceptr p = 0, q = 0;

    SAY("contexts.create", cuCtxCreate_v2(&own, 0, 0));
    SAY("contexts.stream", cuStreamCreate(&inside, CU_STREAM_NON_BLOCKING));
    SAY("contexts.alloc", cuMemAllocAsync(&p, 7000, inside));
    SAY("contexts.alloc_null", cuMemAllocAsync(&q, 7000, NULL));
    SAY("contexts.set", cuMemsetD8Async(p, 6, 7000, inside));
    SAY("contexts.wait", cuStreamSynchronize(inside));
    SAY("contexts.destroy", cuCtxDestroy_v2(own));
    cudaSetDevice(0);
    SAY("contexts.holds", holds((void *)p, 6));
    SAY("contexts.free", cuMemFreeAsync(p, (CUstream)stream));
    SAY("contexts.free_null", cuMemFreeAsync(q, (CUstream)stream));
    SAY("contexts.synchronize", cudaStreamSynchronize(stream));
}
#endif

static void *thread(void *block)
{
    cudaSetDevice(0);
    if (cudaMallocAsync(block, 3 * MIB, cudaStreamPerThread) != cudaSuccess ||
        cudaMemsetAsync(*(void **)block, 8, 3 * MIB, cudaStreamPerThread) != cudaSuccess)
        *(void **)block = NULL;
    return NULL;
}

/* Their streams end with them, and their blocks live. */
static void threads(void)
{
    enum { COUNT = 20 };
    pthread_t them[COUNT];
    void *p[COUNT];
    int good = 0;

    for (int i = 0; i < COUNT; i++)
        pthread_create(&them[i], NULL, thread, &p[i]);
    for (int i = 0; i < COUNT; i++)
        pthread_join(them[i], NULL);
    SAY("threads.synchronize", cudaDeviceSynchronize());
    for (int i = 0; i < COUNT; i++)
        good += p[i] && holds(p[i], 8) &&
                cudaFreeAsync(p[i], i % 2 ? stream : cudaStreamPerThread) == cudaSuccess;
    SAY("threads.good", good);
    SAY("threads.end", cudaDeviceSynchronize());
}

static void *without_context(void *block)
{
    CUdeviceptr p = 0, q = 0;
    CUmemoryPool pool = NULL;

#ifndef TEST_HIP /* where every thread has a device */
    CUcontext context = (CUcontext)block;
    SAY("no_context.current", cuCtxGetCurrent(&context));
    SAY("no_context.none", context == NULL);
#endif
    SAY("no_context.alloc", cuMemAllocAsync(&p, 5000, (CUstream)stream));
    SAY("no_context.pool", cuDeviceGetDefaultMemPool(&pool, 0));
    SAY("no_context.alloc_from", cuMemAllocFromPoolAsync(&q, 5000, pool, (CUstream)stream));
    SAY("no_context.alloc_legacy", cuMemAllocAsync(&p, 5000, CU_STREAM_LEGACY));
    SAY("no_context.free_null", cuMemFreeAsync(q, NULL));
    SAY("no_context.free", cuMemFreeAsync(p, (CUstream)stream));
    SAY("no_context.free_others", cuMemFreeAsync((CUdeviceptr)block, (CUstream)stream));
    SAY("no_context.free_again", cuMemFreeAsync(q, (CUstream)stream));
    return NULL;
}

/* With a created stream a thread needs no context to have memory in its order, or to give it back. */
static void elsewhere(void)
{
    pthread_t them;
    void *block = NULL;

    SAY("no_context.block", cudaMallocAsync(&block, 9000, stream));
    pthread_create(&them, NULL, without_context, block);
    pthread_join(them, NULL);
    SAY("no_context.end", cudaStreamSynchronize(stream));
}

int main(void)
{
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    devices();
    attributes();
    beside_legacy(cudaStreamCaptureModeGlobal, "legacy_global");
    beside_legacy(cudaStreamCaptureModeThreadLocal, "legacy_thread_local");
    beside_legacy(cudaStreamCaptureModeRelaxed, "legacy_relaxed");
    beside_legacy_elsewhere();
#ifndef TEST_HIP
    contexts();
#endif
    threads();
    elsewhere();
    return 0;
}
