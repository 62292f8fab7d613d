/*
 * direct_stream.c - the stream-ordered calls that memshim could answer for the runtime: the same natively and
 * under memshim.
 *
 * usage: direct_stream SCENARIO. Every scenario makes many pairs first, so that the thread owns what it needs
 * and what comes then would be answered in the runtime's hook, on the fast path. `count` prints what the
 * driver was asked in a hundred pairs, which differs. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"

enum { PAIRS = 100, WARM = 40 };

#define PER_THREAD ((cudaStream_t)0x2)

static cudaStream_t stream, other;
static cudaMemPool_t own;

static void *take(cudaStream_t on)
{
    void *p = NULL;
    cudaError_t status = cudaMallocAsync(&p, 4096, on);

    if (status != cudaSuccess)
        printf("malloc %d\n", (int)status);
    return p;
}

static void *take_from_pool(cudaMemPool_t pool, cudaStream_t on)
{
    void *p = NULL;
    cudaError_t status = cudaMallocFromPoolAsync(&p, 4096, pool, on);

    if (status != cudaSuccess)
        printf("malloc from pool %d\n", (int)status);
    return p;
}

static void warm(cudaStream_t on)
{
    for (int i = 0; i < WARM; i++)
        cudaFreeAsync(take_from_pool(own, on), on);
    for (int i = 0; i < WARM; i++)
        cudaFreeAsync(take(on), on);
}

static int device_of(void *p)
{
    int device = -1;
    CUresult status = cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)p);

    return status == CUDA_SUCCESS ? device : -(int)status;
}

static void tell(const char *when, cudaStream_t on)
{
    void *p = take(on);

    printf("%s: device %d\n", when, device_of(p));
    printf("free %d, last %d\n", cudaFreeAsync(p, on), cudaGetLastError());
}

/* A stream's handle says on which device; of the default ones the current context does. */
static void devices(void)
{
    CUcontext first = NULL, context = NULL, popped = NULL;

    for (int round = 0; round < 3; round++) {
        cudaSetDevice(1);
        tell("the second device, default stream", NULL);
        tell("its thread's stream", PER_THREAD);
        tell("a stream of the first", stream);
        cudaSetDevice(0);
        tell("the first device, default stream", NULL);
        tell("its thread's stream", PER_THREAD);
        tell("its own", stream);
    }
    cuCtxGetCurrent(&first);
    cuCtxCreate_v2(&context, 0, 1);
    tell("a context of the program's, default stream", NULL);
    tell("... a stream of another", stream);
    cuCtxPopCurrent_v2(&popped);
    cuCtxSetCurrent(NULL);
    tell("without a context, by its handle", stream);
    cuCtxSetCurrent(NULL);
    tell("without a context, default stream", NULL);
    cuCtxSetCurrent(first);
    cuCtxDestroy_v2(context);
    tell("the first again", NULL);
    void *p = take(stream);
    printf("freed on the other device's default stream %d\n", (cudaSetDevice(1), cudaFreeAsync(p, NULL)));
    printf("reset %d\n", cudaDeviceReset());
    tell("after a reset", NULL);
    cudaSetDevice(0);
    tell("the first", stream);
}

static void errors(void)
{
    void *p = take(stream), *q = (void *)1;
    struct cudaMemPoolProps props = {0};
    cudaMemPool_t brief = NULL;

    printf("too much %d, untouched %d\n", cudaMallocAsync(&q, (size_t)1 << 60, stream), q == (void *)1);
    warm(stream);
    printf("peek %d, get %d, get %d\n", cudaPeekAtLastError(), cudaGetLastError(), cudaGetLastError());
    printf("inside %d, last %d\n", cudaFreeAsync((char *)p + 512, stream), cudaGetLastError());
    printf("free %d, again %d, last %d\n", cudaFreeAsync(p, stream), cudaFreeAsync(p, stream),
           cudaGetLastError());
    printf("nothing %d, last %d\n", cudaFreeAsync(NULL, stream), cudaGetLastError());
    printf("no output %d, last %d\n", cudaMallocAsync(NULL, 5, stream), cudaGetLastError());
    printf("no bytes %d, %s\n", cudaMallocAsync(&q, 0, stream), q ? "pointer" : "null");
    cudaStreamDestroy(other);
    p = take(stream);
    printf("on a stream that is gone: malloc %d, free %d, last %d\n", cudaMallocAsync(&q, 4096, other),
           cudaFreeAsync(p, other), cudaGetLastError());
    printf("free %d\n", cudaFreeAsync(p, stream));
    printf("of no pool %d\n", cudaMallocFromPoolAsync(&q, 4096, NULL, stream));
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    printf("a pool %d\n", cudaMemPoolCreate(&brief, &props));
    for (int i = 0; i < WARM; i++)
        cudaFreeAsync(take_from_pool(brief, stream), stream);
    p = take_from_pool(brief, stream);
    printf("which ends %d", cudaMemPoolDestroy(brief));
    printf(", malloc %d", cudaMallocFromPoolAsync(&q, 4096, brief, stream));
    printf(", free %d\n", cudaFreeAsync(p, stream));
    printf("last %d\n", cudaGetLastError());
}

