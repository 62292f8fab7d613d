/* mempool.c - the program's own pools: which are served, which is the current one, what is in use of each.
 *
 * Records in a table that is read without a lock and written under the streams' lock; a pool that the program
 * destroyed keeps its record until its last segment is gone. Which pool is current is remembered per device
 * until somebody may have changed it. */
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "pool/stream/stream_arena.h"
#include "quota/quota.h"

enum { POOLS = 1024 };
enum {
    ANSWERS_NAP_NS = 50000,
    ANSWERS_WAIT = 20000
}; /* a second at most: a driver that hangs hangs us not */

static struct ms_mempool *_Atomic pools[POOLS];
static _Atomic uint32_t pool_count;
static struct ms_mempool *_Atomic current[MS_DEVICES_MAX];
static _Atomic uint64_t idle_counted[MS_DEVICES_MAX]; /* in the quota */
static uint64_t made;
static _Atomic uint32_t asking; /* threads that ask drivers about pools that others may destroy */

struct ms_mempool *ms_mempool_at(uint32_t index)
{
    return index < atomic_load_explicit(&pool_count, memory_order_acquire)
               ? atomic_load_explicit(&pools[index], memory_order_acquire)
               : NULL;
}

static struct ms_mempool *mempool_find(uint64_t handle)
{
    struct ms_mempool *pool = NULL;
    for (uint32_t i = 0; handle && (pool = ms_mempool_at(i)) != NULL; i++) {
        if (atomic_load_explicit(&pool->handle, memory_order_acquire) == handle)
            return pool;
    }
    return NULL;
}

/* Lock held. A record that is nobody's, or a new one. */
static struct ms_mempool *mempool_unused(void)
{
    uint32_t count = atomic_load_explicit(&pool_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        struct ms_mempool *pool = atomic_load_explicit(&pools[i], memory_order_relaxed);
        if (!atomic_load_explicit(&pool->handle, memory_order_relaxed) && !ms_mempool_arenas(pool))
            return pool;
    }
    struct ms_mempool *pool = count < POOLS ? ms_arena_alloc(sizeof(*pool)) : NULL;
    if (!pool)
        return NULL;
    atomic_store_explicit(&pools[count], pool, memory_order_release);
    atomic_store_explicit(&pool_count, count + 1, memory_order_release);
    return pool;
}

void ms_mempool_trim_to(const struct ms_mempool *pool, uint64_t keep_bytes)
{
    CUmemoryPool handle = (CUmemoryPool)(uintptr_t)atomic_load_explicit(&pool->handle, memory_order_acquire);
    struct ms_context_scope visit;
    if (!handle || !pool->gpu->mem_pool_trim_to)
        return;
    ms_context_scope_begin(&visit, pool->gpu, 0);
    pool->gpu->mem_pool_trim_to(handle, keep_bytes);
    ms_context_scope_end(&visit);
    ms_mempool_count_idle(pool->device);
}

static bool asks(const struct ms_gpu *gpu, uint64_t handle, CUmemPool_attribute attribute, uint64_t *value_p)
{
    int flag = 0;
    cuuint64_t number = 0;
    bool wide = attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    bool known = gpu->mem_pool_get_attribute &&
                 gpu->mem_pool_get_attribute((CUmemoryPool)(uintptr_t)handle, attribute,
                                             wide ? (void *)&number : (void *)&flag) == CUDA_SUCCESS;
    *value_p = wide ? number : (uint64_t)flag;
    return known;
}

