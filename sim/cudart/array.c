/*
 * CUDA arrays: channel formats, creation, questions. A cudaArray_t is the driver's CUarray under another
 * name.
 */
#include <string.h>

#include "sim/cudart/runtime.h"

static CUarray driver_array(cudaArray_const_t array)
{
    return (CUarray)(uintptr_t)array;
}

static bool channel_format(enum cudaChannelFormatKind kind, int bits, CUarray_format *format_p)
{
    static const struct {
        enum cudaChannelFormatKind kind;
        int bits;
        CUarray_format format;
    } formats[] = {
        {cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8},
        {cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16},
        {cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32},
        {cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8},
        {cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16},
        {cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32},
        {cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF},
        {cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT},
    };

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (formats[i].kind == kind && formats[i].bits == bits) {
            *format_p = formats[i].format;
            return true;
        }
    }
    return false;
}

cudaError_t sim_array_format(const struct cudaChannelFormatDesc *desc, CUarray_format *format_p,
                             unsigned *channels_p)
{
    const int bits[4] = {desc->x, desc->y, desc->z, desc->w};
    unsigned channels = 0;

    while (channels < 4 && bits[channels] != 0) {
        if (bits[channels] != bits[0])
            return cudaErrorInvalidChannelDescriptor;
        channels++;
    }
    for (unsigned i = channels; i < 4; i++) {
        if (bits[i] != 0)
            return cudaErrorInvalidChannelDescriptor;
    }
    if ((channels != 1 && channels != 2 && channels != 4) || !channel_format(desc->f, bits[0], format_p))
        return cudaErrorInvalidChannelDescriptor;
    *channels_p = channels;
    return cudaSuccess;
}

static int format_bits(CUarray_format format, enum cudaChannelFormatKind *kind_p)
{
    *kind_p = cudaChannelFormatKindUnsigned;
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
        return 8;
    case CU_AD_FORMAT_UNSIGNED_INT16:
        return 16;
    case CU_AD_FORMAT_UNSIGNED_INT32:
        return 32;
    case CU_AD_FORMAT_SIGNED_INT8:
        *kind_p = cudaChannelFormatKindSigned;
        return 8;
    case CU_AD_FORMAT_SIGNED_INT16:
        *kind_p = cudaChannelFormatKindSigned;
        return 16;
    case CU_AD_FORMAT_SIGNED_INT32:
        *kind_p = cudaChannelFormatKindSigned;
        return 32;
    case CU_AD_FORMAT_HALF:
        *kind_p = cudaChannelFormatKindFloat;
        return 16;
    case CU_AD_FORMAT_FLOAT:
        *kind_p = cudaChannelFormatKindFloat;
        return 32;
    default:
        return 0;
    }
}

static cudaError_t describe(cudaArray_const_t array, CUDA_ARRAY3D_DESCRIPTOR *desc_p)
{
    if (!array)
        return cudaErrorInvalidResourceHandle;
    return SIM_DRV(cuArray3DGetDescriptor_v2, desc_p, driver_array(array));
}

cudaError_t sim_array_element_bytes(cudaArray_const_t array, size_t *bytes_p)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;
    enum cudaChannelFormatKind kind;
    cudaError_t rc = describe(array, &desc);
    int bits;

    if (rc != cudaSuccess)
        return rc;
    bits = format_bits(desc.Format, &kind);
    if (bits == 0)
        return cudaErrorInvalidChannelDescriptor;
    *bytes_p = (size_t)bits / 8 * desc.NumChannels;
    return cudaSuccess;
}

cudaError_t sim_array_rows(cudaArray_const_t array, size_t *row_bytes_p, size_t *rows_p)
{
    CUDA_ARRAY3D_DESCRIPTOR desc;
    size_t element;
    cudaError_t rc = describe(array, &desc);

    if (rc == cudaSuccess)
        rc = sim_array_element_bytes(array, &element);
    if (rc != cudaSuccess)
        return rc;
    *row_bytes_p = desc.Width * element;
    *rows_p = desc.Height ? desc.Height : 1;
    return cudaSuccess;
}

static cudaError_t fill_descriptor(const struct cudaChannelFormatDesc *desc, struct cudaExtent extent,
                                   unsigned int flags, CUDA_ARRAY3D_DESCRIPTOR *driver_desc)
{
    memset(driver_desc, 0, sizeof(*driver_desc));
    driver_desc->Width = extent.width;
    driver_desc->Height = extent.height;
    driver_desc->Depth = extent.depth;
    driver_desc->Flags = flags;
    return sim_array_format(desc, &driver_desc->Format, &driver_desc->NumChannels);
}

SIM_API struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                           enum cudaChannelFormatKind kind)
{
    struct cudaChannelFormatDesc desc = {x, y, z, w, kind};

    return desc;
}

SIM_API cudaError_t cudaMallocArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                                    size_t width, size_t height, unsigned int flags)
{
    struct cudaExtent extent = {width, height, 0};
    CUDA_ARRAY3D_DESCRIPTOR full;
    CUDA_ARRAY_DESCRIPTOR plain;
    CUarray created;

    SIM_TRY(sim_context());
    SIM_CHECK(array && desc, cudaErrorInvalidValue);
    SIM_TRY(fill_descriptor(desc, extent, flags, &full));
    if (flags != cudaArrayDefault) {
        SIM_TRY(SIM_DRV(cuArray3DCreate_v2, &created, &full));
    } else {
        plain.Width = full.Width;
        plain.Height = full.Height;
        plain.Format = full.Format;
        plain.NumChannels = full.NumChannels;
        SIM_TRY(SIM_DRV(cuArrayCreate_v2, &created, &plain));
    }
    *array = (cudaArray_t)created;
    return cudaSuccess;
}

