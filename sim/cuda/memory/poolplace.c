/*
 * The pools of a place: which pool memory of a kind is taken from at a device, at the host, or, if it is
 * managed, nowhere in particular; the default one, or what a program has put in its stead. Pinned memory of a
 * device is the device's own affair (sim_pool_default). The others are made when they are first asked for and
 * stay; all of it under the lock here, which is outside the memory lock.
 */
#include "sim/cuda/memory/pool.h"

#include <pthread.h>

enum { AT_HOST = SIM_MAX_DEVICES, AT_NODE, ANYWHERE, PLACES };

static struct {
    struct CUmemPoolHandle_st *first, *current;
} chosen[2][PLACES]; /* pinned and managed */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Driver API, cuMemGetDefaultMemPool: a device, the host or a node of it, and for managed memory no place at
 * all. Managed pools need a device that reaches managed memory beside the host. */
static CUresult place_of(const CUmemLocation *location, CUmemAllocationType type, unsigned *place_p)
{
    bool managed = type == CU_MEM_ALLOCATION_TYPE_MANAGED;

    if (!location || (type != CU_MEM_ALLOCATION_TYPE_PINNED && !managed))
        return CUDA_ERROR_INVALID_VALUE;
    switch ((int)location->type) {
    case CU_MEM_LOCATION_TYPE_NONE:
        *place_p = ANYWHERE;
        if (!managed)
            return CUDA_ERROR_INVALID_VALUE;
        break;
    case CU_MEM_LOCATION_TYPE_DEVICE:
        *place_p = (unsigned)location->id;
        if (!sim_device(location->id))
            return CUDA_ERROR_INVALID_VALUE;
        break;
    case CU_MEM_LOCATION_TYPE_HOST:
        *place_p = AT_HOST;
        break;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        *place_p = AT_NODE;
        if (location->id)
            return CUDA_ERROR_INVALID_VALUE;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return managed && !sim_card_attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)
               ? CUDA_ERROR_NOT_SUPPORTED
               : CUDA_SUCCESS;
}

static bool is_of_device(CUmemAllocationType type, unsigned place)
{
    return type == CU_MEM_ALLOCATION_TYPE_PINNED && place < AT_HOST;
}

/* With the lock held. */
static struct CUmemPoolHandle_st *first_of(const CUmemLocation *location, CUmemAllocationType type,
                                           unsigned place)
{
    CUmemPoolProps props = {.allocType = type, .location = *location};
    struct CUmemPoolHandle_st **first_p = &chosen[type == CU_MEM_ALLOCATION_TYPE_MANAGED][place].first;
    CUresult status;

    if (!*first_p) {
        struct CUmemPoolHandle_st *pool = sim_pool_new(&props, &status);
        if (pool) {
            pool->is_default = true;
            sim_object_publish(pool);
            *first_p = pool;
        }
    }
    return *first_p;
}

static CUresult get(CUmemoryPool *pool_p, const CUmemLocation *location, CUmemAllocationType type,
                    bool current)
{
    unsigned place;
    CUresult status = place_of(location, type, &place);

    if (status != CUDA_SUCCESS || !pool_p)
        return status == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : status;
    if (is_of_device(type, place))
        return current ? sim_pool_get_current(pool_p, location->id)
                       : sim_pool_get_default(pool_p, location->id);
    pthread_mutex_lock(&lock);
    *pool_p = current ? chosen[type == CU_MEM_ALLOCATION_TYPE_MANAGED][place].current : NULL;
    if (!*pool_p)
        *pool_p = first_of(location, type, place);
    pthread_mutex_unlock(&lock);
    return *pool_p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult set(const CUmemLocation *location, CUmemAllocationType type, CUmemoryPool handle)
{
    unsigned place;
    CUresult status = place_of(location, type, &place);
    struct CUmemPoolHandle_st *pool;

    if (status != CUDA_SUCCESS)
        return status;
    if (is_of_device(type, place))
        return sim_pool_set_current(location->id, handle);
    pool = sim_object_get(handle, SIM_POOL);
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    if (pool->imported || pool->props.allocType != type || pool->props.location.type != location->type ||
        (place < AT_HOST && pool->props.location.id != location->id)) {
        status = CUDA_ERROR_INVALID_VALUE;
    } else {
        pthread_mutex_lock(&lock);
        chosen[type == CU_MEM_ALLOCATION_TYPE_MANAGED][place].current = pool;
        pthread_mutex_unlock(&lock);
    }
    sim_object_put(pool);
    return status;
}

void sim_place_forget(const struct CUmemPoolHandle_st *pool)
{
    pthread_mutex_lock(&lock);
    for (unsigned place = 0; place < PLACES; place++)
        for (int kind = 0; kind < 2; kind++)
            if (chosen[kind][place].current == pool)
                chosen[kind][place].current = NULL;
    pthread_mutex_unlock(&lock);
}

SIM_API(cuMemGetDefaultMemPool)(CUmemoryPool *pool_p, CUmemLocation *location, CUmemAllocationType type)
{
    SIM_ENTER(cuMemGetDefaultMemPool);
    return get(pool_p, location, type, false);
}

SIM_API(cuMemGetMemPool)(CUmemoryPool *pool_p, CUmemLocation *location, CUmemAllocationType type)
{
    SIM_ENTER(cuMemGetMemPool);
    return get(pool_p, location, type, true);
}

SIM_API(cuMemSetMemPool)(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    SIM_ENTER(cuMemSetMemPool);
    return set(location, type, pool);
}
