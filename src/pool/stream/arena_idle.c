/* arena_idle.c - what a stream keeps idle while others of its pool are given more of the driver's memory.
 *
 * Freed memory of a stream that is still at work is nobody's but its own. Looked at where a stream arena
 * grows, which asks the driver anyway; only figures come of it. */
#include "config.h"

#include "pool/stream/stream_arena.h"

/* Of a pool with more streams, the latest. */
enum { LOOKED_AT = 64 };

static uint64_t idle_of(struct ms_stream_arena *arena)
{
    struct ms_pool_figures figures;
    ms_figures_of_heap(arena->heap, &figures);
    uint64_t used = figures.parts.requested + figures.parts.rounding;
    return figures.reserved_bytes > used ? figures.reserved_bytes - used : 0;
}

static void arena_idle_note(struct ms_stream_arena *arena, uint64_t bytes)
{
    uint64_t idle = idle_of(arena);
    if (idle < bytes)
        return;
    uint64_t grown = atomic_fetch_add_explicit(&arena->grown_beside, bytes, memory_order_relaxed) + bytes;
    ms_raise(&arena->hoarded, grown < idle ? grown : idle);
}

void ms_stream_arena_note_idle_held(const struct ms_stream_arena *asking, uint64_t bytes)
{
    const struct ms_mempool *pool = asking->pool;
    struct ms_stream_arena *arena = ms_mempool_arenas(pool);
    for (int i = 0; arena && i < LOOKED_AT; i++, arena = arena->next_of_pool) {
        if (arena != asking)
            arena_idle_note(arena, bytes);
    }
}
