/* arena.c - bump allocation from anonymous mappings.
 *
 * Floor 0. The fast path is one compare-and-swap; a lock is held only while a chunk is mapped. Chunks are
 * never unmapped: readers of append-only tables hold no reference. */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/lock.h"

enum { ALIGNMENT = 64, PAGE = 4096, CHUNK_BYTES = 256 * 1024, LARGE_BYTES = CHUNK_BYTES / 4 };

/* Kernel headers older than 5.17 lack these. */
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
#ifndef PR_SET_VMA_ANON_NAME
#define PR_SET_VMA_ANON_NAME 0
#endif

struct chunk {
    size_t bytes;
    _Atomic size_t used;
};

static struct ms_lock grow_lock = MS_LOCK_INIT(MS_RANK_ARENA);
static struct chunk *_Atomic current;
static _Atomic size_t mapped_bytes;

static void *map(size_t bytes)
{
    int saved_errno = errno;
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        memory = NULL;
    } else {
        prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, memory, bytes, "memshim");
        atomic_fetch_add_explicit(&mapped_bytes, bytes, memory_order_relaxed);
    }
    errno = saved_errno;
    return memory;
}

/* NULL when the chunk has no room. */
static void *take(struct chunk *chunk, size_t bytes)
{
    size_t used = atomic_load_explicit(&chunk->used, memory_order_relaxed);
    do {
        if (chunk->bytes - used < bytes)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&chunk->used, &used, used + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    return (char *)chunk + used;
}

static struct chunk *new_chunk(void)
{
    struct chunk *chunk = map(CHUNK_BYTES);
    if (chunk) {
        chunk->bytes = CHUNK_BYTES;
        atomic_store_explicit(&chunk->used, ALIGNMENT, memory_order_relaxed);
    }
    return chunk;
}

static void *take_from_new_chunk(size_t bytes)
{
    void *memory = NULL;
    ms_lock(&grow_lock);
    struct chunk *chunk = atomic_load_explicit(&current, memory_order_acquire);
    if (chunk)
        memory = take(chunk, bytes); /* another thread may have mapped it while this one waited */
    if (!memory && (chunk = new_chunk()) != NULL) {
        memory = take(chunk, bytes);
        atomic_store_explicit(&current, chunk, memory_order_release);
    }
    ms_unlock(&grow_lock);
    return memory;
}

void *ms_arena_alloc(size_t bytes)
{
    if (bytes > SIZE_MAX - PAGE)
        return NULL;
    if (bytes > LARGE_BYTES)
        return map((bytes + PAGE - 1) / PAGE * PAGE);
    bytes = bytes ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    struct chunk *chunk = atomic_load_explicit(&current, memory_order_acquire);
    void *memory = chunk ? take(chunk, bytes) : NULL;
    return MS_LIKELY(memory != NULL) ? memory : take_from_new_chunk(bytes);
}

size_t ms_arena_bytes(void)
{
    return atomic_load_explicit(&mapped_bytes, memory_order_relaxed);
}

void ms_arena_reset(void)
{
    atomic_store_explicit(&current, NULL, memory_order_relaxed);
    atomic_store_explicit(&mapped_bytes, 0, memory_order_relaxed);
    ms_lock_reset(&grow_lock);
}
