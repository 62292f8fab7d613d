/* timeline.c - the points of a stream, and the events that say how far it got; see timeline.h.
 *
 * A stream does things in their order, so an event that is done says so of all points before it: marks stand
 * in a ring, the numbers of their points rising, and no more is asked than the first that suffices. Where the
 * ring is full one from its middle goes, which the next covers: the oldest tell how far the stream got, the
 * newest are those that others may be made to wait for. Owns events, a few of which are kept for the next
 * marks; the ring is of the arena, and stays with the record. */
#include "config.h"

#include "base/arena.h"
#include "base/clock.h"
#include "gpu/visit.h"
#include "pool/clock/timeline.h"
#include "pool/policy/params.h"

static struct ms_mark *mark_at(struct ms_timeline *time, uint32_t i)
{
    return &time->marks[(time->first + i) % MS_TIMELINE_MARKS];
}

static uint64_t context_of(const struct ms_timeline *time)
{
    return atomic_load_explicit(&time->context, memory_order_relaxed);
}

/* --- events -------------------------------------------------------------------------------------------- */

static void drop_event(struct ms_timeline *time, CUevent event)
{
    if (!time->closed && time->spare_count < MS_TIMELINE_SPARE)
        time->spare[time->spare_count++] = event;
    else if (time->gpu->event_destroy)
        time->gpu->event_destroy(event);
}

static CUevent take_event(struct ms_timeline *time)
{
    const struct ms_gpu *gpu = time->gpu;
    CUevent event = NULL;
    if (time->spare_count)
        return time->spare[--time->spare_count];
    return gpu->event_create && gpu->event_create(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS ? event
                                                                                                   : NULL;
}

/* In a visit. */
static CUevent record(struct ms_timeline *time, CUstream stream)
{
    const struct ms_gpu *gpu = time->gpu;
    CUevent event = take_event(time);
    CUresult status = CUDA_SUCCESS;
    if (event)
        status = stream ? gpu->event_record(event, stream)
                        : gpu->ctx_record_event((CUcontext)(uintptr_t)context_of(time), event);
    if (event && status != CUDA_SUCCESS) {
        if (gpu->event_destroy)
            gpu->event_destroy(event);
        event = NULL;
    }
    return event;
}

static CUresult ask(const struct ms_timeline *time, const struct ms_mark *mark)
{
    return time->gpu->event_query(mark->event);
}

/* Its context has died, unseen. */
static bool is_gone(CUresult status)
{
    return status == CUDA_ERROR_INVALID_CONTEXT || status == CUDA_ERROR_INVALID_HANDLE ||
           status == CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

/* --- marks --------------------------------------------------------------------------------------------- */

/* The first `count` marks are over, if that is what the driver says of the last of them. */
static bool retire(struct ms_timeline *time, uint32_t count, CUresult status)
{
    if (status != CUDA_SUCCESS && !is_gone(status))
        return false;
    time->reached = mark_at(time, count - 1)->number;
    for (; count; count--) {
        if (status == CUDA_SUCCESS)
            drop_event(time, mark_at(time, 0)->event);
        time->first = (time->first + 1) % MS_TIMELINE_MARKS;
        time->count--;
    }
    return true;
}

static void thin_out(struct ms_timeline *time)
{
    uint32_t i = time->count / 2;
    drop_event(time, mark_at(time, i)->event);
    for (time->count--; i < time->count; i++)
        *mark_at(time, i) = *mark_at(time, i + 1);
}

static bool make_room(struct ms_timeline *time)
{
    if (time->count >= MS_WAIT_RETIRE_FROM)
        ms_timeline_look(time);
    if (time->count == MS_TIMELINE_MARKS)
        thin_out(time);
    if (!time->marks)
        time->marks = ms_arena_alloc(MS_TIMELINE_MARKS * sizeof(*time->marks));
    return time->marks != NULL;
}

bool ms_timeline_mark(struct ms_timeline *time, CUstream stream)
{
    const struct ms_gpu *gpu = time->gpu;
    struct ms_visit visit;
    if (!gpu->event_query || (stream ? !gpu->event_record : !gpu->ctx_record_event) || !make_room(time))
        return false;
    ms_visit_begin(&visit, gpu, context_of(time));
    CUevent event = record(time, stream);
    ms_visit_end(&visit);
    if (event)
        *mark_at(time, time->count++) = (struct ms_mark){event, time->now};
    return event != NULL;
}

void ms_timeline_take_back(struct ms_timeline *time, uint64_t point)
{
    if (time->count && mark_at(time, time->count - 1)->number == point)
        drop_event(time, mark_at(time, --time->count)->event);
}

uint64_t ms_timeline_covered(const struct ms_timeline *time)
{
    return time->count ? time->marks[(time->first + time->count - 1) % MS_TIMELINE_MARKS].number
                       : time->reached;
}

/* The first mark that is behind the point; `count` if there is none. */
static uint32_t behind(struct ms_timeline *time, uint64_t point)
{
    uint32_t i = 0;
    while (i < time->count && mark_at(time, i)->number < point)
        i++;
    return i;
}

CUevent ms_timeline_exact(struct ms_timeline *time, uint64_t point)
{
    uint32_t i = behind(time, point);
    return i < time->count && mark_at(time, i)->number == point ? mark_at(time, i)->event : NULL;
}

bool ms_timeline_is_reached(struct ms_timeline *time, uint64_t point, uint64_t look_ns)
{
    struct ms_visit visit;
    uint32_t i = behind(time, point);
    if (point <= time->reached)
        return true;
    if (i == time->count)
        return false;
    ms_visit_begin(&visit, time->gpu, 0);
    uint64_t begin = look_ns ? ms_clock_ns() : 0;
    CUresult status = ask(time, mark_at(time, i));
    while (status == CUDA_ERROR_NOT_READY && look_ns && ms_clock_ns() - begin < look_ns)
        status = ask(time, mark_at(time, i));
    ms_visit_end(&visit);
    return retire(time, i + 1, status);
}

void ms_timeline_look(struct ms_timeline *time)
{
    struct ms_visit visit;
    if (!time->count)
        return;
    ms_visit_begin(&visit, time->gpu, 0);
    while (time->count && retire(time, 1, ask(time, mark_at(time, 0))))
        ;
    ms_visit_end(&visit);
}

/* --- from beginning to end ------------------------------------------------------------------------------ */

void ms_timeline_begin(struct ms_timeline *time, const struct ms_gpu *gpu, uint64_t context)
{
    time->gpu = gpu;
    atomic_store_explicit(&time->context, context, memory_order_relaxed);
    time->reached = time->now;
    time->count = time->spare_count = 0;
    time->closed = false;
}

uint64_t ms_timeline_point(struct ms_timeline *time)
{
    return ++time->now;
}

void ms_timeline_close(struct ms_timeline *time)
{
    time->closed = true;
    while (time->spare_count && time->gpu->event_destroy)
        time->gpu->event_destroy(time->spare[--time->spare_count]);
}

void ms_timeline_end(struct ms_timeline *time, bool gone)
{
    if (gone)
        time->count = time->spare_count = 0;
    ms_timeline_close(time);
    if (time->count)
        retire(time, time->count, CUDA_SUCCESS);
    time->reached = time->now;
}
