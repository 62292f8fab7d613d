/* fence_timeline.c - the points of a stream or a context, and the events that say how far it got; see
 * fence_timeline.h.
 *
 * A stream does things in their order, so an event that is done says so of all points before it; an event
 * over a context follows all that its streams were given. Marks stand in a ring, the numbers of their points
 * rising, and no more is asked than the first that suffices. Where the ring is full one from its middle goes,
 * which the next covers: the oldest tell how far the stream got, the newest are those that others may be made
 * to wait for. Where a context has no event, one in each of its streams is a mark: the last has the number,
 * and tells only when those before it are done. An event that a capture took in tells nothing, nor does a
 * number of whose events it is one. Owns events, a few of which are kept for the next marks; the ring is of
 * the arena, and stays with the record. */
#include "base/arena.h"
#include "base/clock.h"
#include "pool/clock/captures.h"
#include "pool/clock/fence_timeline.h"
#include "pool/policy/params.h"

enum { SPARE_SHARE = 64 }; /* of the ring's room: spare events */

static struct ms_fence_event *mark_at(const struct ms_fence_timeline *time, uint32_t i)
{
    return &time->marks[(time->first + i) % time->room];
}

static uint64_t fence_timeline_context_of(const struct ms_fence_timeline *time)
{
    return atomic_load_explicit(&time->context, memory_order_relaxed);
}

static void raise_to(struct ms_fence_timeline *time, uint64_t number)
{
    if (atomic_load_explicit(&time->reached, memory_order_relaxed) < number)
        atomic_store_explicit(&time->reached, number, memory_order_release);
}

/* --- events -------------------------------------------------------------------------------------------- */

void ms_fence_timeline_keep_event(struct ms_fence_timeline *time, CUevent event)
{
    if (!time->closed && time->marks && time->spare_count < time->room / SPARE_SHARE &&
        time->count + time->spare_count < time->room)
        mark_at(time, time->count + time->spare_count++)->event = event;
    else if (time->gpu->event_destroy)
        time->gpu->event_destroy(event);
}

CUevent ms_fence_timeline_take_event(struct ms_fence_timeline *time, int *status_p)
{
    const struct ms_gpu *gpu = time->gpu;
    CUevent event = NULL;
    *status_p = CUDA_SUCCESS;
    if (time->spare_count)
        return mark_at(time, time->count + --time->spare_count)->event;
    *status_p = gpu->event_create ? (int)gpu->event_create(&event, CU_EVENT_DISABLE_TIMING)
                                  : CUDA_ERROR_NOT_SUPPORTED;
    return *status_p == CUDA_SUCCESS ? event : NULL;
}

/* In a visit. */
static CUevent fence_timeline_record(struct ms_fence_timeline *time, CUstream stream, int *status_p)
{
    const struct ms_gpu *gpu = time->gpu;
    CUevent event = ms_fence_timeline_take_event(time, status_p);
    if (event)
        *status_p =
            (int)(stream
                      ? gpu->event_record(event, ms_gpu_stream(gpu, stream))
                      : gpu->ctx_record_event((CUcontext)(uintptr_t)fence_timeline_context_of(time), event));
    if (!event || *status_p == CUDA_SUCCESS)
        return event;
    if (gpu->event_destroy)
        gpu->event_destroy(event);
    return NULL;
}

