/* The simulated driver: when a pool gives memory to one stream that another has freed. */
#include <stdlib.h>

#include "driver.h"

static CUmemoryPool pool;
static CUstream a, b;

static void policy(int follow, int opportunistic, int internal)
{
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &follow));
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &opportunistic));
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &internal));
}

static void new_pool(size_t most)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
                            .maxSize = most};
    cuuint64_t keep = UINT64_MAX;

    if (pool)
        must(cuMemPoolDestroy(pool));
    must(cuMemPoolCreate(&pool, &props));
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
}

static CUdeviceptr get(CUstream stream)
{
    CUdeviceptr p = 0;

    must(cuMemAllocFromPoolAsync(&p, 4 * MIB, pool, stream));
    return p;
}

static void give(CUdeviceptr p, CUstream stream)
{
    must(cuMemFreeAsync(p, stream));
}

/* Frees on a stream that is held, and tells whether another gets the memory meanwhile. */
static bool gets_it_while_held(bool with_event, atomic_int *go)
{
    CUdeviceptr p = get(a), q;
    CUevent event;

    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    must(cuLaunchHostFunc(a, hold, go));
    give(p, a);
    must(cuEventRecord(event, a));
    if (with_event)
        must(cuStreamWaitEvent(b, event, 0));
    q = get(b);
    must(cuEventDestroy_v2(event));
    give(q, b);
    atomic_store(go, 1);
    must(cuStreamSynchronize(a));
    must(cuStreamSynchronize(b));
    return p == q;
}

static void events(void)
{
    atomic_int go = 0;

    new_pool(0);
    policy(1, 0, 0);
    ok(gets_it_while_held(true, &go), "what an event orders is followed");
    new_pool(0);
    policy(0, 1, 1);
    atomic_store(&go, 0);
    ok(!gets_it_while_held(true, &go), "unless the pool is told not to");
    new_pool(0);
    policy(1, 1, 1);
    atomic_store(&go, 0);
    ok(!gets_it_while_held(false, &go), "without an event there is other memory");
}

/* One stream waits for a second that has waited for a third; and the legacy stream between two blocking
 * ones. */
static void indirectly(void)
{
    CUstream middle, one, two;
    CUevent first, second;
    CUdeviceptr p, q;
    atomic_int go = 0;

    new_pool(0);
    policy(1, 0, 0);
    must(cuStreamCreate(&middle, CU_STREAM_NON_BLOCKING));
    must(cuEventCreate(&first, CU_EVENT_DISABLE_TIMING));
    must(cuEventCreate(&second, CU_EVENT_DISABLE_TIMING));
    p = get(a);
    must(cuLaunchHostFunc(a, hold, &go));
    give(p, a);
    must(cuEventRecord(first, a));
    must(cuStreamWaitEvent(middle, first, 0));
    must(cuEventRecord(second, middle));
    must(cuStreamWaitEvent(b, second, 0));
    q = get(b);
    ok(p == q, "an order over a third stream is known");
    give(q, b);
    atomic_store(&go, 1);
    must(cuCtxSynchronize());

    new_pool(0);
    policy(1, 0, 0);
    must(cuStreamCreate(&one, CU_STREAM_DEFAULT));
    must(cuStreamCreate(&two, CU_STREAM_DEFAULT));
    atomic_store(&go, 0);
    p = get(one);
    must(cuLaunchHostFunc(one, hold, &go));
    give(p, one);
    q = get(two);
    ok(p != q, "two blocking streams are not ordered by themselves");
    give(q, two);
    atomic_store(&go, 1);
    must(cuCtxSynchronize());
    atomic_store(&go, 0);
    p = get(one);
    must(cuLaunchHostFunc(one, hold, &go));
    give(p, one);
    CUdeviceptr other = get(NULL);
    ok(other == p, "the legacy stream comes behind both");
    give(other, NULL);
    q = get(two);
    ok(q == p, "and what comes behind it, too");
    give(q, two);
    atomic_store(&go, 1);
    must(cuCtxSynchronize());
    must(cuStreamDestroy_v2(one));
    must(cuStreamDestroy_v2(two));
    must(cuStreamDestroy_v2(middle));
    must(cuEventDestroy_v2(first));
    must(cuEventDestroy_v2(second));
}

static cuuint64_t used(void)
{
    cuuint64_t value;

    must(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
    return value;
}

static void by_chance(void)
{
    CUdeviceptr p, q, r;

    new_pool(0);
    policy(1, 1, 1);
    p = get(a);
    give(p, a);
    q = get(b);
    ok(p == q, "what has been freed is found by chance");
    give(q, b);
    must(cuStreamSynchronize(b));

    new_pool(0);
    policy(1, 0, 1);
    p = get(a);
    give(p, a);
    is_u64(used(), 0, "it is not in use");
    q = get(b);
    ok(p != q, "unless the pool is told not to look");
    r = get(a);
    ok(p == r, "its own stream has it at once");
    give(r, a);
    must(cuStreamSynchronize(a));
    r = get(b);
    ok(p == r, "others when the host has waited for the stream");
    give(r, b);
    give(q, b);
    must(cuStreamSynchronize(b));
    is_u64(used(), 0, "everything is counted once");
}

static void by_waiting(void)
{
    CUdeviceptr p, q = 0;
    atomic_int go = 0;

    new_pool(32 * MIB);
    policy(0, 0, 0);
    must(cuMemAllocFromPoolAsync(&p, 32 * MIB, pool, a));
    must(cuLaunchHostFunc(a, hold, &go));
    give(p, a);
    answers(cuMemAllocFromPoolAsync(&q, 32 * MIB, pool, b), CUDA_ERROR_OUT_OF_MEMORY);
    policy(0, 0, 1);
    answers(cuMemAllocFromPoolAsync(&q, 32 * MIB, pool, b), CUDA_SUCCESS);
    ok(p == q, "when there is nothing else a stream is made to wait for memory");
    answers(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    give(q, b);
    atomic_store(&go, 1);
    answers(cuStreamSynchronize(b), CUDA_SUCCESS);
    must(cuStreamSynchronize(a));
    is_u64(used(), 0, "nothing is in use in the end");
}

int main(void)
{
    plan(0);
    begin();
    must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    events();
    indirectly();
    by_chance();
    by_waiting();
    must(cuMemPoolDestroy(pool));
    return done();
}
