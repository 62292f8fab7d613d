/* stop.c - the pool stands still while one thread looks at all of it.
 *
 * Floor 2. Takes every lock under which something in the pool changes: the table of heaps first, so that no
 * heap comes, then each heap's thread caches, each heap's own, whole buffers and the device's figures. No
 * lock that may be held across a vendor call is among them, so a thread that is stuck inside the vendor keeps
 * nobody waiting. So an event may be found to be over meanwhile; what it lets out of the pending list does
 * not count before the pool goes on (`stopped_done`). All waits together are bounded: one that was
 * interrupted in the middle of a section, and never goes on, keeps its lock. Nothing is allocated.
 *
 * A thread cache or a heap is locked by nobody beside another heap's, so the order of heaps does not
 * matter. */
#include <string.h>

#include "base/clock.h"
#include "pool/external/external.h"
#include "pool/api/internal.h"

MS_TLS bool ms_pool_is_stopped;

/* How far it got; of the one thread that stops the pool. */
static struct {
    uint32_t heaps, tcaches, plain; /* thread caches of all heaps, and heaps' own locks, in order */
    bool table, foreign, figures;
} taken;
static atomic_flag in_use = ATOMIC_FLAG_INIT;

static struct ms_heap *heap_at(uint32_t i)
{
    return atomic_load_explicit(&ms_heaps[i], memory_order_acquire);
}

static unsigned left_ms(uint64_t deadline_ns)
{
    uint64_t now_ns = ms_clock_ns();
    return now_ns < deadline_ns ? (unsigned)((deadline_ns - now_ns) / 1000000u) : 0;
}

static bool take_heaps(uint64_t deadline_ns)
{
    taken.heaps = atomic_load_explicit(&ms_heap_count, memory_order_acquire);
    for (; taken.tcaches < taken.heaps * MS_TCACHES; taken.tcaches++) {
        struct ms_bias *lock =
            &heap_at(taken.tcaches / MS_TCACHES)->cache.tcaches[taken.tcaches % MS_TCACHES].lock;
        if (!ms_bias_lock_within(lock, MS_BIAS_TCACHE, left_ms(deadline_ns)))
            return false;
    }
    for (; taken.plain < taken.heaps; taken.plain++) {
        struct ms_heap *heap = heap_at(taken.plain);
        if (!ms_lock_within(&heap->lock, left_ms(deadline_ns)))
            return false;
        heap->stopped_done = ms_fence_done(&heap->fence);
    }
    return true;
}

static bool take_all(uint64_t deadline_ns)
{
    taken.table = ms_lock_within(&ms_heap_table_lock, left_ms(deadline_ns));
    return taken.table && take_heaps(deadline_ns) &&
           (taken.foreign = ms_external_lock_within(left_ms(deadline_ns))) &&
           (taken.figures = ms_lock_within(&ms_figures_lock, left_ms(deadline_ns)));
}

static void give_all(void)
{
    if (taken.figures)
        ms_unlock(&ms_figures_lock);
    if (taken.foreign)
        ms_external_unlock();
    while (taken.plain > 0)
        ms_unlock(&heap_at(--taken.plain)->lock);
    while (taken.tcaches-- > 0)
        ms_bias_unlock_plainly(
            &heap_at(taken.tcaches / MS_TCACHES)->cache.tcaches[taken.tcaches % MS_TCACHES].lock);
    if (taken.table)
        ms_unlock(&ms_heap_table_lock);
    taken.tcaches = 0;
    taken.table = taken.foreign = taken.figures = false;
}

bool ms_pool_stop(unsigned timeout_ms)
{
    if (ms_pool_is_stopped || atomic_flag_test_and_set(&in_use))
        return false;
    ms_pool_is_stopped = take_all(ms_clock_ns() + (uint64_t)timeout_ms * 1000000u);
    if (!ms_pool_is_stopped) {
        give_all();
        atomic_flag_clear(&in_use);
    }
    return ms_pool_is_stopped;
}

void ms_pool_go(void)
{
    ms_pool_is_stopped = false;
    give_all();
    atomic_flag_clear(&in_use);
}

static void stop_reset(void)
{
    ms_pool_is_stopped = false;
    memset(&taken, 0, sizeof(taken));
    atomic_flag_clear(&in_use);
}
MS_AT_FORK(MS_FORK_POOL, stop_reset);

uint64_t ms_stop_done(const struct ms_heap *heap)
{
    return ms_pool_is_stopped ? heap->stopped_done : ms_fence_done(&heap->fence);
}
