/* acl.c - the questions of gpu.h, put to an Ascend runtime (libascendcl.so).
 *
 * A device's memory belongs to the device: it goes when the device is reset, whatever context it was made in.
 * So the context of gpu.h is a device of one library, and its handle the address of a place in a table here.
 * Only aclrtGetPrimaryCtxState is CUDA's twin to the last argument; the rest is asked in its own form. Facts:
 * abi/acl.h.
 *
 * Owns that table: places are taken once for each library, without a lock, and never given back. */
#include "vendor/gpu.h"

#include <stdatomic.h>
#include <stdio.h>

#include "vendor/abi/acl.h"

#define LIBRARIES 4

/* gpu->own */
enum { GET_DEVICE, PLACES, SOC_NAME, MEM_INFO, GRANULARITY, ATTRIBUTES, RANGE, FREE_PHYSICAL, MEMSET };

static struct places {
    _Atomic uintptr_t library; /* its aclrtGetDevice */
    char device[MS_DEVICES_ACL];
} libraries[LIBRARIES];

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

static void acl_bind(struct ms_gpu *gpu, ms_gpu_find_func_t find, void *arg)
{
    gpu->own[GET_DEVICE] = find(arg, "aclrtGetDevice");
    gpu->own[PLACES] = (uintptr_t)places_of(gpu->own[GET_DEVICE]);
    gpu->own[SOC_NAME] = find(arg, "aclrtGetSocName");
    gpu->own[MEM_INFO] = find(arg, "aclrtGetMemInfo");
    gpu->own[GRANULARITY] = find(arg, "aclrtMemGetAllocationGranularity");
    gpu->own[ATTRIBUTES] = find(arg, "aclrtPointerGetAttributes");
    gpu->own[RANGE] = find(arg, "aclrtMemGetAddressRange");
    gpu->own[FREE_PHYSICAL] = find(arg, "aclrtFreePhysical");
    gpu->own[MEMSET] = find(arg, "aclrtMemset");
    gpu->primary_state = (__typeof__(gpu->primary_state))find(arg, "aclrtGetPrimaryCtxState");
}

static uint64_t acl_context_of(const struct ms_gpu *gpu, int index)
{
    struct places *places = (struct places *)gpu->own[PLACES];

    return places && index >= 0 && index < MS_DEVICES_ACL ? (uintptr_t)&places->device[index] : 0;
}

static int current(const struct ms_gpu *gpu, uint64_t *context_p)
{
    aclError (*get_device)(int32_t *) = (aclError(*)(int32_t *))gpu->own[GET_DEVICE];
    int32_t index = -1;

    *context_p = 0;
    if (!get_device || get_device(&index) != ACL_SUCCESS)
        return MS_GPU_NO_DEVICE;
    *context_p = acl_context_of(gpu, index);
    return ms_device_number(MS_MAKER_ACL, index);
}

static int acl_index_of(const struct ms_gpu *gpu, uint64_t pointer)
{
    aclError (*ask)(const void *, aclrtPtrAttributes *) =
        (aclError(*)(const void *, aclrtPtrAttributes *))gpu->own[ATTRIBUTES];
    aclrtPtrAttributes attributes;

    if (!ask || ask((const void *)(uintptr_t)pointer, &attributes) != ACL_SUCCESS ||
        attributes.location.type != ACL_MEM_LOCATION_TYPE_DEVICE)
        return MS_GPU_NO_DEVICE;
    return (int)attributes.location.id;
}

static uint64_t acl_size_of(const struct ms_gpu *gpu, uint64_t pointer)
{
    aclError (*ask)(void *, void **, size_t *) = (aclError(*)(void *, void **, size_t *))gpu->own[RANGE];
    size_t bytes = 0;
    void *base;

    return ask && ask((void *)(uintptr_t)pointer, &base, &bytes) == ACL_SUCCESS ? bytes : 0;
}

static bool memory(const struct ms_gpu *gpu, size_t *free_p, size_t *total_p)
{
    aclError (*ask)(aclrtMemAttr, size_t *, size_t *) =
        (aclError(*)(aclrtMemAttr, size_t *, size_t *))gpu->own[MEM_INFO];

    return ask && ask(ACL_HBM_MEM, free_p, total_p) == ACL_SUCCESS;
}

/* Name and memory are asked of the device that is current, which is the one that memory was just made on. */
static void acl_describe(const struct ms_gpu *gpu, int index, struct ms_gpu_description *d)
{
    const char *(*soc_name)(void) = (const char *(*)(void))gpu->own[SOC_NAME];
    aclError (*granularity)(aclrtPhysicalMemProp *, aclrtMemGranularityOptions, size_t *) =
        (aclError(*)(aclrtPhysicalMemProp *, aclrtMemGranularityOptions, size_t *))gpu->own[GRANULARITY];
    aclrtPhysicalMemProp prop = {.memAttr = ACL_HBM_MEM_HUGE,
                                 .location = {(uint32_t)index, ACL_MEM_LOCATION_TYPE_DEVICE}};
    const char *name = soc_name ? soc_name() : NULL;
    size_t free_bytes = 0, bytes = 0;
    uint64_t context;

    if (name)
        snprintf(d->name, sizeof(d->name), "%s", name);
    if (current(gpu, &context) == ms_device_number(MS_MAKER_ACL, index) && memory(gpu, &free_bytes, &bytes))
        d->total_bytes = bytes;
    if (granularity && granularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &bytes) == ACL_SUCCESS)
        d->granularity_bytes = bytes;
}

static int handle_free(const struct ms_gpu *gpu, uint64_t handle)
{
    aclError (*release)(aclrtDrvMemHandle) = (aclError(*)(aclrtDrvMemHandle))gpu->own[FREE_PHYSICAL];

    return release ? release((aclrtDrvMemHandle)(uintptr_t)handle) : ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
}

static int acl_fill(const struct ms_gpu *gpu, uint64_t address, int byte, uint64_t bytes)
{
    aclError (*set)(void *, size_t, int32_t, size_t) =
        (aclError(*)(void *, size_t, int32_t, size_t))gpu->own[MEMSET];

    return set ? set((void *)(uintptr_t)address, bytes, byte, bytes) : ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
}

const struct ms_gpu_vendor ms_gpu_acl = {.maker = MS_MAKER_ACL,
                                         .bind = acl_bind,
                                         .current = current,
                                         .describe = acl_describe,
                                         .index_of = acl_index_of,
                                         .size_of = acl_size_of,
                                         .memory = memory,
                                         .context_of = acl_context_of,
                                         .handle_free = handle_free,
                                         .fill = acl_fill,
                                         .unknown_handle = ACL_ERROR_RT_INVALID_HANDLE};
