/*
 * direct.c - what the runtime answers where memshim could answer for it: the same natively and under memshim.
 *
 * usage: direct SCENARIO [LIBRARY]. Every scenario makes a few pairs first, so that what comes then would be
 * answered in the runtime's hook. `count` prints what the driver was asked in a hundred pairs, which differs;
 * the library is opened before them. `carve` does so for blocks of as many sizes, each of which is cut from
 * what is free.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"

enum { PAIRS = 100 };

static void *allocate(size_t bytes)
{
    void *p = NULL;
    cudaError_t status = cudaMalloc(&p, bytes);

    if (status != cudaSuccess)
        printf("malloc %d\n", (int)status);
    return p;
}

static void warm(void)
{
    for (int i = 0; i < 4; i++)
        cudaFree(allocate(4096));
}

static int device_of(void *p)
{
    int device = -1;
    CUresult status = cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)p);

    return status == CUDA_SUCCESS ? device : -(int)status;
}

static void tell(const char *when)
{
    void *p = allocate(4096);

    printf("%s: device %d\n", when, device_of(p));
    printf("free %d, last %d\n", cudaFree(p), cudaGetLastError());
}

/* Whatever makes another device current, or another context, or none. */
static void devices(const char *unused)
{
    CUcontext first = NULL, own = NULL, popped = NULL;
    void *p;

    (void)unused;

    for (int round = 0; round < 3; round++) {
        cudaSetDevice(1);
        tell("the second device");
        cudaSetDevice(0);
        tell("the first device");
    }
    cuCtxGetCurrent(&first);
    cuCtxCreate_v2(&own, 0, 1);
    tell("a context of the program's");
    tell("the same");
    cuCtxPopCurrent_v2(&popped);
    tell("popped");
    cuCtxSetCurrent(NULL);
    tell("without a context");
    cuCtxSetCurrent(first);
    tell("the first again");
    cuCtxDestroy_v2(own);
    tell("after its end");
    cudaSetDevice(1);
    printf("reset %d\n", cudaDeviceReset());
    tell("after a reset");
    p = allocate(4096);
    cudaSetDevice(0);
    printf("another device's block: free %d\n", cudaFree(p));
    cuDevicePrimaryCtxRetain(&first, 1);
    cuDevicePrimaryCtxRelease_v2(1);
    cuDevicePrimaryCtxRelease_v2(1);
    cudaSetDevice(1);
    tell("released and retained again");
}

static void errors(const char *unused)
{
    void *p = allocate(4096), *q = (void *)1;

    (void)unused;

    printf("too much %d, untouched %d\n", cudaMalloc(&q, (size_t)1 << 60), q == (void *)1);
    warm();
    printf("peek %d, get %d, get %d\n", cudaPeekAtLastError(), cudaGetLastError(), cudaGetLastError());
    printf("inside %d, last %d\n", cudaFree((char *)p + 512), cudaGetLastError());
    printf("free %d, again %d, last %d\n", cudaFree(p), cudaFree(p), cudaGetLastError());
    printf("nothing %d, no output %d, last %d\n", cudaFree(NULL), cudaMalloc(NULL, 5), cudaGetLastError());
    printf("no bytes %d, %s\n", cudaMalloc(&q, 0), q ? "pointer" : "null");
}

static void *in_thread(void *block)
{
    printf("another thread frees %d\n", cudaFree(block));
    warm();
    return allocate(4096);
}

static void threads(const char *unused)
{
    pthread_t thread;
    void *theirs = NULL;

    (void)unused;

    pthread_create(&thread, NULL, in_thread, allocate(4096));
    pthread_join(thread, &theirs);
    printf("theirs on device %d, free %d\n", device_of(theirs), cudaFree(theirs));
}

/* The driver does not work in a child, and says so. */
static void children(const char *unused)
{
    void *p = allocate(4096), *q = NULL;
    int status = 0;

    (void)unused;

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int made = cudaMalloc(&q, 4096), freed = cudaFree(p);
        printf("child: malloc %d, free %d\n", made, freed);
        fflush(stdout);
        _exit(7);
    }
    waitpid(child, &status, 0);
    printf("exit %d, parent's free %d\n", WEXITSTATUS(status), cudaFree(p));
}

/* Another copy of the runtime, or another version. */
struct runtime {
    void *handle;
    cudaError_t (*malloc)(void **, size_t), (*free)(void *), (*set_device)(int);
};

