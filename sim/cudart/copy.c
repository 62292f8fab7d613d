/*
 * Copies of plain ranges: between host and device, between devices, and to and from device variables. The
 * direction the program names picks the driver function; cudaMemcpyDefault leaves it to the driver's unified
 * addresses.
 */
#include "sim/cudart/runtime.h"

static cudaError_t copy_now(int half, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return SIM_DRV_OF(half, cuMemcpyHtoD_v2, sim_devptr(to), from, bytes);
    case cudaMemcpyDeviceToHost:
        return SIM_DRV_OF(half, cuMemcpyDtoH_v2, to, sim_devptr(from), bytes);
    case cudaMemcpyDeviceToDevice:
        return SIM_DRV_OF(half, cuMemcpyDtoD_v2, sim_devptr(to), sim_devptr(from), bytes);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return SIM_DRV_OF(half, cuMemcpy, sim_devptr(to), sim_devptr(from), bytes);
    default:
        return cudaErrorInvalidMemcpyDirection;
    }
}

static cudaError_t copy_later(int half, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    switch (kind) {
    case cudaMemcpyHostToDevice:
        return SIM_DRV_OF(half, cuMemcpyHtoDAsync_v2, sim_devptr(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
        return SIM_DRV_OF(half, cuMemcpyDtoHAsync_v2, to, sim_devptr(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
        return SIM_DRV_OF(half, cuMemcpyDtoDAsync_v2, sim_devptr(to), sim_devptr(from), bytes, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        return SIM_DRV_OF(half, cuMemcpyAsync, sim_devptr(to), sim_devptr(from), bytes, stream);
    default:
        return cudaErrorInvalidMemcpyDirection;
    }
}

static cudaError_t copy(int half, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    SIM_TRY(sim_context());
    if (bytes)
        SIM_TRY(copy_now(half, to, from, bytes, kind));
    return cudaSuccess;
}

static cudaError_t copy_async(int half, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    SIM_TRY(sim_context());
    if (bytes)
        SIM_TRY(copy_later(half, to, from, bytes, kind, stream));
    return cudaSuccess;
}

SIM_TWINS(cudaMemcpy, _ptds, copy, (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind), to,
          from, bytes, kind)
SIM_TWINS(cudaMemcpyAsync, _ptsz, copy_async,
          (void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream), to, from,
          bytes, kind, stream)

/* Between devices, addresses alone do not say enough: the driver wants the two contexts. */
static cudaError_t peer_contexts(int to, int from, CUcontext *to_p, CUcontext *from_p)
{
    cudaError_t rc = sim_primary_context(to, to_p);

    return rc == cudaSuccess ? sim_primary_context(from, from_p) : rc;
}

static cudaError_t copy_peer(int half, void *to, int to_device, const void *from, int from_device,
                             size_t bytes)
{
    CUcontext to_context, from_context;

    SIM_TRY(sim_context());
    SIM_TRY(peer_contexts(to_device, from_device, &to_context, &from_context));
    if (bytes)
        SIM_TRY(SIM_DRV_OF(half, cuMemcpyPeer, sim_devptr(to), to_context, sim_devptr(from), from_context,
                           bytes));
    return cudaSuccess;
}

static cudaError_t copy_peer_async(int half, void *to, int to_device, const void *from, int from_device,
                                   size_t bytes, cudaStream_t stream)
{
    CUcontext to_context, from_context;

    SIM_TRY(sim_context());
    SIM_TRY(peer_contexts(to_device, from_device, &to_context, &from_context));
    if (bytes)
        SIM_TRY(SIM_DRV_OF(half, cuMemcpyPeerAsync, sim_devptr(to), to_context, sim_devptr(from),
                           from_context, bytes, stream));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    return copy_peer(SIM_LEGACY, to, to_device, from, from_device, bytes);
}

SIM_API cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                        size_t bytes, cudaStream_t stream)
{
    return copy_peer_async(SIM_LEGACY, to, to_device, from, from_device, bytes, stream);
}

/* A range of a device variable as a plain pointer. */
static cudaError_t symbol_range(const void *symbol, size_t offset, size_t bytes, void **pointer_p)
{
    CUdeviceptr address;
    size_t size;
    cudaError_t rc = sim_symbol(symbol, &address, &size);

    if (rc != cudaSuccess)
        return rc;
    if (offset > size || bytes > size - offset)
        return cudaErrorInvalidValue;
    *pointer_p = sim_pointer(address + offset);
    return cudaSuccess;
}

static cudaError_t to_symbol(int half, const void *symbol, const void *from, size_t bytes, size_t offset,
                             enum cudaMemcpyKind kind)
{
    void *to;

    SIM_TRY(sim_context());
    SIM_TRY(symbol_range(symbol, offset, bytes, &to));
    return copy(half, to, from, bytes, kind);
}

static cudaError_t from_symbol(int half, void *to, const void *symbol, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind)
{
    void *from;

    SIM_TRY(sim_context());
    SIM_TRY(symbol_range(symbol, offset, bytes, &from));
    return copy(half, to, from, bytes, kind);
}

static cudaError_t to_symbol_async(int half, const void *symbol, const void *from, size_t bytes,
                                   size_t offset, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *to;

    SIM_TRY(sim_context());
    SIM_TRY(symbol_range(symbol, offset, bytes, &to));
    return copy_async(half, to, from, bytes, kind, stream);
}

static cudaError_t from_symbol_async(int half, void *to, const void *symbol, size_t bytes, size_t offset,
                                     enum cudaMemcpyKind kind, cudaStream_t stream)
{
    void *from;

    SIM_TRY(sim_context());
    SIM_TRY(symbol_range(symbol, offset, bytes, &from));
    return copy_async(half, to, from, bytes, kind, stream);
}

SIM_TWINS(cudaMemcpyToSymbol, _ptds, to_symbol,
          (const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind),
          symbol, from, bytes, offset, kind)
SIM_TWINS(cudaMemcpyFromSymbol, _ptds, from_symbol,
          (void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind), to, symbol,
          bytes, offset, kind)
SIM_TWINS(cudaMemcpyToSymbolAsync, _ptsz, to_symbol_async,
          (const void *symbol, const void *from, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
           cudaStream_t stream),
          symbol, from, bytes, offset, kind, stream)
SIM_TWINS(cudaMemcpyFromSymbolAsync, _ptsz, from_symbol_async,
          (void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
           cudaStream_t stream),
          to, symbol, bytes, offset, kind, stream)
