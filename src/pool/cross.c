/* cross.c - what waits for a stream to get somewhere: blocks that one stream freed and another's flow owns,
 * and flows whose stream has ended.
 *
 * Frees on one stream gather in a batch, which is closed with one event in that stream when it is full, when
 * it is large, or when somebody looks for memory. Of one stream's batches none is looked at behind one that
 * is not done. Without an event (a capture is open, a thread is gone) a batch waits until there can be one:
 * then an event over the whole context does. Lock: the streams'. Nothing here waits for the device.
 *
 * Where frees are marked (flow_wait.c) each larger one has an event of its own, and a stream that may be made
 * to wait for it on the device has the block before it is over. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "pool/flow.h"
#include "pool/lease.h"

enum { RECORDS = 32 };

static struct ms_batch *first, **last = &first, *spare;
static _Atomic uint32_t waiting;
static uint64_t looks;

bool ms_cross_pending(void)
{
    return atomic_load_explicit(&waiting, memory_order_relaxed) > 0;
}

static struct ms_batch *take_record(void)
{
    if (!spare) {
        struct ms_batch *fresh = ms_arena_alloc(RECORDS * sizeof(*fresh));
        for (int i = 0; fresh && i < RECORDS; i++) {
            fresh[i].next = spare;
            spare = &fresh[i];
        }
    }
    struct ms_batch *batch = spare;
    if (!batch)
        return NULL;
    spare = batch->next;
    batch->event = NULL;
    batch->flow = NULL;
    batch->exact = false;
    batch->count = 0;
    batch->bytes = 0;
    return batch;
}

static struct ms_batch *batch_for(struct ms_stream *stream)
{
    struct ms_batch *batch = take_record();
    if (!batch)
        return NULL;
    batch->stream = stream;
    batch->stream_id = atomic_load_explicit(&stream->id, memory_order_relaxed);
    batch->context = atomic_load_explicit(&stream->context, memory_order_relaxed);
    batch->gpu = stream->gpu;
    batch->next = NULL;
    batch->link = last;
    *last = batch;
    last = &batch->next;
    atomic_fetch_add_explicit(&waiting, 1, memory_order_relaxed);
    return batch;
}

static void unlink_batch(struct ms_batch *batch)
{
    *batch->link = batch->next;
    if (batch->next)
        batch->next->link = batch->link;
    else
        last = batch->link;
    if (batch->stream->open == batch)
        batch->stream->open = NULL;
    batch->next = spare;
    spare = batch;
    atomic_fetch_sub_explicit(&waiting, 1, memory_order_relaxed);
}

/* --- events -------------------------------------------------------------------------------------------- */

