/* arena.c - bump allocation from anonymous mappings.
 *
 * Floor 0. The fast path is one compare-and-swap; a lock is held only while a chunk is mapped. Chunks are
 * never unmapped: readers of append-only tables hold no reference. Small at first, since most programs need
 * little, and of huge pages where there is much. */
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/lock.h"

enum { ALIGNMENT = 64, PAGE = 4096, CHUNK_BYTES = 256 * 1024, HUGE_BYTES = 2 * 1024 * 1024, LARGE_SHARE = 4 };
/* From so much on it is taken in huge pages: tables that do not fit into caches any more are read at random,
 * and a good part of what that takes is finding the page. */
enum { MUCH_BYTES = 4 * HUGE_BYTES };

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

/* NULL if the system refuses. */
static char *map_anonymous(size_t bytes)
{
    char *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Huge pages, where the system has any to give. */
static char *map_huge(size_t bytes)
{
    char *memory = map_anonymous(bytes + HUGE_BYTES);
    if (!memory)
        return NULL;
    size_t before = -(uintptr_t)memory % HUGE_BYTES;
    if (before)
        munmap(memory, before);
    munmap(memory + before + bytes, HUGE_BYTES - before);
    madvise(memory + before, bytes, MADV_HUGEPAGE);
    return memory + before;
}

static void *map(size_t bytes)
{
    int saved_errno = errno;
    char *memory = bytes % HUGE_BYTES ? NULL : map_huge(bytes);
    if (!memory)
        memory = map_anonymous(bytes);
    if (memory) {
        prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, memory, bytes, "memshim");
        atomic_fetch_add_explicit(&mapped_bytes, bytes, memory_order_relaxed);
    }
    errno = saved_errno;
    return memory;
}

/* NULL when the chunk has no room. */
static void *arena_take(struct chunk *chunk, size_t bytes)
{
    size_t used = atomic_load_explicit(&chunk->used, memory_order_relaxed);
    do {
        if (chunk->bytes - used < bytes)
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&chunk->used, &used, used + bytes, memory_order_relaxed,
                                                    memory_order_relaxed));
    return (char *)chunk + used;
}

static size_t chunk_bytes(void)
{
    return atomic_load_explicit(&mapped_bytes, memory_order_relaxed) < MUCH_BYTES ? CHUNK_BYTES : HUGE_BYTES;
}

static struct chunk *new_chunk(void)
{
    size_t bytes = chunk_bytes();
    struct chunk *chunk = map(bytes);
    if (chunk) {
        chunk->bytes = bytes;
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
        memory = arena_take(chunk, bytes); /* another thread may have mapped it while this one waited */
    if (!memory && (chunk = new_chunk()) != NULL) {
        memory = arena_take(chunk, bytes);
        atomic_store_explicit(&current, chunk, memory_order_release);
    }
    ms_unlock(&grow_lock);
    return memory;
}

void *ms_arena_alloc(size_t bytes)
{
    if (bytes > SIZE_MAX - MUCH_BYTES)
        return NULL;
    if (bytes > chunk_bytes() / LARGE_SHARE) {
        size_t step = bytes < MUCH_BYTES ? PAGE : HUGE_BYTES;
        return map((bytes + step - 1) / step * step);
    }
    bytes = bytes ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT : ALIGNMENT;
    struct chunk *chunk = atomic_load_explicit(&current, memory_order_acquire);
    void *memory = chunk ? arena_take(chunk, bytes) : NULL;
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
MS_AT_FORK(MS_FORK_BASE, ms_arena_reset);
