/* ordered.c - MEMSHIM_FREE=ordered: a freed block is free at once while one stream alone has work.
 *
 * Work of that stream that is issued later runs behind what it did to the block before, so whoever gets the
 * block and uses it there needs no fence. Whoever uses it from another stream must not begin before the work
 * that was issued before the free is over: natively the free has waited for that. So every call that gives
 * work to a stream passes through here (hooks/submit.c), before and after:
 *
 *   - The stream that was given work last is the *worker*; `others` is the newest epoch in which another
 * stream was. A stream has work as long as the epoch of its last submission is not done (fence.c: an event
 * over the context, or a wait of the program's own). While `others` is done, the worker is alone.
 *   - A block that is freed while the worker is alone goes back to the pool as if it were done, and the free
 * is noted. Before the worker is given more, an event, the *mark*, is recorded in it: so the mark stands
 * exactly where the free was, and nobody who waits for it waits for more than the vendor's free would have.
 *   - A stream that is given work and is not the worker first waits for the mark, on the device, unless the
 * mark is over. Then it is the worker itself, and the other one is among the others: frees go to limbo until
 * one of the two has nothing to do.
 *
 * A free must see either the worker that everybody sees, or that it is changing; a change must see either the
 * free's note, or be seen by it. Both sides store first and look afterwards, in one order for all threads
 * (seq_cst). A submission that returned is seen by every later free: it stores its epoch and then looks who
 * is the worker; a change takes the worker away and then looks at epochs.
 *
 * The lock of an order is held across the vendor's record and wait, by submissions that join alone: a request
 * and a free never take it, but for the free of a thread in its own default stream, into which nobody else
 * can record. */
#include "config.h"

#include "base/clock.h"
#include "base/guard.h"
#include "pool/internal.h"

enum { MARK_NONE, MARK_WANTED, MARK_UNDER_WAY };
#define BETWEEN          ((struct ms_pool_stream *)1)
#define LEGACY_STREAM    1u
#define OWN_STREAM       2u
#define SETTLE_PAUSE_NS  50000

static atomic_bool off; /* nothing is free at once any more; submissions still wait for marks */
static _Atomic uint32_t contexts;
static atomic_bool unseen; /* some work was given that nobody saw, in whichever context */
_Atomic uint32_t ms_pool_streams_life = 1;

/* A number of the calling thread's own: what lies in its storage is another thread's as soon as it has
 * ended. */
static uint64_t self(void)
{
    static _Atomic uint64_t threads;
    static MS_TLS uint64_t number;
    if (MS_UNLIKELY(!number))
        number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    return number;
}

bool ms_pool_ordered(void)
{
    return ms_policy && ms_policy->free_rule == MS_POOL_ORDERED;
}

void ms_pool_ordered_off(const char *why)
{
    if (ms_pool_ordered() && !atomic_exchange(&off, true) && why)
        ms_pool_note(why);
}

static uint64_t open_epoch(struct ms_heap *heap)
{
    return atomic_load_explicit(&heap->fence.open, memory_order_seq_cst);
}

static void raise(_Atomic uint64_t *to, uint64_t epoch)
{
    uint64_t now = atomic_load_explicit(to, memory_order_seq_cst);
    while (now < epoch && !atomic_compare_exchange_weak(to, &now, epoch))
        continue;
}

static bool has_work(const struct ms_pool_stream *stream)
{
    return atomic_load_explicit(&stream->busy, memory_order_seq_cst) > ms_fence_done(stream->heap);
}

/* What was submitted while nobody looked is nobody's: until a fence there is a stream too many. */
static void begin(struct ms_heap *heap)
{
    heap->order.unknown = atomic_load(&unseen) ? open_epoch(heap) : 0;
    atomic_store(&heap->order.others, heap->order.unknown);
}

void ms_ordered_born(struct ms_heap *heap)
{
    atomic_fetch_add(&contexts, 1);
    begin(heap);
}

void ms_ordered_reset(void)
{
    atomic_store(&off, false);
    atomic_store(&unseen, false);
    atomic_store(&contexts, 0);
    atomic_fetch_add(&ms_pool_streams_life, 1);
}

