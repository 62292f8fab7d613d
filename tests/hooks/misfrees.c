/*
 * misfrees.c - frees of what was freed before, and of addresses inside a block: the scenes that its arguments
 * name. Prints what each call answers, which must be the same with and without memshim.
 * tests/hooks/invalid frees.py knows what the report has to say of each.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/acl.h"
#include "vendor/abi/acl_fn.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "vendor/abi/nccl_fn.h"
#include "tests/hooks/misfrees.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

void say(const char *what, int status)
{
    printf("%s %d\n", what, status);
}

/* The two places that the finding has to name. */
__attribute__((noinline)) void *allocate_here(size_t bytes);
__attribute__((noinline)) int free_there(void *p);

void *allocate_here(size_t bytes)
{
    void *p = NULL;

    cudaMalloc(&p, bytes);
    __asm__ volatile("" : "+r"(p)); /* no tail call */
    return p;
}

int free_there(void *p)
{
    int status = cudaFree(p);

    __asm__ volatile("" : "+r"(status));
    return status;
}

/* Something else is allocated in between, elsewhere, so that the record has used the block's row again. */
static void sync_scene(void)
{
    void *p = allocate_here(3 * MIB), *other = NULL, *many[8];
    volatile int times = 3; /* a loop that stays one place */

    say("free", free_there(p));
    say("managed", cudaMallocManaged(&other, 700, cudaMemAttachGlobal));
    for (int i = 0; i < times; i++)
        say("again", free_there(p));
    say("inside", cudaFree((char *)other + 512));
    say("other", cudaFree(other));
    for (int i = 0; i < 8; i++)
        many[i] = allocate_here(64 * KIB);
    for (int i = 0; i < 8; i++)
        say("free", cudaFree(many[i]));
    say("again", cudaFree(many[2]));
}

static void driver_scene(void)
{
    CUdeviceptr p = 0, pitched = 0;
    size_t pitch = 0;

    cudaFree(NULL);
    say("alloc", (int)cuMemAlloc_v2(&p, 2 * MIB));
    say("inside", (int)cuMemFree_v2(p + MIB));
    say("free", (int)cuMemFree_v2(p));
    say("again", (int)cuMemFree_v2(p));
    say("pitch", (int)cuMemAllocPitch_v2(&pitched, &pitch, 1000, 100, 4));
    say("inside", (int)cuMemFree_v2(pitched + pitch));
    say("free", (int)cuMemFree_v2(pitched));
    say("again", (int)cuMemFree_v2(pitched));
}

