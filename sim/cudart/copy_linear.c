/*
 * Copies of a number of bytes from or to arrays, in the order of their rows and beyond the end of one
 * (runtime API, "Memory Management [DEPRECATED]"): piece by piece by the driver's copies of rows. Nothing is
 * moved if the array has no room for all of it.
 */
#include "sim/cudart/runtime.h"

struct end {
    CUarray array; /* NULL: memory */
    size_t row_bytes, x, y;
    CUmemorytype type;
    const char *memory;
};

static cudaError_t array_end(struct end *end, cudaArray_const_t array, size_t x, size_t y, size_t count)
{
    size_t rows;

    if (!array)
        return cudaErrorInvalidResourceHandle;
    cudaError_t status = sim_array_rows(array, &end->row_bytes, &rows);
    if (status != cudaSuccess)
        return status;
    end->array = (CUarray)(uintptr_t)array;
    end->x = x;
    end->y = y;
    end->type = CU_MEMORYTYPE_ARRAY;
    bool fits = x < end->row_bytes && y < rows && count <= (rows - y) * end->row_bytes - x;
    return fits ? cudaSuccess : cudaErrorInvalidValue;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The part of `count` that lies in one row at this end. */
static size_t in_row(const struct end *end, size_t count)
{
    return end->array ? least(count, end->row_bytes - end->x) : count;
}

static bool is_row(const struct end *end, size_t bytes)
{
    return !end->array || bytes == end->row_bytes;
}

static void advance(struct end *end, size_t bytes)
{
    if (!end->array) {
        end->memory += bytes;
        return;
    }
    end->y += (end->x + bytes) / end->row_bytes;
    end->x = (end->x + bytes) % end->row_bytes;
}

static CUDA_MEMCPY2D piece(const struct end *to, const struct end *from, size_t width, size_t height)
{
    return (CUDA_MEMCPY2D){.srcXInBytes = from->x,
                           .srcY = from->y,
                           .srcMemoryType = from->type,
                           .srcHost = from->memory,
                           .srcDevice = sim_devptr(from->memory),
                           .srcArray = from->array,
                           .srcPitch = width,
                           .dstXInBytes = to->x,
                           .dstY = to->y,
                           .dstMemoryType = to->type,
                           .dstHost = (void *)(uintptr_t)to->memory,
                           .dstDevice = sim_devptr(to->memory),
                           .dstArray = to->array,
                           .dstPitch = width,
                           .WidthInBytes = width,
                           .Height = height};
}

/* stream_p is NULL for a call that waits. */
static cudaError_t copy(int half, struct end to, struct end from, size_t count, cudaStream_t *stream_p)
{
    while (count) {
        size_t width = least(in_row(&to, count), in_row(&from, count));
        size_t height = is_row(&to, width) && is_row(&from, width) ? count / width : 1;
        CUDA_MEMCPY2D op = piece(&to, &from, width, height);

        if (stream_p)
            SIM_TRY(SIM_DRV_OF(half, cuMemcpy2DAsync_v2, &op, *stream_p));
        else
            SIM_TRY(SIM_DRV_OF(half, cuMemcpy2DUnaligned_v2, &op));
        advance(&to, width * height);
        advance(&from, width * height);
        count -= width * height;
    }
    return cudaSuccess;
}

static cudaError_t to_array(int half, cudaArray_t array, size_t x, size_t y, const void *memory, size_t count,
                            enum cudaMemcpyKind kind, cudaStream_t *stream_p)
{
    struct end to = {0}, from = {.memory = memory};

    SIM_TRY(sim_context());
    SIM_TRY(sim_copy_ends(kind, &from.type, &to.type));
    SIM_TRY(array_end(&to, array, x, y, count));
    return copy(half, to, from, count, stream_p);
}

static cudaError_t from_array(int half, void *memory, cudaArray_const_t array, size_t x, size_t y,
                              size_t count, enum cudaMemcpyKind kind, cudaStream_t *stream_p)
{
    struct end to = {.memory = memory}, from = {0};

    SIM_TRY(sim_context());
    SIM_TRY(sim_copy_ends(kind, &from.type, &to.type));
    SIM_TRY(array_end(&from, array, x, y, count));
    return copy(half, to, from, count, stream_p);
}

static cudaError_t between_arrays(int half, cudaArray_t to_what, size_t to_x, size_t to_y,
                                  cudaArray_const_t from_what, size_t from_x, size_t from_y, size_t count,
                                  enum cudaMemcpyKind kind)
{
    struct end to = {0}, from = {0};

    (void)kind; /* both ends are arrays: it says nothing that they do not */
    SIM_TRY(sim_context());
    SIM_TRY(array_end(&to, to_what, to_x, to_y, count));
    SIM_TRY(array_end(&from, from_what, from_x, from_y, count));
    return copy(half, to, from, count, NULL);
}

SIM_TWINS(cudaMemcpyToArray, _ptds, to_array,
          (cudaArray_t to, size_t x, size_t y, const void *from, size_t count, enum cudaMemcpyKind kind), to,
          x, y, from, count, kind, NULL)
SIM_TWINS(cudaMemcpyToArrayAsync, _ptsz, to_array,
          (cudaArray_t to, size_t x, size_t y, const void *from, size_t count, enum cudaMemcpyKind kind,
           cudaStream_t stream),
          to, x, y, from, count, kind, &stream)
SIM_TWINS(cudaMemcpyFromArray, _ptds, from_array,
          (void *to, cudaArray_const_t from, size_t x, size_t y, size_t count, enum cudaMemcpyKind kind), to,
          from, x, y, count, kind, NULL)
SIM_TWINS(cudaMemcpyFromArrayAsync, _ptsz, from_array,
          (void *to, cudaArray_const_t from, size_t x, size_t y, size_t count, enum cudaMemcpyKind kind,
           cudaStream_t stream),
          to, from, x, y, count, kind, &stream)
SIM_TWINS(cudaMemcpyArrayToArray, _ptds, between_arrays,
          (cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from, size_t from_x, size_t from_y,
           size_t count, enum cudaMemcpyKind kind),
          to, to_x, to_y, from, from_x, from_y, count, kind)
