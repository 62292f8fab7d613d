/* watch.c - see watch.h. Runs in the program's threads; no allocation and no lock of its own. */
#include "hooks/follow/watch.h"

#include <string.h>

#include "base/clock.h"
#include "vendor/gpu.h"
#include "hooks/follow/balance.h"
#include "hooks/follow/graph_memory.h"
#include "hooks/follow/graph_execs.h"
#include "hooks/follow/graphs.h"
#include "hooks/init.h"
#include "hooks/follow/no_memory.h"
#include "hooks/serve/serve.h"
#include "hooks/lookup/unknown.h"
#include "record/live/uses.h"
#include "pool/clock/captures.h"
#include "pool/external/external.h"
#include "pool/stream/stream.h"

#define PER_THREAD_STREAM 2u /* the greatest handle that means a stream of the current context */

static uint64_t context_of_stream(const struct ms_gpu *gpu, uint64_t stream)
{
    CUcontext context = NULL;
    uint64_t current;

    ms_gpu_current(gpu, &current);
    if (stream > PER_THREAD_STREAM && gpu && !gpu->stream_get_ctx && ms_stream_context_seen(stream))
        return ms_stream_context_seen(stream);
    if (stream > PER_THREAD_STREAM && gpu && gpu->stream_get_ctx &&
        gpu->stream_get_ctx((CUstream)(uintptr_t)stream, &context) == CUDA_SUCCESS && context)
        return (uintptr_t)context;
    return current;
}

/* A call has failed in the stream of an open capture: it may be open still, valid or not. */
static bool is_still_open(const struct ms_watch *watch, int status)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    bool ends = watch->args->out != NULL;

    if (watch->gpu && watch->gpu->stream_is_capturing &&
        watch->gpu->stream_is_capturing((CUstream)(uintptr_t)watch->args->stream, &capture) == CUDA_SUCCESS)
        return capture != CU_STREAM_CAPTURE_STATUS_NONE;
    return !ends || status == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

/* After the call. Only a call that ends a capture has somewhere to put a graph. */
static bool is_open_now(const struct ms_watch *watch, int status)
{
    if (watch->class == MS_CLASS_STREAM_END)
        return watch->was_capturing && status != 0;
    if (status == 0)
        return !watch->args->out;
    return watch->was_capturing && is_still_open(watch, status);
}

static uint64_t handle_out(const struct ms_args *args)
{
    uint64_t handle = 0;

    if (args->out)
        memcpy(&handle, args->out, sizeof(handle));
    return handle;
}

static bool holds_lock(const struct ms_watch *watch)
{
    return watch->class == MS_CLASS_CAPTURE || watch->class == MS_CLASS_STREAM_END;
}

/* Units come and go with these; with waits, too, which is seen where it matters (balance.c). */
static bool changes_pools(enum ms_class class)
{
    return class == MS_CLASS_MEMPOOL || class == MS_CLASS_MEMPOOL_END || class == MS_CLASS_MEMPOOL_TRIM;
}

/* If nothing is served, two things are followed: which pools the driver has, and what is in use when the
 * program waits. */
static void follow_begin(struct ms_watch *watch)
{
    if (watch->class != MS_CLASS_MEMPOOL_END)
        return;
    ms_hook_scope_enter(&watch->scope);
    watch->ending = ms_mempool_ending(watch->args->key);
    ms_hook_scope_leave(&watch->scope);
}

static bool waits(const struct ms_watch *watch)
{
    return watch->class == MS_CLASS_SYNC || watch->class == MS_CLASS_STREAM_WAIT;
}

static void follow_end(struct ms_watch *watch, int status, unsigned row, const void *frame,
                       const void *caller)
{
    if (!waits(watch) && watch->class != MS_CLASS_MEMPOOL && watch->class != MS_CLASS_MEMPOOL_END)
        return;
    ms_hook_scope_enter(&watch->scope);
    if (!ms_init_owner()) {
        ms_hook_scope_leave(&watch->scope);
        return;
    }
    if (watch->class == MS_CLASS_MEMPOOL_END)
        ms_mempool_ended(watch->ending, watch->args->key, status == 0);
    else if (watch->class == MS_CLASS_MEMPOOL && status == 0)
        ms_serve_mempool_made(watch->gpu, watch->args);
    else if (waits(watch) && status == 0)
        ms_balance_waited(watch->gpu, row, frame, caller);
    ms_hook_scope_leave(&watch->scope);
}

