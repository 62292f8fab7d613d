/* cuda.c - the questions of gpu.h, put to a CUDA driver.
 *
 * Which device a context belongs to is remembered in a small table, since it is asked at every allocation and
 * never changes while the context lives. The table is read and written without a lock: an entry is one
 * word. */
#include "vendor/gpu.h"

#include <stdatomic.h>
#include <string.h>

#define CONTEXTS    64
#define DEVICE_BITS 8

/* context << 8 | device + 1; a user-space handle leaves the upper 16 bits free. */
static _Atomic uint64_t contexts[CONTEXTS];

static void bind_memory(struct ms_gpu *gpu, ms_gpu_find_func_t find, void *arg)
{
    gpu->mem_alloc = (__typeof__(gpu->mem_alloc))find(arg, "cuMemAlloc_v2");
    gpu->mem_alloc_pitch = (__typeof__(gpu->mem_alloc_pitch))find(arg, "cuMemAllocPitch_v2");
    gpu->mem_free = (__typeof__(gpu->mem_free))find(arg, "cuMemFree_v2");
    gpu->mem_free_async = (__typeof__(gpu->mem_free_async))find(arg, "cuMemFreeAsync");
    gpu->mem_get_info = (__typeof__(gpu->mem_get_info))find(arg, "cuMemGetInfo_v2");
    gpu->memset_d8_async = (__typeof__(gpu->memset_d8_async))find(arg, "cuMemsetD8Async");
    gpu->event_create = (__typeof__(gpu->event_create))find(arg, "cuEventCreate");
    gpu->event_destroy = (__typeof__(gpu->event_destroy))find(arg, "cuEventDestroy_v2");
    gpu->event_query = (__typeof__(gpu->event_query))find(arg, "cuEventQuery");
    gpu->event_synchronize = (__typeof__(gpu->event_synchronize))find(arg, "cuEventSynchronize");
    gpu->event_record = (__typeof__(gpu->event_record))find(arg, "cuEventRecord");
    gpu->ctx_record_event = (__typeof__(gpu->ctx_record_event))find(arg, "cuCtxRecordEvent");
    gpu->stream_create = (__typeof__(gpu->stream_create))find(arg, "cuStreamCreate");
    gpu->stream_wait_event = (__typeof__(gpu->stream_wait_event))find(arg, "cuStreamWaitEvent");
    gpu->stream_get_ctx = (__typeof__(gpu->stream_get_ctx))find(arg, "cuStreamGetCtx");
    gpu->stream_get_id = (__typeof__(gpu->stream_get_id))find(arg, "cuStreamGetId");
    gpu->stream_is_capturing = (__typeof__(gpu->stream_is_capturing))find(arg, "cuStreamIsCapturing");
    gpu->ctx_push = (__typeof__(gpu->ctx_push))find(arg, "cuCtxPushCurrent_v2");
    gpu->ctx_pop = (__typeof__(gpu->ctx_pop))find(arg, "cuCtxPopCurrent_v2");
    gpu->ctx_synchronize = (__typeof__(gpu->ctx_synchronize))find(arg, "cuCtxSynchronize");
    gpu->exchange_capture_mode =
        (__typeof__(gpu->exchange_capture_mode))find(arg, "cuThreadExchangeStreamCaptureMode");
    gpu->ipc_close = (__typeof__(gpu->ipc_close))find(arg, "cuIpcCloseMemHandle");
}

static void bind_streams(struct ms_gpu *gpu, ms_gpu_find_func_t find, void *arg)
{
    gpu->mem_alloc_from_pool_async =
        (__typeof__(gpu->mem_alloc_from_pool_async))find(arg, "cuMemAllocFromPoolAsync");
    gpu->mem_pool_get_attribute = (__typeof__(gpu->mem_pool_get_attribute))find(arg, "cuMemPoolGetAttribute");
    gpu->mem_pool_trim_to = (__typeof__(gpu->mem_pool_trim_to))find(arg, "cuMemPoolTrimTo");
    gpu->device_get_mem_pool = (__typeof__(gpu->device_get_mem_pool))find(arg, "cuDeviceGetMemPool");
    gpu->device_get_default_mem_pool =
        (__typeof__(gpu->device_get_default_mem_pool))find(arg, "cuDeviceGetDefaultMemPool");
    gpu->device_graph_memory =
        (__typeof__(gpu->device_graph_memory))find(arg, "cuDeviceGetGraphMemAttribute");
}

