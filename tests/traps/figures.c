/*
 * figures.c - traps of how much there is: what cudaMemGetInfo counts, the codes of out-of-memory, and memory
 * that comes back.
 */
#include "traps.h"

/* Facts that hold whatever the granules are. */
static void meminfo(void)
{
    size_t total = 0, before, held, after;
    void *p[3];

    cudaFree(NULL);
    before = free_bytes();
    cudaMemGetInfo(&held, &total);
    say("total %zu, at rest %s", total, held == before ? "steady" : "unsteady");
    for (int i = 0; i < 3; i++)
        p[i] = take(trap_sizes[i]);
    held = free_bytes();
    say("counts what was taken: %d, and little more: %d",
        before - held >= trap_sizes[0] + trap_sizes[1] + trap_sizes[2],
        before - held <= trap_sizes[0] + trap_sizes[1] + trap_sizes[2] + 40 * MIB);
    for (int i = 0; i < 3; i++)
        cudaFree(p[i]);
    cudaDeviceSynchronize();
    after = free_bytes();
    say("all of it is free again: %d", after == before);
    for (int i = 0; i < 200; i++) {
        void *q = take(i % 3 ? 5000 : 20 * MIB);

        if (free_bytes() > before)
            say("more is free than ever");
        cudaFree(q);
    }
    say("after 200 pairs: %d", free_bytes() == before);
    say("never more than the total: %d", free_bytes() <= total);
}

/* Whoever sizes a buffer by what is free must get it: JAX and vLLM take a share of it at once. */
static void most_of_what_is_free(void)
{
    for (int round = 0; round < 3; round++) {
        void *crumbs[100], *large;
        size_t share;

        for (int i = 0; i < 100; i++)
            crumbs[i] = take((size_t)(i + 1) * 9000);
        for (int i = 0; i < 100; i += 2)
            cudaFree(crumbs[i]);
        share = free_bytes() / 100 * 95 & ~(2 * MIB - 1);
        say("95 %% of what is free: %d", cudaMalloc(&large, share));
        say("free %d", cudaFree(large));
        for (int i = 1; i < 100; i += 2)
            cudaFree(crumbs[i]);
        share = free_bytes() & ~(2 * MIB - 1);
        say("all that is free: %d", cudaMalloc(&large, share));
        say("free %d", cudaFree(large));
    }
}

static void oom_code(void)
{
    size_t total = 0;
    void *p = (void *)(uintptr_t)0x1234, *blocks[64];
    int count = 0;

    cudaMemGetInfo(&(size_t){0}, &total);
    say("more than there is: %d", cudaMalloc(&p, total + 1));
    say("last %d", cudaGetLastError());
    say("pointer %s", p == (void *)(uintptr_t)0x1234 ? "untouched" : p ? "something" : "NULL");
    while (count < 64 && cudaMalloc(&blocks[count], 20 * MIB) == cudaSuccess)
        count++;
    say("blocks of 20 MiB: %d, last %d", count, cudaGetLastError());
    say("one more: %d", cudaMalloc(&p, 20 * MIB));
    say("last %d", cudaGetLastError());
    say("free %d", cudaFree(blocks[0]));
    say("now: %d", cudaMalloc(&blocks[0], 20 * MIB));
    say("last %d", cudaGetLastError());
    for (int i = 0; i < count; i++)
        if (cudaFree(blocks[i]))
            say("block %d was not freed", i);
    say("nothing held: %d", cudaMalloc(&p, total / 100 * 95));
    say("last %d", cudaGetLastError());
}

/* Frameworks free what they cache when an allocation fails, and try again. */
static void oom_retry(void)
{
    void *cache[32] = {NULL}, *p = NULL;
    int held = 0;

    while (held < 32 && cudaMalloc(&cache[held], 8 * MIB) == cudaSuccess)
        held++;
    say("held %d", held);
    cudaGetLastError();
    for (int i = 0; i < held; i++) {
        cudaError_t status = cudaMalloc(&p, 24 * MIB);

        if (status == cudaSuccess) {
            say("succeeds after %d were freed", i);
            break;
        }
        say("%d", status);
        cudaGetLastError();
        cudaFree(cache[i]);
    }
    say("free %d", cudaFree(p));
}

/* What the allocator kept of one size is there for another. */
static void oom_of_another_size(void)
{
    for (int round = 0; round < 3; round++) {
        static const size_t units[] = {48 * KIB, 3 * MIB, 17 * MIB};
        void *blocks[2048], *large = NULL;
        int count = 0;

        while (count < 2048 && cudaMalloc(&blocks[count], units[round]) == cudaSuccess)
            count++;
        say("%s: %s", trap_size_names[round],
            cudaGetLastError() == cudaErrorMemoryAllocation ? "full" : "not full");
        for (int i = 0; i < count; i++)
            cudaFree(blocks[i]);
        say("50 MiB at once: %d", cudaMalloc(&large, 50 * MIB));
        say("free %d", cudaFree(large));
    }
}

