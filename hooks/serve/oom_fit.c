/* oom_fit.c - what would have made a request fit for which there was no memory: see oom_fit.h.
 *
 * Inside a hook scope, with no lock held. Asks the pool, and the driver for the number of a stream. No
 * state. */
#include "hooks/serve/oom_fit.h"

#include "base/options/options.h"
#include "quota/quota.h"
#include "vendor/abi/pytorch.h"
#include "vendor/context_scope.h"
#include "record/live/internal.h"
#include "pool/stream/stream.h"

#define GRANULE_UNKNOWN (UINT64_C(2) << 20)

static uint64_t granule_of(int device)
{
    struct ms_device_info info;

    return ms_events_device(device, &info) && info.granularity_bytes ? info.granularity_bytes
                                                                     : GRANULE_UNKNOWN;
}

static uint64_t up(uint64_t bytes, uint64_t granule)
{
    return (bytes + granule - 1) / granule * granule;
}

uint64_t ms_oom_whole(int device, uint64_t bytes)
{
    return bytes < UINT64_MAX / 2 ? up(bytes, granule_of(device)) : bytes;
}

enum ms_oom_fragmentation ms_oom_fragmentation(const struct ms_oom_view *view, const struct ms_gpu *gpu,
                                               int device, uint64_t bytes, uint64_t stream)
{
    unsigned long long number = UINT64_MAX;
    uint64_t vacant, elsewhere;

    if (stream != MS_OOM_NO_STREAM && !ms_gpu_stream_id(gpu, (CUstream)(uintptr_t)stream, &number))
        number = UINT64_MAX;
    elsewhere = ms_stream_free_elsewhere(device, number, &vacant);
    if (view->free + view->parts.cached + view->parts.stranded < bytes + elsewhere)
        return MS_OOM_STREAMS;
    return view->free + view->parts.cached >= bytes + vacant ? MS_OOM_SEGMENTS : MS_OOM_INTERLEAVED;
}

/* The limit would have to be higher by what is short; or so much would have to be free under it. No variable
 * says how much others leave of a device that is shared, or the host of its memory. */
static void fit_limit(struct ms_oom_view *view, int device, uint64_t asked, uint64_t room, uint64_t live)
{
    uint64_t lacks = asked > room ? asked - room : asked;
    bool by_limit = view->cause == MS_OOM_LIMIT && !ms_quota_is_asked(device, MS_QUOTA_OTHERS);

    if (by_limit) {
        view->fit.policy = MS_OOM_RAISE_LIMIT;
        view->fit.value = ms_option_size(MS_OPT_LIMIT, view->total) + lacks;
    }
    if (lacks <= live)
        view->fit.free_bytes = lacks;
    else if (!by_limit)
        view->fit.most_bytes = room;
}

/* So much more would have to be free; where the program has not so much to free, less has to be asked for. */
static void fit_capacity(struct ms_oom_view *view, uint64_t asked, uint64_t live, uint64_t granule)
{
    uint64_t idle = view->parts.cached + view->parts.stranded + view->parts.pending,
             left = (view->free + idle) / granule * granule, lacks = asked > left ? asked - left : granule;

    if (lacks <= live)
        view->fit.free_bytes = lacks;
    else
        view->fit.most_bytes = (view->free + view->parts.cached) / granule * granule;
}

static void fit_fragmentation(struct ms_oom_view *view)
{
    uint64_t prealloc = ms_option_size(MS_OPT_PREALLOC, view->total);

    if (view->fragmentation == MS_OOM_STREAMS)
        view->fit.wait = true;
    else if (view->fragmentation == MS_OOM_SEGMENTS && prealloc)
        view->fit.policy = MS_OOM_NO_PREALLOC;
    else if (ms_option_int(MS_OPT_BACKING) != MS_BACKING_VMM)
        view->fit.policy = MS_OOM_USE_VMM;
}

void ms_oom_fit(struct ms_oom_view *view, int device, uint64_t bytes, uint64_t room)
{
    uint64_t granule = granule_of(device), live = ms_ledger_live(device), asked = ms_oom_whole(device, bytes);

    switch (view->cause) {
    case MS_OOM_HOST:
        if (!ms_quota_is_asked(device, MS_QUOTA_HOST))
            break; /* host memory that was asked for */
        /* fall through */
    case MS_OOM_LIMIT:
        fit_limit(view, device, asked, room, live);
        break;
    case MS_OOM_CAPACITY:
    case MS_OOM_OTHER_PROCESS:
        fit_capacity(view, asked, live, granule);
        break;
    case MS_OOM_PENDING:
        view->fit.wait = true;
        break;
    case MS_OOM_FRAGMENTATION:
        fit_fragmentation(view);
        break;
    default:
        break;
    }
}

/* The share of the device that it would have to be allowed, in thousandths. */
static void fit_cache_limit(struct ms_oom_view *view, uint64_t cached, uint64_t asked)
{
    uint64_t wants = cached + (asked > C10_SEGMENT_LEAST ? asked : C10_SEGMENT_LEAST);

    if (wants > view->total)
        return;
    view->fit.policy = MS_OOM_RAISE_CACHE_LIMIT;
    view->fit.value = (wants * 1000 + view->total - 1) / view->total;
}

/* Memory between tensors counts as the device's where the allocator maps piece by piece. */
static void fit_cache_room(struct ms_oom_view *view, const struct ms_oom_asked *asked, uint64_t whole)
{
    uint64_t left = view->free + (asked->is_expandable ? asked->cache_free_bytes : 0),
             lacks = whole > left ? whole - left : 0;

    if (view->cause == MS_OOM_FRAGMENTATION && !asked->is_expandable &&
        ms_device_maker(asked->device) == MS_MAKER_CUDA)
        view->fit.policy = MS_OOM_EXPANDABLE;
    if (lacks && lacks <= ms_ledger_live(ms_device_inner(asked->device)))
        view->fit.free_bytes = lacks;
    else if (lacks)
        view->fit.most_bytes = view->free;
}

void ms_oom_fit_cache(struct ms_oom_view *view, const struct ms_oom_asked *asked, uint64_t room)
{
    uint64_t whole;

    if (asked->device < 0 || !view->total)
        return;
    whole = ms_oom_whole(asked->device, asked->bytes);
    switch (view->cause) {
    case MS_OOM_CACHE_LIMIT:
        fit_cache_limit(view, asked->cache_bytes, whole);
        break;
    case MS_OOM_LIMIT:
        fit_limit(view, asked->device, whole, room, ms_ledger_live(ms_device_inner(asked->device)));
        break;
    case MS_OOM_PENDING:
        view->fit.wait = true;
        break;
    case MS_OOM_CAPACITY:
    case MS_OOM_OTHER_PROCESS:
    case MS_OOM_FRAGMENTATION:
        fit_cache_room(view, asked, whole);
        break;
    default:
        break;
    }
}
