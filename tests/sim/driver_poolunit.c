/*
 * The simulated driver: how much a memory pool takes of its device, and when the device has it back. The
 * figures of record() are what a real card said (an RTX 3060, in CUPTI's records of pools).
 */
#include "driver.h"

static CUmemoryPool pool;
static CUstream one, other;

static uint64_t attribute(CUmemPool_attribute which)
{
    cuuint64_t value = 0;

    must(cuMemPoolGetAttribute(pool, which, &value));
    return value;
}

static void holds(uint64_t reserved, uint64_t used, const char *when)
{
    is_u64(attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), reserved * MIB, "%s: reserved", when);
    is_u64(attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT), used * MIB, "%s: used", when);
}

static uint64_t taken(void)
{
    size_t left, total;

    must(cuMemGetInfo_v2(&left, &total));
    return total - left;
}

static CUdeviceptr get(size_t mib)
{
    CUdeviceptr p = 0;

    must(cuMemAllocFromPoolAsync(&p, mib * MIB, pool, one));
    return p;
}

static void give(CUdeviceptr p)
{
    must(cuMemFreeAsync(p, one));
}

static void threshold(cuuint64_t bytes)
{
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

static void make(size_t most)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                            .maxSize = most};

    must(cuMemPoolCreate(&pool, &props));
}

static void record(void)
{
    CUdeviceptr p, q;

    must(cuDeviceGetDefaultMemPool(&pool, 0));
    p = get(1);
    holds(32, 1, "default: 1 MiB");
    q = get(2);
    holds(32, 3, "default: 2 MiB more");
    give(p);
    holds(32, 2, "default: 1 MiB freed, not waited for");
    give(q);
    must(cuStreamSynchronize(one));
    holds(0, 0, "default: all freed and waited for");
    p = get(33);
    holds(64, 33, "growing: 33 MiB");
    q = get(100);
    holds(160, 133, "growing: 100 MiB more");
    give(p);
    holds(160, 100, "growing: 33 MiB freed, not waited for");
    give(q);
    must(cuStreamSynchronize(one));
    holds(0, 0, "growing: all freed and waited for");
    threshold(64 * MIB);
    p = get(100);
    holds(128, 100, "threshold 64 MiB: 100 MiB");
    give(p);
    must(cuStreamSynchronize(other));
    must(cuMemPoolTrimTo(pool, 0));
    holds(128, 0, "threshold 64 MiB: freed, other stream waited for, trimmed to 0");
    must(cuStreamSynchronize(one));
    holds(64, 0, "threshold 64 MiB: own stream waited for");
    must(cuMemPoolTrimTo(pool, 12345));
    holds(32, 0, "threshold 64 MiB: trimmed to 12345");
    must(cuMemPoolTrimTo(pool, 0));
    holds(0, 0, "threshold 64 MiB: trimmed to 0");
    must(cuMemPoolTrimTo(pool, 0));
    holds(0, 0, "threshold 64 MiB: trimmed to 0 again");
    threshold(0);
    make(0);
    holds(0, 0, "own: created");
    threshold(1024 * MIB);
    p = get(1);
    holds(32, 1, "own: 1 MiB");
    give(p);
    must(cuStreamSynchronize(one));
    holds(32, 0, "own: freed and waited for");
    must(cuMemPoolTrimTo(pool, 0));
    holds(0, 0, "own: trimmed to 0");
    answers(cuMemPoolDestroy(pool), CUDA_SUCCESS);
    is_u64(taken(), 0, "and the device has everything again");
}

