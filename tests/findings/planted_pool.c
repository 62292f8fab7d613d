/* planted_pool.c - programs of which the pool holds more than they have, or that ask for more than they need.
 *
 * See planted.h. */
#include "planted.h"

#include <stdatomic.h>
#include <string.h>

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
        rest_a_moment();
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
