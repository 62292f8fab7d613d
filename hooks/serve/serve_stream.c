/* serve_stream.c - requests and frees in the order of a stream, answered from what the program's own pools
 * gave.
 *
 * Runs in the program's threads, inside a hook scope. No lock of its own, no allocation. What belongs into a
 * graph, and what the driver would refuse, is the driver's to answer: a free that has to be refused is put to
 * it with an address that is nobody's. */
#include "hooks/serve/serve.h"

#include "hooks/serve/limit.h"
#include "quota/quota.h"
#include "hooks/serve/answer.h"
#include "hooks/follow/balance.h"
#include "hooks/observe/invalid_free.h"
#include "hooks/serve/serve_call.h"
#include "record/live/uses.h"
#include "pool/stream/driver_frees.h"
#include "pool/stream/stream.h"

/* The first call for a context checks that the driver does what the pool builds on; that takes it being
 * current. */
static bool is_served(const struct ms_gpu *gpu, const struct ms_stream *stream)
{
    uint64_t context = ms_stream_context(stream), current;
    int device;

    if (MS_LIKELY(ms_serve_context_is_served(context)))
        return true;
    device = ms_gpu_current(gpu, &current);
    return device >= 0 && current == context && ms_serve_context(gpu, context, device);
}

/* The runtime has seen to it that there is a context. */
static bool has_context(const struct ms_gpu *gpu, const struct ms_call *outer)
{
    uint64_t context;

    return outer || (ms_gpu_current(gpu, &context) >= 0 && context);
}

/* True if the driver refuses a free in this stream, whatever is freed: it is asked to free what is
 * nobody's. */
static bool is_refused(const struct ms_gpu *gpu, uint64_t stream, int *status_p)
{
    *status_p = gpu->mem_free_async ? (int)gpu->mem_free_async(MS_NOWHERE, (CUstream)(uintptr_t)stream)
                                    : CUDA_SUCCESS;
    return *status_p != CUDA_SUCCESS && *status_p != CUDA_ERROR_INVALID_VALUE;
}

/* MEMSHIM_FREE=strict: where the driver forbids all calls, as in a host function. */
static bool is_forbidden(const struct ms_gpu *gpu, uint64_t stream)
{
    int status;

    return MS_UNLIKELY(ms_serve_strictly) && is_refused(gpu, stream, &status);
}

/* Under MEMSHIM_LIMIT what is kept for cudaMalloc, or was freed and waits for the device, stands in the way
 * of what a stream asks for. The pool's figures are not on the stack of every request. */
static MS_NOINLINE bool gave_room(const struct ms_stream *stream, uint64_t bytes, struct ms_room *room)
{
    int device = ms_stream_device(stream);
    struct ms_pool_figures figures;
    uint64_t idle = ms_pool_reclaimable(device);

    ms_pool_figures(device, &figures);
    return (ms_driver_frees_since(device, room->ended) ||
            bytes <= ms_quota_room(device) + idle + figures.parts.pending) &&
           ms_room_make(device, true, room);
}

/* Memory that goes back from here on is seen, if the request is refused. */
static enum ms_pool_verdict serve_stream_ask(const struct ms_target *target, struct ms_stream *stream,
                                             const struct ms_args *args, struct ms_pool_block *given,
                                             struct ms_room *room)
{
    if (ms_quota_is_bounded())
        ms_limit_learn(target->gpu, ms_stream_device(stream));
    room->ended = ms_driver_frees_ended(ms_stream_device(stream));
    return ms_stream_alloc(stream, args->key, args->bytes, ms_serve_how(target), given);
}

