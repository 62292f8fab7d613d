/*
 * cudaDeviceProp, in the layout of the version this library is built as. Asks the driver each time; holds no
 * state.
 */
#include <string.h>

#include "sim/cudart/runtime.h"

#if SIM_CUDART == 12
typedef struct cudaDeviceProp_12 device_prop;
#define PROP_12 PROP
#define PROP_13(field, name)
#else
typedef struct cudaDeviceProp device_prop;
#define PROP_12(field, name)
#define PROP_13 PROP
#endif

/* An attribute the driver does not know reads as 0, as in a structure older than the field. */
static int attribute(CUdevice device, CUdevice_attribute name)
{
    int value = 0;

    if (SIM_DRV(cuDeviceGetAttribute, &value, name, device) != cudaSuccess)
        return 0;
    return value;
}

static void fill_attributes(device_prop *prop, CUdevice device)
{
#define PROP(field, name)                                                                                    \
    prop->field = (__typeof__(prop->field))attribute(device, CU_DEVICE_ATTRIBUTE_##name);
#include "sim/cudart/props.def"
#undef PROP
}

static cudaError_t fill(device_prop *prop, int ordinal)
{
    CUdevice device;
    cudaError_t rc;

    memset(prop, 0, sizeof(*prop));
    rc = sim_device(ordinal, &device);
    if (rc == cudaSuccess)
        rc = SIM_DRV(cuDeviceGetName, prop->name, (int)sizeof(prop->name), device);
    if (rc == cudaSuccess)
        rc = SIM_DRV(cuDeviceTotalMem_v2, &prop->totalGlobalMem, device);
    if (rc == cudaSuccess)
        rc = SIM_DRV(cuDeviceGetUuid_v2, &prop->uuid, device);
    if (rc == cudaSuccess)
        fill_attributes(prop, device);
    return rc;
}

static cudaError_t get_properties(void *prop, size_t prop_bytes, int device)
{
    device_prop full;

    SIM_TRY(sim_runtime());
    SIM_CHECK(prop, cudaErrorInvalidValue);
    SIM_TRY(fill(&full, device));
    memcpy(prop, &full, prop_bytes);
    return cudaSuccess;
}

#if SIM_CUDART == 12
/* The unsuffixed symbol serves programs built with CUDA 11, whose structure ends before
 * hostRegisterSupported. */
SIM_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp_12 *prop, int device)
{
    return get_properties(prop, offsetof(struct cudaDeviceProp_12, hostRegisterSupported), device);
}

SIM_API cudaError_t cudaGetDeviceProperties_v2(struct cudaDeviceProp_12 *prop, int device)
{
    return get_properties(prop, sizeof(*prop), device);
}
#else
SIM_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    return get_properties(prop, sizeof(*prop), device);
}
#endif

/* The first device that has at least what is asked for, or else the first one. */
SIM_API cudaError_t cudaChooseDevice(int *device, const device_prop *prop)
{
    device_prop found;
    int count;

    SIM_TRY(sim_runtime());
    SIM_CHECK(device && prop, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuDeviceGetCount, &count));
    *device = 0;
    for (int i = 0; i < count; i++) {
        SIM_TRY(fill(&found, i));
        if (found.major * 10 + found.minor >= prop->major * 10 + prop->minor &&
            found.totalGlobalMem >= prop->totalGlobalMem) {
            *device = i;
            break;
        }
    }
    return cudaSuccess;
}
