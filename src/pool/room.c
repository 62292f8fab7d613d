/* room.c - room on a device for what no heap here makes: other kinds of memory, other libraries' buffers, the
 * driver's pools.
 *
 * What is idle goes back. Where that is nothing, what was freed and may still be in use is waited for, as the
 * vendor's own free would have waited for it, for no longer than MEMSHIM_OOM_WAIT_MS in all. No lock is held
 * where the vendor is called. */
#include "config.h"

#include "base/clock.h"
#include "pool/flow.h"
#include "pool/returns.h"

bool ms_room_may_come(int device)
{
    struct ms_heap *heap;
    bool may = ms_returns_pending(device) > 0;
    for (uint32_t i = 0; !may && (heap = ms_heap_visit(&i, device)) != NULL;) {
        may = ms_fence_pending(heap) || ms_keep_waits(heap);
        ms_heap_leave(heap);
    }
    return may;
}

uint64_t ms_room_make(int device, bool wait, uint64_t *deadline_p)
{
    uint64_t pause = 0;
    if (!*deadline_p)
        *deadline_p = ms_clock_ns() + ms_policy->oom_wait_ms * 1000000u;
    else if (ms_clock_ns() >= *deadline_p)
        return 0;
    for (;;) {
        bool pending = ms_room_may_come(device);
        uint64_t given = ms_pool_trim_short(device) + ms_stream_trim(device);
        pending = wait && (pending || ms_room_may_come(device));
        if (given && wait)
            ms_returns_await(device, true, *deadline_p);
        if (given || !pending || ms_clock_ns() >= *deadline_p)
            return given;
        ms_clock_nap_longer(&pause);
    }
}
