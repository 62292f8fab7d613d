/* planted_leaks.c - programs that free too little, too much, or what they should not.
 *
 * See planted.h. */
#include "planted.h"

#include <string.h>
#include <unistd.h>

/* So often is something lost: what is allocated once and held to the end is no mistake. No compiler makes
 * three places of it. */
static volatile int lost = 3;

/* --- what is never freed -------------------------------------------------------------------------------- */

SCENE leak_device(bool clean)
{
    void *p = NULL;

    for (int i = 0; i < lost; i++) {
        MUST(cudaMalloc(&p, MIB));
        if (clean)
            MUST(cudaFree(p));
    }
}

SCENE leak_stream_ordered(bool clean)
{
    void *p = NULL;

    for (int i = 0; i < lost; i++) {
        MUST(cudaMallocAsync(&p, MIB, NULL));
        if (clean)
            MUST(cudaFreeAsync(p, NULL));
    }
}

SCENE leak_managed(bool clean)
{
    void *p = NULL;

    for (int i = 0; i < lost; i++) {
        MUST(cudaMallocManaged(&p, MIB, cudaMemAttachGlobal));
        if (clean)
            MUST(cudaFree(p));
    }
}

SCENE leak_pinned(bool clean)
{
    void *p = NULL;

    for (int i = 0; i < lost; i++) {
        MUST(cudaMallocHost(&p, MIB));
        if (clean)
            MUST(cudaFreeHost(p));
    }
}

SCENE leak_array(bool clean)
{
    struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    cudaArray_t array;

    for (int i = 0; i < lost; i++) {
        MUST(cudaMallocArray(&array, &desc, 512, 512, 0));
        if (clean)
            MUST(cudaFreeArray(array));
    }
}

SCENE leak_nccl_buffer(bool clean)
{
    void *p = NULL;

    for (int i = 0; i < lost; i++) {
        MUST(ncclMemAlloc(&p, 2 * MIB));
        if (clean)
            MUST(ncclMemFree(p));
    }
}

/* Registers some of `bytes` at `memory` and takes it back, but for what is left. */
static void register_there(void *memory, size_t bytes, int times, int left)
{
    static ncclComm_t comm; /* what is left is no leak of the simulator's */
    void *handles[8];

    MUST(ncclCommInitAll(&comm, 1, NULL));
    for (int i = 0; i < times; i++)
        MUST(ncclCommRegister(comm, (char *)memory + i * bytes, bytes, &handles[i]));
    for (int i = left; i < times; i++)
        MUST(ncclCommDeregister(comm, handles[i]));
    if (!left)
        MUST(ncclCommDestroy(comm));
}

static char host[MIB];

SCENE nccl_registers_host(bool clean)
{
    void *p = NULL;

    MUST(cudaMalloc(&p, MIB));
    if (clean)
        register_there(p, MIB, 1, 0);
    else
        register_there(host, MIB, 1, 0);
    MUST(cudaFree(p));
}

SCENE nccl_registers_too_much(bool clean)
{
    void *p = NULL;

    MUST(cudaMalloc(&p, 2 * MIB));
    register_there(p, clean ? 2 * MIB : 6 * MIB, 1, 0);
    MUST(cudaFree(p));
}

SCENE nccl_registers_too_much_of_a_buffer(bool clean)
{
    void *p = NULL;

    MUST(ncclMemAlloc(&p, 2 * MIB));
    register_there((char *)p + MIB, clean ? MIB : 2 * MIB, 1, 0);
    MUST(ncclMemFree(p));
}

/* Two mappings side by side are one stretch, and behind them nothing is mapped. */
SCENE nccl_registers_too_much_of_mappings(bool clean)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemGenericAllocationHandle handles[2];
    CUdeviceptr range;

    MUST(cudaFree(NULL));
    MUST(cuMemAddressReserve(&range, 8 * MIB, 0, 0, 0));
    for (size_t i = 0; i < 2; i++) {
        MUST(cuMemCreate(&handles[i], 2 * MIB, &prop, 0));
        MUST(cuMemMap(range + i * 2 * MIB, 2 * MIB, 0, handles[i], 0));
    }
    register_there((void *)(uintptr_t)(range + MIB), clean ? 3 * MIB : 4 * MIB, 1, 0);
    MUST(cuMemUnmap(range, 4 * MIB));
    for (size_t i = 0; i < 2; i++)
        MUST(cuMemRelease(handles[i]));
    MUST(cuMemAddressFree(range, 8 * MIB));
}

SCENE nccl_leaves_registrations(bool clean)
{
    void *p = NULL;

    MUST(ncclMemAlloc(&p, 8 * MIB));
    register_there(p, MIB, 8, clean ? 0 : 5);
    MUST(ncclMemFree(p));
}

/* The way out after an error forgets what the usual one frees. */
SCENE leak_after_error(bool clean)
{
    void *p[64] = {NULL};

    for (int i = 0; i < lost; i++)
        MUST(cudaMalloc(&p[i], 256 * KIB));
    if (cudaMemset(NULL, 0, 64) && !clean)
        return;
    for (int i = 0; i < lost; i++)
        MUST(cudaFree(p[i]));
}

/* More than any device has. */
SCENE out_of_memory(bool clean)
{
    void *p = NULL;

    if (!clean && cudaMalloc(&p, (size_t)1 << 50) == cudaSuccess)
        MUST(cudaErrorUnknown);
    MUST(cudaMalloc(&p, MIB));
    MUST(cudaFree(p));
}

/* --- what grows ----------------------------------------------------------------------------------------- */

/* The cache keeps the last one, or, by mistake, all. */
SCENE growing_cache(bool clean)
{
    void *kept = NULL;

    take_clock();
    for (int i = 0; i < GROWING; i++) {
        if (clean && kept)
            MUST(cudaFree(kept));
        MUST(cudaMalloc(&kept, 64 * KIB));
        pass_time(GROWING);
    }
    if (clean)
        MUST(cudaFree(kept));
}

/* The same, but the program cleans up before it ends. */
SCENE growing_and_freed(bool clean)
{
    void *kept[GROWING];

    take_clock();
    for (int i = 0; i < GROWING; i++) {
        MUST(cudaMalloc(&kept[i], 64 * KIB));
        if (clean)
            MUST(cudaFree(kept[i]));
        pass_time(GROWING);
    }
    for (int i = 0; i < GROWING && !clean; i++)
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

/* --- what is others', or the program's own in another way ------------------------------------------------
 */

SCENE imported_open(bool clean)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemGenericAllocationHandle own, imported;
    CUdeviceptr range;
    int file = -1;

    MUST(cudaFree(NULL));
    MUST(cuMemCreate(&own, 2 * MIB, &prop, 0));
    MUST(cuMemExportToShareableHandle(&file, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    MUST(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)file,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(file);
    MUST(cuMemAddressReserve(&range, 2 * MIB, 0, 0, 0));
    MUST(cuMemMap(range, 2 * MIB, 0, imported, 0));
    MUST(cuMemUnmap(range, 2 * MIB));
    if (clean)
        MUST(cuMemRelease(imported));
    MUST(cuMemRelease(own));
}

SCENE registered_and_left(bool clean)
{
    static char memory[MANY][4 * KIB] __attribute__((aligned(4096)));

    for (int i = 0; i < many; i++)
        MUST(cudaHostRegister(memory[i], sizeof memory[i], 0));
    for (int i = 0; clean && i < many; i++)
        MUST(cudaHostUnregister(memory[i]));
}
