/*
 * Advice about managed memory, and moving it ahead of use. Here memory is where it is: advice is checked and
 * forgotten, but for what can be asked back, which has the answers of memory that nobody gave advice
 * about. */
#include "sim/cuda/sim.h"

static bool is_managed(CUdeviceptr address, size_t bytes)
{
    sim_memory_read_lock();
    struct sim_block *block = sim_block_at(address);
    bool good = bytes && block && block->kind == SIM_BLOCK_MANAGED && !block->claimed &&
                bytes <= block->range.bytes - (size_t)(address - block->range.start);
    sim_memory_unlock();
    return good;
}

/* The place where memory is asked to be: nowhere that exists, at the host, or at a device. Devices that
 * cannot use managed memory beside the host take no advice that names them, and nothing is moved to anybody
 * there; which argument is looked at first is as recorded. */
enum place { PLACE_NONE, PLACE_HOST, PLACE_DEVICE };

static bool moves(void)
{
    return sim_card_attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) != 0;
}

static enum place place_of_device(CUdevice device)
{
    return device == CU_DEVICE_CPU ? PLACE_HOST : sim_device(device) ? PLACE_DEVICE : PLACE_NONE;
}

static enum place place_of(const CUmemLocation *location)
{
    switch ((int)location->type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sim_device(location->id) ? PLACE_DEVICE : PLACE_NONE;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
        return PLACE_HOST;
    default:
        return PLACE_NONE;
    }
}

static CUresult advise(CUdeviceptr address, size_t bytes, CUmem_advise advice, enum place place)
{
    bool needs_place =
        advice >= CU_MEM_ADVISE_SET_PREFERRED_LOCATION && advice != CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;

    if ((int)advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
        return CUDA_ERROR_INVALID_VALUE;
    if (needs_place && place == PLACE_NONE)
        return CUDA_ERROR_INVALID_VALUE;
    if (needs_place && place == PLACE_DEVICE && !moves())
        return CUDA_ERROR_INVALID_DEVICE;
    return is_managed(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuMemAdvise_v2)(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation location)
{
    SIM_ENTER(cuMemAdvise_v2);
    return advise(address, bytes, advice, place_of(&location));
}

SIM_API(cuMemAdvise)(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice device)
{
    SIM_ENTER(cuMemAdvise);
    return advise(address, bytes, advice, place_of_device(device));
}

static CUresult prefetch(CUdeviceptr address, size_t bytes, enum place place, unsigned flags, CUstream stream,
                         bool per_thread)
{
    CUresult status = sim_stream_check(stream, per_thread);

    if (status != CUDA_SUCCESS)
        return status;
    if (flags || !is_managed(address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    return place != PLACE_NONE && moves() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

SIM_PAIR(cuMemPrefetchAsync, ptsz, (CUdeviceptr address, size_t bytes, CUdevice device, CUstream stream),
         prefetch(address, bytes, place_of_device(device), 0, stream, per_thread))
SIM_PAIR(cuMemPrefetchAsync_v2, ptsz,
         (CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream),
         prefetch(address, bytes, place_of(&location), flags, stream, per_thread))

static CUresult batch(CUdeviceptr *addresses, size_t *bytes, size_t count, unsigned long long flags,
                      CUstream stream, bool per_thread)
{
    CUresult status = sim_stream_check(stream, per_thread);

    if (status != CUDA_SUCCESS)
        return status;
    if (!addresses || !bytes || !count || flags || !moves())
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        if (!is_managed(addresses[i], bytes[i]))
            return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult batch_to(CUdeviceptr *addresses, size_t *bytes, size_t count, CUmemLocation *places,
                         size_t *firsts, size_t place_count, unsigned long long flags, CUstream stream,
                         bool per_thread)
{
    if (!places || !firsts || !place_count || place_count > count || firsts[0])
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < place_count; i++)
        if (place_of(&places[i]) == PLACE_NONE || (i && firsts[i] <= firsts[i - 1]) || firsts[i] >= count)
            return CUDA_ERROR_INVALID_VALUE;
    return batch(addresses, bytes, count, flags, stream, per_thread);
}

SIM_PAIR(cuMemPrefetchBatchAsync, ptsz,
         (CUdeviceptr * addresses, size_t *bytes, size_t count, CUmemLocation *places, size_t *firsts,
          size_t place_count, unsigned long long flags, CUstream stream),
         batch_to(addresses, bytes, count, places, firsts, place_count, flags, stream, per_thread))
SIM_PAIR(cuMemDiscardBatchAsync, ptsz,
         (CUdeviceptr * addresses, size_t *bytes, size_t count, unsigned long long flags, CUstream stream),
         batch(addresses, bytes, count, flags, stream, per_thread))
SIM_PAIR(cuMemDiscardAndPrefetchBatchAsync, ptsz,
         (CUdeviceptr * addresses, size_t *bytes, size_t count, CUmemLocation *places, size_t *firsts,
          size_t place_count, unsigned long long flags, CUstream stream),
         batch_to(addresses, bytes, count, places, firsts, place_count, flags, stream, per_thread))

static CUresult range_attribute(void *data, size_t data_bytes, CUmem_range_attribute attribute,
                                CUdeviceptr address, size_t bytes)
{
    if (!data || data_bytes < sizeof(int) || data_bytes % sizeof(int) || !is_managed(address, bytes))
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
        *(int *)data = 0;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
        *(int *)data = CU_DEVICE_INVALID;
        return CUDA_SUCCESS;
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
        for (size_t i = 0; i < data_bytes / sizeof(int); i++)
            ((int *)data)[i] = CU_DEVICE_INVALID;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

SIM_API(cuMemRangeGetAttribute)
(void *data, size_t data_bytes, CUmem_range_attribute attribute, CUdeviceptr address, size_t bytes)
{
    SIM_ENTER(cuMemRangeGetAttribute);
    return range_attribute(data, data_bytes, attribute, address, bytes);
}

SIM_API(cuMemRangeGetAttributes)
(void **data, size_t *data_bytes, CUmem_range_attribute *attributes, size_t count, CUdeviceptr address,
 size_t bytes)
{
    SIM_ENTER(cuMemRangeGetAttributes);
    CUresult status = data && data_bytes && attributes && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++)
        status = range_attribute(data[i], data_bytes[i], attributes[i], address, bytes);
    return status;
}