/* Its context has died, unseen. */
static bool is_gone(int status)
{
    return status == CUDA_ERROR_INVALID_CONTEXT || status == CUDA_ERROR_INVALID_HANDLE ||
           status == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* --- marks --------------------------------------------------------------------------------------------- */

/* The first `count` marks are over, or gone with their context. */
static void retire(struct ms_fence_timeline *time, uint32_t count, bool gone)
{
    for (; count; count--) {
        struct ms_fence_event mark = *mark_at(time, 0);
        if (mark.number && !time->spoiled)
            raise_to(time, mark.number);
        time->spoiled &= !mark.number;
        time->first = (time->first + 1) % time->room;
        time->count--;
        if (!gone)
            ms_fence_timeline_keep_event(time, mark.event);
    }
}

static void drop_last(struct ms_fence_timeline *time)
{
    CUevent event = mark_at(time, --time->count)->event;
    *mark_at(time, time->count) = *mark_at(time, time->count + time->spare_count);
    ms_fence_timeline_keep_event(time, event);
}

/* A mark goes whose point the next one covers: not one of several that tell of a point together. */
static void thin_out(struct ms_fence_timeline *time)
{
    uint32_t i = time->count / 2;
    while (i < time->count && !ms_fence_timeline_number(time, i))
        i++;
    if (i == time->count)
        return;
    CUevent event = mark_at(time, i)->event;
    for (; i + 1 < time->count; i++)
        *mark_at(time, i) = *mark_at(time, i + 1);
    mark_at(time, i)->event = event;
    drop_last(time);
}

static bool fence_timeline_make_room(struct ms_fence_timeline *time)
{
    if (time->count >= MS_WAIT_RETIRE_FROM)
        ms_fence_timeline_poll(time);
    if (time->count == time->room)
        thin_out(time);
    if (!time->marks)
        time->marks = ms_arena_alloc(time->room * sizeof(*time->marks));
    return time->marks && time->count < time->room;
}

static void push(struct ms_fence_timeline *time, CUevent event, uint64_t number)
{
    *mark_at(time, time->count + time->spare_count) = *mark_at(time, time->count);
    *mark_at(time, time->count++) = (struct ms_fence_event){event, number};
}

bool ms_fence_timeline_is_idle(const struct ms_fence_timeline *time, CUstream stream)
{
    const struct ms_gpu *gpu = time->gpu;
    if (!gpu->stream_query || !ms_captures_let(gpu))
        return false;
    bool idle = gpu->stream_query(stream) == CUDA_SUCCESS;
    ms_captures_let_end(gpu);
    return idle;
}

int ms_fence_timeline_mark_here(struct ms_fence_timeline *time, CUstream stream, uint64_t number)
{
    const struct ms_gpu *gpu = time->gpu;
    int status;
    if (!gpu->event_query || (stream ? !gpu->event_record : !gpu->ctx_record_event))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!fence_timeline_make_room(time))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!ms_captures_let(gpu))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    CUevent event = fence_timeline_record(time, stream, &status);
    ms_captures_let_end(gpu);
    if (event)
        push(time, event, number);
    return status;
}

int ms_fence_timeline_mark(struct ms_fence_timeline *time, CUstream stream, uint64_t number)
{
    struct ms_context_scope visit;
    ms_context_scope_begin(&visit, time->gpu, fence_timeline_context_of(time));
    int status = ms_fence_timeline_mark_here(time, stream, number);
    ms_context_scope_end(&visit);
    return status;
}

void ms_fence_timeline_take_back(struct ms_fence_timeline *time, uint64_t point)
{
    if (time->count && ms_fence_timeline_number(time, time->count - 1) == point)
        drop_last(time);
}

uint64_t ms_fence_timeline_covered(const struct ms_fence_timeline *time)
{
    uint64_t reached = atomic_load_explicit(&time->reached, memory_order_relaxed);
    uint32_t i = time->count;
    while (i && !ms_fence_timeline_number(time, i - 1))
        i--;
    return i && ms_fence_timeline_number(time, i - 1) > reached ? ms_fence_timeline_number(time, i - 1)
                                                                : reached;
}

/* The first mark that is behind the point; `count` if there is none. */
static uint32_t behind(const struct ms_fence_timeline *time, uint64_t point)
{
    uint32_t i = 0;
    while (i < time->count && ms_fence_timeline_number(time, i) < point)
        i++;
    return i;
}

CUevent ms_fence_timeline_exact(struct ms_fence_timeline *time, uint64_t point)
{
    uint32_t i = behind(time, point);
    return i < time->count && ms_fence_timeline_number(time, i) == point ? mark_at(time, i)->event : NULL;
}

/* --- how far it got: in a visit ------------------------------------------------------------------------- */

static int fence_timeline_query(const struct ms_fence_timeline *time, const struct ms_fence_event *mark)
{
    return (int)time->gpu->event_query(mark->event);
}

