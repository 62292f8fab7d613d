/*
 * Copies with a shape: two and three dimensions, between any of host, device, array and unified addresses.
 * The two-dimensional and the 32-bit descriptions are widened to the three-dimensional one.
 */
#include "sim/cuda/graph/graph.h"

static CUdeviceptr ptr(const void *host)
{
    return (CUdeviceptr)(uintptr_t)host;
}

/* One side of a description, in the terms of either. */
struct side_desc {
    CUmemorytype type;
    CUdeviceptr host, device;
    CUarray array;
    size_t x, y, z, pitch, height;
    unsigned devices;
};

static CUresult resolve(const struct side_desc *desc, struct sim_copy *copy, struct sim_side *side,
                        bool write)
{
    size_t pitch = desc->pitch ? desc->pitch : desc->x + copy->width;
    size_t slice = pitch * (desc->height ? desc->height : desc->y + copy->height), array_bytes = 0;
    CUdeviceptr base = desc->type == CU_MEMORYTYPE_HOST ? desc->host : desc->device;

    if ((int)desc->type < CU_MEMORYTYPE_HOST || desc->type > CU_MEMORYTYPE_UNIFIED)
        return CUDA_ERROR_INVALID_VALUE;
    if (desc->type == CU_MEMORYTYPE_ARRAY) {
        CUresult status = sim_array_memory(desc->array, &base, &array_bytes);
        if (status == CUDA_SUCCESS)
            status = sim_array_shape(desc->array, &pitch, &slice);
        if (status != CUDA_SUCCESS)
            return status;
        if (desc->y + copy->height > slice / pitch)
            return CUDA_ERROR_INVALID_VALUE;
    }
    if (desc->x + copy->width > pitch || desc->y + copy->height > slice / pitch)
        return CUDA_ERROR_INVALID_VALUE;
    CUdeviceptr address = base + desc->z * slice + desc->y * pitch + desc->x;
    if (!base || !sim_copy_side(side, address, pitch, slice, copy, write))
        return CUDA_ERROR_INVALID_VALUE;
    if (side->pageable && desc->type != CU_MEMORYTYPE_HOST && desc->type != CU_MEMORYTYPE_UNIFIED)
        return CUDA_ERROR_INVALID_VALUE;
    side->devices = desc->devices;
    return CUDA_SUCCESS;
}

static bool is_host(const struct sim_side *side)
{
    sim_memory_read_lock();
    struct sim_block *block = sim_block_at(side->address);
    bool host = !block || block->device == SIM_HOST;
    sim_memory_unlock();
    return host;
}

/* Reads a description into a `struct sim_copy`, and checks it. */
static CUresult describe(const CUDA_MEMCPY3D *c, unsigned to_devices, unsigned from_devices,
                         struct sim_copy *copy)
{
    *copy = (struct sim_copy){.width = c->WidthInBytes, .height = c->Height, .depth = c->Depth};
    if (c->srcLOD || c->dstLOD)
        return CUDA_ERROR_INVALID_VALUE;
    struct side_desc to = {c->dstMemoryType, ptr(c->dstHost), c->dstDevice, c->dstArray,  c->dstXInBytes,
                           c->dstY,          c->dstZ,         c->dstPitch,  c->dstHeight, to_devices};
    struct side_desc from = {c->srcMemoryType, ptr(c->srcHost), c->srcDevice, c->srcArray,  c->srcXInBytes,
                             c->srcY,          c->srcZ,         c->srcPitch,  c->srcHeight, from_devices};
    CUresult status = resolve(&to, copy, &copy->to, true);
    return status == CUDA_SUCCESS ? resolve(&from, copy, &copy->from, false) : status;
}

static CUresult shaped(const CUDA_MEMCPY3D *c, unsigned to_devices, unsigned from_devices, bool wait,
                       CUstream stream, bool per_thread)
{
    CUresult status = sim_stream_check(stream, per_thread);
    struct sim_copy copy;

    if (status != CUDA_SUCCESS || !c->WidthInBytes || !c->Height || !c->Depth)
        return status;
    status = describe(c, to_devices, from_devices, &copy);
    if (status != CUDA_SUCCESS)
        return status;
    enum sim_copy_kind kind = !wait ? SIM_COPY_ASYNC : SIM_COPY_STREAMLESS;
    if (wait && (is_host(&copy.to) || is_host(&copy.from)))
        kind = SIM_COPY_WAITS;
    return sim_copy_submit(stream, per_thread, &copy, kind);
}

CUresult sim_copy_work(const CUDA_MEMCPY3D *params, struct CUctx_st *ctx, struct sim_op **work_p)
{
    struct sim_copy copy;

    if (!params->WidthInBytes || !params->Height || !params->Depth)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult status = describe(params, 0, 0, &copy);
    return status == CUDA_SUCCESS ? sim_copy_described(&copy, params, ctx, work_p) : status;
}