/* What releases what was freed: only the host, by waiting for that stream. */
static void queries(void)
{
    CUdeviceptr p, q = 0;
    CUevent event;

    make(0);
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    p = get(40);
    give(p);
    must(cuEventRecord(event, one));
    answers(cuStreamQuery(one), CUDA_SUCCESS);
    answers(cuEventQuery(event), CUDA_SUCCESS);
    must(cuMemPoolTrimTo(pool, 0));
    holds(64, 0, "a query that says done releases nothing");
    answers(cuMemAlloc_v2(&q, 1000 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    must(cuMemAlloc_v2(&q, MIB));
    must(cuMemFree_v2(q));
    must(cuMemPoolTrimTo(pool, 0));
    holds(64, 0, "nor does a free of other memory");
    must(cuEventSynchronize(event));
    holds(0, 0, "waiting for an event behind the free does");
    p = get(40);
    give(p);
    must(cuCtxSynchronize());
    holds(0, 0, "and waiting for the context");
    p = get(40);
    must(cuMemFree_v2(p));
    must(cuMemPoolTrimTo(pool, 0));
    holds(0, 0, "a free that nothing orders needs no wait");
    must(cuEventDestroy_v2(event));
    must(cuMemPoolDestroy(pool));
}

/* A unit goes back from between others, and what stays is found and joined again. */
static void by_units(void)
{
    CUdeviceptr first, middle, last, p;

    make(0);
    first = get(32);
    middle = get(96);
    last = get(32);
    must(cuMemsetD8Async(last, 7, 32 * MIB, one));
    give(middle);
    must(cuStreamSynchronize(one));
    holds(64, 64, "what lies between goes back");
    p = get(40);
    holds(128, 104, "and comes again by units");
    ok(p == middle, "where it was");
    must(cuMemsetD8Async(p, 1, 40 * MIB, one));
    give(p);
    give(first);
    must(cuStreamSynchronize(one));
    holds(32, 32, "one unit for what is left");
    give(last);
    must(cuMemPoolDestroy(pool));
    is_u64(taken(), 32 * MIB, "a pool that is destroyed leaves what nobody has waited for");
    must(cuStreamSynchronize(one));
    is_u64(taken(), 0, "until somebody does");
}

/* Where there is no unit, less will do. */
static void short_of(void)
{
    CUdeviceptr p, q = 0, all;

    make(8 * MIB);
    holds(0, 0, "a pool of less than a unit begins with nothing");
    p = get(8);
    holds(8, 8, "and takes what it may");
    answers(cuMemAllocFromPoolAsync(&q, 1, pool, one), CUDA_ERROR_OUT_OF_MEMORY);
    give(p);
    must(cuStreamSynchronize(one));
    must(cuMemPoolDestroy(pool));
    must(cuMemAlloc_v2(&all, 1000 * MIB));
    make(0);
    holds(0, 0, "there is no unit left");
    p = get(20);
    holds(20, 20, "but this much");
    give(p);
    must(cuStreamSynchronize(one));
    must(cuMemFree_v2(all));
    must(cuMemPoolDestroy(pool));
}

/* Plain memory that is freed on a stream, and streams that are no more. */
static void plain(void)
{
    CUdeviceptr p, q;
    CUstream gone;

    must(cuMemAlloc_v2(&p, 10 * MIB));
    must(cuMemFreeAsync(p, one));
    while (cuStreamQuery(one) == CUDA_ERROR_NOT_READY)
        pause_ms(1);
    is_u64(taken(), 10 * MIB, "plain memory is the device's when the stream was waited for");
    answers(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    must(cuMemAlloc_v2(&q, 10 * MIB));
    ok(q != p, "its addresses too");
    must(cuMemFree_v2(q));
    must(cuStreamSynchronize(one));
    is_u64(taken(), 0, "then it is");
    must(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
    must(cuMemAlloc_v2(&p, 10 * MIB));
    must(cuMemFreeAsync(p, gone));
    must(cuStreamDestroy_v2(gone));
    must(cuStreamSynchronize(one));
    is_u64(taken(), 10 * MIB, "of a stream that is no more");
    for (int i = 0; i < 1000 && taken(); i++) { /* its work may be over just now */
        must(cuCtxSynchronize());
        pause_ms(1);
    }
    is_u64(taken(), 0, "when the context was waited for");
}

int main(void)
{
    plan(0);
    setenv("MEMSIM_MEMORY", "1G", 1);
    begin();
    must(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    record();
    queries();
    by_units();
    short_of();
    plain();
    return done();
}
