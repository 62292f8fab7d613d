/* stream.c - which stream is which, and what becomes of one that ends.
 *
 * A record for each stream that was seen made or was met, in buckets by handle, or by identity for a thread's
 * own stream. The way of a hit is the thread's latest stream, told by handle, context and the number of
 * streams that have ended so far. A record whose stream has ended serves the next one in its bucket. Streams
 * begin and end under the lock of their context's fence too, which goes through them (ms_stream_next_in). */
#include <string.h>

#include "base/arena.h"
#include "base/thread/guard.h"
#include "pool/stream/stream_arena.h"
#include "pool/stream/driver_frees.h"

enum { BUCKETS = 512, RECORDS = 16 };

struct ms_lock ms_streams_lock = MS_LOCK_INIT(MS_RANK_POOL_STREAMS);

_Atomic uint32_t ms_stream_count;
_Atomic uint64_t ms_stream_changes;

static struct ms_stream *_Atomic buckets[BUCKETS];
static struct ms_stream *_Atomic all; /* records, somebody's or not; none ever leaves */
static struct ms_stream *spare;
static uint32_t spare_count;
static bool any_threads; /* a thread's own stream was met */

struct latest {
    uint64_t handle, context, changes;
    struct ms_stream *stream;
};
static MS_TLS struct latest latest, own; /* own: the thread's, which has no handle to find it by */

int ms_stream_device(const struct ms_stream *stream)
{
    return stream->device;
}

uint64_t ms_stream_context(const struct ms_stream *stream)
{
    return atomic_load_explicit(&stream->time.context, memory_order_relaxed);
}

/* A handle that all contexts have in common means another stream in each, and another context may be
 * current. */
static MS_NOINLINE bool captures_at_home(const struct ms_stream *stream)
{
    CUstream handle = ms_stream_handle(stream);
    struct ms_context_scope visit;
    if ((uintptr_t)handle > MS_STREAM_PER_THREAD)
        return ms_gpu_captures(stream->time.gpu, handle);
    ms_context_scope_begin(&visit, stream->time.gpu, ms_stream_context(stream));
    bool open = ms_gpu_captures(stream->time.gpu, handle);
    ms_context_scope_end(&visit);
    return open;
}

bool ms_stream_captures(const struct ms_stream *stream)
{
    return MS_UNLIKELY(ms_captures_may_be_open()) && captures_at_home(stream);
}

bool ms_stream_reachable(const struct ms_stream *stream)
{
    uint64_t handle = atomic_load_explicit(&stream->handle, memory_order_relaxed);
    if (stream->time.gpu->captures_are_frail && ms_captures_may_be_open())
        return false;
    if (!handle || (handle == MS_STREAM_PER_THREAD && stream->thread != ms_thread_id()))
        return false;
    return !ms_stream_captures(stream);
}

bool ms_stream_mark(struct ms_stream *stream)
{
    return ms_stream_reachable(stream) &&
           ms_fence_timeline_mark(&stream->time, ms_stream_handle(stream),
                                  ms_fence_timeline_latest(&stream->time)) == CUDA_SUCCESS;
}

static struct ms_stream *_Atomic *stream_bucket_of(uint64_t handle, uint64_t context, uint64_t id)
{
    uint64_t key = handle > MS_STREAM_PER_THREAD ? handle : handle == MS_STREAM_LEGACY ? context : id << 4;
    return &buckets[(key >> 4) * 0x9e3779b97f4a7c15u >> 55];
}

/* Handles above 2 mean the same in every context. */
static bool stream_is_named(const struct ms_stream *stream, uint64_t handle, uint64_t context, uint64_t id)
{
    return atomic_load_explicit(&stream->handle, memory_order_acquire) == handle &&
           (handle > MS_STREAM_PER_THREAD ||
            atomic_load_explicit(&stream->time.context, memory_order_relaxed) == context) &&
           (handle != MS_STREAM_PER_THREAD || atomic_load_explicit(&stream->id, memory_order_relaxed) == id);
}

