/* trim.c - what is vacant goes back to the vendor, when a test says so; see checks.h.
 *
 * No program can ask for that: the pool gives back by its own rules (keep.c, rest.c). */
#include "config.h"

#include "pool/external/external.h"
#include "pool/api/internal.h"
#include "checks.h"

uint64_t ms_pool_trim(int device, uint64_t keep_bytes)
{
    uint64_t given = 0;
    struct ms_heap *heap;
    for (uint32_t i = 0; (heap = ms_heap_ref(&i, device)) != NULL;) {
        ms_fence_close(heap);
        ms_fence_poll(heap);
        ms_tcache_flush(&heap->cache);
        uint64_t live = ms_heap_live(heap).requested;
        ms_lock(&heap->lock);
        uint64_t reserved = heap->reserved_bytes;
        ms_unlock(&heap->lock);
        if (reserved > live + keep_bytes)
            given += ms_keep_give_back(heap, reserved - live - keep_bytes, false);
        ms_heap_leave(heap);
    }
    return given + ms_external_trim(device, keep_bytes);
}
