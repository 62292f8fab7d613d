/*
 * Memory fills: plain, in rows, in boxes. A box whose rows follow each other without a gap is one fill.
 */
#include "sim/cudart/runtime.h"

static cudaError_t fill(int half, void *pointer, int value, size_t bytes, cudaStream_t *stream_p)
{
    SIM_TRY(sim_context());
    if (bytes == 0)
        return cudaSuccess;
    if (stream_p)
        SIM_TRY(
            SIM_DRV_OF(half, cuMemsetD8Async, sim_devptr(pointer), (unsigned char)value, bytes, *stream_p));
    else
        SIM_TRY(SIM_DRV_OF(half, cuMemsetD8_v2, sim_devptr(pointer), (unsigned char)value, bytes));
    return cudaSuccess;
}

static cudaError_t fill_rows(int half, void *pointer, size_t pitch, int value, size_t width, size_t height,
                             cudaStream_t *stream_p)
{
    unsigned char byte = (unsigned char)value;

    SIM_TRY(sim_context());
    if (width == 0 || height == 0)
        return cudaSuccess;
    SIM_CHECK(width <= pitch, cudaErrorInvalidPitchValue);
    if (stream_p)
        SIM_TRY(
            SIM_DRV_OF(half, cuMemsetD2D8Async, sim_devptr(pointer), pitch, byte, width, height, *stream_p));
    else
        SIM_TRY(SIM_DRV_OF(half, cuMemsetD2D8_v2, sim_devptr(pointer), pitch, byte, width, height));
    return cudaSuccess;
}

static cudaError_t fill_box(int half, struct cudaPitchedPtr box, int value, struct cudaExtent extent,
                            cudaStream_t *stream_p)
{
    char *layer = box.ptr;

    if (extent.height == box.ysize)
        return fill_rows(half, layer, box.pitch, value, extent.width, extent.height * extent.depth, stream_p);
    for (size_t z = 0; z < extent.depth; z++, layer += box.pitch * box.ysize)
        SIM_TRY(fill_rows(half, layer, box.pitch, value, extent.width, extent.height, stream_p));
    return cudaSuccess;
}

SIM_TWINS(cudaMemset, _ptds, fill, (void *pointer, int value, size_t bytes), pointer, value, bytes, NULL)
SIM_TWINS(cudaMemsetAsync, _ptsz, fill, (void *pointer, int value, size_t bytes, cudaStream_t stream),
          pointer, value, bytes, &stream)
SIM_TWINS(cudaMemset2D, _ptds, fill_rows,
          (void *pointer, size_t pitch, int value, size_t width, size_t height), pointer, pitch, value, width,
          height, NULL)
SIM_TWINS(cudaMemset2DAsync, _ptsz, fill_rows,
          (void *pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream), pointer,
          pitch, value, width, height, &stream)
SIM_TWINS(cudaMemset3D, _ptds, fill_box, (struct cudaPitchedPtr box, int value, struct cudaExtent extent),
          box, value, extent, NULL)
SIM_TWINS(cudaMemset3DAsync, _ptsz, fill_box,
          (struct cudaPitchedPtr box, int value, struct cudaExtent extent, cudaStream_t stream), box, value,
          extent, &stream)
