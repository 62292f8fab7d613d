/*
 * cost_calls.c: the calls whose costs are of interest, each with what has to be there before and what is put
 * away after.
 */
#include "costs.h"

#include <stdlib.h>

#define MOST 1000

const size_t cost_sizes[] = {4 * KIT_KIB,  64 * KIT_KIB, KIT_MIB,       2 * KIT_MIB,
                             16 * KIT_MIB, 64 * KIT_MIB, 256 * KIT_MIB, 1024 * KIT_MIB};
const size_t cost_size_count = KIT_COUNT(cost_sizes);

static CUcontext context;
static CUstream stream, second;
static CUevent event;
static CUdeviceptr fixed, address;
static CUmemGenericAllocationHandle handle;
static CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
static size_t granule;
static void *p;

void cost_begin(void)
{
    kit_must(cuCtxGetCurrent(&context));
    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    kit_must(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    kit_must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    kit_must(cuEventRecord(event, stream));
    kit_must(cuMemAlloc_v2(&fixed, KIT_MIB));
    kit_must(cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    kit_must(cuStreamSynchronize(stream));
}

static size_t rounded(size_t bytes)
{
    return (bytes + granule - 1) / granule * granule;
}

static int call_malloc(size_t bytes)
{
    return cudaMalloc(&p, bytes);
}

static void get(size_t bytes)
{
    kit_must(cudaMalloc(&p, bytes));
}

static int call_free(size_t bytes)
{
    (void)bytes;
    return cudaFree(p);
}

static void put(size_t bytes)
{
    (void)bytes;
    kit_must(cudaFree(p));
}

static void threshold(cuuint64_t bytes)
{
    CUmemoryPool pool;

    kit_must(cuDeviceGetDefaultMemPool(&pool, 0));
    kit_must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
    if (!bytes)
        kit_must(cuMemPoolTrimTo(pool, 0));
}

static int call_malloc_async(size_t bytes)
{
    return cudaMallocAsync(&p, bytes, stream);
}

static int call_free_async(size_t bytes)
{
    (void)bytes;
    return cudaFreeAsync(p, stream);
}

static void put_async(size_t bytes)
{
    kit_must(call_free_async(bytes));
}

/* The pool holds what is asked for next. */
static void fill_pool(size_t bytes)
{
    threshold(UINT64_MAX);
    kit_must(call_malloc_async(bytes));
    put_async(bytes);
    kit_must(cuStreamSynchronize(stream));
}

static void empty_pool(size_t bytes)
{
    (void)bytes;
    kit_must(cuStreamSynchronize(stream));
    threshold(0);
}

static void get_async(size_t bytes)
{
    threshold(UINT64_MAX);
    kit_must(call_malloc_async(bytes));
}

static int call_create(size_t bytes)
{
    return (int)cuMemCreate(&handle, rounded(bytes), &prop, 0);
}

static int call_release(size_t bytes)
{
    (void)bytes;
    return (int)cuMemRelease(handle);
}

static int call_reserve(size_t bytes)
{
    return (int)cuMemAddressReserve(&address, rounded(bytes), 0, 0, 0);
}

static int call_map(size_t bytes)
{
    return (int)cuMemMap(address, rounded(bytes), 0, handle, 0);
}

static int call_set_access(size_t bytes)
{
    CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    return (int)cuMemSetAccess(address, rounded(bytes), &access, 1);
}

static int call_unmap(size_t bytes)
{
    return (int)cuMemUnmap(address, rounded(bytes));
}

static void create(size_t bytes)
{
    kit_must(call_create(bytes));
}

static void release(size_t bytes)
{
    kit_must(call_release(bytes));
}

static void create_and_reserve(size_t bytes)
{
    kit_must(call_create(bytes));
    kit_must(call_reserve(bytes));
}

static void create_and_map(size_t bytes)
{
    create_and_reserve(bytes);
    kit_must(call_map(bytes));
}

static void create_and_show(size_t bytes)
{
    create_and_map(bytes);
    kit_must(call_set_access(bytes));
}

static void unreserve(size_t bytes)
{
    kit_must(cuMemAddressFree(address, rounded(bytes)));
}

static void unreserve_and_release(size_t bytes)
{
    unreserve(bytes);
    release(bytes);
}

static void unmap_all(size_t bytes)
{
    kit_must(call_unmap(bytes));
    unreserve_and_release(bytes);
}

static int call_record(size_t bytes)
{
    (void)bytes;
    return (int)cuEventRecord(event, stream);
}

static int call_query(size_t bytes)
{
    (void)bytes;
    return cuEventQuery(event) == CUDA_ERROR_NOT_READY ? 0 : (int)cuEventQuery(event);
}

static int call_record_context(size_t bytes)
{
    (void)bytes;
    return (int)cuCtxRecordEvent(context, event);
}

static int call_current(size_t bytes)
{
    CUcontext current;

    (void)bytes;
    return (int)cuCtxGetCurrent(&current);
}

static int call_stream_id(size_t bytes)
{
    unsigned long long id;

    (void)bytes;
    return (int)cuStreamGetId(stream, &id);
}

static int call_wait(size_t bytes)
{
    (void)bytes;
    return (int)cuStreamWaitEvent(second, event, 0);
}

static int call_attribute(size_t bytes)
{
    unsigned long long id;

    (void)bytes;
    return (int)cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, fixed);
}

static int call_range(size_t bytes)
{
    CUdeviceptr base;

    return (int)cuMemGetAddressRange_v2(&base, &bytes, fixed);
}

static int call_info(size_t bytes)
{
    size_t total;

    return cudaMemGetInfo(&bytes, &total);
}

const struct cost_call cost_calls[] = {
    {"cudaMalloc", 1, true, NULL, call_malloc, put},
    {"cudaFree", 1, true, get, call_free, NULL},
    {"cudaMallocAsync_hit", 1, true, fill_pool, call_malloc_async, put_async},
    {"cudaMallocAsync_miss", 1, true, empty_pool, call_malloc_async, put_async},
    {"cudaFreeAsync", 1, true, get_async, call_free_async, NULL},
    {"cuMemCreate", 1, true, NULL, call_create, release},
    {"cuMemMap", 1, true, create_and_reserve, call_map, unmap_all},
    {"cuMemSetAccess", 1, true, create_and_map, call_set_access, unmap_all},
    {"cuMemUnmap", 1, true, create_and_show, call_unmap, unreserve_and_release},
    {"cuMemRelease", 1, true, create, call_release, NULL},
    {"cuMemAddressReserve", 1, true, NULL, call_reserve, unreserve},
    {"cuEventRecord", 20, false, NULL, call_record, NULL},
    {"cuEventQuery", 20, false, NULL, call_query, NULL},
    {"cuCtxRecordEvent", 1, false, NULL, call_record_context, NULL},
    {"cuCtxGetCurrent", 100, false, NULL, call_current, NULL},
    {"cuStreamGetId", 100, false, NULL, call_stream_id, NULL},
    {"cuStreamWaitEvent", 20, false, NULL, call_wait, NULL},
    {"cuPointerGetAttribute", 20, false, NULL, call_attribute, NULL},
    {"cuMemGetAddressRange", 20, false, NULL, call_range, NULL},
    {"cudaMemGetInfo", 1, false, NULL, call_info, NULL},
};
const size_t cost_call_count = KIT_COUNT(cost_calls);

static int by_value(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;

    return one < other ? -1 : one > other;
}

int cost_measure(const struct cost_call *call, size_t bytes, unsigned repetitions, unsigned most_ms,
                 struct cost_figures *figures)
{
    static double taken[MOST];
    uint64_t until = kit_now_ns() + most_ms * 1000000ULL;
    unsigned count = 0;

    if (repetitions > MOST - 1)
        repetitions = MOST - 1;
    /* One more than asked for: the first is not counted. */
    for (unsigned i = 0; i <= repetitions && (i < 4 || kit_now_ns() < until); i++) {
        int status = 0;
        if (call->prepare)
            call->prepare(bytes);
        uint64_t before = kit_now_ns();
        for (unsigned k = 0; k < call->batch && status == 0; k++)
            status = call->call(bytes);
        uint64_t after = kit_now_ns();
        if (status != 0)
            return status;
        if (call->undo)
            call->undo(bytes);
        if (i > 0)
            taken[count++] = (double)(after - before) / call->batch;
    }
    qsort(taken, count, sizeof taken[0], by_value);
    *figures = (struct cost_figures){taken[count / 2], taken[count * 9 / 10], taken[0], count};
    return 0;
}