void ms_watch_begin(struct ms_watch *watch, enum ms_class class, const struct ms_gpu *gpu,
                    const struct ms_args *args)
{
    watch->on = ms_serve_matters();
    if (watch->on)
        ms_unknown_tell();
    watch->class = (uint8_t) class;
    if (class == MS_CLASS_PIN && ms_uses_wanted())
        ms_uses_mark(args->key, MS_LIFETIME_SHARED);
    if (class == MS_CLASS_GRAPH_TRIM)
        ms_graph_memory_moment(0);
    watch->gpu = gpu;
    watch->args = args;
    watch->follows = !watch->on && ms_thread.depth == 0 && ms_init_active();
    watch->counted = (watch->on || watch->follows) && changes_pools(class);
    if (watch->counted)
        ms_balance_call_begins();
    if (watch->follows)
        follow_begin(watch);
    if (!watch->on)
        return;
    watch->context = watch->mark = 0;
    watch->was_capturing = false;
    ms_hook_scope_enter(&watch->scope);
    switch (class) {
    case MS_CLASS_SYNC:
        watch->context = args->key;
        if (!watch->context)
            ms_gpu_current(gpu, &watch->context);
        /* what is pending now will not be afterwards; and the clock notices a rest before the wait */
        ms_serve_refresh();
        if (watch->context)
            watch->mark = ms_pool_sync_begin(watch->context);
        break;
    case MS_CLASS_CAPTURE:
    case MS_CLASS_STREAM_END:
        watch->context = context_of_stream(gpu, args->stream);
        if (watch->context) {
            ms_pool_capture_enter(watch->context);
            watch->was_capturing = ms_capture_is_open(args->stream, watch->context);
        }
        if (class == MS_CLASS_CAPTURE && !args->out && watch->context)
            ms_pool_capture_begins();
        if (class == MS_CLASS_STREAM_END && watch->context)
            watch->mark = ms_stream_ending(watch->context, args->stream);
        break;
    case MS_CLASS_STREAM_WAIT:
        ms_clock_ns(); /* which notices a rest, before the wait */
        watch->context = context_of_stream(gpu, args->stream);
        break;
    case MS_CLASS_STREAM_CREATE:
    case MS_CLASS_GRAPH:
        ms_gpu_current(gpu, &watch->context);
        break;
    case MS_CLASS_GRAPH_END:
        watch->context = ms_graph_ended(args->key);
        break;
    case MS_CLASS_MEMPOOL_END:
        watch->ending = ms_mempool_ending(args->key);
        break;
    case MS_CLASS_MEMPOOL_CURRENT:
        ms_mempool_current_changed();
        break;
    case MS_CLASS_MEMPOOL_TRIM:
        ms_mempool_trim(args->key);
        break;
    default:
        break;
    }
    if (!holds_lock(watch))
        ms_hook_scope_leave(&watch->scope);
}

/* A capture that began, or one that is over. */
static void capture_ended(struct ms_watch *watch, int status)
{
    bool open = is_open_now(watch, status);

    if (!watch->context)
        return;
    ms_pool_capture_leave(watch->context, watch->args->stream, open);
    if (watch->mark && status != 0)
        ms_stream_born(watch->gpu, watch->context, watch->args->stream);
    if (status == 0 && watch->class == MS_CLASS_CAPTURE && handle_out(watch->args))
        ms_graph_made(handle_out(watch->args), watch->context);
}

/* The driver gives back what its pools do not use when the program waits, and so do we. */
static void watch_settle(const struct ms_watch *watch, int status)
{
    uint64_t context;
    int device = status == 0 ? ms_gpu_current(watch->gpu, &context) : MS_GPU_NO_DEVICE;

    if (device >= 0)
        ms_stream_at_sync(watch->gpu, device);
    if (status == 0)
        ms_serve_see_to();
}

