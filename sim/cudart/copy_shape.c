/*
 * Copies with a shape: rows, boxes, and arrays at either end, all turned into the driver's 2D and 3D
 * descriptors.
 */
#include <string.h>

#include "sim/cudart/runtime.h"

static CUarray driver_array(cudaArray_const_t array)
{
    return (CUarray)(uintptr_t)array;
}

cudaError_t sim_copy_ends(enum cudaMemcpyKind kind, CUmemorytype *from_p, CUmemorytype *to_p)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        *from_p = *to_p = CU_MEMORYTYPE_HOST;
        return cudaSuccess;
    case cudaMemcpyHostToDevice:
        *from_p = CU_MEMORYTYPE_HOST;
        *to_p = CU_MEMORYTYPE_DEVICE;
        return cudaSuccess;
    case cudaMemcpyDeviceToHost:
        *from_p = CU_MEMORYTYPE_DEVICE;
        *to_p = CU_MEMORYTYPE_HOST;
        return cudaSuccess;
    case cudaMemcpyDeviceToDevice:
        *from_p = *to_p = CU_MEMORYTYPE_DEVICE;
        return cudaSuccess;
    case cudaMemcpyDefault:
        *from_p = *to_p = CU_MEMORYTYPE_UNIFIED;
        return cudaSuccess;
    default:
        return cudaErrorInvalidMemcpyDirection;
    }
}

static void rows_from(CUDA_MEMCPY2D *op, CUmemorytype type, const void *from, size_t pitch)
{
    op->srcMemoryType = type;
    op->srcHost = from;
    op->srcDevice = sim_devptr(from);
    op->srcPitch = pitch;
}

static void rows_to(CUDA_MEMCPY2D *op, CUmemorytype type, void *to, size_t pitch)
{
    op->dstMemoryType = type;
    op->dstHost = to;
    op->dstDevice = sim_devptr(to);
    op->dstPitch = pitch;
}

static void array_from(CUDA_MEMCPY2D *op, cudaArray_const_t from, size_t x_bytes, size_t y)
{
    op->srcMemoryType = CU_MEMORYTYPE_ARRAY;
    op->srcArray = driver_array(from);
    op->srcXInBytes = x_bytes;
    op->srcY = y;
}

static void array_to(CUDA_MEMCPY2D *op, cudaArray_const_t to, size_t x_bytes, size_t y)
{
    op->dstMemoryType = CU_MEMORYTYPE_ARRAY;
    op->dstArray = driver_array(to);
    op->dstXInBytes = x_bytes;
    op->dstY = y;
}

/* STREAM_P is NULL for a call that waits. */
static cudaError_t run_2d(int half, CUDA_MEMCPY2D *op, size_t width, size_t height, cudaStream_t *stream_p)
{
    op->WidthInBytes = width;
    op->Height = height;
    if (width == 0 || height == 0)
        return cudaSuccess;
    if (stream_p)
        SIM_TRY(SIM_DRV_OF(half, cuMemcpy2DAsync_v2, op, *stream_p));
    else
        SIM_TRY(SIM_DRV_OF(half, cuMemcpy2DUnaligned_v2, op));
    return cudaSuccess;
}

static cudaError_t rows(int half, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                        size_t width, size_t height, enum cudaMemcpyKind kind, cudaStream_t *stream_p)
{
    CUDA_MEMCPY2D op = {0};
    CUmemorytype from_type, to_type;

    SIM_TRY(sim_context());
    SIM_CHECK(width <= to_pitch && width <= from_pitch, cudaErrorInvalidPitchValue);
    SIM_TRY(sim_copy_ends(kind, &from_type, &to_type));
    rows_from(&op, from_type, from, from_pitch);
    rows_to(&op, to_type, to, to_pitch);
    return run_2d(half, &op, width, height, stream_p);
}

