/* gpu.c - the questions of gpu.h, as far as they are the same for every vendor. No state, no lock, no
 * allocation. */
#include "vendor/gpu.h"

#include <string.h>

#include "base/compiler.h"

void ms_gpu_bind(struct ms_gpu *gpu, const struct ms_gpu_vendor *vendor, ms_gpu_find_func_t find, void *arg)
{
    memset(gpu, 0, sizeof(*gpu));
    gpu->vendor = vendor;
    vendor->bind(gpu, find, arg);
}

int ms_gpu_device(const struct ms_gpu *gpu, int index)
{
    return ms_device_number(gpu && gpu->vendor ? gpu->vendor->maker : MS_MAKER_CUDA, index);
}

int ms_gpu_current(const struct ms_gpu *gpu, uint64_t *context_p)
{
    if (MS_LIKELY(gpu && gpu->vendor))
        return gpu->vendor->current(gpu, context_p);
    *context_p = 0;
    return MS_GPU_NO_DEVICE;
}

static int gpu_index_of(const struct ms_gpu *gpu, uint64_t pointer)
{
    int ordinal = MS_GPU_NO_DEVICE;

    if (gpu->vendor->index_of)
        return gpu->vendor->index_of(gpu, pointer);
    if (!gpu->pointer_attribute ||
        gpu->pointer_attribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer) != CUDA_SUCCESS)
        return MS_GPU_NO_DEVICE;
    return ordinal;
}

int ms_gpu_device_of(const struct ms_gpu *gpu, uint64_t pointer, int otherwise)
{
    int index = gpu && gpu->vendor ? gpu_index_of(gpu, pointer) : MS_GPU_NO_DEVICE;

    return index < 0 ? otherwise : ms_gpu_device(gpu, index);
}

bool ms_gpu_is_host(const struct ms_gpu *gpu, uint64_t pointer)
{
    unsigned type = 0;

    return gpu && gpu->vendor == &ms_gpu_cuda && gpu->pointer_attribute &&
           gpu->pointer_attribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer) == CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_HOST;
}

bool ms_gpu_is_managed(const struct ms_gpu *gpu, uint64_t pointer)
{
    unsigned is_managed = 0; /* one byte of it is written, or all */

    return gpu && gpu->vendor == &ms_gpu_cuda && gpu->pointer_attribute &&
           gpu->pointer_attribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer) == CUDA_SUCCESS &&
           is_managed;
}

bool ms_gpu_memory(const struct ms_gpu *gpu, size_t *free_p, size_t *total_p)
{
    if (gpu && gpu->vendor && gpu->vendor->memory)
        return gpu->vendor->memory(gpu, free_p, total_p);
    return gpu && gpu->mem_get_info && gpu->mem_get_info(free_p, total_p) == CUDA_SUCCESS;
}

uint64_t ms_gpu_size_of(const struct ms_gpu *gpu, uint64_t pointer)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;

    if (gpu && gpu->vendor && gpu->vendor->size_of)
        return gpu->vendor->size_of(gpu, pointer);
    if (!gpu || !gpu->address_range || gpu->address_range(&base, &bytes, pointer) != CUDA_SUCCESS)
        return 0;
    return bytes;
}

bool ms_gpu_primary_is_dead(const struct ms_gpu *gpu, int index)
{
    unsigned int flags;
    int active = 1;

    return gpu && gpu->primary_state && gpu->primary_state(index, &flags, &active) == CUDA_SUCCESS && !active;
}

void ms_gpu_identify(const struct ms_gpu *gpu, int device, struct ms_gpu_description *d)
{
    size_t bytes = 0;
    CUuuid uuid;

    if (gpu->device_get_name &&
        gpu->device_get_name(d->name, (int)sizeof(d->name) - 1, device) != CUDA_SUCCESS)
        d->name[0] = 0;
    if (gpu->device_get_uuid && gpu->device_get_uuid(&uuid, device) == CUDA_SUCCESS)
        memcpy(d->uuid, &uuid, sizeof(d->uuid));
    if (gpu->device_total_mem && gpu->device_total_mem(&bytes, device) == CUDA_SUCCESS)
        d->total_bytes = bytes;
}

void ms_gpu_describe(const struct ms_gpu *gpu, int device, struct ms_gpu_description *description_p)
{
    memset(description_p, 0, sizeof(*description_p));
    if (gpu && gpu->vendor && device >= 0 && ms_device_maker(device) == gpu->vendor->maker)
        gpu->vendor->describe(gpu, ms_device_index(device), description_p);
}

/* An error stays until it is asked for where success leaves it as it is; else each call leaves its own
 * status. */
void ms_gpu_error_answered(const struct ms_gpu *gpu, int before, int status)
{
    if (!gpu || !gpu->vendor || !gpu->vendor->error_set)
        return;
    if (status == 0 && !gpu->keeps_errors)
        gpu->vendor->error_set(gpu, 0);
    else
        ms_gpu_error_restore(gpu, status == 0 ? before : status);
}
