/* serve_context.c - which contexts are served, and what is known of each.
 *
 * Owns a small table of contexts, read without a lock: an entry's handle is written last, and taken back
 * first. Entries are made under one lock (MS_RANK_DEVICE), never held across a vendor call. What cannot be
 * checked is not served: the call is followed then. */
#include "hooks/serve/serve.h"
#include "hooks/serve/neighbours.h"

#include <stdatomic.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/options/options.h"
#include "base/thread/slow_path.h"
#include "hooks/init.h"
#include "hooks/follow/graphs.h"
#include "pool/stream/stream.h"

#define PER_THREAD_STREAM 2u

struct ms_served_context ms_served_contexts[MS_SERVED_CONTEXTS];
static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_DEVICE);
_Atomic bool ms_serve_one_has_ended;
_Atomic bool ms_serve_one_is_down; /* a context has shown an error that stays, some time */

/* Entries are never moved, so a gap left by a context that ended does not end the search. */
static struct ms_served_context *serve_context_find(uint64_t handle)
{
    unsigned first = ms_served_slot(handle);

    for (unsigned i = 0; i < MS_SERVED_CONTEXTS; i++) {
        struct ms_served_context *c = &ms_served_contexts[(first + i) % MS_SERVED_CONTEXTS];
        if (atomic_load_explicit(&c->handle, memory_order_acquire) == handle)
            return c;
    }
    return NULL;
}

static struct ms_served_context *find_or_make(uint64_t handle)
{
    struct ms_served_context *found = serve_context_find(handle);
    unsigned first = ms_served_slot(handle);

    if (found)
        return found;
    ms_lock(&lock);
    found = serve_context_find(handle);
    for (unsigned i = 0; i < MS_SERVED_CONTEXTS && !found; i++) {
        struct ms_served_context *c = &ms_served_contexts[(first + i) % MS_SERVED_CONTEXTS];
        if (atomic_load_explicit(&c->handle, memory_order_relaxed) != 0)
            continue;
        atomic_store(&c->state, MS_SERVED_UNCHECKED);
        atomic_store(&c->pitch_state, MS_SERVED_UNCHECKED);
        atomic_store(&c->pitch_calls, 0);
        atomic_store(&c->pitch, 0);
        atomic_store_explicit(&c->handle, handle, memory_order_release);
        found = c;
    }
    ms_unlock(&lock);
    return found;
}

/* One line for all contexts in which it is the same. */
static int serve_context_refuse(const char *why, int status)
{
    ms_diagnostic(MS_LOG_WARN, "pool", "going on as with MEMSHIM_MODE=track: %s (status %d)", why, status);
    return MS_SERVED_NO;
}

/* The thread that comes first checks; others are followed meanwhile. */
static bool serve_context_check(const struct ms_gpu *gpu, struct ms_served_context *c)
{
    int unchecked = MS_SERVED_UNCHECKED, state;
    const char *tool;

    if (ms_captures_in(atomic_load(&c->handle)) ||
        !atomic_compare_exchange_strong(&c->state, &unchecked, MS_SERVED_CHECKING))
        return false;
    if ((tool = ms_serve_tool()) != NULL) {
        ms_diagnostic(MS_LOG_WARN, "pool",
                      "nothing is served while %s is at work: a pool would hide what it looks for", tool);
        state = MS_SERVED_NO;
    } else if (!gpu->mem_alloc || !gpu->mem_free || !gpu->address_range) {
        state = serve_context_refuse("the driver lacks what the pool needs", CUDA_ERROR_NOT_FOUND);
    } else {
        /* whether the driver does as known the pool sees in the first memory that it is given */
        state = MS_SERVED_YES;
    }
    /* No fence over the context: streams of other threads that bear no handle cannot be reached, so a free
     * has to wait. */
    if (state == MS_SERVED_YES && !gpu->ctx_record_event && !gpu->streams_tell)
        ms_pool_unreachable(atomic_load(&c->handle));
    atomic_store(&c->state, state);
    return state == MS_SERVED_YES;
}

static MS_NOINLINE bool serve_slowly(const struct ms_gpu *gpu, uint64_t handle, int device)
{
    struct ms_served_context *c = serve_context_find(handle);
    int state;

    if (MS_UNLIKELY(!c) && !(c = find_or_make(handle)))
        return false;
    state = atomic_load_explicit(&c->state, memory_order_acquire);
    if (MS_UNLIKELY(state == MS_SERVED_UNCHECKED)) {
        ms_call_describe_device(gpu, device);
        ms_neighbours_meet(gpu, device);
        return serve_context_check(gpu, c);
    }
    if (state != MS_SERVED_YES)
        return false;
    /* A call that a capture forbids natively is forbidden under `strict` too: the driver decides. */
    return !ms_captures_in(handle) || !ms_serve_strictly;
}