static struct ms_mempool *mempool_make(const struct ms_gpu *gpu, uint64_t handle, int device, bool served,
                                       bool by_program)
{
    uint64_t opportunistic = 0, internal = 0, threshold = 0;
    struct ms_context_scope visit;
    ms_context_scope_begin(&visit, gpu, 0);
    served = served && gpu->mem_alloc_from_pool_async && gpu->mem_free_async &&
             asks(gpu, handle, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &opportunistic) &&
             asks(gpu, handle, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &internal) &&
             asks(gpu, handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
    ms_context_scope_end(&visit);
    ms_lock(&ms_streams_lock);
    struct ms_mempool *pool = mempool_find(handle);
    if (!pool && (pool = mempool_unused()) != NULL) {
        pool->gpu = gpu;
        pool->device = device;
        pool->served = served;
        pool->by_program = by_program;
        pool->number = ++made;
        pool->padded = pool->tried = false;
        pool->unit = pool->held_peak = pool->churned = 0;
        pool->bounded = pool->marked = pool->is_devices = false;
        atomic_store_explicit(&pool->opportunistic, opportunistic != 0, memory_order_relaxed);
        atomic_store_explicit(&pool->internal, internal != 0, memory_order_relaxed);
        atomic_store_explicit(&pool->threshold, threshold, memory_order_relaxed);
        atomic_store_explicit(&pool->used, 0, memory_order_relaxed);
        atomic_store_explicit(&pool->used_high, 0, memory_order_relaxed);
        atomic_store_explicit(&pool->handle, handle, memory_order_release);
    }
    ms_unlock(&ms_streams_lock);
    return pool;
}

void ms_mempool_made(const struct ms_gpu *gpu, uint64_t handle, int device, bool plain, bool served)
{
    if (!handle || device < 0 || device >= MS_DEVICES_MAX)
        return;
    if (mempool_find(handle)) /* somebody asked for it before there was one */
        ms_mempool_ending(handle);
    struct ms_mempool *pool = mempool_make(gpu, handle, device, served, true);
    if (pool && plain)
        atomic_store_explicit(&pool->is_devices, true, memory_order_relaxed);
}

/* Known to be the one that each device has, or one that was never seen being made, which is not served. */
static struct ms_mempool *meet(const struct ms_gpu *gpu, int device, CUmemoryPool handle)
{
    CUmemoryPool first = NULL;
    bool is_default = gpu->device_get_default_mem_pool &&
                      gpu->device_get_default_mem_pool(&first, ms_device_index(device)) == CUDA_SUCCESS &&
                      first == handle;
    struct ms_mempool *pool = mempool_make(gpu, (uintptr_t)handle, device, is_default, !is_default);
    if (pool && is_default)
        atomic_store_explicit(&pool->is_devices, true, memory_order_relaxed);
    return pool;
}

/* The device whose default pool it is, or else the asking one. */
static int device_of_default(const struct ms_gpu *gpu, int device, CUmemoryPool handle)
{
    CUmemoryPool first = NULL;
    for (int i = 0; gpu->device_get_default_mem_pool && i < MS_DEVICES_MAX; i++) {
        if (gpu->device_get_default_mem_pool(&first, i) != CUDA_SUCCESS)
            break;
        if (first == handle)
            return ms_gpu_device(gpu, i);
    }
    return device;
}

struct ms_mempool *ms_mempool_named(const struct ms_gpu *gpu, int device, uint64_t handle)
{
    struct ms_mempool *pool = mempool_find(handle);
    CUmemoryPool named = (CUmemoryPool)(uintptr_t)handle;
    if (MS_UNLIKELY(!pool && handle))
        pool = meet(gpu, device_of_default(gpu, device, named), named);
    return pool;
}

struct ms_mempool *ms_mempool_current(const struct ms_gpu *gpu, int device)
{
    struct ms_mempool *pool = atomic_load_explicit(&current[device], memory_order_acquire);
    CUmemoryPool handle = NULL;
    if (MS_LIKELY(pool != NULL))
        return pool->served ? pool : NULL;
    uint64_t before = atomic_load_explicit(&ms_stream_changes, memory_order_acquire);
    if (!gpu->device_get_mem_pool ||
        gpu->device_get_mem_pool(&handle, ms_device_index(device)) != CUDA_SUCCESS || !handle)
        return NULL;
    pool = mempool_find((uintptr_t)handle);
    if (!pool)
        pool = meet(gpu, device, handle);
    ms_lock(&ms_streams_lock);
    if (pool && before == atomic_load_explicit(&ms_stream_changes, memory_order_relaxed))
        atomic_store_explicit(&current[device], pool, memory_order_release);
    ms_unlock(&ms_streams_lock);
    return pool && pool->served ? pool : NULL;
}

void ms_mempool_current_changed(void)
{
    ms_lock(&ms_streams_lock);
    atomic_fetch_add_explicit(&ms_stream_changes, 1, memory_order_release);
    for (int device = 0; device < MS_DEVICES_MAX; device++)
        atomic_store_explicit(&current[device], NULL, memory_order_release);
    ms_unlock(&ms_streams_lock);
}

static void mempool_lose(struct ms_mempool *pool, struct ms_stream_arena *arena)
{
    atomic_store_explicit(&pool->handle, 0, memory_order_release);
    atomic_store_explicit(&arena->waits, NULL, memory_order_release);
    ms_cross_free_forget(arena->heap);
    ms_heap_lose(arena->heap);
    atomic_store_explicit(&pool->held, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->used, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->freed, 0, memory_order_relaxed);
    arena->over = true;
}

void ms_mempools_context_died(uint64_t context)
{
    struct ms_mempool *pool;
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        struct ms_stream_arena *arena = ms_mempool_arenas(pool);
        for (; arena && pool->gpu->pools_end_with_context; arena = arena->next_of_pool) {
            if (atomic_load_explicit(&arena->context, memory_order_relaxed) == context)
                mempool_lose(pool, arena);
        }
    }
    atomic_fetch_add_explicit(&ms_stream_changes, 1, memory_order_release);
    for (int device = 0; device < MS_DEVICES_MAX; device++)
        atomic_store_explicit(&current[device], NULL, memory_order_release);
}

