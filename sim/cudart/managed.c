/*
 * Advice, prefetching and range queries for managed memory. CUDA 12 names a device by its number in the plain
 * functions and a location in the _v2 ones; CUDA 13 has the latter under the plain name.
 */
#include "sim/cudart/runtime.h"

static CUmemLocation driver_location(struct cudaMemLocation location)
{
    CUmemLocation result;

    result.type = (CUmemLocationType)location.type;
    result.id = location.id;
    return result;
}

static cudaError_t advise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location)
{
    SIM_TRY(sim_context());
    SIM_TRY(
        SIM_DRV(cuMemAdvise_v2, sim_devptr(pointer), bytes, (CUmem_advise)advice, driver_location(location)));
    return cudaSuccess;
}

static cudaError_t prefetch(int half, const void *pointer, size_t bytes, struct cudaMemLocation location,
                            unsigned int flags, cudaStream_t stream)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuMemPrefetchAsync_v2, sim_devptr(pointer), bytes, driver_location(location),
                       flags, stream));
    return cudaSuccess;
}

#if SIM_CUDART == 12
SIM_API cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice, int device)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuMemAdvise, sim_devptr(pointer), bytes, (CUmem_advise)advice, device));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemAdvise_v2(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
                                     struct cudaMemLocation location)
{
    return advise(pointer, bytes, advice, location);
}

static cudaError_t prefetch_to_device(int half, const void *pointer, size_t bytes, int device,
                                      cudaStream_t stream)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuMemPrefetchAsync, sim_devptr(pointer), bytes, device, stream));
    return cudaSuccess;
}

SIM_TWINS(cudaMemPrefetchAsync, _ptsz, prefetch_to_device,
          (const void *pointer, size_t bytes, int device, cudaStream_t stream), pointer, bytes, device,
          stream)
SIM_TWINS(cudaMemPrefetchAsync_v2, _ptsz, prefetch,
          (const void *pointer, size_t bytes, struct cudaMemLocation location, unsigned int flags,
           cudaStream_t stream),
          pointer, bytes, location, flags, stream)
#else
SIM_API cudaError_t cudaMemAdvise(const void *pointer, size_t bytes, enum cudaMemoryAdvise advice,
                                  struct cudaMemLocation location)
{
    return advise(pointer, bytes, advice, location);
}

SIM_TWINS(cudaMemPrefetchAsync, _ptsz, prefetch,
          (const void *pointer, size_t bytes, struct cudaMemLocation location, unsigned int flags,
           cudaStream_t stream),
          pointer, bytes, location, flags, stream)

static CUdeviceptr *driver_pointers(void **pointers)
{
    _Static_assert(sizeof(CUdeviceptr) == sizeof(void *), "arrays of addresses have one layout");
    return (CUdeviceptr *)(void *)pointers;
}

static cudaError_t prefetch_batch(int half, void **pointers, size_t *bytes, size_t count,
                                  struct cudaMemLocation *locations, size_t *indices, size_t location_count,
                                  unsigned long long flags, cudaStream_t stream)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuMemPrefetchBatchAsync, driver_pointers(pointers), bytes, count,
                       (CUmemLocation *)locations, indices, location_count, flags, stream));
    return cudaSuccess;
}

static cudaError_t discard_batch(int half, void **pointers, size_t *bytes, size_t count,
                                 unsigned long long flags, cudaStream_t stream)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuMemDiscardBatchAsync, driver_pointers(pointers), bytes, count, flags, stream));
    return cudaSuccess;
}

static cudaError_t discard_and_prefetch_batch(int half, void **pointers, size_t *bytes, size_t count,
                                              struct cudaMemLocation *locations, size_t *indices,
                                              size_t location_count, unsigned long long flags,
                                              cudaStream_t stream)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuMemDiscardAndPrefetchBatchAsync, driver_pointers(pointers), bytes, count,
                       (CUmemLocation *)locations, indices, location_count, flags, stream));
    return cudaSuccess;
}

SIM_TWINS(cudaMemPrefetchBatchAsync, _ptsz, prefetch_batch,
          (void **pointers, size_t *bytes, size_t count, struct cudaMemLocation *locations, size_t *indices,
           size_t location_count, unsigned long long flags, cudaStream_t stream),
          pointers, bytes, count, locations, indices, location_count, flags, stream)
SIM_TWINS(cudaMemDiscardBatchAsync, _ptsz, discard_batch,
          (void **pointers, size_t *bytes, size_t count, unsigned long long flags, cudaStream_t stream),
          pointers, bytes, count, flags, stream)
SIM_TWINS(cudaMemDiscardAndPrefetchBatchAsync, _ptsz, discard_and_prefetch_batch,
          (void **pointers, size_t *bytes, size_t count, struct cudaMemLocation *locations, size_t *indices,
           size_t location_count, unsigned long long flags, cudaStream_t stream),
          pointers, bytes, count, locations, indices, location_count, flags, stream)
#endif

SIM_API cudaError_t cudaMemRangeGetAttribute(void *data, size_t data_bytes,
                                             enum cudaMemRangeAttribute attribute, const void *pointer,
                                             size_t bytes)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuMemRangeGetAttribute, data, data_bytes, (CUmem_range_attribute)attribute,
                    sim_devptr(pointer), bytes));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemRangeGetAttributes(void **data, size_t *data_bytes,
                                              enum cudaMemRangeAttribute *attributes, size_t count,
                                              const void *pointer, size_t bytes)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuMemRangeGetAttributes, data, data_bytes, (CUmem_range_attribute *)attributes, count,
                    sim_devptr(pointer), bytes));
    return cudaSuccess;
}

static cudaError_t attach(int half, cudaStream_t stream, void *pointer, size_t bytes, unsigned int flags)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuStreamAttachMemAsync, stream, sim_devptr(pointer), bytes, flags));
    return cudaSuccess;
}

SIM_TWINS(cudaStreamAttachMemAsync, _ptsz, attach,
          (cudaStream_t stream, void *pointer, size_t bytes, unsigned int flags), stream, pointer, bytes,
          flags)
