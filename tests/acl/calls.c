/*
 * The Ascend interface call by call: what each answers, and what it does. Run on the simulator it holds the
 * simulator to what the vendor documents; run again under memshim (tests/acl/equal.sh) it must print the
 * same.
 */
#include "tests/acl/acl_test.h"

static void devices(void)
{
    aclrtContext first = NULL, own = NULL, found = NULL;
    int32_t device = -1;
    uint32_t count = 0;
    aclrtRunMode mode;
    void *p = NULL;

    answers(aclrtMalloc(&p, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL);
    answers(aclrtGetDevice(&device), ACL_ERROR_RT_CONTEXT_NULL);
    answers(aclInit(NULL), ACL_SUCCESS);
    answers(aclInit(NULL), ACL_ERROR_REPEAT_INITIALIZE);
    answers(aclrtGetDeviceCount(&count), ACL_SUCCESS);
    is_int((int)count, 2, "two devices, as the test asked for");
    answers(aclrtSetDevice(2), ACL_ERROR_RT_INVALID_DEVICEID);
    answers(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
    answers(aclrtSetDevice(0), ACL_SUCCESS);
    answers(aclrtGetDevice(&device), ACL_SUCCESS);
    is_int(device, 0, "the device that was set");
    answers(aclrtGetRunMode(&mode), ACL_SUCCESS);
    answers(aclrtGetCurrentContext(&first), ACL_SUCCESS);
    answers(aclrtCreateContext(&own, 1), ACL_SUCCESS);
    answers(aclrtGetDevice(&device), ACL_SUCCESS);
    is_int(device, 1, "a new context is current");
    answers(aclrtGetCurrentContext(&found), ACL_SUCCESS);
    ok(found == own && found != first, "and tells its own handle");
    answers(aclrtDestroyContext(own), ACL_SUCCESS);
    answers(aclrtDestroyContext(own), ACL_ERROR_RT_CONTEXT_NULL);
    answers(aclrtSetCurrentContext(first), ACL_SUCCESS);
    answers(aclrtSetCurrentContext(NULL), ACL_ERROR_INVALID_PARAM);
    answers(aclrtSynchronizeDevice(), ACL_SUCCESS);
}

/* Padding and policies, seen by what is taken: what is no more than a granule lies in one with its
 * neighbours. */
static void device_memory(void)
{
    void *p = (void *)1, *q, *base;
    size_t bytes, before = taken();
    aclrtPtrAttributes attributes;

    answers(aclrtMalloc(NULL, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMalloc(&p, 0, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMalloc(&p, 1UL << 50, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
    answers(aclrtMalloc(&p, SIZE_MAX, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
    ok(p == (void *)1, "a failed call writes nothing");
    answers(aclrtMalloc(&p, 100, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    is_u64((uintptr_t)p % 64, 0, "memory is aligned to 64 bytes");
    answers(aclrtMemGetAddressRange((char *)p + 5, &base, &bytes), ACL_SUCCESS);
    ok(base == p, "an address inside leads to the block");
    is_u64(bytes, (100 + 63) / 32 * 32, "which is rounded to 32 bytes and padded by 32 more");
    answers(aclrtMallocAlign32(&q, 100, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
    answers(aclrtMemGetAddressRange(q, &base, &bytes), ACL_SUCCESS);
    is_u64(bytes, 128, "aclrtMallocAlign32 only rounds");
    answers(aclrtPointerGetAttributes(q, &attributes), ACL_SUCCESS);
    is_int((int)attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE, "it lies on a device");
    answers(aclrtPointerGetAttributes(&bytes, &attributes), ACL_SUCCESS);
    is_int((int)attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED,
           "and a variable of the host's nowhere");
    answers(aclrtFree(q), ACL_SUCCESS);
    answers(aclrtFree(q), ACL_ERROR_RT_PARAM_INVALID);
    answers(aclrtFree(NULL), ACL_ERROR_INVALID_PARAM);
    answers(aclrtFree((char *)p + 64), ACL_ERROR_RT_PARAM_INVALID);
    answers(aclrtFreeWithDevSync(p), ACL_SUCCESS);
    is_u64(taken(), before, "all of it is back");
    answers(aclrtMallocWithCfg(&p, 3 * MIB, ACL_MEM_MALLOC_HUGE_ONLY, NULL), ACL_SUCCESS);
    is_u64(taken() - before, 4 * MIB, "huge pages are 2 MiB");
    answers(aclrtFree(p), ACL_SUCCESS);
    answers(aclrtMallocCached(&p, 64, ACL_MEM_MALLOC_HUGE1G_ONLY), ACL_SUCCESS);
    is_u64(taken() - before, 1024 * MIB, "and giant ones 1 GiB");
    answers(aclrtFree(p), ACL_SUCCESS);
    answers(aclrtMallocForTaskScheduler(&p, 64, (aclrtMemMallocPolicy)77, NULL), ACL_SUCCESS);
    answers(aclrtFree(p), ACL_SUCCESS);
    answers(aclrtMemAllocManaged(&p, MIB, 0), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMemAllocManaged(&p, MIB, ACL_RT_MEM_ATTACH_GLOBAL), ACL_SUCCESS);
    answers(aclrtFree(p), ACL_SUCCESS);
}

static void host_memory(void)
{
    static _Alignas(4096) char own[8192];
    void *p = NULL, *q = NULL;

    answers(aclrtMallocHost(&p, 0), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMallocHost(NULL, 64), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMallocHost(&p, 5000), ACL_SUCCESS);
    memset(p, 7, 5000);
    answers(aclrtFreeHost(p), ACL_SUCCESS);
    answers(aclrtFreeHost(p), ACL_ERROR_RT_PARAM_INVALID);
    answers(aclrtMallocHostWithCfg(&p, 64, NULL), ACL_SUCCESS);
    answers(aclrtFreeHostWithDevSync(p), ACL_SUCCESS);
    answers(aclrtHostRegister(own, sizeof own, ACL_HOST_REGISTER_MAPPED, &q), ACL_SUCCESS);
    answers(aclrtHostGetDevicePointer(own, &p, 0), ACL_SUCCESS);
    ok(p == q, "registered memory has one address");
    answers(aclrtHostUnregister(own), ACL_SUCCESS);
    answers(aclrtHostRegisterV2(own, sizeof own, 0), ACL_SUCCESS);
    answers(aclrtHostUnregister(own), ACL_SUCCESS);
}

static void handles(void)
{
    aclrtPhysicalMemProp prop = physical_of(0), read;
    aclrtDrvMemHandle h = (void *)1;
    size_t granule = 0, before = taken();

    answers(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &granule),
            ACL_SUCCESS);
    is_u64(granule, 2 * MIB, "the granularity is 2 MiB");
    answers(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF, &granule),
            ACL_ERROR_INVALID_PARAM);
    prop.memAttr = ACL_HBM_MEM_HUGE1G;
    answers(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &granule),
            ACL_SUCCESS);
    is_u64(granule, 1024 * MIB, "of giant pages 1 GiB");
    prop = physical_of(0);
    answers(aclrtMallocPhysical(NULL, 2 * MIB, &prop, 0), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMallocPhysical(&h, 0, &prop, 0), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMallocPhysical(&h, 2 * MIB, NULL, 0), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMallocPhysical(&h, 2 * MIB, &prop, 1), ACL_ERROR_INVALID_PARAM);
    prop.handleType = ACL_MEM_HANDLE_TYPE_POSIX;
    answers(aclrtMallocPhysical(&h, 2 * MIB, &prop, 0), ACL_ERROR_INVALID_PARAM);
    prop = physical_of(0);
    prop.allocationType = (aclrtMemAllocationType)1;
    answers(aclrtMallocPhysical(&h, 2 * MIB, &prop, 0), ACL_ERROR_INVALID_PARAM);
    prop = physical_of(0);
    prop.location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
    answers(aclrtMallocPhysical(&h, 2 * MIB, &prop, 0), ACL_ERROR_INVALID_PARAM);
    prop = physical_of(0);
    prop.memAttr = ACL_HBM_MEM_P2P_HUGE;
    answers(aclrtMallocPhysical(&h, 2 * MIB, &prop, 0), ACL_ERROR_INVALID_PARAM);
    prop.memAttr = ACL_DDR_MEM_HUGE;
    answers(aclrtMallocPhysical(&h, 2 * MIB, &prop, 0), ACL_ERROR_INVALID_PARAM);
    prop = physical_of(9);
    answers(aclrtMallocPhysical(&h, 2 * MIB, &prop, 0), ACL_ERROR_RT_INVALID_DEVICEID);
    prop = physical_of(0);
    answers(aclrtMallocPhysical(&h, 1UL << 50, &prop, 0), ACL_ERROR_RT_MEMORY_ALLOCATION);
    ok(h == (void *)1, "a failed call writes nothing");
    answers(aclrtMallocPhysical(&h, 3 * MIB, &prop, 0), ACL_SUCCESS);
    is_u64(taken() - before, 4 * MIB, "a size between is rounded up");
    memset(&read, 0, sizeof read);
    answers(aclrtMemGetAllocationPropertiesFromHandle(h, &read), ACL_SUCCESS);
    ok(!memcmp(&read, &prop, sizeof read), "a handle knows what it was made of");
    answers(aclrtFreePhysical(NULL), ACL_ERROR_INVALID_PARAM);
    answers(aclrtFreePhysical(h), ACL_SUCCESS);
    answers(aclrtFreePhysical(h), ACL_ERROR_RT_INVALID_HANDLE);
    answers(aclrtMemGetAllocationPropertiesFromHandle(h, &read), ACL_ERROR_RT_INVALID_HANDLE);
    is_u64(taken(), before, "and is gone when it is freed");
    prop.location.type = ACL_MEM_LOCATION_TYPE_HOST;
    answers(aclrtMallocPhysical(&h, 2 * MIB, &prop, 0), ACL_SUCCESS);
    is_u64(taken(), before, "a handle of the host's takes nothing of the device's");
    answers(aclrtFreePhysical(h), ACL_SUCCESS);
}

static void mappings(void)
{
    aclrtPhysicalMemProp prop = physical_of(0);
    aclrtMemAccessDesc desc = {ACL_RT_MEM_ACCESS_FLAGS_READWRITE, {1, ACL_MEM_LOCATION_TYPE_DEVICE}, {0}};
    aclrtMemLocation here = {0, ACL_MEM_LOCATION_TYPE_DEVICE}, there = {1, ACL_MEM_LOCATION_TYPE_DEVICE};
    aclrtDrvMemHandle a, b, again = NULL;
    char in[64] = "through one view", out[64] = "", *va = NULL, *hint = NULL;
    size_t before = taken();
    uint64_t flags = 9;

    answers(aclrtReserveMemAddress((void **)&va, 0, 0, NULL, 1), ACL_ERROR_INVALID_PARAM);
    answers(aclrtReserveMemAddress((void **)&va, 8 * MIB, 1, NULL, 1), ACL_ERROR_INVALID_PARAM);
    answers(aclrtReserveMemAddress((void **)&va, 8 * MIB, 0, NULL, 2), ACL_ERROR_INVALID_PARAM);
    answers(aclrtReserveMemAddress((void **)&va, 8 * MIB, 0, NULL, 1), ACL_SUCCESS);
    is_u64((uintptr_t)va % (2 * MIB), 0, "addresses are aligned to 2 MiB");
    must(aclrtMallocPhysical(&a, 4 * MIB, &prop, 0));
    must(aclrtMallocPhysical(&b, 2 * MIB, &prop, 0));
    answers(aclrtMapMem(va, 4 * MIB, 0, a, 1), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMapMem(va, 0, 0, a, 0), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMapMem(va, 2 * MIB, 0, a, 0), ACL_ERROR_RT_PARAM_INVALID);
    answers(aclrtMapMem(va, 2 * MIB, 2 * MIB, a, 0), ACL_ERROR_RT_PARAM_INVALID);
    answers(aclrtMapMem(va + 4096, 4 * MIB, 0, a, 0), ACL_ERROR_RT_ADDR_UNALIGNED);
    answers(aclrtMapMem(va, 4 * MIB, 0, (void *)&va, 0), ACL_ERROR_RT_INVALID_HANDLE);
    answers(aclrtMapMem(va, 4 * MIB, 0, a, 0), ACL_SUCCESS);
    answers(aclrtMapMem(va, 2 * MIB, 0, b, 0), ACL_ERROR_RT_PARAM_INVALID);
    answers(aclrtMapMem(va + 4 * MIB, 2 * MIB, 0, b, 0), ACL_SUCCESS);
    answers(aclrtMemGetAccess(va, &here, &flags), ACL_SUCCESS);
    is_u64(flags, ACL_RT_MEM_ACCESS_FLAGS_READWRITE, "its own device may touch a mapping at once");
    answers(aclrtMemGetAccess(va, &there, &flags), ACL_SUCCESS);
    is_u64(flags, ACL_RT_MEM_ACCESS_FLAGS_NONE, "another may not");
    answers(aclrtMemSetAccess(va, 4 * MIB, &desc, 1), ACL_SUCCESS);
    answers(aclrtMemGetAccess(va, &there, &flags), ACL_SUCCESS);
    is_u64(flags, ACL_RT_MEM_ACCESS_FLAGS_READWRITE, "until it is told so");
    answers(aclrtMemSetAccess(va, 4 * MIB, &desc, 0), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMemcpy(va + 4 * MIB - 32, 64, in, sizeof in, ACL_MEMCPY_HOST_TO_DEVICE), ACL_SUCCESS);
    answers(aclrtMemcpy(out, sizeof out, va + 4 * MIB - 32, 64, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    ok(!memcmp(in, out, sizeof in), "bytes lie across two handles, side by side");
    answers(aclrtMemRetainAllocationHandle(va + 100, &again), ACL_SUCCESS);
    ok(again == a, "an address leads to the handle");
    answers(aclrtReleaseMemAddress(va), ACL_ERROR_RT_PARAM_INVALID);
    answers(aclrtFreePhysical(again), ACL_SUCCESS);
    answers(aclrtFreePhysical(a), ACL_SUCCESS);
    is_u64(taken() - before, 6 * MIB, "mapped memory outlives its handle");
    answers(aclrtMemcpy(out, sizeof out, va + 4 * MIB - 32, 64, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    ok(!memcmp(in, out, sizeof in), "with what it holds");
    answers(aclrtMemRetainAllocationHandle(va, &again), ACL_SUCCESS);
    answers(aclrtUnmapMem(va), ACL_SUCCESS);
    is_u64(taken() - before, 6 * MIB, "and a handle that was taken again outlives the mapping");
    answers(aclrtFreePhysical(again), ACL_SUCCESS);
    answers(aclrtUnmapMem(va), ACL_ERROR_RT_PARAM_INVALID);
    answers(aclrtUnmapMem(va + 5 * MIB), ACL_ERROR_RT_PARAM_INVALID);
    answers(aclrtMemcpy(out, sizeof out, va, 64, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_RT_PARAM_INVALID);
    answers(aclrtUnmapMem(va + 4 * MIB), ACL_SUCCESS);
    answers(aclrtFreePhysical(b), ACL_SUCCESS);
    is_u64(taken(), before, "nothing is left");
    answers(aclrtReleaseMemAddress(va), ACL_SUCCESS);
    answers(aclrtReleaseMemAddress(va), ACL_ERROR_RT_PARAM_INVALID);
    answers(aclrtReserveMemAddressNoUCMemory((void **)&hint, 2 * MIB, 0, NULL, 0), ACL_ERROR_INVALID_PARAM);
    answers(aclrtReserveMemAddressNoUCMemory((void **)&hint, 2 * MIB, 0, va, 0), ACL_SUCCESS);
    ok(hint == va, "an address that is asked for is given");
    must(aclrtReleaseMemAddress(hint));
}

static void streams(void)
{
    aclrtStream slow, quick;
    aclrtEvent event;
    aclrtStreamStatus state;
    aclrtEventRecordedStatus recorded;
    aclrtEventWaitStatus waited;
    aclrtEventStatus old;
    atomic_int flag = 0;
    char *p, *h;

    must(aclrtMalloc((void **)&p, 4096, ACL_MEM_MALLOC_HUGE_FIRST));
    must(aclrtMallocHost((void **)&h, 4096));
    answers(aclrtCreateStream(&slow), ACL_SUCCESS);
    answers(aclrtCreateStreamWithConfig(&quick, 0, 0), ACL_SUCCESS);
    answers(aclrtCreateEventWithFlag(&event, 1), ACL_SUCCESS);
    answers(aclrtLaunchHostFunc(slow, hold, &flag), ACL_SUCCESS);
    answers(aclrtMemsetAsync(p, 4096, 5, 4096, slow), ACL_SUCCESS);
    answers(aclrtRecordEvent(event, slow), ACL_SUCCESS);
    answers(aclrtStreamQuery(slow, &state), ACL_SUCCESS);
    is_int((int)state, ACL_STREAM_STATUS_NOT_READY, "the held stream has work");
    answers(aclrtQueryEventStatus(event, &recorded), ACL_SUCCESS);
    is_int((int)recorded, ACL_EVENT_RECORDED_STATUS_NOT_READY, "its event is not there yet");
    answers(aclrtQueryEventWaitStatus(event, &waited), ACL_SUCCESS);
    is_int((int)waited, ACL_EVENT_WAIT_STATUS_NOT_READY, "nor for those that wait");
    answers(aclrtSynchronizeStreamWithTimeout(slow, 20), ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    answers(aclrtSynchronizeEventWithTimeout(event, 20), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
    answers(aclrtStreamQuery(NULL, &state), ACL_SUCCESS);
    is_int((int)state, ACL_STREAM_STATUS_COMPLETE, "the default stream does not wait for it");
    answers(aclrtMemcpy(h, 4096, p, 64, ACL_MEMCPY_DEVICE_TO_HOST), ACL_SUCCESS);
    ok(h[0] != 5, "nor does a copy without a stream");
    answers(aclrtStreamWaitEvent(quick, event), ACL_SUCCESS);
    answers(aclrtMemcpyAsync(h, 4096, p, 4096, ACL_MEMCPY_DEVICE_TO_HOST, quick), ACL_SUCCESS);
    atomic_store(&flag, 1);
    answers(aclrtSynchronizeStream(quick), ACL_SUCCESS);
    ok(h[0] == 5 && h[4095] == 5, "a stream that was told to wait comes behind it");
    answers(aclrtSynchronizeEvent(event), ACL_SUCCESS);
    answers(aclrtQueryEvent(event, &old), ACL_SUCCESS);
    is_int((int)old, ACL_EVENT_STATUS_COMPLETE, "the event is there");
    answers(aclrtSynchronizeDeviceWithTimeout(5000), ACL_SUCCESS);
    answers(aclrtMemcpy(h, 32, p, 64, ACL_MEMCPY_DEVICE_TO_HOST), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMemcpy(h, 64, p, 64, (aclrtMemcpyKind)9), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMemset(p, 64, 0, 65), ACL_ERROR_INVALID_PARAM);
    answers(aclrtStreamQuery((void *)1, &state), ACL_ERROR_RT_INVALID_HANDLE);
    answers(aclrtDestroyEvent(event), ACL_SUCCESS);
    answers(aclrtDestroyStream(quick), ACL_SUCCESS);
    answers(aclrtDestroyStreamForce(slow), ACL_SUCCESS);
    answers(aclrtDestroyStream(slow), ACL_ERROR_RT_INVALID_HANDLE);
    must(aclrtFree(p));
    must(aclrtFreeHost(h));
}

static void pools(void)
{
    aclrtMemPoolProps props = {.location = {0, ACL_MEM_LOCATION_TYPE_DEVICE}};
    uint64_t threshold = UINT64_MAX, used = 0;
    aclrtMemPool pool = NULL;
    aclrtStream stream;
    void *p, *q;

    must(aclrtCreateStream(&stream));
    answers(aclrtMemPoolCreate(NULL, &props), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMemPoolCreate(&pool, NULL), ACL_ERROR_INVALID_PARAM);
    props.location.id = 8;
    answers(aclrtMemPoolCreate(&pool, &props), ACL_ERROR_RT_INVALID_DEVICEID);
    props.location.id = 0;
    answers(aclrtMemPoolCreate(&pool, &props), ACL_SUCCESS);
    answers(aclrtMemPoolSetAttr(pool, ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD, &threshold), ACL_SUCCESS);
    answers(aclrtMemPoolMallocAsync(&p, 0, pool, stream), ACL_ERROR_INVALID_PARAM);
    answers(aclrtMemPoolMallocAsync(&p, MIB, pool, stream), ACL_SUCCESS);
    answers(aclrtMemPoolGetAttr(pool, ACL_RT_MEM_POOL_ATTR_USED_MEM_CURRENT, &used), ACL_SUCCESS);
    ok(used >= MIB, "a pool counts what is out");
    answers(aclrtMemPoolFreeAsync(p, stream), ACL_SUCCESS);
    answers(aclrtMemPoolMallocAsync(&q, MIB, pool, stream), ACL_SUCCESS);
    ok(q == p, "what a stream freed it may have again");
    answers(aclrtMemPoolFreeAsync(q, stream), ACL_SUCCESS);
    answers(aclrtMemPoolFreeAsync(q, stream), ACL_ERROR_RT_PARAM_INVALID);
    answers(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    answers(aclrtMemPoolTrimTo(pool, 0), ACL_SUCCESS);
    answers(aclrtMemPoolDestroy(pool), ACL_SUCCESS);
    must(aclrtDestroyStream(stream));
}

/* Functions that exist and are not simulated, and how a device ends. */
static void the_end(void)
{
    aclrtMbuf buffer;
    void *p;

    answers(aclrtAllocBuf(&buffer, 64), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    answers(aclrtMemP2PMap(&buffer, 64, 0, 0), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
    must(aclrtSetDevice(0));
    must(aclrtMalloc(&p, 64, ACL_MEM_MALLOC_HUGE_FIRST));
    answers(aclrtResetDevice(0), ACL_SUCCESS);
    answers(aclrtFree(p), ACL_SUCCESS);
    answers(aclrtResetDevice(0), ACL_SUCCESS);
    answers(aclrtMalloc(&p, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_CONTEXT_NULL);
    answers(aclrtSetDevice(0), ACL_SUCCESS);
    answers(aclrtResetDeviceForce(0), ACL_SUCCESS);
    answers(aclFinalize(), ACL_SUCCESS);
    answers(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
}

int main(void)
{
    setenv("MEMSIM_DEVICES", "2", 1);
    plan(0);
    devices();
    device_memory();
    host_memory();
    handles();
    mappings();
    streams();
    pools();
    the_end();
    return done();
}