static void watch_note(struct ms_watch *watch, int status)
{
    const struct ms_args *args = watch->args;

    switch (watch->class) {
    case MS_CLASS_SYNC:
        ms_clock_no_rest();
        if (watch->context)
            ms_pool_sync_end(watch->context, watch->mark, status);
        ms_serve_status(watch->context, status);
        watch_settle(watch, status);
        ms_serve_refresh();
        break;
    case MS_CLASS_STREAM_WAIT:
        ms_clock_no_rest();
        ms_serve_status(watch->context, status);
        watch_settle(watch, status);
        break;
    case MS_CLASS_CAPTURE:
    case MS_CLASS_STREAM_END:
        capture_ended(watch, status);
        break;
    case MS_CLASS_STREAM_CREATE:
        if (status == 0 && watch->context && handle_out(args))
            ms_stream_born(watch->gpu, watch->context, handle_out(args));
        if (status == 0 && args->given) /* of an execution context, which may be another device's */
            ms_pool_streams_lost();
        break;
    case MS_CLASS_GRAPH:
        if (status == 0 && watch->context && handle_out(args))
            ms_graph_made(handle_out(args), watch->context);
        if (status == 0 && args->key && ms_uses_wanted())
            ms_graph_uses_made(watch->gpu, handle_out(args), args->key);
        break;
    case MS_CLASS_GRAPH_END:
        if (status != 0 && watch->context)
            ms_graph_made(args->key, watch->context);
        if (status == 0 && ms_uses_wanted())
            ms_graph_uses_ended(args->key);
        break;
    case MS_CLASS_GREEN:
        if (status == 0)
            ms_serve_context_foreign(handle_out(args));
        break;
    case MS_CLASS_MEMPOOL:
        if (status == 0)
            ms_serve_mempool_made(watch->gpu, args);
        break;
    case MS_CLASS_MEMPOOL_END:
        ms_mempool_ended(watch->ending, args->key, status == 0);
        break;
    case MS_CLASS_MEMPOOL_CURRENT:
        ms_mempool_current_changed();
        break;
    case MS_CLASS_MEMPOOL_SET:
        if (status == 0)
            ms_serve_mempool_set(args);
        break;
    case MS_CLASS_PEER:
        if (status == 0)
            ms_pool_peer(args->key, ms_gpu_current(watch->gpu, &watch->context), args->flags);
        break;
    case MS_CLASS_PIN:
        if (status == 0)
            ms_pool_pin(args->key), ms_external_spend(args->key);
        break;
    default:
        break;
    }
}

/* True if what the device keeps for graphs may be another amount after this call. */
static bool is_moment(const struct ms_watch *watch)
{
    return waits(watch) || watch->class == MS_CLASS_GRAPH_END || watch->class == MS_CLASS_GRAPH_TRIM;
}

static void watch_end(struct ms_watch *watch, int status, unsigned row, const void *frame, const void *caller)
{
    if (watch->class == MS_CLASS_GRAPH)
        ms_graph_memory_made(status, watch->gpu, handle_out(watch->args), watch->args->key);
    if (watch->class == MS_CLASS_GRAPH_END)
        ms_graph_memory_ended(status, watch->args->key);
    if (is_moment(watch))
        ms_graph_memory_moment(status);
    if (watch->follows)
        follow_end(watch, status, row, frame, caller);
    if (!watch->on)
        return;
    if (!holds_lock(watch))
        ms_hook_scope_enter(&watch->scope);
    else
        watch->scope.saved_errno = errno;
    if (ms_init_owner()) {
        watch_note(watch, status);
        if (status == 0 && waits(watch))
            ms_balance_waited(watch->gpu, row, frame, caller);
    }
    ms_hook_scope_leave(&watch->scope);
}

void ms_watch_end(struct ms_watch *watch, int status, unsigned row, const void *frame, const void *caller)
{
    watch_end(watch, status, row, frame, caller);
    ms_no_memory_look(row, status, watch->gpu, watch->args, frame, caller);
    if (watch->counted && ms_init_owner())
        ms_balance_call_ends();
}
