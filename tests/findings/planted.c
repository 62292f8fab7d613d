/* planted.c - programs with one fault each, and the same without it: planted NAME [clean].
 *
 * Each is a function of its own, by whose name the finding has to say where it is
 * (tests/findings/findings.py). Nothing is said but a failure of a call that must not fail, and that ends the
 * program with 3. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/abi/cublas.h"
#include "gpu/abi/cuda_driver_fn.h"
#include "gpu/abi/cuda_runtime_fn.h"
#include "gpu/abi/nccl_fn.h"
#include "include/memshim.h"

#define SCENE __attribute__((noinline)) static void

enum { KIB = 1 << 10, MIB = 1 << 20, MANY = 120, MOST = 6000 };

/* Not known when compiled, so that loops stay one place. */
static volatile int many = MANY;

static void must(int status, const char *what)
{
    if (status) {
        printf("%s: %d\n", what, status);
        exit(3);
    }
}

#define MUST(call) must((int)(call), #call)

/* --- what is never freed -------------------------------------------------------------------------------- */

SCENE leak_device(bool clean)
{
    void *p = NULL;

    MUST(cudaMalloc(&p, 3 * MIB));
    if (clean)
        MUST(cudaFree(p));
}

SCENE leak_stream_ordered(bool clean)
{
    void *p = NULL;

    MUST(cudaMallocAsync(&p, 3 * MIB, NULL));
    if (clean)
        MUST(cudaFreeAsync(p, NULL));
}

SCENE leak_managed(bool clean)
{
    void *p = NULL;

    MUST(cudaMallocManaged(&p, 3 * MIB, cudaMemAttachGlobal));
    if (clean)
        MUST(cudaFree(p));
}

SCENE leak_pinned(bool clean)
{
    void *p = NULL;

    MUST(cudaMallocHost(&p, 3 * MIB));
    if (clean)
        MUST(cudaFreeHost(p));
}

SCENE leak_array(bool clean)
{
    struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    cudaArray_t array;

    MUST(cudaMallocArray(&array, &desc, 1024, 1024, 0));
    if (clean)
        MUST(cudaFreeArray(array));
}

SCENE leak_nccl_buffer(bool clean)
{
    void *p = NULL;

    MUST(ncclMemAlloc(&p, 4 * MIB));
    if (clean)
        MUST(ncclMemFree(p));
}

/* The way out after an error forgets what the usual one frees. */
SCENE leak_after_error(bool clean)
{
    void *p[3] = {NULL};

    for (int i = 0; i < 3; i++)
        MUST(cudaMalloc(&p[i], 256 * KIB));
    if (cudaMemset(NULL, 0, 64) && !clean)
        return;
    for (int i = 0; i < 3; i++)
        MUST(cudaFree(p[i]));
}

/* --- what grows ----------------------------------------------------------------------------------------- */