/* Whoever asks about it by now has its answer before the driver hears of its end. */
static void wait_for_answers(void)
{
    for (unsigned i = 0; i < ANSWERS_WAIT && atomic_load(&asking); i++)
        ms_clock_sleep(ANSWERS_NAP_NS);
}

/* The handle may come back for another pool as soon as the driver has heard of the end. */
struct ms_mempool *ms_mempool_ending(uint64_t handle)
{
    struct ms_mempool *pool = mempool_find(handle);
    ms_mempool_current_changed();
    if (pool) {
        atomic_store(&pool->handle, 0);
        wait_for_answers();
    }
    return pool;
}

void ms_mempool_seen(const struct ms_gpu *gpu, int device, uint64_t handle)
{
    if (device < 0 || device >= MS_DEVICES_MAX)
        return;
    CUmemoryPool named = NULL;
    if (handle != MS_MEMPOOL_CURRENT)
        named = (CUmemoryPool)(uintptr_t)handle;
    else if (atomic_load_explicit(&current[device], memory_order_acquire) || !gpu->device_get_mem_pool ||
             gpu->device_get_mem_pool(&named, ms_device_index(device)) != CUDA_SUCCESS)
        return;
    struct ms_mempool *pool = ms_mempool_named(gpu, device, (uintptr_t)named);
    if (pool)
        atomic_store_explicit(&pool->is_devices, true, memory_order_relaxed);
}

int ms_mempool_device(uint64_t handle)
{
    const struct ms_mempool *pool = mempool_find(handle);
    return pool && atomic_load_explicit(&pool->is_devices, memory_order_relaxed)
               ? atomic_load_explicit(&pool->device, memory_order_relaxed)
               : MS_DEVICE_NONE;
}

static void add_figures(const struct ms_mempool *pool, struct ms_mempool_sums *sums)
{
    uint64_t reserved, used;
    if (!ms_mempool_figures(pool, &reserved, &used))
        return;
    sums->idle += reserved > used ? reserved - used : 0;
    sums->reserved += reserved;
    sums->used += used;
    sums->held += atomic_load_explicit(&pool->held, memory_order_relaxed);
}

static bool is_seen(const struct ms_mempool *pool, int device)
{
    return atomic_load(&pool->device) == device && atomic_load(&pool->is_devices) &&
           atomic_load(&pool->handle);
}

static struct ms_mempool_sums sums_over(int device, bool served_alone)
{
    struct ms_mempool_sums sums = {.idle = 0};
    const struct ms_mempool *pool;
    atomic_fetch_add(&asking, 1);
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        if (is_seen(pool, device) && (pool->served || !served_alone))
            add_figures(pool, &sums);
    }
    atomic_fetch_sub(&asking, 1);
    return sums;
}

struct ms_mempool_sums ms_mempool_sums_of(int device)
{
    return sums_over(device, false);
}