static CUevent make_event(const struct ms_gpu *gpu)
{
    CUevent event = NULL;
    return gpu->event_create && gpu->event_create(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS ? event
                                                                                                   : NULL;
}

CUevent ms_cross_record(struct ms_stream *stream)
{
    const struct ms_gpu *gpu = stream->gpu;
    struct ms_visit visit;
    if (!gpu->event_record || !gpu->event_query || !ms_stream_reachable(stream))
        return NULL;
    ms_visit_begin(&visit, gpu, atomic_load_explicit(&stream->context, memory_order_relaxed));
    CUevent event = stream->spare_count ? stream->spare[--stream->spare_count] : make_event(gpu);
    if (event && gpu->event_record(event, ms_stream_handle(stream)) != CUDA_SUCCESS) {
        if (gpu->event_destroy)
            gpu->event_destroy(event);
        event = NULL;
    }
    ms_visit_end(&visit);
    return event;
}

/* Where the stream itself cannot be reached; such an event would destroy an open capture. */
static CUevent record_over_context(const struct ms_batch *batch)
{
    const struct ms_gpu *gpu = batch->gpu;
    struct ms_visit visit;
    if (!gpu->ctx_record_event || !gpu->event_query || ms_captures_may_be_open())
        return NULL;
    ms_visit_begin(&visit, gpu, batch->context);
    CUevent event = make_event(gpu);
    if (event && gpu->ctx_record_event((CUcontext)(uintptr_t)batch->context, event) != CUDA_SUCCESS) {
        if (gpu->event_destroy)
            gpu->event_destroy(event);
        event = NULL;
    }
    ms_visit_end(&visit);
    return event;
}

bool ms_cross_context_is_idle(const struct ms_flow *flow)
{
    ms_lock(&ms_streams_lock);
    const struct ms_stream *stream = atomic_load_explicit(&flow->stream, memory_order_relaxed);
    struct ms_batch probe = {.gpu = stream ? stream->gpu : NULL,
                             .context =
                                 stream ? atomic_load_explicit(&stream->context, memory_order_relaxed) : 0};
    CUevent event = stream ? record_over_context(&probe) : NULL;
    bool idle = !stream && flow->over;
    if (event) {
        struct ms_visit visit;
        ms_visit_begin(&visit, probe.gpu, 0);
        idle = probe.gpu->event_query(event) == CUDA_SUCCESS;
        if (probe.gpu->event_destroy)
            probe.gpu->event_destroy(event);
        ms_visit_end(&visit);
    }
    ms_unlock(&ms_streams_lock);
    return idle;
}

void ms_cross_drop_event(struct ms_stream *stream, uint64_t stream_id, const struct ms_gpu *gpu,
                         CUevent event)
{
    bool same = atomic_load_explicit(&stream->handle, memory_order_relaxed) &&
                atomic_load_explicit(&stream->id, memory_order_relaxed) == stream_id;
    if (same && stream->spare_count < MS_STREAM_EVENTS)
        stream->spare[stream->spare_count++] = event;
    else if (gpu->event_destroy)
        gpu->event_destroy(event);
}

static bool is_over(struct ms_batch *batch)
{
    struct ms_visit visit;
    ms_visit_begin(&visit, batch->gpu, 0);
    CUresult status = batch->gpu->event_query(batch->event);
    ms_visit_end(&visit);
    switch (status) {
    case CUDA_SUCCESS:
        ms_cross_drop_event(batch->stream, batch->stream_id, batch->gpu, batch->event);
        batch->event = NULL;
        return true;
    case CUDA_ERROR_INVALID_CONTEXT: /* its context has died, unseen */
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        return true;
    default:
        return false;
    }
}

/* --- what waits ---------------------------------------------------------------------------------------- */

/* What the stream has freed so far is over when all that it has now is. */
static void close_batch(struct ms_stream *stream)
{
    if (!stream->open)
        return;
    stream->open->event = ms_cross_record(stream);
    if (stream->open->event)
        stream->open = NULL;
}

static void leave_limbo(const struct ms_slot *slot)
{
    struct ms_heap *heap = slot->run->segment->heap;
    atomic_fetch_sub_explicit(&heap->away_bytes, slot->run->slot_bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&heap->away_count, 1, memory_order_relaxed);
}

/* A slot whose free is over goes to its flow. */
static void bring_home(struct ms_slot *slot)
{
    struct ms_heap *heap = slot->run->segment->heap;
    struct ms_lease *lease = ms_lease_lock(heap);
    leave_limbo(slot);
    ms_lease_put_ready(heap, lease, slot);
    ms_lease_unlock(lease);
}

/* The same for one that is wanted at once: it is nobody's, and in no bag. */
static void take_home(struct ms_slot *slot)
{
    struct ms_lease *lease = ms_lease_lock(slot->run->segment->heap);
    leave_limbo(slot);
    ms_slot_set(slot, MS_SLOT_READY);
    ms_lease_unlock(lease);
}

static void finish(struct ms_batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++)
        bring_home(batch->items[i]);
    if (batch->flow && !atomic_load_explicit(&batch->flow->stream, memory_order_relaxed))
        batch->flow->over = true;
    unlink_batch(batch);
}