static cudaError_t rows_to_array(int half, cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
                                 size_t width, size_t height, enum cudaMemcpyKind kind,
                                 cudaStream_t *stream_p)
{
    CUDA_MEMCPY2D op = {0};
    CUmemorytype from_type, to_type;

    SIM_TRY(sim_context());
    SIM_CHECK(to, cudaErrorInvalidResourceHandle);
    SIM_CHECK(width <= pitch, cudaErrorInvalidPitchValue);
    SIM_TRY(sim_copy_ends(kind, &from_type, &to_type));
    rows_from(&op, from_type, from, pitch);
    array_to(&op, to, x, y);
    return run_2d(half, &op, width, height, stream_p);
}

static cudaError_t rows_from_array(int half, void *to, size_t pitch, cudaArray_const_t from, size_t x,
                                   size_t y, size_t width, size_t height, enum cudaMemcpyKind kind,
                                   cudaStream_t *stream_p)
{
    CUDA_MEMCPY2D op = {0};
    CUmemorytype from_type, to_type;

    SIM_TRY(sim_context());
    SIM_CHECK(from, cudaErrorInvalidResourceHandle);
    SIM_CHECK(width <= pitch, cudaErrorInvalidPitchValue);
    SIM_TRY(sim_copy_ends(kind, &from_type, &to_type));
    array_from(&op, from, x, y);
    rows_to(&op, to_type, to, pitch);
    return run_2d(half, &op, width, height, stream_p);
}

static cudaError_t array_to_array(int half, cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
                                  size_t from_x, size_t from_y, size_t width, size_t height,
                                  enum cudaMemcpyKind kind)
{
    CUDA_MEMCPY2D op = {0};

    (void)kind; /* both ends are arrays: it says nothing that they do not */
    SIM_TRY(sim_context());
    SIM_CHECK(to && from, cudaErrorInvalidResourceHandle);
    array_from(&op, from, from_x, from_y);
    array_to(&op, to, to_x, to_y);
    return run_2d(half, &op, width, height, NULL);
}

SIM_TWINS(cudaMemcpy2D, _ptds, rows,
          (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
           enum cudaMemcpyKind kind),
          to, to_pitch, from, from_pitch, width, height, kind, NULL)
SIM_TWINS(cudaMemcpy2DAsync, _ptsz, rows,
          (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
           enum cudaMemcpyKind kind, cudaStream_t stream),
          to, to_pitch, from, from_pitch, width, height, kind, &stream)
SIM_TWINS(cudaMemcpy2DToArray, _ptds, rows_to_array,
          (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
           enum cudaMemcpyKind kind),
          to, x, y, from, pitch, width, height, kind, NULL)
SIM_TWINS(cudaMemcpy2DToArrayAsync, _ptsz, rows_to_array,
          (cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch, size_t width, size_t height,
           enum cudaMemcpyKind kind, cudaStream_t stream),
          to, x, y, from, pitch, width, height, kind, &stream)
SIM_TWINS(cudaMemcpy2DFromArray, _ptds, rows_from_array,
          (void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height,
           enum cudaMemcpyKind kind),
          to, pitch, from, x, y, width, height, kind, NULL)
SIM_TWINS(cudaMemcpy2DFromArrayAsync, _ptsz, rows_from_array,
          (void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width, size_t height,
           enum cudaMemcpyKind kind, cudaStream_t stream),
          to, pitch, from, x, y, width, height, kind, &stream)

SIM_TWINS(cudaMemcpy2DArrayToArray, _ptds, array_to_array,
          (cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x, size_t from_y,
           size_t width, size_t height, enum cudaMemcpyKind kind),
          to, to_x, to_y, from, from_x, from_y, width, height, kind)

/* Positions count elements at the end that is an array and bytes at the other; the extent counts elements if
 * there is an array at either end. */