SIM_API cudaError_t cudaMalloc3DArray(cudaArray_t *array, const struct cudaChannelFormatDesc *desc,
                                      struct cudaExtent extent, unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR full;
    CUarray created;

    SIM_TRY(sim_context());
    SIM_CHECK(array && desc, cudaErrorInvalidValue);
    SIM_TRY(fill_descriptor(desc, extent, flags, &full));
    SIM_TRY(SIM_DRV(cuArray3DCreate_v2, &created, &full));
    *array = (cudaArray_t)created;
    return cudaSuccess;
}

SIM_API cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *mipmap,
                                             const struct cudaChannelFormatDesc *desc,
                                             struct cudaExtent extent, unsigned int levels,
                                             unsigned int flags)
{
    CUDA_ARRAY3D_DESCRIPTOR full;
    CUmipmappedArray created;

    SIM_TRY(sim_context());
    SIM_CHECK(mipmap && desc, cudaErrorInvalidValue);
    SIM_TRY(fill_descriptor(desc, extent, flags, &full));
    SIM_TRY(SIM_DRV(cuMipmappedArrayCreate, &created, &full, levels));
    *mipmap = (cudaMipmappedArray_t)created;
    return cudaSuccess;
}

SIM_API cudaError_t cudaFreeArray(cudaArray_t array)
{
    SIM_TRY(sim_context());
    if (array)
        SIM_TRY(SIM_DRV(cuArrayDestroy, driver_array(array)));
    return cudaSuccess;
}

SIM_API cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmap)
{
    SIM_TRY(sim_context());
    if (mipmap)
        SIM_TRY(SIM_DRV(cuMipmappedArrayDestroy, (CUmipmappedArray)mipmap));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *array, cudaMipmappedArray_const_t mipmap,
                                               unsigned int level)
{
    CUarray found;

    SIM_TRY(sim_context());
    SIM_CHECK(array, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMipmappedArrayGetLevel, &found, (CUmipmappedArray)(uintptr_t)mipmap, level));
    *array = (cudaArray_t)found;
    return cudaSuccess;
}

SIM_API cudaError_t cudaArrayGetPlane(cudaArray_t *plane, cudaArray_t array, unsigned int index)
{
    CUarray found;

    SIM_TRY(sim_context());
    SIM_CHECK(plane, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuArrayGetPlane, &found, driver_array(array), index));
    *plane = (cudaArray_t)found;
    return cudaSuccess;
}

static void channel_desc(const CUDA_ARRAY3D_DESCRIPTOR *from, struct cudaChannelFormatDesc *desc)
{
    int bits = format_bits(from->Format, &desc->f);

    desc->x = bits;
    desc->y = from->NumChannels > 1 ? bits : 0;
    desc->z = from->NumChannels > 2 ? bits : 0;
    desc->w = from->NumChannels > 3 ? bits : 0;
}

SIM_API cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *desc, struct cudaExtent *extent,
                                     unsigned int *flags, cudaArray_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR full;

    SIM_TRY(sim_context());
    SIM_TRY(describe(array, &full));
    if (desc)
        channel_desc(&full, desc);
    if (extent) {
        extent->width = full.Width;
        extent->height = full.Height;
        extent->depth = full.Depth;
    }
    if (flags)
        *flags = full.Flags;
    return cudaSuccess;
}

SIM_API cudaError_t cudaGetChannelDesc(struct cudaChannelFormatDesc *desc, cudaArray_const_t array)
{
    CUDA_ARRAY3D_DESCRIPTOR full;

    SIM_TRY(sim_context());
    SIM_CHECK(desc, cudaErrorInvalidValue);
    SIM_TRY(describe(array, &full));
    channel_desc(&full, desc);
    return cudaSuccess;
}

_Static_assert(sizeof(struct cudaArrayMemoryRequirements) == sizeof(CUDA_ARRAY_MEMORY_REQUIREMENTS),
               "memory requirements have one layout");

SIM_API cudaError_t cudaArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *requirements,
                                                   cudaArray_t array, int device)
{
    CUdevice handle;

    SIM_TRY(sim_context());
    SIM_CHECK(requirements, cudaErrorInvalidValue);
    SIM_CHECK(sim_device(device, &handle) == cudaSuccess, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuArrayGetMemoryRequirements, (CUDA_ARRAY_MEMORY_REQUIREMENTS *)requirements,
                    driver_array(array), handle));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMipmappedArrayGetMemoryRequirements(struct cudaArrayMemoryRequirements *requirements,
                                                            cudaMipmappedArray_t mipmap, int device)
{
    CUdevice handle;

    SIM_TRY(sim_context());
    SIM_CHECK(requirements, cudaErrorInvalidValue);
    SIM_CHECK(sim_device(device, &handle) == cudaSuccess, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMipmappedArrayGetMemoryRequirements, (CUDA_ARRAY_MEMORY_REQUIREMENTS *)requirements,
                    (CUmipmappedArray)mipmap, handle));
    return cudaSuccess;
}