/* The first `count` marks are over, if that is what the driver said of the last of them. */
static bool fence_timeline_check(struct ms_fence_timeline *time, uint32_t count, int status)
{
    const struct ms_fence_event *mark = mark_at(time, count - 1);
    if (status == CUDA_SUCCESS && mark->number >= time->given_back &&
        time->given_back > ms_fence_timeline_reached(time))
        time->gpu->event_synchronize(mark->event);
    if (ms_gpu_is_of_captures(status)) {
        time->spoiled = true;
        status = CUDA_SUCCESS;
    }
    if (status == CUDA_SUCCESS || is_gone(status))
        retire(time, count, status != CUDA_SUCCESS);
    return status == CUDA_SUCCESS || is_gone(status);
}

bool ms_fence_timeline_is_reached(struct ms_fence_timeline *time, uint64_t point, uint64_t look_ns)
{
    struct ms_context_scope visit;
    uint32_t i = behind(time, point);
    if (point <= ms_fence_timeline_reached(time))
        return true;
    if (i == time->count)
        return false;
    if (i && !ms_fence_timeline_number(time, i - 1)) { /* one of several: all of them are asked */
        ms_fence_timeline_poll(time);
        return point <= ms_fence_timeline_reached(time);
    }
    if (!ms_captures_let(time->gpu))
        return false;
    ms_context_scope_begin(&visit, time->gpu, 0);
    uint64_t begin = look_ns ? ms_clock_ns() : 0;
    int status = fence_timeline_query(time, mark_at(time, i));
    while (status == CUDA_ERROR_NOT_READY && look_ns && ms_clock_ns() - begin < look_ns)
        status = fence_timeline_query(time, mark_at(time, i));
    bool over = fence_timeline_check(time, i + 1, status) && point <= ms_fence_timeline_reached(time);
    ms_context_scope_end(&visit);
    ms_captures_let_end(time->gpu);
    return over;
}

int ms_fence_timeline_poll(struct ms_fence_timeline *time)
{
    struct ms_context_scope visit;
    int status = CUDA_SUCCESS;
    if (!time->count)
        return status;
    if (!ms_captures_let(time->gpu))
        return CUDA_ERROR_NOT_READY;
    ms_context_scope_begin(&visit, time->gpu, 0);
    do {
        const struct ms_fence_event *mark = mark_at(time, 0);
        bool known = mark->number && mark->number <= ms_fence_timeline_reached(time);
        status = known ? CUDA_SUCCESS : fence_timeline_query(time, mark);
    } while (fence_timeline_check(time, 1, status) && time->count);
    ms_context_scope_end(&visit);
    ms_captures_let_end(time->gpu);
    return status;
}

void ms_fence_timeline_reach(struct ms_fence_timeline *time, uint64_t number)
{
    uint32_t i = time->count;
    raise_to(time, number);
    while (i && (!ms_fence_timeline_number(time, i - 1) || ms_fence_timeline_number(time, i - 1) > number))
        i--;
    retire(time, i, false);
}

/* --- from beginning to end ------------------------------------------------------------------------------ */

void ms_fence_timeline_begin(struct ms_fence_timeline *time, const struct ms_gpu *gpu, uint64_t context,
                             uint32_t room)
{
    uint64_t now = atomic_load_explicit(&time->now, memory_order_relaxed);
    time->gpu = gpu;
    time->room = room;
    if (!now)
        atomic_store_explicit(&time->now, now = 1, memory_order_relaxed);
    atomic_store_explicit(&time->context, context, memory_order_relaxed);
    raise_to(time, now - 1);
    time->count = time->spare_count = 0;
    time->closed = time->spoiled = false;
}

uint64_t ms_fence_timeline_point(struct ms_fence_timeline *time)
{
    return atomic_fetch_add_explicit(&time->now, 1, memory_order_relaxed);
}

void ms_fence_timeline_close(struct ms_fence_timeline *time)
{
    time->closed = true;
    for (; time->spare_count && time->gpu->event_destroy; time->spare_count--)
        time->gpu->event_destroy(mark_at(time, time->count + time->spare_count - 1)->event);
}

void ms_fence_timeline_end(struct ms_fence_timeline *time, bool gone)
{
    if (gone)
        time->count = time->spare_count = 0;
    ms_fence_timeline_close(time);
    retire(time, time->count, false);
    raise_to(time, ms_fence_timeline_latest(time));
}