cudaError_t sim_copy_box(const struct cudaMemcpy3DParms *parms, CUDA_MEMCPY3D *op)
{
    size_t from_element = 1, to_element = 1;
    CUmemorytype from_type, to_type;
    cudaError_t rc = sim_copy_ends(parms->kind, &from_type, &to_type);

    if (rc == cudaSuccess && parms->srcArray)
        rc = sim_array_element_bytes(parms->srcArray, &from_element);
    if (rc == cudaSuccess && parms->dstArray)
        rc = sim_array_element_bytes(parms->dstArray, &to_element);
    if (rc != cudaSuccess)
        return rc;

    memset(op, 0, sizeof(*op));
    op->srcMemoryType = parms->srcArray ? CU_MEMORYTYPE_ARRAY : from_type;
    op->srcArray = driver_array(parms->srcArray);
    op->srcHost = parms->srcPtr.ptr;
    op->srcDevice = sim_devptr(parms->srcPtr.ptr);
    op->srcPitch = parms->srcPtr.pitch;
    op->srcHeight = parms->srcPtr.ysize;
    op->srcXInBytes = parms->srcPos.x * from_element;
    op->srcY = parms->srcPos.y;
    op->srcZ = parms->srcPos.z;
    op->dstMemoryType = parms->dstArray ? CU_MEMORYTYPE_ARRAY : to_type;
    op->dstArray = driver_array(parms->dstArray);
    op->dstHost = parms->dstPtr.ptr;
    op->dstDevice = sim_devptr(parms->dstPtr.ptr);
    op->dstPitch = parms->dstPtr.pitch;
    op->dstHeight = parms->dstPtr.ysize;
    op->dstXInBytes = parms->dstPos.x * to_element;
    op->dstY = parms->dstPos.y;
    op->dstZ = parms->dstPos.z;
    op->WidthInBytes = parms->extent.width * (parms->srcArray ? from_element : to_element);
    op->Height = parms->extent.height;
    op->Depth = parms->extent.depth;
    return cudaSuccess;
}

static enum cudaMemcpyKind kind_of(const CUDA_MEMCPY3D *op)
{
    bool from_host = op->srcMemoryType == CU_MEMORYTYPE_HOST,
         to_host = op->dstMemoryType == CU_MEMORYTYPE_HOST;

    if (op->srcMemoryType == CU_MEMORYTYPE_UNIFIED || op->dstMemoryType == CU_MEMORYTYPE_UNIFIED)
        return cudaMemcpyDefault;
    if (from_host)
        return to_host ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    return to_host ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

cudaError_t sim_copy_unbox(const CUDA_MEMCPY3D *op, struct cudaMemcpy3DParms *parms)
{
    size_t from_element = 1, to_element = 1;
    cudaError_t rc = cudaSuccess;

    memset(parms, 0, sizeof(*parms));
    parms->srcArray = (cudaArray_t)(uintptr_t)op->srcArray;
    parms->dstArray = (cudaArray_t)(uintptr_t)op->dstArray;
    if (parms->srcArray)
        rc = sim_array_element_bytes(parms->srcArray, &from_element);
    if (rc == cudaSuccess && parms->dstArray)
        rc = sim_array_element_bytes(parms->dstArray, &to_element);
    if (rc != cudaSuccess)
        return rc;
    parms->srcPtr.ptr =
        op->srcMemoryType == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)op->srcHost : sim_pointer(op->srcDevice);
    parms->srcPtr.pitch = op->srcPitch;
    parms->srcPtr.ysize = op->srcHeight;
    parms->srcPos.x = op->srcXInBytes / from_element;
    parms->srcPos.y = op->srcY;
    parms->srcPos.z = op->srcZ;
    parms->dstPtr.ptr = op->dstMemoryType == CU_MEMORYTYPE_HOST ? op->dstHost : sim_pointer(op->dstDevice);
    parms->dstPtr.pitch = op->dstPitch;
    parms->dstPtr.ysize = op->dstHeight;
    parms->dstPos.x = op->dstXInBytes / to_element;
    parms->dstPos.y = op->dstY;
    parms->dstPos.z = op->dstZ;
    parms->extent.width = op->WidthInBytes / (parms->srcArray ? from_element : to_element);
    parms->extent.height = op->Height;
    parms->extent.depth = op->Depth;
    parms->kind = kind_of(op);
    return cudaSuccess;
}