bool ms_serve_context(const struct ms_gpu *gpu, uint64_t handle, int device)
{
    return ms_serve_context_is_ordinary(handle) || serve_slowly(gpu, handle, device);
}

/* Rounding up to a multiple explains what the driver does with one byte, and with one byte more than twice
 * that. What cannot be found out now is tried again, less and less often: at the second such call, the
 * fourth, the eighth. */
static void learn_pitch(const struct ms_gpu *gpu, struct ms_served_context *c, int device)
{
    uint64_t multiple, twice, handle = atomic_load(&c->handle);
    uint32_t calls = atomic_fetch_add_explicit(&c->pitch_calls, 1, memory_order_relaxed) + 1;
    int unchecked = MS_SERVED_UNCHECKED, state = MS_SERVED_UNCHECKED;

    if ((calls & (calls - 1)) || ms_captures_in(handle) ||
        !atomic_compare_exchange_strong(&c->pitch_state, &unchecked, MS_SERVED_CHECKING))
        return;
    multiple = ms_pool_try_pitch(gpu, handle, device, 1, 4);
    twice = multiple ? ms_pool_try_pitch(gpu, handle, device, 2 * multiple + 1, 4) : 0;
    if (multiple && twice)
        state = twice == 3 * multiple ? MS_SERVED_YES : MS_SERVED_NO;
    atomic_store(&c->pitch, state == MS_SERVED_YES ? multiple : 0);
    atomic_store_explicit(&c->pitch_state, state, memory_order_release);
}

uint64_t ms_serve_pitch(const struct ms_gpu *gpu, uint64_t handle, int device, unsigned element_bytes)
{
    struct ms_served_context *c = serve_context_find(handle);

    if (!c || (element_bytes != 4 && element_bytes != 8 && element_bytes != 16))
        return 0;
    if (atomic_load_explicit(&c->pitch_state, memory_order_acquire) == MS_SERVED_UNCHECKED)
        learn_pitch(gpu, c, device);
    return atomic_load_explicit(&c->pitch_state, memory_order_acquire) == MS_SERVED_YES
               ? atomic_load(&c->pitch)
               : 0;
}

bool ms_serve_context_is_served(uint64_t handle)
{
    const struct ms_served_context *c = serve_context_find(handle);

    return c && atomic_load_explicit(&c->state, memory_order_acquire) == MS_SERVED_YES;
}

void ms_serve_context_foreign(uint64_t handle)
{
    struct ms_served_context *c = handle ? find_or_make(handle) : NULL;

    if (c)
        atomic_store(&c->state, MS_SERVED_NO);
}

void ms_serve_context_ending(uint64_t handle)
{
    if (handle && serve_context_find(handle))
        ms_pool_context_ending(handle);
}

void ms_serve_context_ended(uint64_t handle, bool dead)
{
    struct ms_served_context *c = handle ? serve_context_find(handle) : NULL;

    if (handle && dead) {
        atomic_store_explicit(&ms_serve_one_has_ended, true, memory_order_relaxed);
        ms_stream_context_died(handle);
        ms_pool_graphs_lost((int)ms_graphs_context_ended(handle));
    }
    if (!c)
        return;
    ms_pool_context_ended(handle, dead);
    if (!dead)
        return;
    ms_lock(&lock);
    atomic_store(&c->handle, 0);
    ms_unlock(&lock);
}

/* Errors after which every call of the context answers the same: the device's work was ended in the
 * middle. */
static bool is_sticky(int status)
{
    switch (status) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
        return true;
    default:
        return false;
    }
}

void ms_serve_status(uint64_t handle, int status)
{
    struct ms_served_context *c;
    int served = MS_SERVED_YES;

    if (MS_LIKELY(status == 0) || !is_sticky(status) || !handle || !(c = serve_context_find(handle)))
        return;
    if (atomic_compare_exchange_strong(&c->state, &served, MS_SERVED_NO)) {
        ms_diagnostic(MS_LOG_INFO, "pool", "a context is not served any more: it shows error %d, which stays",
                      status);
        atomic_store_explicit(&ms_serve_one_is_down, true, memory_order_relaxed);
        ms_slow_path_set(MS_SLOW_PATH_SERVICE);
        ms_pool_stand_down(handle, "its context shows an error that stays");
    }
}

static void serve_contexts_reset(void)
{
    memset((void *)ms_served_contexts, 0, sizeof(ms_served_contexts));
    ms_lock_reset(&lock);
}
MS_AT_FORK(MS_FORK_SERVICE, serve_contexts_reset);