/* The block is nobody's from here on; the counters of its heap say so at once. */
static void depart(const struct ms_pool_block *block, struct ms_slot *slot)
{
    struct ms_heap *heap = block->own_heap;
    struct ms_lease *lease = ms_lease_lock(heap);
    ms_count(&lease->requested, -block->requested);
    ms_count(&lease->granted, -block->granted);
    ms_count(&lease->frees, 1);
    atomic_fetch_add_explicit(&heap->away_bytes, block->granted, memory_order_relaxed);
    atomic_fetch_add_explicit(&heap->away_count, 1, memory_order_relaxed);
    ms_slot_set(slot, MS_SLOT_LIMBO);
    ms_lease_unlock(lease);
}

/* Others may be made to wait for this free: they wait for nothing that comes after it. */
static bool alone(struct ms_stream *stream, struct ms_slot *slot)
{
    close_batch(stream); /* what was freed before has its event first */
    struct ms_batch *batch = batch_for(stream);
    if (!batch)
        return false;
    batch->items[batch->count++] = slot;
    batch->bytes += slot->run->slot_bytes;
    batch->event = ms_cross_record(stream);
    batch->exact = batch->event != NULL;
    return true;
}

void ms_cross_later(struct ms_stream *stream, const struct ms_pool_block *block)
{
    struct ms_slot *slot = (struct ms_slot *)(uintptr_t)block->own_item;
    const struct ms_mempool *pool = slot->run->segment->heap->flow->pool;
    depart(block, slot);
    ms_lock(&ms_streams_lock);
    if (MS_UNLIKELY(atomic_load_explicit(&pool->marked, memory_order_relaxed)) &&
        block->granted > MS_SLAB_MAX_BYTES && alone(stream, slot)) {
        ms_unlock(&ms_streams_lock);
        return;
    }
    struct ms_batch *batch = stream->open;
    if (!batch)
        batch = stream->open = batch_for(stream);
    if (batch) { /* else, without host memory, it stays away for ever */
        batch->items[batch->count++] = slot;
        batch->bytes += block->granted;
        if (batch->count == MS_BATCH_ITEMS || batch->bytes >= MS_CROSS_BATCH_BYTES)
            close_batch(stream);
        if (batch->count == MS_BATCH_ITEMS)
            stream->open = NULL; /* without an event, if need be */
    }
    ms_unlock(&ms_streams_lock);
}

bool ms_stream_free_end_unknown(const struct ms_gpu *gpu, const struct ms_pool_block *block, uint64_t handle)
{
    struct ms_slot *slot = (struct ms_slot *)(uintptr_t)block->own_item;
    struct ms_heap *heap = block->own_heap;
    static struct ms_stream nobody;
    CUcontext context = NULL;
    struct ms_visit visit;
    CUstream stream = (CUstream)(uintptr_t)handle;
    depart(block, slot);
    ms_flow_count_free(heap->flow, block->requested);
    if (!gpu->event_record || !gpu->stream_get_ctx || gpu->stream_get_ctx(stream, &context) != CUDA_SUCCESS)
        return false;
    ms_visit_begin(&visit, gpu, (uintptr_t)context);
    CUevent event = make_event(gpu);
    bool recorded = event && gpu->event_record(event, stream) == CUDA_SUCCESS;
    ms_visit_end(&visit);
    ms_lock(&ms_streams_lock);
    nobody.gpu = gpu;
    atomic_store_explicit(&nobody.context, (uintptr_t)context, memory_order_relaxed);
    struct ms_batch *batch = batch_for(&nobody);
    if (batch) {
        batch->event = recorded ? event : NULL;
        batch->items[batch->count++] = slot;
    }
    ms_unlock(&ms_streams_lock);
    return batch != NULL;
}

void ms_cross_stream_ends(struct ms_stream *stream, struct ms_flow *flow)
{
    if (flow) {
        struct ms_batch *batch = batch_for(stream);
        if (batch) {
            batch->flow = flow;
            batch->event = ms_cross_record(stream);
        }
        return;
    }
    close_batch(stream);
    stream->open = NULL;
    while (stream->spare_count && stream->gpu->event_destroy)
        stream->gpu->event_destroy(stream->spare[--stream->spare_count]);
}

