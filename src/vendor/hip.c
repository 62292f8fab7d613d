/* hip.c - the questions of gpu.h, put to a HIP runtime (libamdhip64.so.5, .6, .7).
 *
 * HIP has devices and no contexts of which memory is part: a device's memory lives until the device is reset.
 * So the context of gpu.h is a device of one library, and its handle the address of a place in a table here.
 * Statuses have CUDA's numbers (hip_runtime_api.h, hipError_t), and most functions that gpu.h wants are the
 * same to the last argument.
 *
 * Before 7 each call, ours too, leaves its status as the thread's last error, success included; from 7 on an
 * error stays until it is asked for (ROCm 7.0 release notes). What a program would have found there is put
 * back: by a call that fails in the same way.
 *
 * Owns that table: places are taken once for each library, without a lock, and never given back. */
#include "vendor/hip.h"

#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "vendor/context_scope.h"

#define LIBRARIES 8
#define PUSHED    4

/* gpu->own */
enum { GET_DEVICE, SET_DEVICE, PLACES, PEEK_ERROR, GET_ERROR, MALLOC, IS_6 };

static struct places {
    _Atomic uintptr_t library; /* its hipGetDevice */
    hipError_t (*get_device)(int *);
    hipError_t (*set_device)(int);
    char device[MS_DEVICES_HIP];
} libraries[LIBRARIES];

/* Devices that were current before ours were pushed: with us no two pushes are ever left open for long. */
static MS_TLS struct {
    int16_t device[PUSHED];
    uint8_t library[PUSHED]; /* by which it is made current again, + 1; 0: it was */
    uint8_t count;
    uint64_t own_streams; /* the number of the thread's own streams; 0: not given yet */
} before;
static _Atomic uint64_t threads; /* to which such a number was given */

/* Two libraries in one process have memory of their own, also on the same device. */
static struct places *places_of(uintptr_t library)
{
    for (unsigned i = 0; library && i < LIBRARIES; i++) {
        uintptr_t nobody = 0;
        if (atomic_load(&libraries[i].library) == library ||
            atomic_compare_exchange_strong(&libraries[i].library, &nobody, library) || nobody == library)
            return &libraries[i];
    }
    return NULL;
}

static struct places *holder_of(uint64_t context, int *index_p)
{
    for (unsigned i = 0; i < LIBRARIES; i++) {
        uint64_t offset = context - (uintptr_t)libraries[i].device;
        if (offset < MS_DEVICES_HIP) {
            *index_p = (int)offset;
            return &libraries[i];
        }
    }
    return NULL;
}

/* The device takes the thread for as long as the push lasts. */
static CUresult push(CUcontext context)
{
    int index, now = -1;
    struct places *places = holder_of((uintptr_t)context, &index);

    if (!places || before.count == PUSHED || places->get_device(&now) != hipSuccess)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (now != index && places->set_device(index) != hipSuccess)
        return CUDA_ERROR_INVALID_CONTEXT;
    before.device[before.count] = (int16_t)now;
    before.library[before.count++] = now != index ? (uint8_t)(places - libraries + 1) : 0;
    return CUDA_SUCCESS;
}

static CUresult pop(CUcontext *unused)
{
    (void)unused;
    if (!before.count)
        return CUDA_ERROR_INVALID_CONTEXT;
    unsigned last = --before.count;
    return before.library[last]
               ? (CUresult)libraries[before.library[last] - 1].set_device(before.device[last])
               : CUDA_SUCCESS;
}

static MS_INLINE CUresult current_of(const struct places *places, CUcontext *context_p)
{
    int index = -1;
    hipError_t status = places->get_device(&index);

    if (status != hipSuccess || index < 0 || index >= MS_DEVICES_HIP)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context_p = (CUcontext)(uintptr_t)&places->device[index];
    return CUDA_SUCCESS;
}

/* CUDA's question names no library, so each has a function of its own. */
#define EACH_LIBRARY(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define CURRENT(i)                                                                                           \
    static CUresult current_of_##i(CUcontext *context_p)                                                     \
    {                                                                                                        \
        return current_of(&libraries[i], context_p);                                                         \
    }