static cudaError_t copy_3d(int half, const struct cudaMemcpy3DParms *parms, cudaStream_t *stream_p)
{
    CUDA_MEMCPY3D op;

    SIM_TRY(sim_context());
    SIM_CHECK(parms, cudaErrorInvalidValue);
    SIM_TRY(sim_copy_box(parms, &op));
    if (op.WidthInBytes == 0 || op.Height == 0 || op.Depth == 0)
        return cudaSuccess;
    if (stream_p)
        SIM_TRY(SIM_DRV_OF(half, cuMemcpy3DAsync_v2, &op, *stream_p));
    else
        SIM_TRY(SIM_DRV_OF(half, cuMemcpy3D_v2, &op));
    return cudaSuccess;
}

SIM_TWINS(cudaMemcpy3D, _ptds, copy_3d, (const struct cudaMemcpy3DParms *parms), parms, NULL)
SIM_TWINS(cudaMemcpy3DAsync, _ptsz, copy_3d, (const struct cudaMemcpy3DParms *parms, cudaStream_t stream),
          parms, &stream)

/* The driver's two descriptors agree up to the contexts, which sit where the plain one has reserved words. */
_Static_assert(sizeof(CUDA_MEMCPY3D) == sizeof(CUDA_MEMCPY3D_PEER) &&
                   offsetof(CUDA_MEMCPY3D, reserved0) == offsetof(CUDA_MEMCPY3D_PEER, srcContext) &&
                   offsetof(CUDA_MEMCPY3D, reserved1) == offsetof(CUDA_MEMCPY3D_PEER, dstContext),
               "the peer descriptor extends the plain one");

static cudaError_t copy_3d_peer(int half, const struct cudaMemcpy3DPeerParms *parms, cudaStream_t *stream_p)
{
    struct cudaMemcpy3DParms plain;
    CUDA_MEMCPY3D_PEER peer;
    CUDA_MEMCPY3D op;

    SIM_TRY(sim_context());
    SIM_CHECK(parms, cudaErrorInvalidValue);
    plain.srcArray = parms->srcArray;
    plain.srcPos = parms->srcPos;
    plain.srcPtr = parms->srcPtr;
    plain.dstArray = parms->dstArray;
    plain.dstPos = parms->dstPos;
    plain.dstPtr = parms->dstPtr;
    plain.extent = parms->extent;
    plain.kind = cudaMemcpyDeviceToDevice;
    SIM_TRY(sim_copy_box(&plain, &op));
    if (op.WidthInBytes == 0 || op.Height == 0 || op.Depth == 0)
        return cudaSuccess;
    memcpy(&peer, &op, sizeof(peer));
    SIM_TRY(sim_primary_context(parms->srcDevice, &peer.srcContext));
    SIM_TRY(sim_primary_context(parms->dstDevice, &peer.dstContext));
    if (stream_p)
        SIM_TRY(SIM_DRV_OF(half, cuMemcpy3DPeerAsync, &peer, *stream_p));
    else
        SIM_TRY(SIM_DRV_OF(half, cuMemcpy3DPeer, &peer));
    return cudaSuccess;
}

SIM_TWINS(cudaMemcpy3DPeer, _ptds, copy_3d_peer, (const struct cudaMemcpy3DPeerParms *parms), parms, NULL)
SIM_TWINS(cudaMemcpy3DPeerAsync, _ptsz, copy_3d_peer,
          (const struct cudaMemcpy3DPeerParms *parms, cudaStream_t stream), parms, &stream)