bool ms_serve_ALLOC_ASYNC(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                          const struct ms_args *args, int *status_p)
{
    const struct request request = {row, target->gpu, frame, caller, args->bytes, args->bytes, args->stream};
    struct ms_call *outer = ms_call_around(__builtin_frame_address(0));
    struct ms_stream *stream = NULL;
    struct ms_pool_block given;
    struct ms_hook_scope scope;
    struct ms_room room = {0};
    enum ms_pool_verdict verdict = MS_POOL_PASSED;

    if (!args->out || !args->bytes || (outer && ms_thread.recording) || !ms_serve_matters() || !target->gpu)
        return false;
    enter(&scope, outer);
    if ((ms_serve_at_hand(target) || has_context(target->gpu, outer)) &&
        (stream = ms_stream_of(target->gpu, args->stream)) != NULL && is_served(target->gpu, stream) &&
        !ms_stream_captures(stream) && !is_forbidden(target->gpu, args->stream))
        verdict = serve_stream_ask(target, stream, args, &given, &room);
    while (MS_UNLIKELY(verdict == MS_POOL_REFUSED) && gave_room(stream, args->bytes, &room))
        verdict = serve_stream_ask(target, stream, args, &given, &room);
    if (MS_LIKELY(verdict == MS_POOL_SERVED)) {
        record(&request, outer, &given);
        count(outer, target->gpu, row, 0, args->bytes);
        *(uint64_t *)(uintptr_t)args->out = given.address;
        *status_p = 0;
        ms_balance_see(request.gpu, row, frame, caller);
    } else if (verdict == MS_POOL_REFUSED) {
        *status_p = CUDA_ERROR_OUT_OF_MEMORY;
        ms_serve_refuse(&request, outer, ms_stream_context(stream), ms_stream_device(stream), *status_p);
        count(outer, target->gpu, row, *status_p, 0);
    }
    leave(&scope, outer);
    return verdict != MS_POOL_PASSED;
}

/* In a capture a graph frees only what a graph has allocated: the driver says so, and what becomes of the
 * capture. */
static bool may_free(const struct ms_target *target, const struct ms_call *outer,
                     const struct ms_stream *stream, uint64_t handle, int *status_p)
{
    bool doubtful = !stream || ms_serve_strictly || ms_serve_any_down() || !has_context(target->gpu, outer);

    if (stream && ms_stream_captures(stream)) {
        /* HIP would make a node of the question. */
        if (!target->gpu->captures_are_frail && is_refused(target->gpu, handle, status_p))
            return false;
        *status_p = CUDA_ERROR_INVALID_VALUE;
        if (ms_stream_captures(stream)) /* asked again: an error, which counts as a capture, may be over */
            return false;
        *status_p = CUDA_SUCCESS;
    }
    return MS_LIKELY(!doubtful) || !is_refused(target->gpu, handle, status_p);
}

static void free_in(const struct ms_gpu *gpu, struct ms_pool_block *block, struct ms_stream *stream,
                    uint64_t handle)
{
    if (MS_LIKELY(stream != NULL))
        ms_stream_free_end(block, stream);
    else
        ms_stream_free_end_unknown(gpu, block, handle);
}

/* In a runtime's hook: a stream that is known and served, and that no graph has to do with. */
static bool may_free_at_hand(const struct ms_stream *stream)
{
    return stream && !ms_stream_captures(stream) && ms_serve_context_is_served(ms_stream_context(stream));
}

bool ms_serve_free_ordered(unsigned row, const struct ms_target *target, const void *frame,
                           const void *caller, const struct ms_args *args, int *status_p)
{
    uint64_t address = args->key, handle = args->stream;
    struct ms_call *outer = ms_call_around(__builtin_frame_address(0));
    enum ms_pool_how how = ms_serve_at_hand(target) ? MS_POOL_AT_HAND_ORDERED : MS_POOL_ANYHOW;
    enum ms_pool_verdict verdict = MS_POOL_PASSED;
    struct ms_pool_block block;
    struct ms_hook_scope scope;
    struct ms_stream *stream;

    *status_p = 0;
    enter(&scope, outer);
    stream = ms_stream_of(target->gpu, handle);
    if (how ? may_free_at_hand(stream) : may_free(target, outer, stream, handle, status_p))
        verdict = ms_pool_free_begin(address, how, &block, status_p);
    if (MS_LIKELY(verdict == MS_POOL_SERVED)) {
        *status_p = 0;
        ms_ledger_unserve(block.record_id, block.address, NULL);
        if (ms_uses_wanted())
            ms_serve_note_free(block.address, outer, frame, caller);
        free_in(target->gpu, &block, stream, handle);
    } else if (!how) {
        if (*status_p == 0)
            *status_p = CUDA_ERROR_INVALID_VALUE;
        ms_invalid_free_served(outer, row, frame, caller, address);
    }
    if (verdict == MS_POOL_SERVED || !how)
        count(outer, target->gpu, row, *status_p, 0);
    leave(&scope, outer);
    return verdict == MS_POOL_SERVED || !how;
}