static CUresult shaped_3d(const CUDA_MEMCPY3D *c, bool wait, CUstream stream, bool per_thread)
{
    return c ? shaped(c, 0, 0, wait, stream, per_thread) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult shaped_2d(const CUDA_MEMCPY2D *c, bool wait, CUstream stream, bool per_thread)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D wide = {
        .srcXInBytes = c->srcXInBytes,
        .srcY = c->srcY,
        .srcMemoryType = c->srcMemoryType,
        .srcHost = c->srcHost,
        .srcDevice = c->srcDevice,
        .srcArray = c->srcArray,
        .srcPitch = c->srcPitch,
        .dstXInBytes = c->dstXInBytes,
        .dstY = c->dstY,
        .dstMemoryType = c->dstMemoryType,
        .dstHost = c->dstHost,
        .dstDevice = c->dstDevice,
        .dstArray = c->dstArray,
        .dstPitch = c->dstPitch,
        .WidthInBytes = c->WidthInBytes,
        .Height = c->Height,
        .Depth = 1,
    };
    return shaped(&wide, 0, 0, wait, stream, per_thread);
}

SIM_PAIR(cuMemcpy2D_v2, ptds, (const CUDA_MEMCPY2D *c), shaped_2d(c, true, NULL, per_thread))
SIM_PAIR(cuMemcpy2DUnaligned_v2, ptds, (const CUDA_MEMCPY2D *c), shaped_2d(c, true, NULL, per_thread))
SIM_PAIR(cuMemcpy2DAsync_v2, ptsz, (const CUDA_MEMCPY2D *c, CUstream stream),
         shaped_2d(c, false, stream, per_thread))
SIM_PAIR(cuMemcpy3D_v2, ptds, (const CUDA_MEMCPY3D *c), shaped_3d(c, true, NULL, per_thread))
SIM_PAIR(cuMemcpy3DAsync_v2, ptsz, (const CUDA_MEMCPY3D *c, CUstream stream),
         shaped_3d(c, false, stream, per_thread))

/* The device of a context handle as a mask, 0 if it is none. */
static unsigned device_of(CUcontext handle)
{
    struct CUctx_st *ctx = sim_object_get(handle, SIM_CONTEXT);
    unsigned bit = ctx ? 1U << ctx->device->ordinal : 0;

    if (ctx)
        sim_object_put(ctx);
    return bit;
}

static CUresult shaped_peer(const CUDA_MEMCPY3D_PEER *c, CUstream stream, bool per_thread)
{
    unsigned to = c ? device_of(c->dstContext) : 0, from = c ? device_of(c->srcContext) : 0;

    if (c && (!c->WidthInBytes || !c->Height || !c->Depth)) /* nothing: nobody looks whose it would be */
        return sim_stream_check(stream, per_thread);
    if (!to || !from)
        return c ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D plain = {
        .srcXInBytes = c->srcXInBytes,
        .srcY = c->srcY,
        .srcZ = c->srcZ,
        .srcLOD = c->srcLOD,
        .srcMemoryType = c->srcMemoryType,
        .srcHost = c->srcHost,
        .srcDevice = c->srcDevice,
        .srcArray = c->srcArray,
        .srcPitch = c->srcPitch,
        .srcHeight = c->srcHeight,
        .dstXInBytes = c->dstXInBytes,
        .dstY = c->dstY,
        .dstZ = c->dstZ,
        .dstLOD = c->dstLOD,
        .dstMemoryType = c->dstMemoryType,
        .dstHost = c->dstHost,
        .dstDevice = c->dstDevice,
        .dstArray = c->dstArray,
        .dstPitch = c->dstPitch,
        .dstHeight = c->dstHeight,
        .WidthInBytes = c->WidthInBytes,
        .Height = c->Height,
        .Depth = c->Depth,
    };
    return shaped(&plain, to, from, false, stream, per_thread);
}

SIM_PAIR(cuMemcpy3DPeer, ptds, (const CUDA_MEMCPY3D_PEER *c), shaped_peer(c, NULL, per_thread))
SIM_PAIR(cuMemcpy3DPeerAsync, ptsz, (const CUDA_MEMCPY3D_PEER *c, CUstream stream),
         shaped_peer(c, stream, per_thread))

/* --- many copies in one call: one after the other on the stream ----------------------------------------- */

#define NO_COPY SIZE_MAX /* the index where no single copy is to blame */

