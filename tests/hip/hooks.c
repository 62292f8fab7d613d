/* One thing that a program does with HIP, by its name; it prints what must be the same with and without
 * memshim. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "vendor/abi/hip.h"
#include "vendor/abi/hip_fn.h"

#define MIB ((size_t)1 << 20)

static void say(const char *what, int status)
{
    printf("%s %d\n", what, status);
}

/* A library of each version, opened for itself alone; both are asked the same. */
static int two_versions(void)
{
    static const char *const names[] = {"libamdhip64.so.5", "libamdhip64.so.6"};

    for (unsigned i = 0; i < 2; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL), *p = NULL;
        __typeof__(&hipMalloc) allocate =
            library ? (__typeof__(&hipMalloc))dlsym(library, "hipMalloc") : NULL;
        __typeof__(&hipFree) release = library ? (__typeof__(&hipFree))dlsym(library, "hipFree") : NULL;
        __typeof__(&hipRuntimeGetVersion) version =
            library ? (__typeof__(version))dlsym(library, "hipRuntimeGetVersion") : NULL;
        __typeof__(&hipMemset) fill = library ? (__typeof__(fill))dlsym(library, "hipMemset") : NULL;
        __typeof__(&hipDeviceSynchronize) wait =
            library ? (__typeof__(wait))dlsym(library, "hipDeviceSynchronize") : NULL;
        int number = 0;

        if (!allocate || !release || !version || !fill || !wait)
            return 1;
        version(&number);
        printf("%s is version %d\n", names[i], number / 10000000);
        say("hipMalloc", allocate(&p, (i + 1) * 4096));
        if (i == 0) /* this one stays, so that each library has memory of its device */
            say("hipMalloc", allocate(&p, 4096));
        say("hipMemset", fill(p, 1, 4096));
        say("hipDeviceSynchronize", wait());
        if (i == 0)
            say("hipFree", release(p));
    }
    return 0;
}

/* Programs choose their way by what they find. */
static int probe(void)
{
    printf("hipMalloc %s\n", dlsym(RTLD_DEFAULT, "hipMalloc") ? "is there" : "is not there");
    printf("ncclMemAlloc %s\n", dlsym(RTLD_DEFAULT, "ncclMemAlloc") ? "is there" : "is not there");
    return 0;
}

/* CUDA and HIP in one process, each its own device 0. */
static int both(void)
{
    void *cuda = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL),
         *hip = dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_LOCAL);
    int (*cuda_malloc)(void **, size_t) = cuda ? (int (*)(void **, size_t))dlsym(cuda, "cudaMalloc") : NULL;
    int (*cuda_free)(void *) = cuda ? (int (*)(void *))dlsym(cuda, "cudaFree") : NULL;
    int (*hip_malloc)(void **, size_t) = hip ? (int (*)(void **, size_t))dlsym(hip, "hipMalloc") : NULL;
    int (*hip_free)(void *) = hip ? (int (*)(void *))dlsym(hip, "hipFree") : NULL;
    void *a = NULL, *b = NULL, *c = NULL, *d = NULL, *e = NULL;

    if (!cuda_malloc || !cuda_free || !hip_malloc || !hip_free)
        return 1;
    say("cudaMalloc", cuda_malloc(&a, 1 * MIB));
    say("hipMalloc", hip_malloc(&b, 2 * MIB));
    say("cudaMalloc", cuda_malloc(&c, 40 * MIB));
    say("hipMalloc", hip_malloc(&d, 50 * MIB));
    say("hipMalloc", hip_malloc(&e, 3000));
    say("cudaFree", cuda_free(a));
    say("hipFree", hip_free(d));
    return 0;
}

