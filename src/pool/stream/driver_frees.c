/* driver_frees.c - what was freed in the order of a stream, until the device has it.
 *
 * The driver gives what cuMemFreeAsync has freed to nobody else before the host has waited for the stream
 * that freed it: an event that is over, and that was only asked, releases nothing. So a free of ours is a
 * point of its stream's, with a mark right behind it, and whoever sees that this is over waits for the event,
 * which takes no time then (clock/fence_timeline.c). A stream is never waited for as a whole: a program's may
 * have been given more work.
 *
 * What a stream has freed is the device's together: a later free is marked in the place of the one before.
 * Lock: the streams', under which streams are freed on, and events are recorded, asked and waited for. */
#include <sched.h>

#include "base/clock.h"
#include "pool/stream/stream_arena.h"
#include "pool/stream/driver_frees.h"
#include "quota/quota.h"

static struct ms_stream *first; /* of those in which something is under way */
static _Atomic uint64_t pending[MS_DEVICES_MAX];
static _Atomic uint64_t begun[MS_DEVICES_MAX], ended[MS_DEVICES_MAX];
static MS_TLS uint64_t own; /* of those that ended, the thread's; a request's are all on its device */

void ms_driver_frees_note(struct ms_stream *stream, int device, uint64_t bytes)
{
    struct ms_fence_timeline *time = &stream->time;
    if (!bytes || !time->gpu->event_synchronize)
        return; /* then it is the device's when the program waits for the stream */
    if (stream->returning)
        ms_fence_timeline_take_back(time, time->given_back);
    uint64_t point = ms_fence_timeline_point(time);
    if (ms_fence_timeline_mark(time, ms_stream_handle(stream), point) != CUDA_SUCCESS)
        return;
    if (!stream->returning) {
        stream->returns_to = device;
        stream->next_returning = first;
        first = stream;
    }
    stream->returning += bytes;
    time->given_back = point;
    atomic_fetch_add_explicit(&pending[stream->returns_to], bytes, memory_order_relaxed);
    ms_quota_hold(stream->returns_to, bytes); /* whoever gave them back counts them out now */
}

/* Lock held: nothing is on its way any more. */
static void driver_frees_forget(struct ms_stream *stream)
{
    struct ms_stream **link = &first;
    while (*link != stream)
        link = &(*link)->next_returning;
    *link = stream->next_returning;
    atomic_fetch_sub_explicit(&pending[stream->returns_to], stream->returning, memory_order_relaxed);
    ms_quota_give_back(stream->returns_to, stream->returning);
    stream->returning = 0;
    ms_stream_left(stream);
}

/* Lock held. Where its context is lost nothing is known of it any more. */
static uint64_t driver_frees_settle(struct ms_stream *stream)
{
    uint64_t bytes = stream->returning;
    int status = ms_fence_timeline_poll(&stream->time);
    bool over = stream->time.given_back <= ms_fence_timeline_reached(&stream->time);
    if (!over && status == CUDA_ERROR_NOT_READY)
        return 0;
    driver_frees_forget(stream);
    return over ? bytes : 0;
}

uint64_t ms_driver_frees_pending(int device)
{
    return atomic_load_explicit(&pending[device], memory_order_relaxed);
}

uint64_t ms_driver_frees_settle(int device)
{
    uint64_t settled = 0;
    if (MS_LIKELY(!ms_driver_frees_pending(device)))
        return 0;
    ms_lock(&ms_streams_lock);
    for (struct ms_stream *stream = first, *next; stream; stream = next) {
        next = stream->next_returning;
        if (stream->returns_to == device)
            settled += driver_frees_settle(stream);
    }
    ms_unlock(&ms_streams_lock);
    if (settled)
        ms_mempool_count_idle(device); /* which the driver may keep */
    return settled;
}

static bool any_of_ours(int device)
{
    bool any = false;
    ms_lock(&ms_streams_lock);
    for (const struct ms_stream *stream = first; stream && !any; stream = stream->next_returning)
        any = ms_stream_is_ours(stream) && stream->returns_to == device;
    ms_unlock(&ms_streams_lock);
    return any;
}

void ms_driver_frees_await(int device, bool others, uint64_t deadline)
{
    uint64_t begin = ms_clock_ns(), now = begin;
    for (; ms_driver_frees_pending(device); now = ms_clock_ns()) {
        ms_driver_frees_settle(device);
        bool moment = others && now < begin + MS_RETURN_OTHERS_NS;
        if (now >= deadline || (!moment && !any_of_ours(device)))
            return;
        if (now < begin + MS_RETURN_YIELD_NS)
            sched_yield();
        else
            ms_clock_sleep(MS_RETURN_SLEEP_NS);
    }
}

void ms_driver_frees_begin(int device)
{
    atomic_fetch_add_explicit(&begun[device], 1, memory_order_relaxed);
}

void ms_driver_frees_end(int device)
{
    atomic_fetch_add_explicit(&ended[device], 1, memory_order_release);
    own++;
}

uint64_t ms_driver_frees_ended(int device)
{
    return atomic_load_explicit(&ended[device], memory_order_acquire) - own;
}

/* Whoever has seen under a heap's lock that something is missing sees that it was begun. */
bool ms_driver_frees_since(int device, uint64_t ended_before)
{
    return atomic_load_explicit(&begun[device], memory_order_relaxed) - own != ended_before;
}

bool ms_driver_frees_under_way(int device)
{
    return atomic_load_explicit(&begun[device], memory_order_relaxed) !=
           atomic_load_explicit(&ended[device], memory_order_relaxed);
}

void ms_driver_frees_died(struct ms_stream *stream)
{
    if (stream->returning)
        driver_frees_forget(stream);
}

static void returns_reset(void)
{
    first = NULL;
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        atomic_store_explicit(&pending[device], 0, memory_order_relaxed);
        atomic_store_explicit(&begun[device], 0, memory_order_relaxed);
        atomic_store_explicit(&ended[device], 0, memory_order_relaxed);
    }
}
MS_AT_FORK(MS_FORK_POOL, returns_reset);