static void bind_handles(struct ms_gpu *gpu, ms_gpu_find_func_t find, void *arg)
{
    gpu->address_reserve = (__typeof__(gpu->address_reserve))find(arg, "cuMemAddressReserve");
    gpu->address_free = (__typeof__(gpu->address_free))find(arg, "cuMemAddressFree");
    gpu->handle_create = (__typeof__(gpu->handle_create))find(arg, "cuMemCreate");
    gpu->handle_release = (__typeof__(gpu->handle_release))find(arg, "cuMemRelease");
    gpu->handle_map = (__typeof__(gpu->handle_map))find(arg, "cuMemMap");
    gpu->handle_unmap = (__typeof__(gpu->handle_unmap))find(arg, "cuMemUnmap");
    gpu->set_access = (__typeof__(gpu->set_access))find(arg, "cuMemSetAccess");
    gpu->device_attribute = (__typeof__(gpu->device_attribute))find(arg, "cuDeviceGetAttribute");
}

static void bind_graphs(struct ms_gpu *gpu, ms_gpu_find_func_t find, void *arg)
{
    gpu->graph_nodes = (__typeof__(gpu->graph_nodes))find(arg, "cuGraphGetNodes");
    gpu->graph_node_type = (__typeof__(gpu->graph_node_type))find(arg, "cuGraphNodeGetType");
    gpu->graph_kernel_params =
        (__typeof__(gpu->graph_kernel_params))find(arg, "cuGraphKernelNodeGetParams_v2");
    gpu->graph_memcpy_params = (__typeof__(gpu->graph_memcpy_params))find(arg, "cuGraphMemcpyNodeGetParams");
    gpu->graph_memset_params = (__typeof__(gpu->graph_memset_params))find(arg, "cuGraphMemsetNodeGetParams");
    gpu->graph_child = (__typeof__(gpu->graph_child))find(arg, "cuGraphChildGraphNodeGetGraph");
    gpu->graph_alloc_params = (__typeof__(gpu->graph_alloc_params))find(arg, "cuGraphMemAllocNodeGetParams");
    gpu->graph_free_params = (__typeof__(gpu->graph_free_params))find(arg, "cuGraphMemFreeNodeGetParams");
}

static void cuda_bind(struct ms_gpu *gpu, ms_gpu_find_func_t find, void *arg)
{
    gpu->ctx_get_current = (__typeof__(gpu->ctx_get_current))find(arg, "cuCtxGetCurrent");
    gpu->ctx_get_device = (__typeof__(gpu->ctx_get_device))find(arg, "cuCtxGetDevice");
    gpu->device_get = (__typeof__(gpu->device_get))find(arg, "cuDeviceGet");
    gpu->device_get_name = (__typeof__(gpu->device_get_name))find(arg, "cuDeviceGetName");
    gpu->device_get_uuid = (__typeof__(gpu->device_get_uuid))find(arg, "cuDeviceGetUuid");
    gpu->device_total_mem = (__typeof__(gpu->device_total_mem))find(arg, "cuDeviceTotalMem_v2");
    gpu->granularity = (__typeof__(gpu->granularity))find(arg, "cuMemGetAllocationGranularity");
    gpu->address_range = (__typeof__(gpu->address_range))find(arg, "cuMemGetAddressRange_v2");
    gpu->pointer_attribute = (__typeof__(gpu->pointer_attribute))find(arg, "cuPointerGetAttribute");
    gpu->primary_state = (__typeof__(gpu->primary_state))find(arg, "cuDevicePrimaryCtxGetState");
    gpu->func_param_info = (__typeof__(gpu->func_param_info))find(arg, "cuFuncGetParamInfo");
    gpu->kernel_param_info = (__typeof__(gpu->kernel_param_info))find(arg, "cuKernelGetParamInfo");
    gpu->legacy = (CUstream)(uintptr_t)1;
    gpu->legacy_is_named = true;
    bind_memory(gpu, find, arg);
    bind_streams(gpu, find, arg);
    bind_handles(gpu, find, arg);
    bind_graphs(gpu, find, arg);
}

static unsigned cuda_slot_of(uint64_t context)
{
    return (unsigned)((context >> 4) * 0x9e3779b97f4a7c15u >> 58) % CONTEXTS;
}

/* True if the current context can be used. A primary context names its device also while it is not active, so
 * where the device's is not, something is asked that needs an active one. Asked only of contexts that are not
 * known yet. */
static bool is_alive(const struct ms_gpu *gpu, CUdevice device)
{
    size_t left, total;

    return !ms_gpu_primary_is_dead(gpu, device) || !gpu->mem_get_info ||
           gpu->mem_get_info(&left, &total) == CUDA_SUCCESS;
}

