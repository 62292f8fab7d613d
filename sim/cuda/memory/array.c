/*
 * Arrays: device memory without an address of its own, kept row by row. A mipmapped array is one per level.
 * The memory is a block of the context's; an array whose context died has none left, which every use
 * checks. */
#include <stdlib.h>

#include "sim/cuda/sim.h"

#define MOST_LEVELS 20

struct CUarray_st {
    struct sim_object object;
    CUDA_ARRAY3D_DESCRIPTOR desc;
    unsigned element_bytes;
    CUdeviceptr address;
    unsigned long long block_id;
    struct CUmipmappedArray_st *parent; /* levels end with their array */
};

struct CUmipmappedArray_st {
    struct sim_object object;
    unsigned levels;
    struct CUarray_st *level[MOST_LEVELS];
};

static unsigned channel_bytes(CUarray_format format)
{
    switch ((int)format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0; /* packed and block-compressed formats are not simulated */
    }
}

static size_t at_least_one(size_t n)
{
    return n ? n : 1;
}

static CUresult array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, size_t *bytes_p)
{
    unsigned element = channel_bytes(desc->Format) * desc->NumChannels;
    size_t bytes;

    if (!desc->Width || !element ||
        (desc->NumChannels != 1 && desc->NumChannels != 2 && desc->NumChannels != 4) ||
        (desc->Flags & ~0xffU))
        return CUDA_ERROR_INVALID_VALUE;
    if (desc->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (__builtin_mul_overflow(desc->Width, element, &bytes) ||
        __builtin_mul_overflow(bytes, at_least_one(desc->Height), &bytes) ||
        __builtin_mul_overflow(bytes, at_least_one(desc->Depth), &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    *bytes_p = bytes;
    return CUDA_SUCCESS;
}

static void dispose_array(void *object)
{
    struct CUarray_st *array = object;

    sim_memory_write_lock();
    struct sim_block *block = sim_block_base(array->address);
    if (block && block->id == array->block_id)
        sim_heap_free(block);
    sim_memory_unlock();
}

static CUresult create(struct CUctx_st *ctx, const CUDA_ARRAY3D_DESCRIPTOR *desc, struct CUarray_st **array_p)
{
    struct sim_block *block;
    size_t bytes;
    CUresult status = array_bytes(desc, &bytes);

    if (status != CUDA_SUCCESS)
        return status;
    struct CUarray_st *array = sim_object_new(sizeof *array, SIM_ARRAY, dispose_array);
    if (!array)
        return CUDA_ERROR_OUT_OF_MEMORY;
    status = sim_heap_take(ctx, SIM_FOR_ARRAY, bytes, &block);
    if (status != CUDA_SUCCESS) {
        free(array);
        return status;
    }
    array->desc = *desc;
    array->element_bytes = channel_bytes(desc->Format) * desc->NumChannels;
    array->address = block->range.start;
    array->block_id = block->id;
    sim_object_publish(array);
    *array_p = array;
    return CUDA_SUCCESS;
}

/** The address of an array's bytes, and how many they are. */
CUresult sim_array_memory(CUarray handle, CUdeviceptr *address_p, size_t *bytes_p)
{
    struct CUarray_st *array = sim_object_get(handle, SIM_ARRAY);

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_memory_read_lock();
    struct sim_block *block = sim_block_base(array->address);
    bool live = block && block->id == array->block_id;
    if (live) {
        *address_p = array->address;
        *bytes_p = block->range.bytes;
    }
    sim_memory_unlock();
    sim_object_put(array);
    return live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/** The shape of an array in bytes: a row, a plane. */
CUresult sim_array_shape(CUarray handle, size_t *row_bytes_p, size_t *plane_bytes_p)
{
    struct CUarray_st *array = sim_object_get(handle, SIM_ARRAY);

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    *row_bytes_p = array->desc.Width * array->element_bytes;
    *plane_bytes_p = *row_bytes_p * at_least_one(array->desc.Height);
    sim_object_put(array);
    return CUDA_SUCCESS;
}

SIM_API(cuArray3DCreate_v2)(CUarray *array_p, const CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    SIM_ENTER_CTX(cuArray3DCreate_v2);
    SIM_REFUSE_UNSAFE();
    if (!array_p || !desc)
        return CUDA_ERROR_INVALID_VALUE;
    return create(ctx, desc, array_p);
}

SIM_API(cuArrayCreate_v2)(CUarray *array_p, const CUDA_ARRAY_DESCRIPTOR *desc)
{
    SIM_ENTER_CTX(cuArrayCreate_v2);
    SIM_REFUSE_UNSAFE();
    if (!array_p || !desc)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR wide = {desc->Width, desc->Height, 0, desc->Format, desc->NumChannels, 0};
    return create(ctx, &wide, array_p);
}

SIM_API(cuArray3DCreate)(CUarray *array_p, const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc)
{
    SIM_ENTER_CTX(cuArray3DCreate);
    if (!array_p || !desc)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR wide = {desc->Width,  desc->Height,      desc->Depth,
                                    desc->Format, desc->NumChannels, desc->Flags};
    return create(ctx, &wide, array_p);
}

SIM_API(cuArrayCreate)(CUarray *array_p, const CUDA_ARRAY_DESCRIPTOR_v1 *desc)
{
    SIM_ENTER_CTX(cuArrayCreate);
    if (!array_p || !desc)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR wide = {desc->Width, desc->Height, 0, desc->Format, desc->NumChannels, 0};
    return create(ctx, &wide, array_p);
}

SIM_API(cuArrayDestroy)(CUarray handle)
{
    SIM_ENTER_CTX(cuArrayDestroy);
    SIM_REFUSE_UNSAFE();
    struct CUarray_st *array = sim_object_get(handle, SIM_ARRAY);

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult status = array->parent ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS) {
        sim_context_drain(ctx);
        if (sim_object_retire(array))
            sim_object_put(array);
    }
    sim_object_put(array);
    return status;
}

static CUresult describe(CUarray handle, CUDA_ARRAY3D_DESCRIPTOR *desc)
{
    struct CUarray_st *array = sim_object_get(handle, SIM_ARRAY);

    if (!array)
        return CUDA_ERROR_INVALID_HANDLE;
    *desc = array->desc;
    sim_object_put(array);
    return CUDA_SUCCESS;
}

SIM_API(cuArray3DGetDescriptor_v2)(CUDA_ARRAY3D_DESCRIPTOR *desc, CUarray array)
{
    SIM_ENTER(cuArray3DGetDescriptor_v2);
    return desc ? describe(array, desc) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuArrayGetDescriptor_v2)(CUDA_ARRAY_DESCRIPTOR *desc, CUarray array)
{
    SIM_ENTER(cuArrayGetDescriptor_v2);
    CUDA_ARRAY3D_DESCRIPTOR wide;
    CUresult status = desc ? describe(array, &wide) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        *desc = (CUDA_ARRAY_DESCRIPTOR){wide.Width, wide.Height, wide.Format, wide.NumChannels};
    return status;
}

/* Only arrays made for deferred mapping have an answer to this, and there are none here. */
SIM_API(cuArrayGetMemoryRequirements)(CUDA_ARRAY_MEMORY_REQUIREMENTS *needs, CUarray array, CUdevice device)
{
    SIM_ENTER(cuArrayGetMemoryRequirements);
    CUDA_ARRAY3D_DESCRIPTOR desc;

    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    CUresult status = needs ? describe(array, &desc) : CUDA_ERROR_INVALID_VALUE;
    return status == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : status;
}

static void dispose_mipmap(void *object)
{
    struct CUmipmappedArray_st *mipmap = object;

    for (unsigned i = 0; i < mipmap->levels; i++) {
        if (sim_object_retire(mipmap->level[i]))
            sim_object_put(mipmap->level[i]);
    }
}

static size_t halved(size_t extent, unsigned level)
{
    return extent ? at_least_one(extent >> level) : 0;
}

SIM_API(cuMipmappedArrayCreate)
(CUmipmappedArray *mipmap_p, const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned levels)
{
    SIM_ENTER_CTX(cuMipmappedArrayCreate);
    SIM_REFUSE_UNSAFE();
    CUresult status = CUDA_SUCCESS;

    if (!mipmap_p || !desc || !levels)
        return CUDA_ERROR_INVALID_VALUE;
    struct CUmipmappedArray_st *mipmap = sim_object_new(sizeof *mipmap, SIM_MIPMAP, dispose_mipmap);
    if (!mipmap)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < levels && i < MOST_LEVELS && status == CUDA_SUCCESS; i++) {
        CUDA_ARRAY3D_DESCRIPTOR level = *desc;
        bool layered = desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
        level.Width = halved(desc->Width, i);
        level.Height = halved(desc->Height, i);
        level.Depth = layered ? desc->Depth : halved(desc->Depth, i);
        if (i && level.Width == halved(desc->Width, i - 1) && level.Height == halved(desc->Height, i - 1) &&
            level.Depth == (layered ? desc->Depth : halved(desc->Depth, i - 1)))
            break; /* nothing left to halve */
        status = create(ctx, &level, &mipmap->level[i]);
        if (status == CUDA_SUCCESS) {
            mipmap->level[i]->parent = mipmap;
            mipmap->levels++;
        }
    }
    if (status != CUDA_SUCCESS) {
        sim_object_put(mipmap);
        return status;
    }
    sim_object_publish(mipmap);
    *mipmap_p = mipmap;
    return CUDA_SUCCESS;
}

SIM_API(cuMipmappedArrayDestroy)(CUmipmappedArray handle)
{
    SIM_ENTER_CTX(cuMipmappedArrayDestroy);
    SIM_REFUSE_UNSAFE();
    struct CUmipmappedArray_st *mipmap = sim_object_get(handle, SIM_MIPMAP);

    if (!mipmap)
        return CUDA_ERROR_INVALID_HANDLE;
    sim_context_drain(ctx);
    if (sim_object_retire(mipmap))
        sim_object_put(mipmap);
    sim_object_put(mipmap);
    return CUDA_SUCCESS;
}

SIM_API(cuMipmappedArrayGetLevel)(CUarray *level_p, CUmipmappedArray handle, unsigned level)
{
    SIM_ENTER(cuMipmappedArrayGetLevel);
    struct CUmipmappedArray_st *mipmap = level_p ? sim_object_get(handle, SIM_MIPMAP) : NULL;

    if (!mipmap)
        return level_p ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_VALUE;
    CUresult status = level < mipmap->levels ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS)
        *level_p = mipmap->level[level];
    sim_object_put(mipmap);
    return status;
}