/* Other kinds of memory need room too. */
static void room_for_others(void)
{
    static const size_t quarter = 16 * MIB;
    struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    cudaArray_t array = NULL;
    void *p[3], *managed = NULL, *ordered = NULL;
    cudaStream_t stream;

    cudaStreamCreate(&stream);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            p[i] = take(quarter);
        for (int i = 0; i < 3; i++)
            cudaFree(p[i]);
        say("managed %d", cudaMallocManaged(&managed, 2 * quarter, cudaMemAttachGlobal));
        say("free %d", cudaFree(managed));
        say("array %d", cudaMallocArray(&array, &desc, 2048, 5000, 0));
        say("free %d", cudaFreeArray(array));
        say("stream-ordered %d", cudaMallocAsync(&ordered, 2 * quarter, stream));
        say("free %d", cudaFreeAsync(ordered, stream));
        say("synchronize %d", cudaStreamSynchronize(stream));
        say("last %d", cudaGetLastError());
    }
}

/* ... and what was freed behind work is theirs as soon as that is over: natively the free has waited. */
static void most_freed_behind_work(struct gate *gate, cudaStream_t stream)
{
    void *most = take(48 * MIB);

    fill(most, 48 * MIB, 1, stream);
    gate_close(gate, 150, stream);
    say("most of it freed %d", cudaFree(most));
}

static void room_behind_work(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    CUmemGenericAllocationHandle handle = 0;
    cudaStream_t busy = NULL, other = NULL;
    CUcontext own = NULL, second = NULL;
    cudaArray_t array = NULL;
    CUdeviceptr there = 0;
    struct gate gate;
    void *p = NULL;

    cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    most_freed_behind_work(&gate, busy);
    say("stream-ordered %d", cudaMallocAsync(&p, 48 * MIB, other));
    say("free %d", cudaFreeAsync(p, other));
    cudaDeviceSynchronize();
    most_freed_behind_work(&gate, busy);
    say("by handle %d", cuMemCreate(&handle, 48 * MIB, &prop, 0));
    say("release %d", cuMemRelease(handle));
    most_freed_behind_work(&gate, busy);
    say("array %d", cudaMallocArray(&array, &desc, 2048, 5000, 0));
    say("free %d", cudaFreeArray(array));
    most_freed_behind_work(&gate, busy);
    say("current %d", cuCtxGetCurrent(&own));
    say("another %d", cuCtxCreate_v2(&second, 0, 0));
    say("in another context %d", cuMemAlloc_v2(&there, 48 * MIB));
    say("free %d", cuMemFree_v2(there));
    say("destroy %d", cuCtxDestroy_v2(second));
    say("back %d", cuCtxSetCurrent(own));
    say("last %d", cudaGetLastError());
}

/* Small sizes until nothing is left, twice: as many the second time, but for a few. */
static void same_again(void)
{
    static void *blocks[4096];
    int counts[2] = {0, 0};

    for (int round = 0; round < 2; round++) {
        while (counts[round] < 4096 && cudaMalloc(&blocks[counts[round]], 30000) == cudaSuccess)
            counts[round]++;
        for (int i = 0; i < counts[round]; i++)
            cudaFree(blocks[i]);
        cudaGetLastError();
    }
    say("as many the second time: %d", counts[1] >= counts[0] / 100 * 99);
    say("at least nine tenths of the memory: %d", (size_t)counts[0] * 30000 >= 64 * MIB / 10 * 9);
}

/* The smallest device on which something runs: odd sizes from 2 MiB on waste granules natively. */
static void oom_of_odd_sizes(void)
{
    void *p = NULL;
    int count = 0;

    while (count < 100 && cudaMalloc(&p, 2 * MIB + 512) == cudaSuccess &&
           cudaMalloc(&p, 1900 * KIB) == cudaSuccess)
        count++;
    say("pairs of 2 MiB + 512 and 1900 KiB: %d", count);
    say("last %d", cudaGetLastError());
}

const struct trap traps_figures[] = {
    {"meminfo", meminfo, NULL},
    {"most-of-what-is-free", most_of_what_is_free, "MEMSIM_MEMORY=256M"},
    {"oom-code", oom_code, "MEMSIM_MEMORY=64M"},
    {"oom-retry", oom_retry, "MEMSIM_MEMORY=64M"},
    {"oom-of-another-size", oom_of_another_size, "MEMSIM_MEMORY=64M"},
    {"oom-of-odd-sizes", oom_of_odd_sizes, "MEMSIM_MEMORY=64M"},
    {"room-for-others", room_for_others, "MEMSIM_MEMORY=64M"},
    {"room-behind-work", room_behind_work, "MEMSIM_MEMORY=64M"},
    {"same-again", same_again, "MEMSIM_MEMORY=64M"},
    {NULL, NULL, NULL},
};
