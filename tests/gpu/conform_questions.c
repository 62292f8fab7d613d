/*
 * conform_questions.c: what may be asked and done beside a capture: each call while a stream captures
 * globally, in the thread's own mode and in the relaxed one, its status and what is left of the capture.
 *
 * The calls are those that memshim makes of its own accord (docs/internals/vendor-calls.md), and a
 * program's like.
 */
#include "conform.h"

#include <stdio.h>

#include "vendor/abi/cuda_graph.h"
#include "vendor/abi/cuda_graph_fn.h"

static CUstream stream, other;
static CUevent event;
static CUcontext context;
static CUfunction function;
static CUdeviceptr block, node;
static CUmemoryPool pool;
static CUmemGenericAllocationHandle handle;

static int pointer_attribute(CUpointer_attribute which, CUdeviceptr address)
{
    unsigned long long value = 0;

    return (int)cuPointerGetAttribute(&value, which, address);
}

static int pointer_attributes(CUdeviceptr address)
{
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    unsigned type = 0;
    int ordinal = 0;
    void *values[] = {&type, &ordinal};

    return (int)cuPointerGetAttributes(2, which, values, address);
}

static int address_range(CUdeviceptr address)
{
    CUdeviceptr base;
    size_t bytes;

    return (int)cuMemGetAddressRange_v2(&base, &bytes, address);
}

static int pool_attribute(CUmemPool_attribute which)
{
    unsigned long long value = 0;

    return (int)cuMemPoolGetAttribute(pool, which, &value);
}

static int graph_attribute(void)
{
    unsigned long long value = 0;

    return (int)cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value);
}

static int captures(CUstream which)
{
    CUstreamCaptureStatus status;

    return (int)cuStreamIsCapturing(which, &status);
}

static int stream_context(CUstream which)
{
    CUcontext found;

    return (int)cuStreamGetCtx(which, &found);
}

static int stream_number(CUstream which)
{
    unsigned long long number;

    return (int)cuStreamGetId(which, &number);
}

static int of_device(int which)
{
    char name[64];
    size_t bytes;
    CUdevice device;
    CUuuid uuid;
    unsigned flags;
    int value;

    switch (which) {
    case 0:
        return (int)cuDeviceGet(&device, 0);
    case 1:
        return (int)cuDeviceGetName(name, sizeof(name), 0);
    case 2:
        return (int)cuDeviceGetUuid_v2(&uuid, 0);
    case 3:
        return (int)cuDeviceTotalMem_v2(&bytes, 0);
    case 4:
        return (int)cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0);
    case 5:
        return (int)cuDevicePrimaryCtxGetState(0, &flags, &value);
    default:
        return (int)cuMemGetAllocationGranularity(&bytes, &conform_prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    }
}

static int of_pools(bool is_default)
{
    CUmemoryPool found;

    return (int)(is_default ? cuDeviceGetDefaultMemPool(&found, 0) : cuDeviceGetMemPool(&found, 0));
}

static int of_context(int which)
{
    CUcontext found;
    CUdevice device;
    unsigned version;

    switch (which) {
    case 0:
        return (int)cuCtxGetCurrent(&found);
    case 1:
        return (int)cuCtxGetDevice(&device);
    case 2:
        return (int)cuCtxGetApiVersion(context, &version);
    default:
        if (cuCtxPushCurrent_v2(context))
            return -1;
        return (int)cuCtxPopCurrent_v2(&found);
    }
}

static int left_on_device(void)
{
    size_t left, total;

    return (int)cuMemGetInfo_v2(&left, &total);
}

static int event_made(void)
{
    CUevent made;
    int status = (int)cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);

    return status ? status : (int)cuEventDestroy_v2(made);
}

static int stream_made(void)
{
    CUstream made;
    int status = (int)cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);

    return status ? status : (int)cuStreamDestroy_v2(made);
}

static int memory_made(void)
{
    CUdeviceptr made;
    int status = (int)cuMemAlloc_v2(&made, KIT_MIB);

    return status ? status : (int)cuMemFree_v2(made);
}

static int memory_made_in_order(bool is_of_pool)
{
    CUdeviceptr made;
    int status = (int)(is_of_pool ? cuMemAllocFromPoolAsync(&made, KIT_MIB, pool, other)
                                  : cuMemAllocAsync(&made, KIT_MIB, other));

    return status ? status : (int)cuMemFreeAsync(made, other);
}

static int handle_made(void)
{
    CUmemGenericAllocationHandle made;
    int status = (int)cuMemCreate(&made, 2 * KIT_MIB, &conform_prop, 0);

    return status ? status : (int)cuMemRelease(made);
}

