/*
 * Host memory, and arrays. hipHostMalloc's words for coherence say nothing here but that two of them exclude
 * each other.
 */
#include "sim/hip/hip.h"

static int allocate(void **ptr, size_t size, unsigned flags)
{
    const unsigned both = hipHostMallocCoherent | hipHostMallocNonCoherent;

    if (!ptr || (flags & both) == both)
        return hipErrorInvalidValue;
    if (!size) {
        *ptr = NULL;
        return hipSuccess;
    }
    return (int)cuMemHostAlloc(
        ptr, size, flags & (hipHostMallocPortable | hipHostMallocMapped | hipHostMallocWriteCombined));
}

static int release(void *ptr)
{
    return ptr ? (int)cuMemFreeHost(ptr) : hipSuccess;
}

HIP_AS(hipHostMalloc, (void **ptr, size_t size, unsigned flags), allocate(ptr, size, flags))
HIP_AS(hipHostAlloc, (void **ptr, size_t size, unsigned flags), allocate(ptr, size, flags))
HIP_AS(hipMallocHost, (void **ptr, size_t size), allocate(ptr, size, 0))
HIP_AS(hipMemAllocHost, (void **ptr, size_t size), allocate(ptr, size, 0))
HIP_AS(hipHostFree, (void *ptr), release(ptr))
HIP_AS(hipFreeHost, (void *ptr), release(ptr))
HIP_AS(hipHostRegister, (void *ptr, size_t size, unsigned flags), cuMemHostRegister_v2(ptr, size, flags & 3))
HIP_AS(hipHostUnregister, (void *ptr), cuMemHostUnregister(ptr))
HIP_AS(hipHostGetFlags, (unsigned *flags, void *host), cuMemHostGetFlags(flags, host))

HIP_API hipHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    CUdeviceptr address = 0;

    HIP_ENTER_DEVICE(hipHostGetDevicePointer);
    if (!device || !host)
        return hip_leave(hipErrorInvalidValue);
    int status = (int)cuMemHostGetDevicePointer_v2(&address, host, flags);
    if (status == hipSuccess)
        *device = (void *)(uintptr_t)address;
    return hip_leave(status);
}

/* --- arrays --- */

static int make(void *out, size_t width, size_t height, size_t depth, int format, unsigned channels,
                unsigned levels)
{
    const CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = width,
                                           .Height = height,
                                           .Depth = depth,
                                           .Format = (CUarray_format)format,
                                           .NumChannels = channels};

    if (!out)
        return hipErrorInvalidValue;
    return levels ? (int)cuMipmappedArrayCreate(out, &shape, levels) : (int)cuArray3DCreate_v2(out, &shape);
}

/* The format of a channel of so many bits. */
static int format_of(const hipChannelFormatDesc *desc, unsigned *channels_p)
{
    int bytes = desc->x / 8;

    *channels_p = desc->w ? 4 : desc->z ? 3 : desc->y ? 2 : 1;
    switch (desc->f) {
    case hipChannelFormatKindFloat:
        return bytes == 2 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
    case hipChannelFormatKindSigned:
        return bytes == 1   ? CU_AD_FORMAT_SIGNED_INT8
               : bytes == 2 ? CU_AD_FORMAT_SIGNED_INT16
                            : CU_AD_FORMAT_SIGNED_INT32;
    default:
        return bytes == 1   ? CU_AD_FORMAT_UNSIGNED_INT8
               : bytes == 2 ? CU_AD_FORMAT_UNSIGNED_INT16
                            : CU_AD_FORMAT_UNSIGNED_INT32;
    }
}

static int make_of_channels(void *out, const hipChannelFormatDesc *desc, hipExtent extent, unsigned levels)
{
    unsigned channels;
    int format;

    if (!desc)
        return hipErrorInvalidValue;
    format = format_of(desc, &channels);
    return make(out, extent.width, extent.height, extent.depth, format, channels, levels);
}

HIP_AS(hipArrayCreate, (hipArray * *array, const HIP_ARRAY_DESCRIPTOR *d),
       d ? make(array, d->Width, d->Height, 0, d->Format, d->NumChannels, 0) : (int)hipErrorInvalidValue)
HIP_AS(hipArray3DCreate, (hipArray * *array, const HIP_ARRAY3D_DESCRIPTOR *d),
       d ? make(array, d->Width, d->Height, d->Depth, d->Format, d->NumChannels, 0)
         : (int)hipErrorInvalidValue)
HIP_AS(hipMipmappedArrayCreate, (hipMipmappedArray_t * array, HIP_ARRAY3D_DESCRIPTOR *d, unsigned levels),
       d ? make(array, d->Width, d->Height, d->Depth, d->Format, d->NumChannels, levels)
         : (int)hipErrorInvalidValue)
HIP_AS(hipMallocArray,
       (hipArray * *array, const hipChannelFormatDesc *desc, size_t width, size_t height, unsigned flags),
       ((void)flags, make_of_channels(array, desc, (hipExtent){width, height, 0}, 0)))
HIP_AS(hipMalloc3DArray,
       (hipArray * *array, const struct hipChannelFormatDesc *desc, struct hipExtent extent, unsigned flags),
       ((void)flags, make_of_channels(array, desc, extent, 0)))
HIP_AS(hipMallocMipmappedArray,
       (hipMipmappedArray_t * array, const struct hipChannelFormatDesc *desc, struct hipExtent extent,
        unsigned levels, unsigned flags),
       ((void)flags, make_of_channels(array, desc, extent, levels)))
HIP_AS(hipArrayDestroy, (hipArray * array), cuArrayDestroy((CUarray)array))
HIP_AS(hipFreeArray, (hipArray * array), cuArrayDestroy((CUarray)array))
HIP_AS(hipMipmappedArrayDestroy, (hipMipmappedArray_t array),
       cuMipmappedArrayDestroy((CUmipmappedArray)array))
HIP_AS(hipFreeMipmappedArray, (hipMipmappedArray_t array), cuMipmappedArrayDestroy((CUmipmappedArray)array))