EACH_LIBRARY(CURRENT)
#define CURRENT_OF(i) current_of_##i,
static CUresult (*const currents[LIBRARIES])(CUcontext *) = {EACH_LIBRARY(CURRENT_OF)};

/* Before 7.1 there is no function that tells streams apart. A stream that was made has its handle, as its
 * beginning and its end are seen; a thread's own ones, one for each device, have the thread's number. */
static CUresult stream_get_id(CUstream stream, unsigned long long *id_p)
{
    *id_p = (uintptr_t)stream;
    if ((uintptr_t)stream != 2)
        return CUDA_SUCCESS;
    if (!before.own_streams)
        before.own_streams = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    *id_p = (unsigned long long)1 << 63 | before.own_streams;
    return CUDA_SUCCESS;
}

/* The runtime's own pools. Attributes have CUDA's numbers. Which device a stream is of its beginning has
 * told, so there is no stream_get_ctx: hipStreamGetDevice is not in 5. */
static void bind_pools(struct ms_gpu *gpu, ms_gpu_find_func_t find, void *arg)
{
    gpu->stream_get_id = stream_get_id;
    gpu->mem_free_async = (__typeof__(gpu->mem_free_async))find(arg, "hipFreeAsync");
    gpu->mem_alloc_from_pool_async =
        (__typeof__(gpu->mem_alloc_from_pool_async))find(arg, "hipMallocFromPoolAsync");
    gpu->mem_pool_get_attribute =
        (__typeof__(gpu->mem_pool_get_attribute))find(arg, "hipMemPoolGetAttribute");
    gpu->mem_pool_trim_to = (__typeof__(gpu->mem_pool_trim_to))find(arg, "hipMemPoolTrimTo");
    gpu->device_get_mem_pool = (__typeof__(gpu->device_get_mem_pool))find(arg, "hipDeviceGetMemPool");
    gpu->device_get_default_mem_pool =
        (__typeof__(gpu->device_get_default_mem_pool))find(arg, "hipDeviceGetDefaultMemPool");
}

/* Nodes have CUDA's numbers, and their parameters CUDA's places. What kernels and copies use is not read. */
static void bind_graphs(struct ms_gpu *gpu, ms_gpu_find_func_t find, void *arg)
{
    gpu->device_graph_memory =
        (__typeof__(gpu->device_graph_memory))find(arg, "hipDeviceGetGraphMemAttribute");
    gpu->graph_nodes = (__typeof__(gpu->graph_nodes))find(arg, "hipGraphGetNodes");
    gpu->graph_node_type = (__typeof__(gpu->graph_node_type))find(arg, "hipGraphNodeGetType");
    gpu->graph_child = (__typeof__(gpu->graph_child))find(arg, "hipGraphChildGraphNodeGetGraph");
    gpu->graph_alloc_params = (__typeof__(gpu->graph_alloc_params))find(arg, "hipGraphMemAllocNodeGetParams");
    gpu->graph_free_params = (__typeof__(gpu->graph_free_params))find(arg, "hipGraphMemFreeNodeGetParams");
}