static void give_event(struct ms_batch *batch)
{
    bool is_open = batch->stream->open == batch;
    if (is_open)
        close_batch(batch->stream);
    if (!batch->event)
        batch->event = record_over_context(batch);
    if (batch->event && is_open)
        batch->stream->open = NULL;
}

bool ms_cross_collect(void)
{
    bool any = false;
    if (MS_LIKELY(!ms_cross_pending()))
        return false;
    ms_lock(&ms_streams_lock);
    looks++;
    for (struct ms_batch *batch = first, *next; batch; batch = next) {
        next = batch->next;
        if (batch->stream->blocked == looks)
            continue;
        if (!batch->event)
            give_event(batch);
        if (batch->event && is_over(batch)) {
            finish(batch);
            any = true;
        } else {
            batch->stream->blocked = looks;
        }
    }
    ms_unlock(&ms_streams_lock);
    return any;
}

/* --- before it is over ---------------------------------------------------------------------------------- */

/* Nothing of it waits any more. */
static void unlink_if_empty(struct ms_batch *batch)
{
    if (batch->count || batch->flow)
        return;
    if (batch->event)
        ms_cross_drop_event(batch->stream, batch->stream_id, batch->gpu, batch->event);
    unlink_batch(batch);
}

static struct ms_slot *remove_item(struct ms_batch *batch, uint32_t i)
{
    struct ms_slot *slot = batch->items[i];
    batch->items[i] = batch->items[--batch->count];
    batch->bytes -= slot->run->slot_bytes < batch->bytes ? slot->run->slot_bytes : batch->bytes;
    return slot;
}

static bool is_of(const struct ms_batch *batch, const struct ms_stream *stream)
{
    return batch->stream == stream &&
           batch->stream_id == atomic_load_explicit(&stream->id, memory_order_relaxed);
}

static bool fits(const struct ms_slot *slot, const struct ms_flow *flow, const struct ms_request *request,
                 uint64_t most)
{
    const struct ms_segment *segment = slot->run->segment;
    const struct ms_flow *home = segment->heap->flow;
    if (home->pool != flow->pool || segment->release || slot->run->slot_bytes < request->granted ||
        slot->run->slot_bytes > most)
        return false;
    return !request->single || atomic_load_explicit(&segment->use, memory_order_relaxed) == MS_SEGMENT_SINGLE;
}

struct ms_slot *ms_cross_take(struct ms_flow *flow, const struct ms_request *request, uint64_t most,
                              bool of_others)
{
    struct ms_batch *best = NULL;
    struct ms_slot *slot = NULL;
    uint32_t at = 0;
    if (MS_LIKELY(!ms_cross_pending()))
        return NULL;
    ms_lock(&ms_streams_lock);
    struct ms_stream *stream = atomic_load_explicit(&flow->stream, memory_order_relaxed);
    for (struct ms_batch *batch = stream ? first : NULL; batch; batch = batch->next) {
        if (of_others ? is_of(batch, stream) || !batch->exact : !is_of(batch, stream))
            continue;
        for (uint32_t i = 0; i < batch->count; i++) {
            if (!fits(batch->items[i], flow, request, most) ||
                (best && batch->items[i]->run->slot_bytes >= best->items[at]->run->slot_bytes))
                continue;
            best = batch;
            at = i;
        }
    }
    if (best && (!of_others || ms_wait_order(stream, best->event))) {
        slot = remove_item(best, at);
        take_home(slot);
        unlink_if_empty(best);
    }
    ms_unlock(&ms_streams_lock);
    return slot;
}

void ms_cross_context_died(uint64_t context)
{
    for (struct ms_batch *batch = first, *next; batch; batch = next) {
        next = batch->next;
        if (batch->context == context)
            finish(batch);
    }
}

void ms_cross_reset(void)
{
    first = spare = NULL;
    last = &first;
    atomic_store_explicit(&waiting, 0, memory_order_relaxed);
}