static int current_of_thread(const struct ms_gpu *gpu, uint64_t *context_p)
{
    CUcontext current = NULL;
    CUdevice device;

    *context_p = 0;
    if (!gpu->ctx_get_current || gpu->ctx_get_current(&current) != CUDA_SUCCESS || !current)
        return MS_GPU_NO_DEVICE;
    uint64_t context = (uintptr_t)current;
    *context_p = context;

    _Atomic uint64_t *entry = &contexts[cuda_slot_of(context)];
    uint64_t known = atomic_load_explicit(entry, memory_order_relaxed);
    if (known >> DEVICE_BITS == context)
        return (int)(known & 0xff) - 1;
    if (!gpu->ctx_get_device || gpu->ctx_get_device(&device) != CUDA_SUCCESS ||
        ms_device_number(MS_MAKER_CUDA, device) < 0 || !is_alive(gpu, device))
        return MS_GPU_NO_DEVICE;
    atomic_store_explicit(entry, context << DEVICE_BITS | (unsigned)(device + 1), memory_order_relaxed);
    return device;
}

void ms_gpu_context_ended(uint64_t context)
{
    _Atomic uint64_t *entry = &contexts[cuda_slot_of(context)];
    uint64_t known = atomic_load_explicit(entry, memory_order_relaxed);
    if (known >> DEVICE_BITS == context)
        atomic_compare_exchange_strong(entry, &known, 0);
}

static void cuda_describe(const struct ms_gpu *gpu, int ordinal, struct ms_gpu_description *d)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ordinal}};
    CUdevice device = ordinal;
    size_t bytes = 0;

    if (gpu->device_get && gpu->device_get(&device, ordinal) != CUDA_SUCCESS)
        return;
    ms_gpu_identify(gpu, device, d);
    if (gpu->granularity && gpu->granularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) == CUDA_SUCCESS)
        d->granularity_bytes = bytes;
}

const struct ms_gpu_vendor ms_gpu_cuda = {
    .maker = MS_MAKER_CUDA, .bind = cuda_bind, .current = current_of_thread, .describe = cuda_describe};

/* Bits of one channel, or, for the block-compressed formats, of one element with all its channels. */
static unsigned format_bits(int format, unsigned channels)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
    case CU_AD_FORMAT_UNORM_INT8X1:
    case CU_AD_FORMAT_UNORM_INT8X2:
    case CU_AD_FORMAT_UNORM_INT8X4:
    case CU_AD_FORMAT_SNORM_INT8X1:
    case CU_AD_FORMAT_SNORM_INT8X2:
    case CU_AD_FORMAT_SNORM_INT8X4:
        return 8 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
    case CU_AD_FORMAT_UNORM_INT16X1:
    case CU_AD_FORMAT_UNORM_INT16X2:
    case CU_AD_FORMAT_UNORM_INT16X4:
    case CU_AD_FORMAT_SNORM_INT16X1:
    case CU_AD_FORMAT_SNORM_INT16X2:
    case CU_AD_FORMAT_SNORM_INT16X4:
        return 16 * channels;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 32 * channels;
    case CU_AD_FORMAT_NV12:
        return 12;
    case CU_AD_FORMAT_BC1_UNORM:
    case CU_AD_FORMAT_BC1_UNORM_SRGB:
    case CU_AD_FORMAT_BC4_UNORM:
    case CU_AD_FORMAT_BC4_SNORM:
        return 4;
    case CU_AD_FORMAT_BC2_UNORM:
    case CU_AD_FORMAT_BC2_UNORM_SRGB:
    case CU_AD_FORMAT_BC3_UNORM:
    case CU_AD_FORMAT_BC3_UNORM_SRGB:
    case CU_AD_FORMAT_BC5_UNORM:
    case CU_AD_FORMAT_BC5_SNORM:
    case CU_AD_FORMAT_BC6H_UF16:
    case CU_AD_FORMAT_BC6H_SF16:
    case CU_AD_FORMAT_BC7_UNORM:
    case CU_AD_FORMAT_BC7_UNORM_SRGB:
        return 8;
    default:
        return 0;
    }
}

uint64_t ms_gpu_array_bytes(uint64_t width, uint64_t height, uint64_t depth, int format, unsigned channels,
                            unsigned levels)
{
    uint64_t bits = format_bits(format, channels), bytes = 0;

    height = height ? height : 1;
    depth = depth ? depth : 1;
    for (unsigned level = 0; level < levels && level < 32; level++) {
        bytes += (width * height * depth * bits + 7) / 8;
        if (width == 1 && height == 1 && depth == 1)
            break;
        width = width > 1 ? width / 2 : 1;
        height = height > 1 ? height / 2 : 1;
        depth = depth > 1 ? depth / 2 : 1;
    }
    return bytes;
}