void ms_mempool_count_idle(int device)
{
    if (!ms_quota_is_bounded() || device < 0 || device >= MS_DEVICES_MAX)
        return;
    uint64_t now = sums_over(device, true).idle, before = atomic_exchange(&idle_counted[device], now);
    if (now > before)
        ms_quota_hold(device, now - before);
    else
        ms_quota_give_back(device, before - now);
}

uint64_t ms_mempool_trim_idle(int device)
{
    const struct ms_mempool *pool;
    uint64_t given = 0, before, after, used, counted = ms_mempool_idle_counted(device), left;
    atomic_fetch_add(&asking, 1);
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        if (!is_seen(pool, device) || !pool->served || !ms_mempool_figures(pool, &before, &used) ||
            before <= used)
            continue;
        ms_mempool_trim_to(pool, 0);
        if (ms_mempool_figures(pool, &after, &used) && after < before)
            given += before - after;
    }
    atomic_fetch_sub(&asking, 1);
    ms_mempool_count_idle(device); /* of pools that the program trimmed or destroyed there is less, too */
    left = ms_mempool_idle_counted(device);
    return counted > left + given ? counted - left : given;
}

uint64_t ms_mempool_take_idle(int device, uint64_t bytes)
{
    uint64_t there = atomic_load(&idle_counted[device]), part;
    do
        part = there < bytes ? there : bytes;
    while (part && !atomic_compare_exchange_weak(&idle_counted[device], &there, there - part));
    return part;
}

void ms_mempool_put_idle(int device, uint64_t bytes)
{
    atomic_fetch_add(&idle_counted[device], bytes);
}

uint64_t ms_mempool_idle_counted(int device)
{
    return atomic_load_explicit(&idle_counted[device], memory_order_relaxed);
}

void ms_mempool_ended(struct ms_mempool *ending, uint64_t handle, bool gone)
{
    ms_mempool_current_changed();
    if (ending && !gone)
        atomic_store_explicit(&ending->handle, handle, memory_order_release);
    else if (ending)
        ms_stream_arena_give_back(ending, UINT64_MAX);
}

void ms_mempool_trim(uint64_t handle)
{
    struct ms_mempool *pool = mempool_find(handle);
    if (pool)
        ms_stream_arena_give_back(pool, UINT64_MAX);
}

void ms_mempool_set(uint64_t handle, enum ms_mempool_rule rule, uint64_t value)
{
    struct ms_mempool *pool = mempool_find(handle);
    if (pool && rule == MS_MEMPOOL_OPPORTUNISTIC)
        atomic_store_explicit(&pool->opportunistic, value != 0, memory_order_relaxed);
    else if (pool && rule == MS_MEMPOOL_INTERNAL)
        atomic_store_explicit(&pool->internal, value != 0, memory_order_relaxed);
    else if (pool && rule == MS_MEMPOOL_THRESHOLD)
        atomic_store_explicit(&pool->threshold, value, memory_order_relaxed);
}

void ms_mempool_bounded(uint64_t handle)
{
    struct ms_mempool *pool = mempool_find(handle);
    if (pool)
        atomic_store_explicit(&pool->bounded, true, memory_order_relaxed);
}

bool ms_mempool_use(uint64_t handle, struct ms_mempool_use *use_p)
{
    struct ms_mempool *pool = mempool_find(handle);
    if (!pool || !pool->served)
        return false;
    *use_p = (struct ms_mempool_use){.held = atomic_load_explicit(&pool->held, memory_order_relaxed),
                                     .used = atomic_load_explicit(&pool->used, memory_order_relaxed),
                                     .high = atomic_load_explicit(&pool->used_high, memory_order_relaxed)};
    return true;
}

void ms_mempool_reset_high(uint64_t handle)
{
    struct ms_mempool *pool = mempool_find(handle);
    if (pool)
        atomic_store_explicit(&pool->used_high, atomic_load_explicit(&pool->used, memory_order_relaxed),
                              memory_order_relaxed);
}

static void mempool_reset(void)
{
    atomic_store_explicit(&pool_count, 0, memory_order_relaxed);
    atomic_store_explicit(&asking, 0, memory_order_relaxed);
    memset((void *)pools, 0, sizeof(pools));
    memset((void *)current, 0, sizeof(current));
    memset((void *)idle_counted, 0, sizeof(idle_counted));
}
MS_AT_FORK(MS_FORK_POOL, mempool_reset);