static void captures(void)
{
    cudaGraph_t graph = NULL;
    void *before = take(stream), *p;

    for (int round = 0; round < 2; round++) {
        printf("begin %d\n", cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
        p = take(stream);
        printf("a node %d, its end %d\n", p != NULL, cudaFreeAsync(p, stream));
        p = take(other);
        printf("beside it %d", cudaFreeAsync(p, other));
        printf(", end %d\n", cudaStreamEndCapture(stream, &graph));
        printf("destroy %d\n", cudaGraphDestroy(graph));
        warm(stream);
    }
    printf("a block of before, inside: begin %d",
           cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    printf(", free %d", cudaFreeAsync(before, stream));
    printf(", end %d\n", cudaStreamEndCapture(stream, &graph));
    printf("last %d\n", cudaGetLastError());
    tell("afterwards", stream);
}

static void *in_thread(void *block)
{
    printf("another thread frees %d\n", cudaFreeAsync(block, other));
    warm(PER_THREAD);
    printf("and on the owner's stream %d\n", cudaFreeAsync(take(stream), stream));
    return take(PER_THREAD);
}

static void threads(void)
{
    pthread_t thread;
    void *theirs = NULL;

    pthread_create(&thread, NULL, in_thread, take(stream));
    pthread_join(thread, &theirs);
    printf("theirs on device %d, free %d\n", device_of(theirs), cudaFreeAsync(theirs, stream));
    theirs = take(stream);
    printf("cudaFree of one %d\n", cudaFree(theirs));
    printf("cudaMalloc %d", cudaMalloc(&theirs, 4096));
    printf(", cudaFreeAsync of it %d\n", cudaFreeAsync(theirs, stream));
}

static unsigned long long used_of(cudaMemPool_t pool)
{
    unsigned long long used = 0;

    cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used);
    return used;
}

/* A request goes to the pool that is the current one by now, and to the stream that has the handle by now. */
static void changes(void)
{
    cudaMemPool_t first = NULL;
    void *p, *q;

    cudaDeviceGetMemPool(&first, 0);
    for (int round = 0; round < 2; round++) {
        cudaDeviceSetMemPool(0, own);
        p = take(stream);
        printf("of its own pool %llu, of the first %llu", used_of(own), used_of(first));
        printf(", free %d\n", cudaFreeAsync(p, stream));
        for (int i = 0; i < WARM; i++)
            cudaFreeAsync(take(stream), stream);
        cudaDeviceSetMemPool(0, first);
        p = take(stream);
        q = take_from_pool(own, stream);
        printf("of its own pool %llu, of the first %llu", used_of(own), used_of(first));
        printf(", free %d, %d\n", cudaFreeAsync(q, stream), cudaFreeAsync(p, stream));
        warm(stream);
    }
    for (int round = 0; round < 3; round++) {
        p = take(stream);
        printf("the stream ends %d, another %d\n", cudaStreamDestroy(stream),
               cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        printf("free of what the first was given %d\n", cudaFreeAsync(p, stream));
        warm(stream);
    }
    p = take(stream);
    printf("freed %d, by the device %d\n", cudaFreeAsync(p, stream), cudaFree(p));
    printf("used %llu and %llu, last %d\n", used_of(own), used_of(first), cudaGetLastError());
}

static void count(void)
{
    static const char *const names[] = {"cuCtxGetCurrent", "cuMemAllocAsync", "cuMemAllocFromPoolAsync",
                                        "cuMemFreeAsync", "cuStreamGetId"};
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    long long (*made)(const char *) =
        driver ? (long long (*)(const char *))dlsym(driver, "memsim_count") : NULL;
    long long before[5];

    warm(stream);
    for (int i = 0; made && i < 5; i++)
        before[i] = made(names[i]);
    for (int i = 0; i < PAIRS; i++)
        cudaFreeAsync(take(stream), stream);
    for (int i = 0; i < PAIRS; i++)
        cudaFreeAsync(take_from_pool(own, stream), stream);
    for (int i = 0; made && i < 5; i++)
        printf("%s %lld\n", names[i], made(names[i]) - before[i]);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {{"devices", devices}, {"errors", errors},   {"captures", captures},
                     {"threads", threads}, {"changes", changes}, {"count", count}};
    struct cudaMemPoolProps props = {0};

    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    cudaSetDevice(0);
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) != cudaSuccess ||
        cudaMemPoolCreate(&own, &props) != cudaSuccess)
        return 1;
    warm(stream);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].run();
            return 0;
        }
    }
    return 2;
}