/* The reset takes all of the device's memory; what comes after it is new. */
static int reset(void)
{
    void *p = NULL, *q = NULL;
    unsigned char byte = 0;

    say("hipMalloc", hipMalloc(&p, 3 * MIB));
    say("hipMalloc", hipMalloc(&q, 4096));
    say("hipDeviceReset", hipDeviceReset());
    say("hipFree", hipFree(p));
    say("hipMalloc", hipMalloc(&p, 5000));
    say("hipMemset", hipMemset(p, 3, 5000));
    say("hipMemcpy", hipMemcpy(&byte, (char *)p + 4999, 1, hipMemcpyDeviceToHost));
    printf("%d\n", byte);
    say("hipFree", hipFree(p));
    return 0;
}

/* Two devices: memory belongs to the one that was current, whichever is when it goes. */
static int devices(void)
{
    void *p = NULL, *q = NULL;
    int device = -1;
    hipPointerAttribute_t attributes = {0}; /* not told where a call is refused */

    say("hipSetDevice", hipSetDevice(1));
    say("hipMalloc", hipMalloc(&p, 2 * MIB));
    say("hipSetDevice", hipSetDevice(0));
    say("hipMalloc", hipMalloc(&q, MIB));
    say("hipPointerGetAttributes", hipPointerGetAttributes(&attributes, p));
    printf("on device %d\n", attributes.device);
    say("hipFree", hipFree(p));
    say("hipGetDevice", hipGetDevice(&device));
    printf("device %d is current\n", device);
    say("hipMemset", hipMemset(q, 0, MIB));
    say("hipDeviceSynchronize", hipDeviceSynchronize());
    return 0;
}

/* A loop as programs have it: what was freed comes back without the vendor. */
static int loop(void)
{
    unsigned char bytes[2] = {0, 0};
    void *p[8];

    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 8; i++) {
            if (hipMalloc(&p[i], (size_t)(i + 1) * 700 * 1024) != hipSuccess)
                return 1;
            hipMemsetAsync(p[i], round + i, (size_t)(i + 1) * 700 * 1024, NULL);
        }
        for (int i = 0; i < 8; i++) {
            hipMemcpy(&bytes[0], p[i], 1, hipMemcpyDeviceToHost);
            hipMemcpy(&bytes[1], (char *)p[i] + (size_t)(i + 1) * 700 * 1024 - 1, 1, hipMemcpyDeviceToHost);
            if (bytes[0] != round + i || bytes[1] != round + i)
                return 1;
            if (hipFree(p[i]) != hipSuccess)
                return 1;
        }
    }
    puts("every byte was right");
    return 0;
}

/* Freed behind a stream whose work waits for this thread: the call returns, and the memory is not used again
 * before. */