static void rest(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Whether nine tenths of the spans by which growth is told (src/ledger/growth.c) have one of these moments: a
 * machine that has much else to do may have let some go by. */
static bool is_steady(const uint64_t *moments, int count)
{
    bool seen[16] = {false};
    uint64_t last = (moments[count - 1] - moments[0]), shift = 20;
    unsigned spans, hit = 0;

    while (last >> shift >= 16)
        shift++;
    spans = (unsigned)(last >> shift) + 1;
    for (int i = 0; i < count; i++)
        seen[(moments[i] - moments[0]) >> shift] = true;
    for (unsigned i = 0; i < spans; i++)
        hit += seen[i];
    return spans >= 10 && 10 * hit >= 9 * spans;
}

static uint64_t moments[MOST];

/* The cache keeps the last one, or, by mistake, all. */
SCENE growing_cache(bool clean)
{
    void *kept = NULL;

    for (int i = 0; i < MOST && (i < 400 || !is_steady(moments, i)); i++) {
        if (clean && kept)
            MUST(cudaFree(kept));
        MUST(cudaMalloc(&kept, 64 * KIB));
        moments[i] = now_ns();
        rest();
    }
    if (clean)
        MUST(cudaFree(kept));
}

/* The same, but the program cleans up before it ends. */
SCENE growing_and_freed(bool clean)
{
    static void *kept[MOST];
    int count = 0;

    while (count < MOST && (count < 400 || moments[count - 1] - moments[0] < UINT64_C(1400000000) ||
                            !is_steady(moments, count))) {
        MUST(cudaMalloc(&kept[count], 64 * KIB));
        if (clean)
            MUST(cudaFree(kept[count]));
        moments[count++] = now_ns();
        rest();
    }
    for (int i = 0; i < count && !clean; i++)
        MUST(cudaFree(kept[i]));
}

/* All is freed in the end. */
SCENE growing_phase(bool clean)
{
    void *kept[8];

    for (int i = 0; i < 8; i++) {
        MEMSHIM_PHASE_PUSH("step");
        MUST(cudaMalloc(&kept[i], MIB));
        if (clean)
            MUST(cudaFree(kept[i]));
        MEMSHIM_PHASE_POP();
    }
    for (int i = 0; i < 8 && !clean; i++)
        MUST(cudaFree(kept[i]));
}

/* --- what the pool holds and nobody has ------------------------------------------------------------------
 */

/* Every second block goes, and what comes is longer than each hole. */
SCENE stranded_between_long_lived(bool clean)
{
    void *blocks[192], *longer[60];

    for (int i = 0; i < 192; i++)
        MUST(cudaMalloc(&blocks[i], MIB));
    for (int i = 0; i < 96; i++)
        MUST(cudaFree(blocks[clean ? i : 2 * i]));
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < 60; i++)
        MUST(cudaMalloc(&longer[i], 3 * MIB / 2));
    for (int i = 0; i < 60; i++)
        MUST(cudaFree(longer[i]));
    for (int i = 0; i < 96; i++)
        MUST(cudaFree(blocks[clean ? 96 + i : 2 * i + 1]));
}

/* A small block that stays beside each of the large ones that go. */
SCENE stranded_by_small(bool clean)
{
    void *large[48], *small[48], *longer[30];

    for (int i = 0; i < 48; i++) {
        MUST(cudaMalloc(&large[i], 2 * MIB - 128 * KIB));
        if (!clean)
            MUST(cudaMalloc(&small[i], 128 * KIB));
    }
    for (int i = 0; i < 48; i++)
        MUST(cudaFree(large[i]));
    MUST(cudaDeviceSynchronize());
    for (int i = 0; i < 30; i++)
        MUST(cudaMalloc(&longer[i], 3 * MIB));
    for (int i = 0; i < 30; i++)
        MUST(cudaFree(longer[i]));
    for (int i = 0; i < 48 && !clean; i++)
        MUST(cudaFree(small[i]));
}

static atomic_bool go_on;

/* Not for ever: where nothing is served, a free waits for this. */
static void hold(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5000 && !atomic_load(&go_on); i++)
        rest();
}

/* The device is still at it when the program has long gone on. */
SCENE far_ahead(bool clean)
{
    cudaStream_t stream;
    void *p = NULL;

    MUST(cudaStreamCreate(&stream));
    MUST(cudaMalloc(&p, 4 * MIB));
    if (!clean)
        MUST(cudaLaunchHostFunc(stream, hold, NULL));
    for (int i = 0; i < 24; i++) {
        MUST(cudaFree(p));
        MUST(cudaMalloc(&p, 4 * MIB));
    }
    atomic_store(&go_on, true);
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaFree(p));
    MUST(cudaStreamDestroy(stream));
}

