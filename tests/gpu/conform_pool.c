/*
 * conform_pool.c: memory pools: what they are made of, their accounts and attributes, and when memory is used
 * again.
 */
#include "conform.h"

static CUmemPoolProps props_of(CUmemLocationType type, int id)
{
    return (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {type, id}};
}

static void attribute(const char *name, CUmemoryPool pool, CUmemPool_attribute which)
{
    cuuint64_t value = 0; /* an int for the first three */
    CUresult status = cuMemPoolGetAttribute(pool, which, &value);

    say(name, "%d, %llu", (int)status, (unsigned long long)value);
}

static cuuint64_t value_of(CUmemoryPool pool, CUmemPool_attribute which)
{
    cuuint64_t value = 0;

    kit_must(cuMemPoolGetAttribute(pool, which, &value));
    return value;
}

static void set(CUmemoryPool pool, CUmemPool_attribute which, cuuint64_t value)
{
    kit_must(cuMemPoolSetAttribute(pool, which, &value));
}

static void making(void)
{
    CUmemPoolProps props = props_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemoryPool pool = NULL;

    say_status("create_no_properties", cuMemPoolCreate(&pool, NULL));
    say_status("create_no_pointer", cuMemPoolCreate(NULL, &props));
    props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    say_status("create_no_type", cuMemPoolCreate(&pool, &props));
    props = props_of(CU_MEM_LOCATION_TYPE_DEVICE, 99);
    say_status("create_bad_device", cuMemPoolCreate(&pool, &props));
    props = props_of(CU_MEM_LOCATION_TYPE_INVALID, 0);
    say_status("create_bad_location", cuMemPoolCreate(&pool, &props));
    props = props_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    props.reserved[5] = 1;
    say_status("create_bad_reserved", cuMemPoolCreate(&pool, &props));
    props = props_of(CU_MEM_LOCATION_TYPE_HOST, 0);
    say_status("create_on_host", cuMemPoolCreate(&pool, &props));
    if (pool)
        say_status("destroy_on_host", cuMemPoolDestroy(pool));
    props = props_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    say_status("create", cuMemPoolCreate(&pool, &props));
    attribute("follow_events", pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES);
    attribute("opportunistic", pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
    attribute("internal_dependencies", pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
    attribute("threshold", pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
    attribute("reserved_when_new", pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
    attribute("used_when_new", pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
    attribute("unknown_attribute", pool, (CUmemPool_attribute)99);
    say_status("destroy", cuMemPoolDestroy(pool));
}

static void current(void)
{
    CUmemPoolProps props = props_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemoryPool standard = NULL, now = NULL, own;

    say_status("default", cuDeviceGetDefaultMemPool(&standard, 0));
    say_status("default_bad_device", cuDeviceGetDefaultMemPool(&now, 99));
    say_status("current", cuDeviceGetMemPool(&now, 0));
    say_yes("current_is_default", now == standard);
    say_status("destroy_default", cuMemPoolDestroy(standard));
    kit_must(cuMemPoolCreate(&own, &props));
    say_status("set_current", cuDeviceSetMemPool(0, own));
    kit_must(cuDeviceGetMemPool(&now, 0));
    say_yes("current_is_own", now == own);
    say_status("destroy_current", cuMemPoolDestroy(own));
    kit_must(cuDeviceGetMemPool(&now, 0));
    say_yes("current_is_default_again", now == standard);
}

static void accounts(CUstream stream)
{
    CUmemPoolProps props = props_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemoryPool pool;
    CUdeviceptr small, large, base;
    size_t bytes = 0;

    kit_must(cuMemPoolCreate(&pool, &props));
    set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
    say_status("alloc_zero", cuMemAllocFromPoolAsync(&small, 0, pool, stream));
    say_status("alloc_beyond", cuMemAllocFromPoolAsync(&small, (size_t)1 << 50, pool, stream));
    say_status("alloc_no_pointer", cuMemAllocFromPoolAsync(NULL, 16, pool, stream));
    say_status("alloc", cuMemAllocFromPoolAsync(&small, 1000, pool, stream));
    say("used_by_1000", "%llu", (unsigned long long)value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
    say_yes("aligned_by_256", small % 256 == 0);
    say_status("range", cuMemGetAddressRange_v2(&base, &bytes, small + 100));
    say("range_is", "base %s, %zu", base == small ? "its own" : "another", bytes);
    kit_must(cuMemAllocFromPoolAsync(&large, 40 * KIT_MIB, pool, stream));
    kit_must(cuStreamSynchronize(stream));
    say_yes("reserved_covers_used",
            value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 40 * KIT_MIB + 1000);
    kit_must(cuMemFreeAsync(large, stream));
    kit_must(cuStreamSynchronize(stream));
    say_yes("reserved_stays_below_threshold",
            value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) >= 40 * KIT_MIB);
    say_yes("high_water_of_used", value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) >= 40 * KIT_MIB + 1000);
    say_status("trim", cuMemPoolTrimTo(pool, 0));
    say_yes("trimmed", value_of(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) < 40 * KIT_MIB);
    cuuint64_t one = 1, zero = 0;
    say_status("reset_high_to_one", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &one));
    say_status("reset_high", cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
    say_yes("high_is_current", value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) ==
                                   value_of(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
    say_status("destroy_with_block", cuMemPoolDestroy(pool));
    say_status("block_still_works", cuMemsetD8Async(small, 1, 1000, stream));
    say_status("free_after_destroy", cuMemFreeAsync(small, stream));
    say_status("synchronize", cuStreamSynchronize(stream));
}

static void giving_back(CUstream stream)
{
    CUdeviceptr d;
    size_t before = conform_free_bytes();

    kit_must(cuMemAllocAsync(&d, 256 * KIT_MIB, stream));
    kit_must(cuStreamSynchronize(stream));
    say_yes("takes_from_device", before - conform_free_bytes() >= 256 * KIT_MIB);
    kit_must(cuMemFreeAsync(d, stream));
    kit_must(cuStreamSynchronize(stream));
    say_yes("gives_back_at_synchronisation", before - conform_free_bytes() < 64 * KIT_MIB);
}

static void access_and_limit(void)
{
    CUmemPoolProps props = props_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemAccessDesc desc = {here, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUmemoryPool pool;
    CUdeviceptr d;

    props.maxSize = 64 * KIT_MIB;
    kit_must(cuMemPoolCreate(&pool, &props));
    say_status("own_access", cuMemPoolGetAccess(&flags, pool, &here));
    say("own_access_is", "%d", (int)flags);
    say_status("own_access_none", cuMemPoolSetAccess(pool, &desc, 1));
    say_status("beyond_max_size", cuMemAllocFromPoolAsync(&d, 256 * KIT_MIB, pool, NULL));
    say_status("within_max_size", cuMemAllocFromPoolAsync(&d, 16 * KIT_MIB, pool, NULL));
    kit_must(cuMemFreeAsync(d, NULL));
    kit_must(cuCtxSynchronize());
    kit_must(cuMemPoolDestroy(pool));
}

void conform_pool(int argc, char **argv)
{
    CUstream stream;

    (void)argc;
    (void)argv;
    kit_begin();
    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    making();
    current();
    accounts(stream);
    giving_back(stream);
    access_and_limit();
}

/* --- when memory is used again -------------------------------------------------------------------------- */

/* Whether a block that was freed on one stream, while that is held, is handed out for the other. */
static void other_stream(const char *name, CUmemoryPool pool, CUstream one, CUstream two, CUevent event)
{
    struct kit_hold hold;
    CUdeviceptr first, second;

    kit_must(cuMemAllocFromPoolAsync(&first, KIT_MIB, pool, one));
    kit_must(kit_hold(&hold, one));
    kit_must(cuMemFreeAsync(first, one));
    if (event) {
        kit_must(cuEventRecord(event, one));
        kit_must(cuStreamWaitEvent(two, event, 0));
    }
    kit_must(cuMemAllocFromPoolAsync(&second, KIT_MIB, pool, two));
    say_yes(name, first == second);
    kit_release(&hold);
    kit_must(cuMemFreeAsync(second, two));
    kit_must(cuCtxSynchronize());
}

void conform_reuse(int argc, char **argv)
{
    CUmemPoolProps props = props_of(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemoryPool pool;
    CUstream one, two;
    CUevent event;
    CUdeviceptr first, second;

    (void)argc;
    (void)argv;
    kit_begin();
    kit_must(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    kit_must(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    kit_must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    kit_must(cuMemPoolCreate(&pool, &props));
    set(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, UINT64_MAX);
    kit_must(cuMemAllocFromPoolAsync(&first, KIT_MIB, pool, one));
    kit_must(cuMemFreeAsync(first, one));
    kit_must(cuMemAllocFromPoolAsync(&second, KIT_MIB, pool, one));
    say_yes("same_stream", first == second);
    kit_must(cuMemFreeAsync(second, one));
    kit_must(cuCtxSynchronize());
    set(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 0);
    other_stream("other_stream_while_held", pool, one, two, NULL);
    other_stream("other_stream_after_event", pool, one, two, event);
    kit_must(cuMemAllocFromPoolAsync(&first, KIT_MIB, pool, one));
    kit_must(cuMemFreeAsync(first, one));
    kit_must(cuStreamSynchronize(one));
    kit_must(cuMemAllocFromPoolAsync(&second, KIT_MIB, pool, two));
    say_yes("other_stream_after_synchronisation", first == second);
    kit_must(cuMemFreeAsync(second, two));
    kit_must(cuCtxSynchronize());
    kit_must(cuMemPoolDestroy(pool));
}
