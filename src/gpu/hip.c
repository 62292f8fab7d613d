/* hip.c - the questions of gpu.h, put to a HIP runtime (libamdhip64.so.5, .6, .7).
 *
 * HIP has devices and no contexts of which memory is part: a device's memory lives until the device is reset. So the context of gpu.h
 * is a device of one library, and its handle the address of a place in a table here. Statuses have CUDA's numbers (hip_runtime_api.h,
 * hipError_t), and most functions that gpu.h wants are the same to the last argument.
 *
 * Owns that table: places are taken once for each library, without a lock, and never given back. */
#include "gpu/gpu.h"

#include <stdatomic.h>
#include <string.h>

#include "gpu/abi/hip.h"

#define LIBRARIES 8

/* gpu->own */
enum { GET_DEVICE, PLACES };

static struct places {
    _Atomic uintptr_t library; /* its hipGetDevice */
    char device[MS_DEVICES_HIP];
} libraries[LIBRARIES];

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

static void bind(struct ms_gpu *gpu, ms_gpu_find_func_t find, void *arg)
{
    gpu->own[GET_DEVICE] = find(arg, "hipGetDevice");
    gpu->own[PLACES] = (uintptr_t)places_of(gpu->own[GET_DEVICE]);
    gpu->device_get_name = (__typeof__(gpu->device_get_name))find(arg, "hipDeviceGetName");
    gpu->device_get_uuid = (__typeof__(gpu->device_get_uuid))find(arg, "hipDeviceGetUuid");
    gpu->device_total_mem = (__typeof__(gpu->device_total_mem))find(arg, "hipDeviceTotalMem");
    gpu->address_range = (__typeof__(gpu->address_range))find(arg, "hipMemGetAddressRange");
    gpu->pointer_attribute = (__typeof__(gpu->pointer_attribute))find(arg, "hipPointerGetAttribute");
    gpu->mem_get_info = (__typeof__(gpu->mem_get_info))find(arg, "hipMemGetInfo");
}

static int current(const struct ms_gpu *gpu, uint64_t *context_p)
{
    hipError_t (*get_device)(int *) = (hipError_t(*)(int *))gpu->own[GET_DEVICE];
    struct places *places = (struct places *)gpu->own[PLACES];
    int index = -1, device;

    *context_p = 0;
    if (!get_device || get_device(&index) != hipSuccess)
        return MS_GPU_NO_DEVICE;
    device = ms_device_number(MS_MAKER_HIP, index);
    if (places && device >= 0)
        *context_p = (uintptr_t)&places->device[index];
    return device;
}

static int index_of(const struct ms_gpu *gpu, uint64_t pointer)
{
    int ordinal = MS_GPU_NO_DEVICE;

    if (!gpu->pointer_attribute ||
        gpu->pointer_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) != CUDA_SUCCESS)
        return MS_GPU_NO_DEVICE;
    return ordinal;
}

/* The granularity is asked for where it is needed: the structure to ask with is another in each version. */
static void describe(const struct ms_gpu *gpu, int index, struct ms_gpu_description *d)
{
    size_t bytes = 0;
    CUuuid uuid;

    if (gpu->device_get_name && gpu->device_get_name(d->name, (int)sizeof(d->name) - 1, index) != CUDA_SUCCESS)
        d->name[0] = 0;
    if (gpu->device_get_uuid && gpu->device_get_uuid(&uuid, index) == CUDA_SUCCESS)
        memcpy(d->uuid, &uuid, sizeof(d->uuid));
    if (gpu->device_total_mem && gpu->device_total_mem(&bytes, index) == CUDA_SUCCESS)
        d->total_bytes = bytes;
}

const struct ms_gpu_vendor ms_gpu_hip = {
    .maker = MS_MAKER_HIP, .bind = bind, .current = current, .describe = describe, .index_of = index_of};