/* What one stream has freed others may not have, as long as it is at work. */
static void pass_on(int streams, bool clean)
{
    cudaStream_t stream[9];
    void *p[3];

    for (int s = 0; s <= streams; s++)
        MUST(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
    for (int s = 0; s <= streams; s++) {
        for (int i = 0; i < 3; i++)
            MUST(cudaMallocAsync(&p[i], 16 * MIB, stream[s]));
        if (!clean && s < streams)
            MUST(cudaLaunchHostFunc(stream[s], hold, NULL));
        for (int i = 0; i < 3; i++)
            MUST(cudaFreeAsync(p[i], stream[s]));
        if (clean)
            MUST(cudaStreamSynchronize(stream[s]));
    }
    atomic_store(&go_on, true);
    MUST(cudaDeviceSynchronize());
    for (int s = 0; s <= streams; s++)
        MUST(cudaStreamDestroy(stream[s]));
}

SCENE hoarding_stream(bool clean)
{
    pass_on(1, clean);
}

SCENE hoarding_streams(bool clean)
{
    pass_on(2, clean);
}

/* Nothing is wrong with the program, but with MEMSHIM_PREALLOC. */
SCENE preallocated(bool clean)
{
    void *p = NULL;

    (void)clean;
    MUST(cudaMalloc(&p, 3 * MIB));
    MUST(cudaFree(p));
}

/* --- what is larger than what was asked for --------------------------------------------------------------
 */

SCENE many_small_buffers(bool clean)
{
    void *p[16];
    int count = clean ? 1 : 16;

    for (int i = 0; i < count; i++)
        MUST(ncclMemAlloc(&p[i], clean ? 16 * MIB : 1000));
    for (int i = 0; i < count; i++)
        MUST(ncclMemFree(p[i]));
}

SCENE narrow_rows(bool clean)
{
    size_t pitch;
    void *p = NULL;

    MUST(cudaMallocPitch(&p, &pitch, clean ? 512 : 32, 64 * KIB));
    MUST(cudaFree(p));
}

/* --- what goes to the driver each time --------------------------------------------------------------------
 */

SCENE temporary_managed(bool clean)
{
    void *p = NULL;

    for (int i = 0; i < (clean ? 1 : many); i++) {
        MUST(cudaMallocManaged(&p, 64 * KIB, cudaMemAttachGlobal));
        MUST(cudaFree(p));
    }
}

SCENE temporary_pinned(bool clean)
{
    void *p = NULL;

    for (int i = 0; i < (clean ? 1 : many); i++) {
        MUST(cudaMallocHost(&p, 64 * KIB));
        MUST(cudaFreeHost(p));
    }
}

SCENE temporary_array(bool clean)
{
    struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    cudaArray_t array;

    for (int i = 0; i < (clean ? 1 : many); i++) {
        MUST(cudaMallocArray(&array, &desc, 64, 64, 0));
        MUST(cudaFreeArray(array));
    }
}

SCENE temporary_handle(bool clean)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemGenericAllocationHandle handle;

    MUST(cudaFree(NULL));
    for (int i = 0; i < (clean ? 1 : many); i++) {
        MUST(cuMemCreate(&handle, 2 * MIB, &prop, 0));
        MUST(cuMemRelease(handle));
    }
}

SCENE temporary_registered(bool clean)
{
    static char memory[64 * KIB];

    for (int i = 0; i < (clean ? 1 : many); i++) {
        MUST(cudaHostRegister(memory, sizeof memory, 0));
        MUST(cudaHostUnregister(memory));
    }
}

/* Under MEMSHIM_MODE=track. */
SCENE temporary_tracked(bool clean)
{
    void *p = NULL;

    for (int i = 0; i < (clean ? 1 : many); i++) {
        MUST(cudaMalloc(&p, 64 * KIB));
        MUST(cudaFree(p));
    }
}

/* --- what libraries take late -----------------------------------------------------------------------------
 */

__attribute__((noinline)) static void *fill_device(void)
{
    void *p = NULL;

    MUST(cudaMalloc(&p, 512 * MIB));
    __asm__ volatile("" : "+r"(p)); /* no tail call */
    return p;
}

extern cublasStatus_t cublasCreate_v2(struct cublasContext **);
extern cublasStatus_t cublasDestroy_v2(struct cublasContext *);

/* The line that has to be told is that of fill_device. */
SCENE late_cublas(bool clean)
{
    struct cublasContext *handle = NULL;
    void *p = clean ? NULL : fill_device();

    MUST(cudaFree(NULL));
    MUST(cublasCreate_v2(&handle));
    if (clean)
        p = fill_device();
    MUST(cublasDestroy_v2(handle));
    MUST(cudaFree(p));
}

/* --- what touches a device that is not meant ---------------------------------------------------------------
 */

/* The second device is the program's, and it says so too late. */
SCENE pinned_elsewhere(bool clean)
{
    void *pinned = NULL, *p = NULL;

    if (clean)
        MUST(cudaSetDevice(1));
    MUST(cudaMallocHost(&pinned, 64 * KIB));
    MUST(cudaSetDevice(1));
    MUST(cudaMalloc(&p, 3 * MIB));
    MUST(cudaFree(p));
    MUST(cudaFreeHost(pinned));
}

