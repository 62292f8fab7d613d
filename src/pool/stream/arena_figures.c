/* arena_figures.c - what is told of stream arenas: one set of figures for each, and one for those that are no
 * more.
 *
 * A stream arena whose pool was destroyed may be another pool's later. Its heap counts on, and so that heaps
 * add up to their device; the stream arena keeps what was counted before, and each device the sum of that. */
#include "config.h"

#include "pool/stream/stream_arena.h"

static _Atomic uint64_t former[MS_DEVICES_MAX][MS_STREAM_ARENA_COUNTS];

static uint64_t read_of(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

/* Of the whole life of the stream arena. */
static void arena_figures_count(const struct ms_stream_arena *arena, const struct ms_pool_figures *figures,
                                uint64_t *counts)
{
    for (int tier = 0; tier < MS_TIER_COUNT; tier++)
        counts[MS_STREAM_ARENA_HITS + tier] = figures->hits[tier];
    counts[MS_STREAM_ARENA_MISSES] = figures->misses;
    counts[MS_STREAM_ARENA_PENDING_WAITS] = figures->limbo_waits;
    counts[MS_STREAM_ARENA_TRIMS] = figures->trims;
    counts[MS_STREAM_ARENA_CROSSED] = read_of(&arena->crossed);
    counts[MS_STREAM_ARENA_STOLEN] = read_of(&arena->stolen);
    counts[MS_STREAM_ARENA_WAITED] = read_of(&arena->waited);
}

static void arena_figures_set(struct ms_stream_figures *f, const uint64_t *counts)
{
    for (int tier = 0; tier < MS_TIER_COUNT; tier++)
        f->figures.hits[tier] = counts[MS_STREAM_ARENA_HITS + tier];
    f->figures.misses = counts[MS_STREAM_ARENA_MISSES];
    f->figures.limbo_waits = counts[MS_STREAM_ARENA_PENDING_WAITS];
    f->figures.trims = counts[MS_STREAM_ARENA_TRIMS];
    f->crossed = counts[MS_STREAM_ARENA_CROSSED];
    f->stolen = counts[MS_STREAM_ARENA_STOLEN];
    f->waited = counts[MS_STREAM_ARENA_WAITED];
}

void ms_stream_arena_retire_figures(struct ms_stream_arena *arena)
{
    struct ms_pool_figures figures;
    uint64_t counts[MS_STREAM_ARENA_COUNTS];
    const struct ms_mempool *pool = arena->pool;
    ms_figures_of_heap(arena->heap, &figures);
    arena_figures_count(arena, &figures, counts);
    for (int i = 0; i < MS_STREAM_ARENA_COUNTS; i++) {
        uint64_t before = atomic_exchange_explicit(&arena->before[i], counts[i], memory_order_relaxed);
        atomic_fetch_add_explicit(&former[pool->device][i], counts[i] - before, memory_order_relaxed);
    }
    atomic_store_explicit(&arena->grown_beside, 0, memory_order_relaxed);
    atomic_store_explicit(&arena->hoarded, 0, memory_order_relaxed);
}

static void figures_of(struct ms_stream_arena *arena, const struct ms_mempool *pool,
                       struct ms_stream_figures *f)
{
    uint64_t counts[MS_STREAM_ARENA_COUNTS];
    *f = (struct ms_stream_figures){.pool = pool->number,
                                    .stream = arena->latest,
                                    .device = pool->device,
                                    .by_program = pool->by_program,
                                    .ended = !atomic_load_explicit(&arena->stream, memory_order_acquire),
                                    .away_bytes = read_of(&arena->heap->away_bytes),
                                    .hoarded_bytes = read_of(&arena->hoarded)};
    ms_figures_of_heap(arena->heap, &f->figures);
    arena_figures_count(arena, &f->figures, counts);
    for (int i = 0; i < MS_STREAM_ARENA_COUNTS; i++) {
        uint64_t before = read_of(&arena->before[i]);
        counts[i] = counts[i] > before ? counts[i] - before : 0;
    }
    arena_figures_set(f, counts);
}

/* False if there are none. */
static bool former_of(int device, struct ms_stream_figures *f)
{
    uint64_t counts[MS_STREAM_ARENA_COUNTS], any = 0;
    for (int i = 0; i < MS_STREAM_ARENA_COUNTS; i++)
        any |= counts[i] = read_of(&former[device][i]);
    *f = (struct ms_stream_figures){.pool = MS_FORMER_POOLS + (uint64_t)device,
                                    .device = device,
                                    .by_program = true,
                                    .ended = true,
                                    .former = true};
    arena_figures_set(f, counts);
    return any != 0;
}

void ms_stream_each(void (*tell)(uint32_t i, const struct ms_stream_figures *figures))
{
    struct ms_stream_figures f;
    struct ms_mempool *pool;
    uint32_t number = 0;
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        if (former_of(device, &f))
            tell(number++, &f);
    }
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        struct ms_stream_arena *arena = ms_mempool_arenas(pool);
        for (; arena; arena = arena->next_of_pool) {
            figures_of(arena, pool, &f);
            tell(number++, &f);
        }
    }
}

uint64_t ms_stream_free_elsewhere(int device, uint64_t stream, uint64_t *cached_p)
{
    struct ms_pool_figures figures;
    struct ms_mempool *pool;
    uint64_t bytes = 0;
    *cached_p = 0;
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        struct ms_stream_arena *arena = ms_mempool_arenas(pool);
        for (; arena && pool->device == device; arena = arena->next_of_pool) {
            if (arena->latest == stream)
                continue;
            ms_figures_of_heap(arena->heap, &figures);
            bytes += figures.parts.cached + figures.parts.stranded;
            *cached_p += figures.parts.cached;
        }
    }
    return bytes;
}

static void flow_figures_reset(void)
{
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        for (int i = 0; i < MS_STREAM_ARENA_COUNTS; i++)
            atomic_store_explicit(&former[device][i], 0, memory_order_relaxed);
    }
}
MS_AT_FORK(MS_FORK_POOL, flow_figures_reset);
