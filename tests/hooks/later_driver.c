/*
 * later_driver.c - a driver of times to come: plain_driver.c with streams, and captures that begin by a
 * function which nobody has heard of.
 *
 * An event over the context destroys every capture, as does waiting for the context; one in the legacy stream
 * destroys those of blocking streams; one in a stream that captures is taken in. Nothing is ever under way.
 * One thread calls.
 */
#include "tests/hooks/later.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define cuDriverGetVersion plain_cuDriverGetVersion
#define cuEventCreate      plain_cuEventCreate
#define cuEventDestroy_v2  plain_cuEventDestroy
#define cuEventQuery       plain_cuEventQuery
#define cuCtxRecordEvent   plain_cuCtxRecordEvent
#include "tests/hooks/plain_driver.c"
#undef cuDriverGetVersion
#undef cuEventCreate
#undef cuEventDestroy_v2
#undef cuEventQuery
#undef cuCtxRecordEvent
#pragma GCC diagnostic pop

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { STREAMS = 16, EVENTS = 1024, LEGACY = 1 };

/* Atomic, as the legacy stream's question goes through all of them while others are made. */
struct stream {
    atomic_bool alive, blocking, captures, destroyed;
};
struct event {
    bool alive, taken_in;
};

static struct stream streams[STREAMS];
static struct event events[EVENTS]; /* whoever used it may end without giving them back */
static int counts[LATER_COUNTS];

int later_count(enum later_counted what)
{
    return counts[what];
}

CUresult cuDriverGetVersion(int *version)
{
    *version = 14000;
    return CUDA_SUCCESS;
}

static struct stream *stream_of(CUstream handle)
{
    struct stream *stream = (struct stream *)handle;

    if (stream < streams || stream >= streams + STREAMS || !stream->alive)
        abort(); /* as a driver may that is given a stream of the past */
    return stream;
}

static bool is_legacy(CUstream handle)
{
    return (uintptr_t)handle <= LEGACY;
}

/* Whether any was open. */
static bool destroy_captures(bool blocking_alone)
{
    bool any = false;

    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].captures && (streams[i].blocking || !blocking_alone))
            streams[i].destroyed = any = true;
    }
    return any;
}

CUresult cuStreamCreate(CUstream *handle, unsigned int flags)
{
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].alive)
            continue;
        streams[i].captures = streams[i].destroyed = false;
        streams[i].blocking = !(flags & CU_STREAM_NON_BLOCKING);
        streams[i].alive = true;
        *handle = (CUstream)&streams[i];
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
    stream_of(handle)->alive = false;
    return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    (void)handle;
    return cuCtxGetCurrent(context);
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    for (int i = 0; is_legacy(handle) && i < STREAMS; i++) {
        if (streams[i].captures && streams[i].blocking)
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (!is_legacy(handle) && stream_of(handle)->captures)
        *status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    struct stream *stream = stream_of(handle);

    if (!stream->captures)
        return CUDA_ERROR_ILLEGAL_STATE;
    stream->captures = false;
    *graph = NULL;
    return stream->destroyed ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
}

CUresult cuCtxRecordEvent(CUcontext context, CUevent event)
{
    (void)context;
    ((struct event *)event)->taken_in = false;
    counts[LATER_OVER_CONTEXT]++;
    return destroy_captures(false) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    return destroy_captures(false) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    (void)flags;
    for (int i = 0; i < EVENTS; i++) {
        if (events[i].alive)
            continue;
        events[i] = (struct event){.alive = true};
        *event = (CUevent)&events[i];
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    ((struct event *)event)->alive = false;
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream handle)
{
    counts[LATER_IN_STREAM]++;
    if (is_legacy(handle) && destroy_captures(true))
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    ((struct event *)event)->taken_in = !is_legacy(handle) && stream_of(handle)->captures;
    counts[LATER_TAKEN_IN] += ((struct event *)event)->taken_in;
    return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
    return ((struct event *)event)->taken_in ? CUDA_ERROR_CAPTURED_EVENT : CUDA_SUCCESS;
}

/* Every kind of argument, in more registers than there are, and on the stack. */
CUresult cuStreamBeginLaterCapture(CUstream handle, LATER_PARAMETERS)
{
    struct stream *stream = stream_of(handle);

    if (LATER_IS_WRONG)
        return CUDA_ERROR_INVALID_VALUE;
    stream->captures = true;
    stream->destroyed = false;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v9(CUstream stream, LATER_PARAMETERS)
{
    return cuStreamBeginLaterCapture(stream, a, b, c, d, e, f, g, x0, x1, x2, x3, x4, x5, x6, x7, x8, h, y);
}

CUresult cuMemAlloc_v9(LATER_PARAMETERS)
{
    return LATER_IS_WRONG ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    static const struct {
        const char *name;
        void *function;
    } known[] = {{"cuStreamBeginLaterCapture", (void *)cuStreamBeginLaterCapture},
                 {"cuStreamBeginCapture", (void *)cuStreamBeginCapture_v9},
                 {"cuMemAlloc", (void *)cuMemAlloc_v9},
                 {"cuStreamEndCapture", (void *)cuStreamEndCapture}};

    (void)version, (void)flags, (void)status;
    for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i].name, symbol) == 0) {
            *pfn = known[i].function;
            return CUDA_SUCCESS;
        }
    }
    *pfn = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