void ms_ordered_forget(struct ms_heap *heap)
{
    struct ms_order *order = &heap->order;
    ms_lock(&order->lock);
    atomic_fetch_sub(&contexts, 1);
    atomic_fetch_add(&ms_pool_streams_life, 1);
    atomic_store(&order->worker, NULL);
    atomic_store(&order->freed, MARK_NONE);
    atomic_store(&order->shut, 0);
    atomic_store(&order->stream_count, 0);
    begin(heap);
    order->event = NULL; /* died with its context */
    order->marked = NULL;
    order->upto = 0;
    ms_unlock(&order->lock);
}

/* --- the mark --- */

static bool record(struct ms_heap *heap, struct ms_pool_stream *stream)
{
    const struct ms_gpu *gpu = heap->gpu;
    struct ms_order *order = &heap->order;
    CUstreamCaptureMode mode;
    bool pushed, done = false;
    if (!gpu || !gpu->event_record || !gpu->event_create || !gpu->stream_wait_event)
        return false;
    if (stream->handle == LEGACY_STREAM && ms_fence_captured(heap))
        return false;
    pushed = ms_segment_enter(heap, &mode);
    if (order->settlers) /* somebody is looking at this one: it stays as it is, until its context's end */
        order->event = NULL;
    order->settlers = 0;
    if (order->event || gpu->event_create(&order->event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS)
        done = gpu->event_record(order->event, (CUstream)(uintptr_t)stream->handle) == CUDA_SUCCESS;
    ms_segment_leave(heap, pushed, mode);
    return done;
}

/* Order locked. The note of a free becomes a mark in the stream that had the work; false if that cannot
 * be. */
static bool mark(struct ms_heap *heap, struct ms_pool_stream *stream)
{
    struct ms_order *order = &heap->order;
    uint32_t under_way = MARK_UNDER_WAY;
    if (atomic_load_explicit(&order->freed, memory_order_seq_cst) == MARK_NONE)
        return true;
    /* Natively the free had nothing to wait for; or the note is of a free that came too late, since a thread
     * marks its own default stream as it frees. */
    if (!stream || !has_work(stream) || (stream->handle == OWN_STREAM && stream->owner != self())) {
        atomic_store(&order->freed, MARK_NONE);
        return true;
    }
    /* The worker's own next submission waits for the lock as long as it finds a note: nothing comes
     * between. */
    atomic_store(&order->freed, MARK_UNDER_WAY);
    if (stream->over || !record(heap, stream)) {
        atomic_store(&order->freed, MARK_WANTED);
        return false;
    }
    order->marked = stream;
    order->serial++;
    order->upto = open_epoch(heap);
    stream->seen = order->serial;
    atomic_fetch_add_explicit(&order->marks, 1, memory_order_relaxed);
    atomic_compare_exchange_strong(&order->freed, &under_way, MARK_NONE);
    return true;
}

static bool mark_is_over(struct ms_heap *heap)
{
    const struct ms_order *order = &heap->order;
    return !order->marked || order->upto <= ms_fence_done(heap) || !has_work(order->marked);
}

/* Where neither an event nor a wait for it is to be had: the host waits, as it would have in its free. */
static void wait_on_host(struct ms_heap *heap, const struct ms_pool_stream *stream)
{
    const struct ms_gpu *gpu = heap->gpu;
    CUstreamCaptureMode mode;
    ms_pool_ordered_off(
        "MEMSHIM_FREE=ordered goes on as fence: the driver refused an event, or a wait for it");
    atomic_fetch_add_explicit(&heap->order.host_waits, 1, memory_order_relaxed);
    if (!gpu || !stream)
        return;
    bool pushed = ms_segment_enter(heap, &mode);
    int status = CUDA_ERROR_INVALID_HANDLE;
    if (gpu->stream_synchronize && !stream->over && stream->handle != OWN_STREAM)
        status = (int)gpu->stream_synchronize((CUstream)(uintptr_t)stream->handle);
    if (status != CUDA_SUCCESS && gpu->ctx_synchronize && !ms_fence_captured(heap))
        gpu->ctx_synchronize();
    ms_segment_leave(heap, pushed, mode);
}

/* Order locked: what `handle` is given from now on comes behind the mark. */
static void wait_for_mark(struct ms_heap *heap, uint64_t handle, uint64_t *seen)
{
    struct ms_order *order = &heap->order;
    if (*seen >= order->serial || mark_is_over(heap))
        return;
    if (heap->gpu->stream_wait_event((CUstream)(uintptr_t)handle, order->event, 0) == CUDA_SUCCESS)
        atomic_fetch_add_explicit(&order->waits, 1, memory_order_relaxed);
    else
        wait_on_host(heap, order->marked);
    *seen = order->serial;
}

/* --- submissions --- */

/* Also where the driver does not say: its answer to the submission itself will be a refusal then. */
static bool is_capturing(const struct ms_gpu *gpu, const struct ms_pool_stream *stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (!gpu || !gpu->stream_is_capturing)
        return false;
    return gpu->stream_is_capturing((CUstream)(uintptr_t)stream->handle, &status) != CUDA_SUCCESS ||
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The stream becomes the worker, behind whatever mark there is. */
static void join(struct ms_pool_stream *stream)
{
    struct ms_heap *heap = stream->heap;
    struct ms_order *order = &heap->order;
    ms_lock(&order->lock);
    struct ms_pool_stream *before = atomic_load(&order->worker);
    atomic_store(&order->worker, BETWEEN);
    bool marked = mark(heap, before);
    if (before != stream) {
        if (!marked) {
            wait_on_host(heap, before);
            atomic_store(&order->freed, MARK_NONE);
        }
        if (order->marked && order->marked != stream)
            wait_for_mark(heap, stream->handle, &stream->seen);
        if (before)
            raise(&order->others, atomic_load(&before->busy));
    }
    atomic_store(&order->worker, stream);
    ms_unlock(&order->lock);
}

bool ms_pool_submit_is_plain(const struct ms_pool_stream *stream)
{
    const struct ms_order *order = &stream->heap->order;
    return MS_LIKELY(atomic_load_explicit(&order->worker, memory_order_seq_cst) == stream &&
                     atomic_load_explicit(&order->freed, memory_order_seq_cst) == MARK_NONE &&
                     atomic_load_explicit(&order->shut, memory_order_relaxed) == 0);
}

bool ms_pool_submit_begin(const struct ms_gpu *gpu, struct ms_pool_stream *stream)
{
    const struct ms_order *order = &stream->heap->order;
    bool shut = atomic_load_explicit(&order->shut, memory_order_relaxed) != 0;
    /* What is captured does not run; what is not the worker's may be captured by another context's doing. */
    if ((shut || atomic_load(&order->worker) != stream) && is_capturing(gpu, stream))
        return false;
    if (atomic_load(&order->worker) != stream || atomic_load(&order->freed) != MARK_NONE)
        join(stream);
    return true;
}

void ms_pool_submit_end(struct ms_pool_stream *stream)
{
    struct ms_order *order = &stream->heap->order;
    uint64_t epoch = open_epoch(stream->heap);
    if (atomic_load_explicit(&stream->busy, memory_order_relaxed) != epoch)
        atomic_store_explicit(&stream->busy, epoch, memory_order_seq_cst);
    if (MS_UNLIKELY(atomic_load_explicit(&order->worker, memory_order_seq_cst) != stream))
        raise(&order->others, epoch);
}

/* --- streams --- */

static bool is_same(const struct ms_pool_stream *s, uint64_t handle, uint64_t id)
{
    return !s->over && s->id == id &&
           (s->handle == handle || (s->handle > OWN_STREAM && handle > OWN_STREAM));
}

/* Order locked. */
static bool is_spare(const struct ms_order *order, const struct ms_pool_stream *s)
{
    return s->over && !has_work(s) && s != atomic_load(&order->worker) && s != order->marked;
}

/* Order locked. There is no room: a thread's own stream ends with it, and nobody says so. */
static struct ms_pool_stream *of_lost_thread(struct ms_order *order)
{
    struct ms_pool_stream *found = NULL;
    for (uint32_t i = 0; i < MS_ORDERED_STREAMS; i++) {
        struct ms_pool_stream *s = &order->streams[i];
        if (s->handle == OWN_STREAM && !s->over)
            s->over = ms_thread_is_gone(s->thread);
        if (is_spare(order, s))
            found = s;
    }
    return found;
}

/* Order locked. */
static struct ms_pool_stream *find(struct ms_heap *heap, uint64_t handle, uint64_t id)
{
    struct ms_order *order = &heap->order;
    uint32_t count = atomic_load(&order->stream_count);
    struct ms_pool_stream *found = NULL;
    bool own = handle == OWN_STREAM;
    for (uint32_t i = 0; i < count; i++) {
        struct ms_pool_stream *s = &order->streams[i];
        if (is_same(s, handle, id))
            return s;
        if (is_spare(order, s))
            found = s;
    }
    if (!found)
        found = count == MS_ORDERED_STREAMS ? of_lost_thread(order) : &order->streams[count];
    if (!found)
        return NULL;
    *found = (struct ms_pool_stream){.heap = heap, .id = id, .handle = handle, .owner = own ? self() : 0,
                                     .thread = own ? ms_thread_id() : 0};
    if (count < MS_ORDERED_STREAMS && found == &order->streams[count])
        atomic_store(&order->stream_count, count + 1);
    return found;
}

struct ms_pool_stream *ms_pool_stream_find(const struct ms_gpu *gpu, uint64_t context, uint64_t handle)
{
    struct ms_heap *heap = ms_heap_known(context);
    unsigned long long id = context; /* of its legacy stream */
    if (!heap || !gpu)
        return NULL;
    if (handle != LEGACY_STREAM &&
        (!gpu->stream_get_id || gpu->stream_get_id((CUstream)(uintptr_t)handle, &id) != CUDA_SUCCESS))
        return NULL;
    ms_lock(&heap->order.lock);
    struct ms_pool_stream *stream = find(heap, handle, id);
    ms_unlock(&heap->order.lock);
    if (!stream)
        ms_pool_ordered_off(
            "MEMSHIM_FREE=ordered goes on as fence: a context has more streams than are told apart");
    return stream;
}

/* Memory of another context is touched, too: natively nobody could get it before its free had waited. */
static void come_behind(struct ms_heap *heap, const struct ms_pool_stream *stream)
{
    struct ms_order *order = &heap->order;
    struct ms_pool_stream *worker;
    if (heap == stream->heap || !heap->gpu ||
        (atomic_load(&order->freed) == MARK_NONE && !order->marked)) /* an old mark does no harm */
        return;
    ms_lock(&order->lock);
    worker = atomic_load(&order->worker);
    if (!mark(heap, worker))
        wait_on_host(heap, worker);
    struct ms_pool_stream *guest = find(heap, stream->handle, stream->id);
    uint64_t none = 0;
    wait_for_mark(heap, stream->handle, guest ? &guest->seen : &none);
    ms_unlock(&order->lock);
}

uint32_t ms_pool_contexts(void)
{
    return atomic_load_explicit(&contexts, memory_order_relaxed);
}

void ms_pool_submit_reaches(const struct ms_pool_stream *stream, uint64_t address)
{
    uint32_t count = atomic_load_explicit(&ms_heap_count, memory_order_acquire);
    const struct ms_segment *segment = address ? ms_page_segment(address) : NULL;
    if (address && !segment)
        return;
    for (uint32_t i = 0; i < count; i++) {
        struct ms_heap *heap = atomic_load_explicit(&ms_heaps[i], memory_order_acquire);
        if (heap && (!segment || segment->heap == heap) &&
            atomic_load_explicit(&heap->state, memory_order_acquire) == MS_HEAP_SERVING)
            come_behind(heap, stream);
    }
}

void ms_pool_ordered_stream_dies(uint64_t context, uint64_t handle)
{
    struct ms_heap *heap = ms_pool_ordered() ? ms_heap_of(context) : NULL;
    if (!heap)
        return;
    struct ms_order *order = &heap->order;
    ms_lock(&order->lock);
    uint32_t count = atomic_load(&order->stream_count);
    for (uint32_t i = 0; i < count; i++) {
        struct ms_pool_stream *s = &order->streams[i];
        if (s->over || s->handle != handle)
            continue;
        if (atomic_load(&order->worker) == s) {
            atomic_store(&order->worker, BETWEEN);
            if (!mark(heap, s)) {
                wait_on_host(heap, s);
                atomic_store(&order->freed, MARK_NONE);
            }
            raise(&order->others, atomic_load(&s->busy));
            atomic_store(&order->worker, NULL);
        }
        s->over = true;
    }
    atomic_fetch_add(&ms_pool_streams_life, 1);
    ms_unlock(&order->lock);
}

uint64_t ms_pool_stream_wait_begin(const struct ms_pool_stream *stream)
{
    return atomic_fetch_add_explicit(&stream->heap->fence.open, 1, memory_order_seq_cst);
}

void ms_pool_stream_wait_end(struct ms_pool_stream *stream, uint64_t epoch)
{
    struct ms_heap *heap = stream->heap;
    struct ms_order *order = &heap->order;
    uint64_t busy = atomic_load(&stream->busy), others = 0;
    if (busy > epoch || !atomic_compare_exchange_strong(&stream->busy, &busy, 0))
        return;
    ms_lock(&order->lock);
    struct ms_pool_stream *worker = atomic_load(&order->worker);
    atomic_store(&order->worker, BETWEEN);
    atomic_store(&order->others, order->unknown);
    uint32_t count = atomic_load(&order->stream_count);
    for (uint32_t i = 0; i < count; i++) {
        if (&order->streams[i] != worker && atomic_load(&order->streams[i].busy) > others)
            others = atomic_load(&order->streams[i].busy);
    }
    raise(&order->others, others);
    atomic_store(&order->worker, worker);
    ms_unlock(&order->lock);
}

/* --- frees --- */

static bool mark_own(struct ms_heap *heap, struct ms_pool_stream *stream)
{
    struct ms_order *order = &heap->order;
    ms_lock(&order->lock);
    atomic_store(&order->freed, MARK_WANTED);
    bool marked = atomic_load(&order->worker) == stream && mark(heap, stream);
    if (!marked)
        atomic_store(&order->freed, MARK_NONE);
    ms_unlock(&order->lock);
    return marked;
}

bool ms_ordered_frees_at_once(struct ms_heap *heap)
{
    struct ms_order *order = &heap->order;
    if (atomic_load_explicit(&off, memory_order_relaxed) || ms_policy->poison_alloc ||
        ms_policy->poison_free || atomic_load_explicit(&heap->state, memory_order_acquire) != MS_HEAP_SERVING)
        return false;
    uint64_t done = ms_fence_done(heap);
    struct ms_pool_stream *worker = atomic_load_explicit(&order->worker, memory_order_seq_cst);
    if (worker == BETWEEN || atomic_load_explicit(&order->others, memory_order_seq_cst) > done)
        return false;
    if (worker && atomic_load_explicit(&worker->busy, memory_order_seq_cst) > done) {
        if (worker->handle == OWN_STREAM) {
            if (worker->owner != self() || !mark_own(heap, worker))
                return false;
        } else {
            atomic_store_explicit(&order->freed, MARK_WANTED, memory_order_seq_cst);
        }
    }
    if (atomic_load_explicit(&order->worker, memory_order_seq_cst) != worker ||
        atomic_load_explicit(&order->others, memory_order_seq_cst) > done ||
        atomic_load_explicit(&order->shut, memory_order_seq_cst) > 0)
        return false;
    atomic_fetch_add_explicit(&order->at_once, 1, memory_order_relaxed);
    return true;
}

void ms_pool_ordered_shut(uint64_t context, int change)
{
    struct ms_heap *heap = ms_pool_ordered() ? ms_heap_known(context) : NULL;
    if (!heap)
        return;
    struct ms_order *order = &heap->order;
    atomic_fetch_add(&order->shut, change);
    if (change < 0 || atomic_load(&order->freed) == MARK_NONE)
        return;
    /* No event may fall into the capture that is about to begin. */
    ms_lock(&order->lock);
    mark(heap, atomic_load(&order->worker));
    ms_unlock(&order->lock);
}

bool ms_ordered_guard(struct ms_heap *heap, CUstream stream)
{
    struct ms_order *order = &heap->order;
    uint64_t none = 0;
    if (!ms_pool_ordered())
        return true;
    ms_lock(&order->lock);
    bool marked = mark(heap, atomic_load(&order->worker));
    if (marked)
        wait_for_mark(heap, (uintptr_t)stream, &none);
    ms_unlock(&order->lock);
    return marked;
}

/* Whether the mark `serial` is over, or the one after it in the same stream. */
static bool settled(struct ms_heap *heap, CUevent event, uint64_t upto)
{
    return upto <= ms_fence_done(heap) || heap->gpu->event_query(event) != CUDA_ERROR_NOT_READY;
}

void ms_ordered_settle(struct ms_heap *heap)
{
    struct ms_order *order = &heap->order;
    if (!ms_pool_ordered() || !heap->gpu)
        return;
    ms_lock(&order->lock);
    if (!mark(heap, atomic_load(&order->worker)))
        wait_on_host(heap, atomic_load(&order->worker));
    bool over = mark_is_over(heap);
    CUevent event = order->event;
    uint64_t upto = order->upto;
    order->settlers += !over;
    ms_unlock(&order->lock);
    while (!over && !settled(heap, event, upto))
        ms_clock_nap(SETTLE_PAUSE_NS);
}

void ms_pool_ordered_settle(uint64_t address)
{
    struct ms_pool_block block;
    if (ms_pool_ordered() && ms_pool_find(address, &block))
        ms_ordered_settle(block.own_heap);
}

static void note_unseen(struct ms_heap *heap)
{
    struct ms_order *order = &heap->order;
    ms_lock(&order->lock);
    order->unknown = open_epoch(heap);
    raise(&order->others, order->unknown);
    ms_unlock(&order->lock);
}

void ms_pool_ordered_unseen(uint64_t context)
{
    uint32_t count = atomic_load_explicit(&ms_heap_count, memory_order_acquire);
    if (!ms_pool_ordered())
        return;
    if (!context)
        atomic_store(&unseen, true);
    for (uint32_t i = 0; i < count; i++) {
        struct ms_heap *heap = atomic_load_explicit(&ms_heaps[i], memory_order_acquire);
        if (heap && (!context || atomic_load(&heap->context) == context))
            note_unseen(heap);
    }
}

void ms_pool_submit_stranger(uint64_t context, uint64_t handle)
{
    struct ms_heap *heap = ms_pool_ordered() ? ms_heap_of(context) : NULL;
    uint64_t none = 0;
    ms_pool_ordered_off("MEMSHIM_FREE=ordered goes on as fence: a stream cannot be told apart from others");
    const struct ms_pool_stream stranger = {.handle = handle};
    if (!heap || is_capturing(heap->gpu, &stranger))
        return;
    struct ms_order *order = &heap->order;
    ms_lock(&order->lock);
    if (!mark(heap, atomic_load(&order->worker)))
        wait_on_host(heap, atomic_load(&order->worker));
    wait_for_mark(heap, handle, &none);
    ms_unlock(&order->lock);
    note_unseen(heap);
}

void ms_pool_ordered_figures(struct ms_pool_ordered_figures *figures_p)
{
    uint32_t count = atomic_load_explicit(&ms_heap_count, memory_order_acquire);
    *figures_p = (struct ms_pool_ordered_figures){0};
    for (uint32_t i = 0; i < count; i++) {
        const struct ms_heap *heap = atomic_load_explicit(&ms_heaps[i], memory_order_acquire);
        if (!heap)
            continue;
        figures_p->at_once += atomic_load_explicit(&heap->order.at_once, memory_order_relaxed);
        figures_p->marks += atomic_load_explicit(&heap->order.marks, memory_order_relaxed);
        figures_p->waits += atomic_load_explicit(&heap->order.waits, memory_order_relaxed);
        figures_p->host_waits += atomic_load_explicit(&heap->order.host_waits, memory_order_relaxed);
    }
}