static void ordered_scene(void)
{
    cudaStream_t stream = NULL;
    void *p = NULL, *q = NULL;

    say("stream", cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    say("malloc", cudaMallocAsync(&p, MIB, stream));
    say("inside", cudaFreeAsync((char *)p + 4096, stream));
    say("free", cudaFreeAsync(p, stream));
    say("again", cudaFreeAsync(p, stream));
    say("wait", cudaStreamSynchronize(stream));
    say("again", cudaFree(p));
    say("malloc", cudaMalloc(&q, 5 * MIB));
    say("inside", cudaFreeAsync((char *)q + MIB, stream));
    say("free", cudaFreeAsync(q, stream));
    say("again", cudaFreeAsync(q, stream));
    say("wait", cudaStreamSynchronize(stream));
}

static void kinds_scene(void)
{
    struct cudaChannelFormatDesc format = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
    cudaArray_t array = NULL;
    void *p = NULL;

    say("managed", cudaMallocManaged(&p, MIB, cudaMemAttachGlobal));
    say("inside", cudaFree((char *)p + 256));
    say("free", cudaFree(p));
    say("again", cudaFree(p));
    say("host", cudaMallocHost(&p, MIB));
    say("inside", cudaFreeHost((char *)p + 256));
    say("free", cudaFreeHost(p));
    say("again", cudaFreeHost(p));
    say("array", cudaMallocArray(&array, &format, 64, 64, 0));
    say("free", cudaFreeArray(array));
    say("again", cudaFreeArray(array));
}

static void handles_scene(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr range = 0;

    cudaFree(NULL);
    say("create", (int)cuMemCreate(&handle, 2 * MIB, &prop, 0));
    say("release", (int)cuMemRelease(handle));
    say("again", (int)cuMemRelease(handle));
    say("create", (int)cuMemCreate(&handle, 2 * MIB, &prop, 0));
    say("reserve", (int)cuMemAddressReserve(&range, 2 * MIB, 0, 0, 0));
    say("map", (int)cuMemMap(range, 2 * MIB, 0, handle, 0));
    say("release", (int)cuMemRelease(handle));
    say("again", (int)cuMemRelease(handle)); /* the mapping keeps the memory, and nobody has a reference */
    say("unmap", (int)cuMemUnmap(range, 2 * MIB));
    say("range", (int)cuMemAddressFree(range, 2 * MIB));
}

static void nccl_scene(void)
{
    void *p = NULL;

    cudaFree(NULL);
    say("malloc", (int)ncclMemAlloc(&p, 2 * MIB));
    say("inside", (int)ncclMemFree((char *)p + 4096) != 0);
    say("free", (int)ncclMemFree(p));
    say("again", (int)ncclMemFree(p) != 0);
}

static void acl_scene(void)
{
    aclrtPhysicalMemProp prop = {.handleType = ACL_MEM_HANDLE_TYPE_NONE,
                                 .allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED,
                                 .memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    aclrtDrvMemHandle handle = NULL;
    void *p = NULL;

    say("init", aclInit(NULL));
    say("device", aclrtSetDevice(0));
    say("malloc", aclrtMalloc(&p, MIB, ACL_MEM_MALLOC_HUGE_FIRST));
    say("inside", aclrtFree((char *)p + 4096));
    say("free", aclrtFree(p));
    say("again", aclrtFree(p));
    say("physical", aclrtMallocPhysical(&handle, 2 * MIB, &prop, 0));
    say("free", aclrtFreePhysical(handle));
    say("again", aclrtFreePhysical(handle));
}

/* Whose address it is by now frees it; what a context took with it was not freed; and what was never a
 * block's is none. */
static void innocent_scene(void)
{
    void *p = NULL, *q = NULL;
    CUcontext context = NULL;
    CUdeviceptr gone = 0, here = 0;
    int local = 0;

    for (int i = 0; i < 20; i++) {
        say("malloc", cudaMalloc(&p, MIB));
        say("free", cudaFree(p));
        say("malloc", cudaMalloc(&q, MIB));
        say("free", cudaFree(q));
    }
    say("never", cudaFree(&local) != 0);
    say("device", cudaSetDevice(1));
    say("malloc", cudaMalloc(&p, MIB));
    say("device", cudaSetDevice(0));
    say("free", cudaFree(p));
    say("context", (int)cuCtxCreate_v2(&context, 0, 0));
    say("alloc", (int)cuMemAlloc_v2(&here, MIB));
    say("free", (int)cuMemFree_v2(here));
    say("alloc", (int)cuMemAlloc_v2(&gone, MIB));
    say("destroy", (int)cuCtxDestroy_v2(context));
    say("gone", (int)cuMemFree_v2(gone) != 0);
    say("gone", (int)cuMemFree_v2(here) != 0);
    say("malloc", cudaMalloc(&p, 3 * MIB));
    say("reset", cudaDeviceReset());
    say("gone", cudaFree(p) != 0);
}

/* Blocks change hands, and their addresses are used again all the time; meanwhile some frees are refused. */
static void *race(void *seed)
{
    unsigned state = (unsigned)(size_t)seed;
    void *live[16] = {0}, *own = allocate_here(4 * KIB);
    long wrong = 0;

    for (int i = 0; i < 4000; i++) {
        if (i % 50 == 0)
            wrong += free_there((char *)own + 512) == 0;
        state = state * 1103515245 + 12345;
        void **place = &live[state >> 16 & 15];
        if (*place)
            wrong += cudaFree(*place) != 0;
        wrong += cudaMalloc(place, 256u << (state >> 20 & 7)) != 0;
    }
    for (int i = 0; i < 16; i++)
        wrong += live[i] && cudaFree(live[i]) != 0;
    wrong += cudaFree(own) != 0;
    return (void *)wrong;
}

static void threads_scene(void)
{
    pthread_t threads[4];
    long wrong = 0;

    for (size_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, race, (void *)(i + 1));
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (long)result;
    }
    printf("wrong %ld\n", wrong);
}

/* Callers as deep as they are told: so many places. */
__attribute__((noinline)) static void *allocate_deep(int depth)
{
    void *p = depth ? allocate_deep(depth - 1) : allocate_here(4 * KIB);

    __asm__ volatile("" : "+r"(p));
    return p;
}

__attribute__((noinline)) static int free_deep(int depth, void *p)
{
    int status = depth ? free_deep(depth - 1, p) : free_there(p);

    __asm__ volatile("" : "+r"(status));
    return status;
}

static void many_scene(void)
{
    int refused = 0;

    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 20; k++) {
            void *p = allocate_deep(i);
            free_there(p);
            refused += free_deep(k, p) != 0;
            refused += free_deep(k, p) != 0;
        }
    }
    printf("refused %d\n", refused);
}

static void killed_scene(void)
{
    sync_scene();
    fflush(stdout);
    raise(SIGKILL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*play)(void);
    } scenes[] = {{"sync", sync_scene},       {"driver", driver_scene},   {"ordered", ordered_scene},
                  {"kinds", kinds_scene},     {"handles", handles_scene}, {"nccl", nccl_scene},
                  {"hip", hip_scene},         {"acl", acl_scene},         {"innocent", innocent_scene},
                  {"threads", threads_scene}, {"many", many_scene},       {"killed", killed_scene}};

    for (int i = 1; i < argc; i++) {
        for (size_t k = 0; k < sizeof scenes / sizeof scenes[0]; k++) {
            if (strcmp(argv[i], scenes[k].name) == 0)
                scenes[k].play();
        }
    }
    return 0;
}
