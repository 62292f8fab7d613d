/*
 * Making and ending memory pools: where their memory comes from, and the default pool of each device. Lock:
 * memory.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sim/cuda/memory/pool.h"

static void dispose_pool(void *object)
{
    struct CUmemPoolHandle_st *pool = object, **link = &sim_pools;

    sim_memory_write_lock();
    while (*link && *link != pool)
        link = &(*link)->next;
    if (*link)
        *link = pool->next;
    sim_part_release_all(pool);
    sim_unit_end(pool); /* every allocation held the pool: all is free */
    if (pool->own.base)
        sim_arena_close(&pool->own);
    sim_memory_unlock();
}

/* Addresses of its own, so that a pool can grow where it ends. */
static CUresult open_arena(struct CUmemPoolHandle_st *pool, int fd)
{
    size_t wide = sim_heap_round(sim_config.memory_bytes) * 4;
    char name[32];

    snprintf(name, sizeof name, "memsim.pool.%d", pool->props.location.id);
    pool->arena = &pool->own;
    pool->imported = fd >= 0;
    return fd >= 0 ? sim_arena_adopt(&pool->own, fd)
                   : sim_arena_open(&pool->own, pool->props.handleTypes ? name : NULL, wide);
}

/** A pool with checked properties, not yet a valid handle. Takes the memory lock. */
struct CUmemPoolHandle_st *sim_pool_new(const CUmemPoolProps *props, CUresult *status_p)
{
    return sim_pool_new_over(props, -1, status_p);
}

/** As sim_pool_new, but over the file of another process's pool, whose descriptor it takes. */
struct CUmemPoolHandle_st *sim_pool_new_over(const CUmemPoolProps *props, int fd, CUresult *status_p)
{
    struct CUmemPoolHandle_st *pool = sim_object_new(sizeof *pool, SIM_POOL, dispose_pool);

    *status_p = CUDA_ERROR_OUT_OF_MEMORY;
    if (!pool)
        return NULL;
    pool->props = *props;
    pool->own.fd = -1;
    pool->follow_events = pool->opportunistic = pool->internal = 1;
    bool plain = props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED &&
                 props->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
    pool->device = plain ? sim_device(props->location.id) : NULL;
    pool->readable = pool->writable = plain ? 1U << props->location.id : ~0U;
    sim_memory_write_lock();
    *status_p = open_arena(pool, fd);
    if (*status_p == CUDA_SUCCESS) {
        pool->next = sim_pools;
        sim_pools = pool;
    }
    sim_memory_unlock();
    if (*status_p == CUDA_SUCCESS)
        return pool;
    free(pool);
    return NULL;
}

struct CUmemPoolHandle_st *sim_pool_default(struct sim_device *device)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal},
    };
    CUresult status;

    struct CUmemPoolHandle_st *made = atomic_load_explicit(&device->default_pool, memory_order_acquire);
    if (made)
        return made;
    pthread_mutex_lock(&making);
    if (!device->default_pool) {
        struct CUmemPoolHandle_st *pool = sim_pool_new(&props, &status);
        if (pool) {
            pool->is_default = true;
            sim_object_publish(pool);
            device->default_pool = pool;
        }
    }
    pthread_mutex_unlock(&making);
    return device->default_pool;
}
