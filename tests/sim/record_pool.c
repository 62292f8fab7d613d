/* Memory pools, as the record has them: what they hold after each step, and the threshold that was set. See
 * record.h. */
#include "tests/sim/record.h"

static CUstream stream, other;

static size_t held(CUmemoryPool pool, CUmemPool_attribute attribute)
{
    cuuint64_t bytes = 0;

    must(cuMemPoolGetAttribute(pool, attribute, &bytes));
    return (size_t)bytes;
}

static void state(const char *fact, CUmemoryPool pool)
{
    told(fact, CUDA_SUCCESS, "%zu held, %zu used, threshold %zu",
         held(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), held(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
         held(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
}

static void threshold(CUmemoryPool pool, cuuint64_t bytes)
{
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

static CUdeviceptr take(size_t mib)
{
    CUdeviceptr p;

    must(cuMemAllocAsync(&p, mib * MIB, stream));
    return p;
}

static void give(CUdeviceptr p)
{
    must(cuMemFreeAsync(p, stream));
}

static void small(CUmemoryPool pool)
{
    CUdeviceptr a = take(1), b;

    state("a pool with 1 MiB", pool);
    b = take(2);
    state("and 2 MiB more", pool);
    give(a);
    state("1 MiB freed, nothing waited for", pool);
    give(b);
    must(cuStreamSynchronize(stream));
    state("all freed and waited for", pool);
}

static void growing(CUmemoryPool pool)
{
    CUdeviceptr a = take(33), b;

    state("a pool with 33 MiB", pool);
    b = take(100);
    state("and 100 MiB more", pool);
    give(a);
    state("33 MiB freed, nothing waited for", pool);
    give(b);
    must(cuStreamSynchronize(stream));
    state("133 MiB freed and waited for", pool);
}

static void trimmed(CUmemoryPool pool)
{
    threshold(pool, 64 * MIB);
    CUdeviceptr a = take(100);
    state("100 MiB above a threshold of 64 MiB", pool);
    give(a);
    must(cuStreamSynchronize(other));
    must(cuMemPoolTrimTo(pool, 0));
    state("freed, another stream waited for, trimmed to nothing", pool);
    must(cuStreamSynchronize(stream));
    state("its own stream waited for", pool);
    must(cuMemPoolTrimTo(pool, 12345));
    state("trimmed to 12345 bytes", pool);
    must(cuMemPoolTrimTo(pool, 0));
    state("trimmed to nothing", pool);
    must(cuMemPoolTrimTo(pool, 0));
    state("trimmed to nothing again", pool);
    threshold(pool, 0);
}

static void own(CUmemoryPool first)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemoryPool pool;
    CUdeviceptr p;

    must(cuMemPoolCreate(&pool, &props));
    state("a program's own pool, made", pool);
    threshold(pool, 1024 * MIB);
    must(cuMemAllocFromPoolAsync(&p, MIB, pool, stream));
    state("a program's own pool with 1 MiB", pool);
    give(p);
    must(cuStreamSynchronize(stream));
    state("a program's own pool, freed and waited for", pool);
    state("and the default one meanwhile", first);
    must(cuMemPoolTrimTo(pool, 0));
    state("a program's own pool, trimmed to nothing", pool);
    TOLD("a program's own pool, destroyed", cuMemPoolDestroy(pool));
}

int main(void)
{
    CUmemoryPool pool;

    begin();
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    must(cuDeviceGetDefaultMemPool(&pool, 0));
    small(pool);
    growing(pool);
    trimmed(pool);
    own(pool);
    return 0;
}