static int mapped(void)
{
    CUmemAccessDesc access = {.location = conform_prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address = 0;
    int status = (int)cuMemAddressReserve(&address, 2 * KIT_MIB, 0, 0, 0);

    if (!status)
        status = (int)cuMemMap(address, 2 * KIT_MIB, 0, handle, 0);
    if (!status)
        status = (int)cuMemSetAccess(address, 2 * KIT_MIB, &access, 1);
    if (!status)
        status = (int)cuMemUnmap(address, 2 * KIT_MIB);
    cuMemAddressFree(address, 2 * KIT_MIB);
    return status;
}

static int handle_exported(void)
{
    CUipcMemHandle made;

    return (int)cuIpcGetMemHandle(&made, block);
}

static int parameter(void)
{
    size_t offset, bytes;

    return (int)cuFuncGetParamInfo(function, 0, &offset, &bytes);
}

/* Each call once more when the thread's mode is relaxed. A capture of its own begins before each, with a node
 * of memory in it whose address may be asked about. */
#define ask(name, call)                                                                                      \
    for (int relaxed = 0; relaxed < 2; relaxed++) {                                                          \
        CUstreamCaptureMode mode = relaxed ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_GLOBAL; \
        begin(&mode);                                                                                        \
        int status = (int)(call);                                                                            \
        end(name, &mode, relaxed, status);                                                                   \
    }

static void begin(CUstreamCaptureMode *mode)
{
    kit_must(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    kit_must(cuMemAllocAsync(&node, KIT_MIB, stream));
    kit_must(cuThreadExchangeStreamCaptureMode(mode));
}

static void end(const char *name, CUstreamCaptureMode *mode, int relaxed, int status)
{
    CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph graph = NULL;
    char whole[64];

    kit_must(cuThreadExchangeStreamCaptureMode(mode));
    kit_must(cuStreamIsCapturing(stream, &now));
    snprintf(whole, sizeof(whole), "%s%s", name, relaxed ? "_relaxed" : "");
    int last = (int)cuStreamEndCapture(stream, &graph);
    say(whole, "%d, %s, end %d", status, now == CU_STREAM_CAPTURE_STATUS_ACTIVE ? "active" : "not active",
        last);
    if (graph)
        kit_must(cuGraphDestroy(graph));
}

static void questions(void)
{
    ask("nothing", 0);
    ask("device", of_device(0));
    ask("device_name", of_device(1));
    ask("device_uuid", of_device(2));
    ask("device_total", of_device(3));
    ask("device_attribute", of_device(4));
    ask("primary_state", of_device(5));
    ask("granularity", of_device(6));
    ask("current", of_context(0));
    ask("context_device", of_context(1));
    ask("context_version", of_context(2));
    ask("push_and_pop", of_context(3));
    ask("stream_context", stream_context(stream));
    ask("stream_context_other", stream_context(other));
    ask("stream_id", stream_number(stream));
    ask("stream_id_other", stream_number(other));
    ask("captures_other", captures(other));
    ask("captures_legacy", captures(NULL));
    ask("ordinal", pointer_attribute(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block));
    ask("memory_type", pointer_attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, block));
    ask("managed", pointer_attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, block));
    ask("ordinal_of_node", pointer_attribute(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, node));
    ask("memory_type_of_node", pointer_attribute(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, node));
    ask("managed_of_node", pointer_attribute(CU_POINTER_ATTRIBUTE_IS_MANAGED, node));
    ask("attributes", pointer_attributes(block));
    ask("attributes_of_node", pointer_attributes(node));
    ask("range", address_range(block));
    ask("range_of_node", address_range(node));
    ask("info", left_on_device());
    ask("current_pool", of_pools(false));
    ask("default_pool", of_pools(true));
    ask("pool_threshold", pool_attribute(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD));
    ask("pool_reuse", pool_attribute(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC));
    ask("pool_reserved", pool_attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
    ask("pool_used", pool_attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
    ask("graph_memory", graph_attribute());
    ask("parameter", parameter());
}

static void deeds(void)
{
    ask("event", event_made());
    ask("event_recorded", cuEventRecord(event, other));
    ask("event_query", cuEventQuery(event));
    ask("event_synchronize", cuEventSynchronize(event));
    ask("context_event", cuCtxRecordEvent(context, event));
    ask("stream", stream_made());
    ask("stream_query", cuStreamQuery(other));
    ask("stream_query_legacy", cuStreamQuery(NULL));
    ask("stream_wait", cuStreamWaitEvent(other, event, 0));
    ask("memory", memory_made());
    ask("free_nowhere", cuMemFree_v2(0));
    ask("free_nowhere_in_order", cuMemFreeAsync(0, other));
    ask("memory_in_order", memory_made_in_order(false));
    ask("memory_of_pool", memory_made_in_order(true));
    ask("pool_trim", cuMemPoolTrimTo(pool, 0));
    ask("graph_trim", cuDeviceGraphMemTrim(0));
    ask("handle", handle_made());
    ask("mapped", mapped());
    ask("fill_in_order", cuMemsetD8Async(block, 1, 16, other));
    ask("exported", handle_exported());
}

void conform_questions(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    context = kit_begin();
    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    kit_must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    kit_must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    kit_must(cuEventRecord(event, other));
    function = kit_kernel("memsim_fill");
    block = conform_get(KIT_MIB);
    kit_must(cuDeviceGetDefaultMemPool(&pool, 0));
    kit_must(cuMemCreate(&handle, 2 * KIT_MIB, &conform_prop, 0));
    kit_must(cuMemAllocFromPoolAsync(&node, KIT_MIB, pool, other));
    kit_must(cuMemFreeAsync(node, other));
    kit_must(cuCtxSynchronize());
    questions();
    deeds();
    kit_must(cuMemRelease(handle));
    kit_must(cuMemFree_v2(block));
}