static struct runtime open_runtime(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

    if (!handle) {
        printf("%s\n", dlerror());
        exit(1);
    }
    return (struct runtime){handle, (cudaError_t(*)(void **, size_t))dlsym(handle, "cudaMalloc"),
                            (cudaError_t(*)(void *))dlsym(handle, "cudaFree"),
                            (cudaError_t(*)(int))dlsym(handle, "cudaSetDevice")};
}

static void tell_of(const struct runtime *r, const char *when)
{
    void *p = NULL;

    printf("%s: malloc %d, device %d", when, r->malloc(&p, 4096), device_of(p));
    printf(", free %d\n", r->free(p));
}

/* Each with a device of its own, in one thread; then one goes and comes again, perhaps to the same place. */
static void runtimes(const char *library)
{
    struct runtime r = open_runtime(library);

    for (int round = 0; round < 3; round++) {
        tell_of(&r, "the other runtime");
        r.set_device(1);
        tell_of(&r, "on its second device");
        tell("this one");
        cudaSetDevice(0);
        tell_of(&r, "the other, after this one chose");
        tell("this one on the first");
        r.set_device(0);
        tell_of(&r, "the other on the first");
    }
    for (int round = 0; round < 3; round++) {
        dlclose(r.handle);
        tell("while the other is gone");
        r = open_runtime(library);
        tell_of(&r, "the other, loaded again");
    }
}

static void pairs(void)
{
    for (int i = 0; i < PAIRS; i++)
        cudaFree(allocate(4096));
}

static void sizes(void)
{
    static void *blocks[PAIRS];

    for (size_t i = 0; i < PAIRS; i++)
        blocks[i] = allocate(((size_t)80 << 10) + 512 * i);
    for (size_t i = 0; i < PAIRS; i++)
        cudaFree(blocks[i]);
}

static void count_in(void (*run)(void))
{
    static const char *const names[] = {"cuCtxGetCurrent", "cuCtxGetDevice", "cuMemAlloc_v2", "cuMemFree_v2"};
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    long long (*made)(const char *) =
        driver ? (long long (*)(const char *))dlsym(driver, "memsim_count") : NULL;
    long long before[4];

    for (int i = 0; made && i < 4; i++)
        before[i] = made(names[i]);
    run();
    for (int i = 0; made && i < 4; i++)
        printf("%s %lld\n", names[i], made(names[i]) - before[i]);
}

static void count(const char *library)
{
    if (library && !dlopen(library, RTLD_NOW))
        printf("%s\n", dlerror());
    count_in(pairs);
}

/* Opens CUPTI's user in a way, has it listen or not, and counts; CUPTI's own count says that the call
 * arrived. */
static void listen(const char *how)
{
    static const struct {
        const char *how, *library, *function;
        int flags;
    } ways[] = {
        {"not", "libcupti_user.so", NULL, RTLD_NOW},
        {"linked", "libcupti_user.so", "listen_now", RTLD_NOW | RTLD_LOCAL},
        {"activity", "libcupti_user.so", "record_now", RTLD_NOW | RTLD_GLOBAL},
        {"looked-up", "libcupti.so.13", "cuptiActivityEnable", RTLD_NOW},
        {"looked-up-only", "libcupti.so.13", NULL, RTLD_NOW},
        {"deep", "libcupti_user.so", "listen_now", RTLD_NOW | RTLD_DEEPBIND},
        {"refused", "libcupti.so.13", "cuptiSubscribe", RTLD_NOW},
    };
    unsigned i = 0;

    while (strcmp(ways[i].how, how) != 0)
        i++;
    void *handle = dlopen(ways[i].library, ways[i].flags);
    if (!handle) {
        printf("%s\n", dlerror());
        exit(1);
    }
    pairs();
    dlsym(handle, "cuptiSubscribe");
    if (ways[i].function) {
        int (*function)(long, long, long) = (int (*)(long, long, long))dlsym(handle, ways[i].function);
        printf("listens %d\n", function(0, 0, 0));
    }
    int (*calls)(void) = (int (*)(void))dlsym(handle, "cupti_calls");
    printf("heard of %d\n", calls ? calls() : -1);
    count_in(pairs);
}

static void carve(const char *unused)
{
    (void)unused;
    count_in(sizes);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const char *library);
    } scenarios[] = {{"devices", devices},   {"errors", errors}, {"threads", threads}, {"children", children},
                     {"runtimes", runtimes}, {"count", count},   {"carve", carve},     {"listen", listen}};

    cudaSetDevice(0);
    warm();
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (argc >= 2 && strcmp(argv[1], scenarios[i].name) == 0) {
            scenarios[i].run(argc > 2 ? argv[2] : NULL);
            return 0;
        }
    }
    return 2;
}