static int behind(void)
{
    hipStream_t stream;
    uint32_t *gate;
    void *p = NULL, *host = NULL, *q = NULL;
    unsigned char byte = 0;

    say("hipMalloc", hipMalloc(&p, MIB));
    say("hipStreamCreateWithFlags", hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    say("hipHostMalloc", hipHostMalloc(&host, 4096, 0));
    gate = host;
    *gate = 0;
    say("hipStreamWaitValue32", hipStreamWaitValue32(stream, gate, 1, hipStreamWaitValueGte, UINT32_MAX));
    say("hipMemsetAsync", hipMemsetAsync(p, 1, MIB, stream));
    say("hipFreeAsync", hipFreeAsync(p, stream));
    say("hipMalloc", hipMalloc(&q, MIB));
    say("hipMemsetAsync", hipMemsetAsync(q, 2, MIB, NULL));
    say("hipStreamSynchronize", hipStreamSynchronize(NULL));
    __atomic_store_n(gate, 1, __ATOMIC_RELEASE);
    say("hipDeviceSynchronize", hipDeviceSynchronize());
    say("hipMemcpy", hipMemcpy(&byte, (char *)q + MIB - 1, 1, hipMemcpyDeviceToHost));
    printf("%d\n", byte);
    say("hipFree", hipFree(q));
    return 0;
}

/* As much as fits, in pieces: then an error, and after a free it fits again. */
static int full(void)
{
    void *p[64];
    int count = 0, status;

    while (count < 64 && (status = hipMalloc(&p[count], 32 * MIB)) == hipSuccess)
        count++;
    say("the last hipMalloc", count < 64 ? status : 0);
    say("its error", hipGetLastError());
    for (int i = 0; i < count; i++)
        hipFree(p[i]);
    /* Another size, which what was kept does not fit. */
    say("hipMalloc", hipMalloc(&p[0], 200 * MIB));
    say("hipHostMalloc", hipHostMalloc(&p[1], MIB, 0));
    say("hipMallocManaged", hipMallocManaged(&p[2], MIB, hipMemAttachGlobal));
    say("hipFree", hipFree(p[0]));
    return 0;
}

/* A capture, and what a program may do beside it. Natively some of this is forbidden
 * (docs/user/differences.md). */
static int capture(void)
{
    hipGraphExec_t exec = NULL;
    hipGraph_t graph = NULL;
    hipStream_t stream;
    unsigned char byte = 0;
    void *p = NULL, *q = NULL;

    say("hipMalloc", hipMalloc(&p, 4096));
    say("hipStreamCreateWithFlags", hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    say("hipStreamBeginCapture", hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed));
    say("hipMemsetAsync", hipMemsetAsync(p, 77, 4096, stream));
    say("hipMalloc", hipMalloc(&q, 4096));
    say("hipFree", hipFree(q));
    say("hipStreamEndCapture", hipStreamEndCapture(stream, &graph));
    say("hipGraphInstantiate", hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    say("hipGraphLaunch", hipGraphLaunch(exec, stream));
    say("hipStreamSynchronize", hipStreamSynchronize(stream));
    hipMemcpy(&byte, p, 1, hipMemcpyDeviceToHost);
    printf("%d\n", byte);
    say("hipGraphExecDestroy", hipGraphExecDestroy(exec));
    say("hipGraphDestroy", hipGraphDestroy(graph));
    say("hipFree", hipFree(p));
    return 0;
}

/* Threads that allocate, fill, compare and free, each on a stream of its own. */
static atomic_int mistakes;

static void *churn(void *arg)
{
    unsigned seed = 7919 * (unsigned)(uintptr_t)arg + 1;
    unsigned char head, tail;
    hipStream_t stream = NULL;
    struct {
        unsigned char *p;
        size_t bytes;
        unsigned char value;
    } held[16] = {{0}};

    hipStreamCreateWithFlags(&stream, hipStreamNonBlocking);
    for (int i = 0; i < 600; i++) {
        unsigned k = (seed = seed * 1103515245 + 12345) >> 16 & 15;
        if (held[k].p) {
            hipMemcpyAsync(&head, held[k].p, 1, hipMemcpyDeviceToHost, stream);
            hipMemcpyAsync(&tail, held[k].p + held[k].bytes - 1, 1, hipMemcpyDeviceToHost, stream);
            hipStreamSynchronize(stream);
            mistakes += head != held[k].value || tail != held[k].value;
            mistakes += (i % 3 ? hipFree(held[k].p) : hipFreeAsync(held[k].p, stream)) != hipSuccess;
            held[k].p = NULL;
        } else {
            held[k].bytes = 1 + (seed >> 8) % (i % 7 ? 40000 : 3000000);
            held[k].value = (unsigned char)(seed >> 3);
            mistakes += hipMalloc((void **)&held[k].p, held[k].bytes) != hipSuccess;
            hipMemsetAsync(held[k].p, held[k].value, held[k].bytes, stream);
        }
    }
    for (unsigned k = 0; k < 16; k++)
        mistakes += hipFree(held[k].p) != hipSuccess;
    hipStreamDestroy(stream);
    return NULL;
}

static int threads(void)
{
    pthread_t all[4];

    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, churn, (void *)i);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
    printf("%d mistakes\n", mistakes);
    return 0;
}

/* Memory in the order of a stream, which the runtime takes in units. */
static int ordered(void)
{
    hipMemPoolProps props = {.allocType = hipMemAllocationTypePinned,
                             .location = {.type = hipMemLocationTypeDevice, .id = 0}};
    hipMemPool_t pool;
    void *p, *q, *r;

    say("hipMallocAsync", hipMallocAsync(&p, 100 * MIB, NULL));
    say("hipMallocAsync", hipMallocAsync(&q, 5000, NULL));
    say("hipMemPoolCreate", hipMemPoolCreate(&pool, &props));
    say("hipMallocFromPoolAsync", hipMallocFromPoolAsync(&r, 40 * MIB, pool, NULL));
    say("hipDeviceSynchronize", hipDeviceSynchronize());
    say("hipFreeAsync", hipFreeAsync(p, NULL));
    say("hipFreeAsync", hipFreeAsync(r, NULL));
    say("hipMemPoolDestroy", hipMemPoolDestroy(pool));
    say("hipDeviceSynchronize", hipDeviceSynchronize());
    say("hipMalloc", hipMalloc(&p, 200 * MIB));
    say("hipDeviceSynchronize", hipDeviceSynchronize());
    return 0;
}

/* Streams come and go, more than anybody could remember. */
static int streams(void)
{
    hipStream_t stream;
    void *p = NULL;
    int failed = 0;

    for (int i = 0; i < 700; i++) {
        failed +=
            hipStreamCreateWithFlags(&stream, i % 2 ? hipStreamNonBlocking : hipStreamDefault) != hipSuccess;
        failed += hipMalloc(&p, 5000) != hipSuccess;
        hipMemsetAsync(p, i, 5000, stream);
        if (i % 3 == 0)
            failed += hipFree(p) != hipSuccess;
        failed += hipStreamDestroy(stream) != hipSuccess;
        if (i % 3)
            failed += hipFree(p) != hipSuccess;
    }
    say("failed", failed);
    return 0;
}

/* Every vendor's memory in one process: CUDA's, NCCL's on CUDA's, HIP's, Ascend's. */
static int all(void)
{
    static const struct {
        const char *library, *allocate;
        size_t bytes;
    } vendors[] = {{"libcudart.so.13", "cudaMalloc", 3 * MIB},
                   {"libnccl.so.2", "ncclMemAlloc", 4 * MIB},
                   {"libamdhip64.so.6", "hipMalloc", 5 * MIB},
                   {"libamdhip64.so.5", "hipMalloc", 7 * MIB}};
    void *ascend, *p = NULL;

    for (unsigned i = 0; i < sizeof vendors / sizeof vendors[0]; i++) {
        void *library = dlopen(vendors[i].library, RTLD_NOW | RTLD_LOCAL);
        int (*allocate)(void **, size_t) =
            library ? (int (*)(void **, size_t))dlsym(library, vendors[i].allocate) : NULL;
        say(vendors[i].allocate, allocate ? allocate(&p, vendors[i].bytes) : -1);
    }
    ascend = dlopen("libascendcl.so", RTLD_NOW | RTLD_LOCAL);
    int (*init)(const char *) = ascend ? (int (*)(const char *))dlsym(ascend, "aclInit") : NULL;
    int (*choose)(int) = ascend ? (int (*)(int))dlsym(ascend, "aclrtSetDevice") : NULL;
    int (*allocate)(void **, size_t, int) =
        ascend ? (int (*)(void **, size_t, int))dlsym(ascend, "aclrtMalloc") : NULL;
    if (!init || !choose || !allocate)
        return 1;
    say("aclInit", init(NULL));
    say("aclrtSetDevice", choose(0));
    say("aclrtMalloc", allocate(&p, 11 * MIB, 0));
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } scenes[] = {{"two_versions", two_versions},
                  {"probe", probe},
                  {"both", both},
                  {"reset", reset},
                  {"devices", devices},
                  {"loop", loop},
                  {"behind", behind},
                  {"full", full},
                  {"capture", capture},
                  {"threads", threads},
                  {"streams", streams},
                  {"all", all},
                  {"ordered", ordered}};

    for (unsigned i = 0; argc > 1 && i < sizeof scenes / sizeof scenes[0]; i++)
        if (!strcmp(argv[1], scenes[i].name))
            return scenes[i].run();
    return 2;
}