/* Asks how much is free on each device, and works on the first; or on both. */
SCENE asked_everywhere(bool clean)
{
    size_t left, total;
    void *p = NULL;

    for (int i = 0; i < 2; i++) {
        MUST(cudaSetDevice(1 - i));
        MUST(cudaMemGetInfo(&left, &total));
        if (clean || i == 1) {
            MUST(cudaMalloc(&p, 3 * MIB));
            MUST(cudaFree(p));
        }
    }
}

/* A context of one's own, from which nothing is ever asked; or modules are loaded into it. */
SCENE context_elsewhere(bool clean)
{
    static const char image[] = ".version 8.0\n.target sm_90\n";
    CUcontext context;
    CUmodule module;
    void *p = NULL;

    MUST(cudaMalloc(&p, 3 * MIB));
    MUST(cuCtxCreate_v2(&context, 0, 1));
    if (clean)
        MUST(cuModuleLoadData(&module, image));
    MUST(cudaSetDevice(0));
    MUST(cudaFree(p));
}

/* --- what is freed otherwise than it should ----------------------------------------------------------------
 */

SCENE freed_inside_in_stream(bool clean)
{
    char *p = NULL;

    MUST(cudaMallocAsync((void **)&p, 3 * MIB, NULL));
    if (!clean)
        cudaFreeAsync(p + 4096, NULL);
    MUST(cudaFreeAsync(p, NULL));
}

SCENE died_with_reset(bool clean)
{
    void *p = NULL;

    MUST(cudaMalloc(&p, 3 * MIB));
    if (clean)
        MUST(cudaFree(p));
    MUST(cudaDeviceReset());
}

SCENE died_with_context(bool clean)
{
    CUcontext context;
    CUdeviceptr p;

    MUST(cuInit(0));
    MUST(cuCtxCreate_v2(&context, 0, 0));
    MUST(cuMemAlloc_v2(&p, 3 * MIB));
    if (clean)
        MUST(cuMemFree_v2(p));
    MUST(cuCtxDestroy_v2(context));
}

SCENE freed_twice(bool clean)
{
    void *p = NULL;

    MUST(cudaMalloc(&p, 3 * MIB));
    MUST(cudaFree(p));
    if (!clean)
        cudaFree(p);
}

SCENE freed_twice_in_stream(bool clean)
{
    void *p = NULL;

    MUST(cudaMallocAsync(&p, 3 * MIB, NULL));
    MUST(cudaFreeAsync(p, NULL));
    if (!clean)
        cudaFreeAsync(p, NULL);
}

SCENE freed_inside(bool clean)
{
    char *p = NULL;

    MUST(cudaMalloc((void **)&p, 3 * MIB));
    if (!clean)
        cudaFree(p + 4096);
    MUST(cudaFree(p));
}

static const struct scene {
    const char *name;
    void (*play)(bool clean);
} scenes[] = {
#define ROW(name)                                                                                            \
    {                                                                                                        \
#name, name                                                                                          \
    }
    ROW(leak_device),
    ROW(leak_stream_ordered),
    ROW(leak_managed),
    ROW(leak_pinned),
    ROW(leak_after_error),
    ROW(growing_cache),
    ROW(growing_and_freed),
    ROW(growing_phase),
    ROW(stranded_between_long_lived),
    ROW(stranded_by_small),
    ROW(far_ahead),
    ROW(preallocated),
    ROW(many_small_buffers),
    ROW(narrow_rows),
    ROW(temporary_managed),
    ROW(temporary_pinned),
    ROW(temporary_array),
    ROW(temporary_registered),
    ROW(temporary_tracked),
    ROW(late_cublas),
    ROW(pinned_elsewhere),
    ROW(asked_everywhere),
    ROW(context_elsewhere),
    ROW(died_with_reset),
    ROW(died_with_context),
    ROW(freed_twice),
    ROW(freed_twice_in_stream),
    ROW(freed_inside),
    ROW(freed_inside_in_stream),
    ROW(leak_array),
    ROW(leak_nccl_buffer),
    ROW(hoarding_stream),
    ROW(hoarding_streams),
    ROW(temporary_handle),
#undef ROW
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof scenes / sizeof scenes[0]; i++) {
        if (!strcmp(scenes[i].name, argv[1])) {
            scenes[i].play(argc > 2 && !strcmp(argv[2], "clean"));
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
        puts(scenes[i].name);
    return argc > 1 ? 2 : 0;
}