/* True if each copy has attributes, from the first on, and good ones. */
static bool good_attributes(const CUmemcpyAttributes *attributes, const size_t *firsts,
                            size_t attribute_count, size_t count)
{
    if (!attributes || !firsts || !attribute_count || attribute_count > count || firsts[0])
        return false;
    for (size_t i = 0; i < attribute_count; i++)
        if ((i && firsts[i] <= firsts[i - 1]) || firsts[i] >= count || (attributes[i].flags & ~1U) ||
            attributes[i].srcAccessOrder < CU_MEMCPY_SRC_ACCESS_ORDER_STREAM ||
            attributes[i].srcAccessOrder > CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
            return false;
    return true;
}

static CUresult batch(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                      const CUmemcpyAttributes *attributes, const size_t *firsts, size_t attribute_count,
                      size_t *failed_p, CUstream stream, bool per_thread)
{
    CUresult status = sim_stream_check(stream, per_thread);

    if (status != CUDA_SUCCESS)
        return status;
    if ((!stream && !per_thread) || stream == CU_STREAM_LEGACY)
        return CUDA_ERROR_INVALID_VALUE;
    if (failed_p)
        *failed_p = NO_COPY;
    if (!to || !from || !bytes || !count || !good_attributes(attributes, firsts, attribute_count, count))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++) {
        struct sim_copy copy = {.width = bytes[i], .height = 1, .depth = 1};
        bool good = bytes[i] && sim_copy_side(&copy.to, to[i], bytes[i], bytes[i], &copy, true) &&
                    sim_copy_side(&copy.from, from[i], bytes[i], bytes[i], &copy, false);
        status = good ? sim_copy_submit(stream, per_thread, &copy, SIM_COPY_ASYNC) : CUDA_ERROR_INVALID_VALUE;
        if (status != CUDA_SUCCESS) {
            if (failed_p)
                *failed_p = i;
            return status;
        }
    }
    return CUDA_SUCCESS;
}

SIM_PAIR(cuMemcpyBatchAsync, ptsz,
         (CUdeviceptr * to, CUdeviceptr *from, size_t *bytes, size_t count, CUmemcpyAttributes *attributes,
          size_t *firsts, size_t attribute_count, size_t *failed_p, CUstream stream),
         batch(to, from, bytes, count, attributes, firsts, attribute_count, failed_p, stream, per_thread))
SIM_PAIR(cuMemcpyBatchAsync_v2, ptsz,
         (CUdeviceptr * to, CUdeviceptr *from, size_t *bytes, size_t count, CUmemcpyAttributes *attributes,
          size_t *firsts, size_t attribute_count, CUstream stream),
         batch(to, from, bytes, count, attributes, firsts, attribute_count, NULL, stream, per_thread))

/* --- the 32-bit interface ------------------------------------------------------------------------------- */

static CUresult narrow_2d(const CUDA_MEMCPY2D_v1 *c, bool wait, CUstream stream)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY2D wide = {c->srcXInBytes, c->srcY,          c->srcMemoryType, c->srcHost,
                          c->srcDevice,   c->srcArray,      c->srcPitch,      c->dstXInBytes,
                          c->dstY,        c->dstMemoryType, c->dstHost,       c->dstDevice,
                          c->dstArray,    c->dstPitch,      c->WidthInBytes,  c->Height};
    return shaped_2d(&wide, wait, stream, false);
}

static CUresult narrow_3d(const CUDA_MEMCPY3D_v1 *c, bool wait, CUstream stream)
{
    if (!c)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D wide = {
        .srcXInBytes = c->srcXInBytes,
        .srcY = c->srcY,
        .srcZ = c->srcZ,
        .srcLOD = c->srcLOD,
        .srcMemoryType = c->srcMemoryType,
        .srcHost = c->srcHost,
        .srcDevice = c->srcDevice,
        .srcArray = c->srcArray,
        .srcPitch = c->srcPitch,
        .srcHeight = c->srcHeight,
        .dstXInBytes = c->dstXInBytes,
        .dstY = c->dstY,
        .dstZ = c->dstZ,
        .dstLOD = c->dstLOD,
        .dstMemoryType = c->dstMemoryType,
        .dstHost = c->dstHost,
        .dstDevice = c->dstDevice,
        .dstArray = c->dstArray,
        .dstPitch = c->dstPitch,
        .dstHeight = c->dstHeight,
        .WidthInBytes = c->WidthInBytes,
        .Height = c->Height,
        .Depth = c->Depth,
    };
    return shaped(&wide, 0, 0, wait, stream, false);
}

SIM_API(cuMemcpy2D)(const CUDA_MEMCPY2D_v1 *c)
{
    SIM_ENTER(cuMemcpy2D);
    return narrow_2d(c, true, NULL);
}

SIM_API(cuMemcpy2DUnaligned)(const CUDA_MEMCPY2D_v1 *c)
{
    SIM_ENTER(cuMemcpy2DUnaligned);
    return narrow_2d(c, true, NULL);
}

SIM_API(cuMemcpy2DAsync)(const CUDA_MEMCPY2D_v1 *c, CUstream stream)
{
    SIM_ENTER(cuMemcpy2DAsync);
    return narrow_2d(c, false, stream);
}

SIM_API(cuMemcpy3D)(const CUDA_MEMCPY3D_v1 *c)
{
    SIM_ENTER(cuMemcpy3D);
    return narrow_3d(c, true, NULL);
}

SIM_API(cuMemcpy3DAsync)(const CUDA_MEMCPY3D_v1 *c, CUstream stream)
{
    SIM_ENTER(cuMemcpy3DAsync);
    return narrow_3d(c, false, stream);
}