static struct ms_stream *stream_find(struct ms_stream *_Atomic *bucket, uint64_t handle, uint64_t context,
                                     uint64_t id)
{
    struct ms_stream *stream = atomic_load_explicit(bucket, memory_order_acquire);
    while (stream && !stream_is_named(stream, handle, context, id))
        stream = atomic_load_explicit(&stream->next, memory_order_acquire);
    return stream;
}

static struct ms_stream *first_of_all(void)
{
    return atomic_load_explicit(&all, memory_order_acquire);
}

const struct ms_stream *ms_stream_next_in(uint64_t context, const struct ms_stream *after)
{
    const struct ms_stream *stream = after ? after->next_of_all : first_of_all();
    while (stream && (atomic_load_explicit(&stream->handle, memory_order_acquire) <= MS_STREAM_PER_THREAD ||
                      ms_stream_context(stream) != context || ms_stream_is_ours(stream)))
        stream = stream->next_of_all;
    return stream;
}

/* Its points are still to be reached. */
static bool is_waited_for(const struct ms_stream *stream)
{
    return stream->batches || stream->returning ||
           ms_fence_timeline_reached(&stream->time) < ms_fence_timeline_latest(&stream->time);
}

/* Lock held. One of the bucket's whose stream has ended, or a new one in it. */
static struct ms_stream *record_in(struct ms_stream *_Atomic *bucket)
{
    struct ms_stream *stream = atomic_load_explicit(bucket, memory_order_relaxed);
    while (stream && (atomic_load_explicit(&stream->handle, memory_order_relaxed) || is_waited_for(stream)))
        stream = atomic_load_explicit(&stream->next, memory_order_relaxed);
    if (stream)
        return stream;
    if (!spare_count && (spare = ms_arena_alloc(RECORDS * sizeof(*spare))) != NULL)
        spare_count = RECORDS;
    if (!spare_count)
        return NULL;
    stream = &spare[--spare_count];
    stream->next_of_all = first_of_all();
    atomic_store_explicit(&all, stream, memory_order_release);
    atomic_store_explicit(&stream->next, atomic_load_explicit(bucket, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(bucket, stream, memory_order_release);
    return stream;
}

/* Somebody has a stream that nobody saw being made, and there may be more: no fence covers them. */
static void note_unseen(const struct ms_gpu *gpu)
{
    static _Atomic bool noted;
    uint64_t current = 0;
    ms_gpu_current(gpu, &current);
    if (current)
        ms_pool_unreachable(current);
    if (!atomic_exchange_explicit(&noted, true, memory_order_relaxed))
        ms_pool_note("a stream is used that was made by a function memshim does not know: each free on its "
                     "device waits, as the vendor's does");
}

/* Asks the driver for the stream's id and context, which is `context` where it does not say; false if it
 * knows no such stream, or it captures and may not be asked. */
static bool stream_query_driver(const struct ms_gpu *gpu, uint64_t context, uint64_t handle,
                                unsigned long long *id_p, uint64_t *context_p)
{
    CUcontext its = NULL;
    CUstream stream = (CUstream)(uintptr_t)handle;
    *context_p = context;
    if (!ms_gpu_stream_id(gpu, stream, id_p))
        return false;
    if (handle <= MS_STREAM_PER_THREAD)
        return true;
    if (!gpu->stream_get_ctx && !context && gpu->streams_tell)
        note_unseen(gpu);
    if (!gpu->stream_get_ctx)
        return context != 0;
    if (gpu->stream_get_ctx(stream, &its) != CUDA_SUCCESS || !its)
        return false;
    *context_p = (uintptr_t)its;
    return true;
}

/* If the stream has ended, nobody asks how far it got, and its record may be another's. */
void ms_stream_left(struct ms_stream *stream)
{
    if (!stream->batches && !stream->returning &&
        !atomic_load_explicit(&stream->handle, memory_order_relaxed))
        ms_fence_timeline_end(&stream->time, false);
}

static int stream_device_of(const struct ms_gpu *gpu, uint64_t context)
{
    struct ms_context_scope visit;
    uint64_t current;
    ms_context_scope_begin(&visit, gpu, context);
    int device = ms_gpu_current(gpu, &current);
    ms_context_scope_end(&visit);
    return current == context ? device : MS_GPU_NO_DEVICE;
}

/* Lock held. */
static void stream_end(struct ms_stream *stream)
{
    ms_stream_arena_detach_all(stream, false);
    ms_cross_free_stream_ends(stream);
    atomic_store_explicit(&stream->handle, 0, memory_order_release);
    atomic_fetch_add_explicit(&ms_stream_changes, 1, memory_order_release);
}

/* Lock held. A thread's stream ends with it, and nobody says so. */
static void end_lost_threads(void)
{
    for (struct ms_stream *stream = first_of_all(); stream; stream = stream->next_of_all) {
        if (atomic_load_explicit(&stream->handle, memory_order_relaxed) == MS_STREAM_PER_THREAD &&
            ms_thread_is_gone(stream->thread))
            stream_end(stream);
    }
}

void ms_stream_notice_ends(void)
{
    ms_lock(&ms_streams_lock);
    if (any_threads)
        end_lost_threads();
    ms_unlock(&ms_streams_lock);
}

/* Lock held. A record of the bucket's begins; NULL without memory. */
static struct ms_stream *stream_begin(struct ms_stream *_Atomic *bucket, const struct ms_gpu *gpu,
                                      uint64_t context, int device, uint64_t handle, uint64_t id)
{
    struct ms_stream *stream = record_in(bucket);
    if (!stream)
        return NULL;
    atomic_store_explicit(&stream->id, id, memory_order_relaxed);
    stream->device = device;
    stream->thread = ms_thread_id();
    ms_fence_timeline_begin(&stream->time, gpu, context, MS_EVENTS_OF_STREAM);
    atomic_store_explicit(&stream->arenas, NULL, memory_order_relaxed);
    atomic_store_explicit(&stream->handle, handle, memory_order_release);
    return stream;
}

struct ms_stream *ms_stream_ours(const struct ms_gpu *gpu, uint64_t context, int device, CUstream handle)
{
    uint64_t named = (uintptr_t)handle;
    struct ms_stream *_Atomic *bucket = stream_bucket_of(named, context, 0);
    struct ms_stream *stream = stream_find(bucket, named, context, 0);
    return stream ? stream : stream_begin(bucket, gpu, context, device, named, MS_STREAM_OURS);
}

/* No lock held. The record of a stream of which that is known. */
static struct ms_stream *stream_enter(const struct ms_gpu *gpu, uint64_t context, int device, uint64_t handle,
                                      uint64_t id)
{
    struct ms_stream *_Atomic *bucket = stream_bucket_of(handle, context, id);
    ms_pool_capture_enter(context);
    struct ms_stream *stream = stream_find(bucket, handle, context, id);
    if (!stream && handle == MS_STREAM_PER_THREAD) {
        any_threads = true;
        end_lost_threads();
    }
    if (!stream) {
        atomic_fetch_add_explicit(&ms_stream_count, 1, memory_order_relaxed);
        stream = stream_begin(bucket, gpu, context, device, handle, id);
    } else if (!atomic_load_explicit(&stream->id, memory_order_relaxed)) {
        stream->device = device;
        atomic_store_explicit(&stream->id, id, memory_order_release);
    }
    if (!stream || ms_stream_context(stream) != context)
        ms_pool_unreachable(context);
    ms_pool_capture_leave(context, handle, ms_capture_is_open(handle, context));
    return stream;
}

void ms_stream_born(const struct ms_gpu *gpu, uint64_t context, uint64_t handle)
{
    stream_enter(gpu, context, MS_GPU_NO_DEVICE, handle, 0);
}

static struct ms_stream *meet(const struct ms_gpu *gpu, uint64_t context, uint64_t handle)
{
    unsigned long long id = 0;
    uint64_t its;
    if (!stream_query_driver(gpu, context, handle, &id, &its))
        return NULL;
    int device = stream_device_of(gpu, its);
    if (device < 0 || device >= MS_DEVICES_MAX)
        return NULL;
    return stream_enter(gpu, its, device, handle, id);
}

struct ms_stream *ms_stream_unnamed(const struct ms_gpu *gpu, uint64_t context)
{
    struct ms_stream *stream = stream_begin(&buckets[0], gpu, context, MS_GPU_NO_DEVICE, 0, 0);
    if (stream)
        ms_fence_timeline_close(&stream->time);
    return stream;
}

static struct ms_stream *stream_look_up(const struct ms_gpu *gpu, uint64_t context, uint64_t handle,
                                        struct latest *last)
{
    uint64_t now = atomic_load_explicit(&ms_stream_changes, memory_order_acquire);
    struct ms_stream *stream = NULL;
    if (handle != MS_STREAM_PER_THREAD)
        stream = stream_find(stream_bucket_of(handle, context, 0), handle, context, 0);
    if (!stream || !atomic_load_explicit(&stream->id, memory_order_acquire))
        stream = meet(gpu, stream ? ms_stream_context(stream) : context, handle);
    *last = (struct latest){handle, context, now, stream};
    return stream;
}

struct ms_stream *ms_stream_of(const struct ms_gpu *gpu, uint64_t handle)
{
    struct latest *last = handle == MS_STREAM_PER_THREAD ? &own : &latest;
    uint64_t context = 0; /* a handle of the driver's is the same in all */
    if (!handle)
        handle = MS_STREAM_LEGACY;
    else if (MS_UNLIKELY(handle == MS_STREAM_LEGACY && !gpu->legacy_is_named))
        return NULL;
    if (handle <= MS_STREAM_PER_THREAD && (ms_gpu_current(gpu, &context) < 0 || !context))
        return NULL;
    if (MS_LIKELY(last->handle == handle && last->context == context && last->stream &&
                  last->changes == atomic_load_explicit(&ms_stream_changes, memory_order_acquire)))
        return last->stream;
    return stream_look_up(gpu, context, handle, last);
}

struct ms_stream *ms_stream_seen(uint64_t handle)
{
    return handle > MS_STREAM_PER_THREAD ? stream_find(stream_bucket_of(handle, 0, 0), handle, 0, 0) : NULL;
}

uint64_t ms_stream_context_seen(uint64_t handle)
{
    const struct ms_stream *stream = ms_stream_seen(handle);
    return stream ? ms_stream_context(stream) : 0;
}

bool ms_stream_ending(uint64_t context, uint64_t handle)
{
    struct ms_stream *stream = ms_stream_seen(handle);
    if (!stream)
        return false;
    if (ms_stream_context(stream) == context)
        ms_fence_stream_ends(context, ms_stream_handle(stream));
    else
        ms_pool_unreachable(ms_stream_context(stream));
    stream_end(stream);
    return true;
}

static void die(struct ms_stream *stream)
{
    atomic_store_explicit(&stream->handle, 0, memory_order_release);
    ms_cross_free_stream_died(stream);
    ms_driver_frees_died(stream);
    ms_stream_arena_detach_all(stream, true);
    atomic_fetch_add_explicit(&ms_stream_changes, 1, memory_order_release);
}

void ms_stream_context_died(uint64_t context)
{
    ms_lock(&ms_streams_lock);
    ms_captures_context_died(context);
    for (struct ms_stream *stream = context ? first_of_all() : NULL; stream; stream = stream->next_of_all) {
        if (ms_stream_context(stream) == context &&
            (atomic_load_explicit(&stream->handle, memory_order_relaxed) || stream->batches ||
             stream->returning))
            die(stream);
    }
    if (context)
        ms_mempools_context_died(context);
    ms_unlock(&ms_streams_lock);
}

static void stream_reset(void)
{
    ms_lock_reset(&ms_streams_lock);
    memset((void *)buckets, 0, sizeof(buckets));
    atomic_store_explicit(&all, NULL, memory_order_relaxed);
    atomic_store_explicit(&ms_stream_count, 0, memory_order_relaxed);
    spare = NULL;
    spare_count = 0;
    latest = own = (struct latest){0};
}
MS_AT_FORK(MS_FORK_POOL, stream_reset);