static void bind_memory(struct ms_gpu *gpu, ms_gpu_find_func_t find, void *arg)
{
    gpu->mem_alloc = (__typeof__(gpu->mem_alloc))find(arg, "hipMalloc");
    gpu->mem_alloc_pitch = (__typeof__(gpu->mem_alloc_pitch))find(arg, "hipMemAllocPitch");
    gpu->mem_free = (__typeof__(gpu->mem_free))find(arg, "hipFree");
    gpu->mem_get_info = (__typeof__(gpu->mem_get_info))find(arg, "hipMemGetInfo");
    gpu->memset_d8_async = (__typeof__(gpu->memset_d8_async))find(arg, "hipMemsetD8Async");
    gpu->event_create = (__typeof__(gpu->event_create))find(arg, "hipEventCreateWithFlags");
    gpu->event_destroy = (__typeof__(gpu->event_destroy))find(arg, "hipEventDestroy");
    gpu->event_query = (__typeof__(gpu->event_query))find(arg, "hipEventQuery");
    gpu->event_synchronize = (__typeof__(gpu->event_synchronize))find(arg, "hipEventSynchronize");
    gpu->event_record = (__typeof__(gpu->event_record))find(arg, "hipEventRecord");
    gpu->stream_create = (__typeof__(gpu->stream_create))find(arg, "hipStreamCreateWithFlags");
    gpu->stream_query = (__typeof__(gpu->stream_query))find(arg, "hipStreamQuery");
    gpu->stream_wait_event = (__typeof__(gpu->stream_wait_event))find(arg, "hipStreamWaitEvent");
    gpu->stream_is_capturing = (__typeof__(gpu->stream_is_capturing))find(arg, "hipStreamIsCapturing");
    gpu->ctx_synchronize = (__typeof__(gpu->ctx_synchronize))find(arg, "hipDeviceSynchronize");
    gpu->exchange_capture_mode =
        (__typeof__(gpu->exchange_capture_mode))find(arg, "hipThreadExchangeStreamCaptureMode");
    gpu->ipc_close = (__typeof__(gpu->ipc_close))find(arg, "hipIpcCloseMemHandle");
    /* No ctx_record_event: hipExecutionCtxRecordEvent follows a few streams alone (docs/internals/pool.md,
     * HIP). A thread's own streams are blocking ones, which an event in the null stream follows (clr,
     * stream_per_thread::get). */
    gpu->streams_tell = true;
    gpu->captures_are_frail = true;     /* rocm-systems#3176 */
    gpu->pools_end_with_context = true; /* clr, Device::Reset */
    gpu->free_is_sync = true;           /* hipFree waits for all streams of the device (clr, ihipFree) */
}

static void hip_bind(struct ms_gpu *gpu, ms_gpu_find_func_t find, void *arg)
{
    gpu->own[GET_DEVICE] = find(arg, "hipGetDevice");
    gpu->own[SET_DEVICE] = find(arg, "hipSetDevice");
    gpu->own[PEEK_ERROR] = find(arg, "hipPeekAtLastError");
    gpu->own[GET_ERROR] = find(arg, "hipGetLastError");
    gpu->own[MALLOC] = find(arg, "hipMalloc");
    /* The version, by what came with it: the library must not be asked anything where it is bound. */
    gpu->own[IS_6] = find(arg, "hipGetDevicePropertiesR0600");
    gpu->keeps_errors = find(arg, "hipLaunchKernelExC") != 0; /* 7.0 */
    /* hipStreamLegacy came with 7; the null stream has been its other name ever since. */
    gpu->legacy = NULL;
    gpu->legacy_is_named = gpu->keeps_errors;
    struct places *places = gpu->own[SET_DEVICE] ? places_of(gpu->own[GET_DEVICE]) : NULL;
    if (places) {
        places->get_device = (hipError_t(*)(int *))gpu->own[GET_DEVICE];
        places->set_device = (hipError_t(*)(int))gpu->own[SET_DEVICE];
        gpu->ctx_get_current = currents[places - libraries];
        gpu->ctx_push = push;
        gpu->ctx_pop = pop;
    }
    gpu->own[PLACES] = (uintptr_t)places;
    gpu->device_get_name = (__typeof__(gpu->device_get_name))find(arg, "hipDeviceGetName");
    gpu->device_get_uuid = (__typeof__(gpu->device_get_uuid))find(arg, "hipDeviceGetUuid");
    gpu->device_total_mem = (__typeof__(gpu->device_total_mem))find(arg, "hipDeviceTotalMem");
    gpu->address_range = (__typeof__(gpu->address_range))find(arg, "hipMemGetAddressRange");
    gpu->pointer_attribute = (__typeof__(gpu->pointer_attribute))find(arg, "hipPointerGetAttribute");
    bind_memory(gpu, find, arg);
    bind_pools(gpu, find, arg);
    bind_graphs(gpu, find, arg);
}

static int current(const struct ms_gpu *gpu, uint64_t *context_p)
{
    hipError_t (*get_device)(int *) = (hipError_t(*)(int *))gpu->own[GET_DEVICE];
    const struct places *places = (const struct places *)gpu->own[PLACES];
    int index = -1, device;

    *context_p = 0;
    if (!get_device || get_device(&index) != hipSuccess)
        return MS_GPU_NO_DEVICE;
    device = ms_device_number(MS_MAKER_HIP, index);
    if (places && device >= 0)
        *context_p = (uintptr_t)&places->device[index];
    return device;
}

uint64_t ms_hip_context(const struct ms_gpu *gpu)
{
    uint64_t context = 0;

    if (gpu && gpu->vendor == &ms_gpu_hip)
        current(gpu, &context);
    return context;
}

int ms_hip_device_of(const struct ms_gpu *gpu, const hipMemAllocationProp *prop)
{
    const hipMemAllocationProp5 *old = (const hipMemAllocationProp5 *)(const void *)prop;
    hipMemLocation location;

    if (!prop || !gpu || gpu->vendor != &ms_gpu_hip)
        return MS_DEVICE_NONE;
    location = gpu->own[IS_6] ? prop->location : old->location;
    return location.type == hipMemLocationTypeDevice ? ms_device_number(MS_MAKER_HIP, location.id)
                                                     : MS_DEVICE_NONE;
}

uint64_t ms_hip_array_bytes(const hipChannelFormatDesc *desc, uint64_t width, uint64_t height, uint64_t depth,
                            unsigned levels)
{
    unsigned bits = desc ? (unsigned)(desc->x + desc->y + desc->z + desc->w) : 0;

    /* As many channels of a byte as the element has. */
    return ms_gpu_array_bytes(width, height, depth, CU_AD_FORMAT_UNSIGNED_INT8, bits / 8, levels);
}

static int error_peek(const struct ms_gpu *gpu)
{
    return gpu->own[PEEK_ERROR] ? (int)((hipError_t(*)(void))gpu->own[PEEK_ERROR])() : 0;
}

/* A status cannot be written there, only be brought about: by asking for memory that is not to be had, or
 * without a place for the answer, or for a device that there is not. The first could destroy a capture, and
 * relaxed mode is no help: the call that ends it would cover the status. */
static void error_set(const struct ms_gpu *gpu, int error)
{
    hipError_t (*allocate)(void **, size_t) = (hipError_t(*)(void **, size_t))gpu->own[MALLOC];
    void *unused;

    if (gpu->own[GET_ERROR])
        ((hipError_t(*)(void))gpu->own[GET_ERROR])();
    if (error == hipErrorInvalidValue && gpu->device_get_name)
        gpu->device_get_name(NULL, 0, 0);
    else if (error == hipErrorOutOfMemory && allocate && !ms_captures_may_be_open() &&
             allocate(&unused, SIZE_MAX / 2) == hipSuccess)
        gpu->mem_free((uintptr_t)unused);
    else if (error == hipErrorInvalidDevice && gpu->own[SET_DEVICE])
        ((hipError_t(*)(int))gpu->own[SET_DEVICE])(-1);
}

/* In the place of the most that a pool may hold 5 has bytes that are reserved, and all of them have where
 * CUDA says what it is for. */
static void pool_properties(const struct ms_gpu *gpu, CUmemPoolProps *props)
{
    props->usage = 0;
    if (!gpu->own[IS_6])
        props->maxSize = 0;
}

/* The granularity of handles is not asked for: the structure to ask with is another in each version. */
const struct ms_gpu_vendor ms_gpu_hip = {.maker = MS_MAKER_HIP,
                                         .bind = hip_bind,
                                         .current = current,
                                         .describe = ms_gpu_identify,
                                         .pool_properties = pool_properties,
                                         .error_peek = error_peek,
                                         .error_set = error_set};
