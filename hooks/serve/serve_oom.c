/* serve_oom.c - why there was no memory.
 *
 * Asks the pool and the driver; inside a hook scope, with no lock held, behind ms_balance_look: what the
 * driver took for itself may not have been seen before. Which causes there are depends on what was asked for
 * (record/live/oom.def). Of the device's memory it is the first that holds:
 *   limit           nobody asked the vendor, as MEMSHIM_LIMIT leaves less
 *   capacity        the device could not hold it beside what is live, however that lay
 *   driver          the driver has as much, and refused
 *   the pending list           what was freed and may still be in use would have been enough
 *   fragmentation   what is free and idle would have been enough, in one piece
 *   other_process   the rest is held by others */
#include "hooks/follow/balance.h"
#include "hooks/serve/limit.h"
#include "hooks/serve/neighbours.h"
#include "hooks/serve/oom_fit.h"
#include "hooks/serve/serve.h"
#include "hooks/serve/serve_handles.h"

#include <string.h>
#include <unistd.h>

#include "vendor/gpu.h"
#include "record/footprint/footprints.h"
#include "pool/stream/stream.h"

static enum ms_asked_group group_of(enum ms_asked kind)
{
    static const uint8_t groups[MS_ASKED_KINDS] = {
#define MS_ASKED_ROW(kind, word, group, told) [MS_ASKED_##kind] = MS_ASKED_OF_##group,
#include "record/live/oom.def"
    };
    return (enum ms_asked_group)groups[kind];
}

/* Of the device's memory, in a size that is known. */
static enum ms_oom_cause cause_on_device(const struct ms_oom_view *view, int device, uint64_t bytes)
{
    uint64_t idle = view->parts.cached + view->parts.stranded, live = ms_ledger_live(device);

    if (bytes > view->total || live > view->total - bytes)
        return MS_OOM_CAPACITY;
    if (view->free >= ms_oom_whole(device, bytes))
        return MS_OOM_DRIVER;
    if (view->free + idle < bytes && view->free + idle + view->parts.pending >= bytes)
        return MS_OOM_PENDING;
    if (view->free + idle >= bytes)
        return MS_OOM_FRAGMENTATION;
    return MS_OOM_OTHER_PROCESS;
}

/* An allocator of the program's own has none that is large enough, and asked the vendor, unless it may have
 * no more. */
/* Of a device of no interface that memshim knows nobody heard what its vendor said. */
static enum ms_oom_cause cause_in_cache(const struct ms_oom_view *view, const struct ms_oom_asked *asked)
{
    enum ms_oom_cause cause = ms_ledger_refused();

    if (asked->device < 0)
        return MS_OOM_UNKNOWN;
    if (!cause)
        return MS_OOM_CACHE_LIMIT;
    if (cause != MS_OOM_LIMIT && view->total && view->free + asked->cache_free_bytes >= asked->bytes)
        return MS_OOM_FRAGMENTATION;
    return cause;
}

static uint64_t host_total(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_MAX / 2;
}

/* Memory that is reserved before it is asked for. */
static bool is_reserved_for(enum ms_asked_group group)
{
    return group == MS_ASKED_OF_POOL || group == MS_ASKED_OF_DEVICE || group == MS_ASKED_OF_MANAGED ||
           group == MS_ASKED_OF_GRAPH;
}

/* Of what the vendor was not asked for; meanwhile another process may have given back as much. */
static enum ms_oom_cause cause_at_once(const struct ms_oom_asked *asked, uint64_t room)
{
    enum ms_quota_who who = ms_quota_refused_by(asked->device);

    if (who == MS_QUOTA_NOBODY && room >= asked->bytes)
        return MS_OOM_UNKNOWN;
    return who == MS_QUOTA_HOST || ms_quota_room_of(asked->device, MS_QUOTA_HOST) < asked->bytes
               ? MS_OOM_HOST
               : MS_OOM_LIMIT;
}

static enum ms_oom_cause cause_of(const struct ms_oom_view *view, const struct ms_oom_asked *asked,
                                  uint64_t room)
{
    enum ms_oom_cause bound =
        is_reserved_for(group_of(asked->kind)) ? cause_at_once(asked, room) : MS_OOM_UNKNOWN;

    if (bound != MS_OOM_UNKNOWN)
        return bound;
    switch (group_of(asked->kind)) {
    case MS_ASKED_OF_HOST:
        return asked->bytes > host_total() ? MS_OOM_CAPACITY : MS_OOM_HOST;
    case MS_ASKED_OF_ADDRESSES:
        return MS_OOM_ADDRESSES;
    case MS_ASKED_OF_MANAGED:
        return asked->bytes > view->total && asked->bytes - view->total > host_total() ? MS_OOM_HOST
                                                                                       : MS_OOM_DRIVER;
    case MS_ASKED_OF_DRIVER:
        return MS_OOM_DRIVER;
    case MS_ASKED_OF_CACHE:
        return cause_in_cache(view, asked);
    case MS_ASKED_OF_GRAPH:
        return view->total && asked->bytes > view->total ? MS_OOM_CAPACITY : MS_OOM_DRIVER;
    default:
        break;
    }
    return view->total ? cause_on_device(view, asked->device, asked->bytes) : MS_OOM_UNKNOWN;
}

/* Finds out what the device has, and whose it is. */
static void look_at_device(struct ms_oom_view *view, const struct ms_gpu *gpu, int device)
{
    struct ms_pool_figures figures;
    struct ms_balance balance;
    uint64_t context;

    memset(&figures, 0, sizeof(figures));
    if (ms_serve_is_on()) {
        ms_pool_figures(device, &figures);
        view->reserved = figures.reserved_bytes;
        view->pending = figures.parts.pending;
        view->largest_free = figures.largest_free_bytes;
    }
    if (ms_gpu_current(gpu, &context) == device) {
        view->is_one_moment = ms_balance_query(gpu, device, 0, &balance);
        view->total = balance.total_bytes;
        view->free = balance.total_bytes - balance.in_use_bytes;
    } else {
        ms_balance_of(device, &balance); /* the driver would tell of another device */
    }
    view->is_inferred = ms_ledger_taken_is_inferred(device);
    view->taken = balance.contexts_bytes;
    view->followed = balance.followed_bytes;
    view->driver_rounding = balance.driver_rounding_bytes;
    view->driver_cached = balance.driver_cached_bytes;
    view->parts = balance.parts;
}

struct ms_oom_view ms_serve_oom_view(const struct ms_gpu *gpu, const struct ms_oom_asked *asked)
{
    struct ms_oom_view view = {.asked = asked->kind, .cause = MS_OOM_UNKNOWN};
    uint64_t room = UINT64_MAX;

    if (asked->device >= 0)
        look_at_device(&view, gpu, asked->device);
    if (asked->device >= 0)
        room = ms_quota_room(asked->device);
    /* The pool's own idle memory is the allocator's for the asking. */
    if (asked->kind == MS_ASKED_INNER && view.total)
        view.free += view.parts.cached + view.parts.stranded;
    if (asked->kind)
        view.cause = cause_of(&view, asked, room);
    if (asked->kind == MS_ASKED_INNER) {
        view.reserved = asked->cache_bytes;
        view.largest_free = view.free;
        ms_oom_fit_cache(&view, asked, room);
        return view;
    }
    if (view.free > view.largest_free && view.cause != MS_OOM_LIMIT)
        view.largest_free = view.free;
    if (view.cause == MS_OOM_FRAGMENTATION)
        view.fragmentation = ms_oom_fragmentation(&view, gpu, asked->device, asked->bytes, asked->stream);
    if (asked->device >= 0)
        ms_oom_fit(&view, asked->device, asked->bytes, room);
    return view;
}

/* A request that is larger than the device, or than its limit, is no reason to give anything back. */
static bool could_hold(const struct ms_gpu *gpu, int device, uint64_t bytes, uint64_t live)
{
    struct ms_gpu_description about = {.total_bytes = 0};
    uint64_t most = ms_quota_limit(device);

    if (device >= 0)
        ms_gpu_describe(gpu, device, &about);
    if (about.total_bytes && about.total_bytes < most)
        most = about.total_bytes;
    return bytes <= most && live <= most - bytes;
}

/* True if waiting for what was freed could make room: not if live blocks leave less of the device. */
static bool worth_waiting(const struct ms_gpu *gpu, int device, uint64_t bytes)
{
    return could_hold(gpu, device, bytes, ms_ledger_live(device));
}

/* Kinds of memory that are not served need room too, and so does what the driver takes for itself. What is
 * the host's does not. */
static bool needs_room(unsigned class, const struct ms_args *args)
{
    if (ms_class_allocates(class))
        return args->kind != MS_KIND_PINNED && args->kind != MS_KIND_REGISTERED &&
               args->kind != MS_KIND_IMPORTED;
    switch (class) {
    case MS_CLASS_STATUS:
        return args->asked != MS_ASKED_ADDRESSES;
    default:
        return class == MS_CLASS_CONTEXT_CREATE || class == MS_CLASS_PRIMARY_RETAIN ||
               class == MS_CLASS_MODULE_LOAD || class == MS_CLASS_GRAPH_NODE || class == MS_CLASS_GRAPH ||
               class == MS_CLASS_MEMPOOL || class == MS_CLASS_STREAM_CREATE || class == MS_CLASS_LAUNCH;
    }
}

static int serve_oom_device_of(unsigned class, const struct ms_gpu *gpu, const struct ms_args *args)
{
    uint64_t context;

    if (class == MS_CLASS_HANDLE_CREATE || class == MS_CLASS_RECYCLED_CREATE ||
        class == MS_CLASS_CONTEXT_CREATE || class == MS_CLASS_PRIMARY_RETAIN || class == MS_CLASS_GRAPH_NODE)
        return args->device < MS_DEVICES_MAX ? args->device : MS_DEVICE_NONE;
    return ms_gpu_current(gpu, &context);
}

int ms_serve_device_of_call(const struct ms_call *call)
{
    return serve_oom_device_of(ms_rows[call->row]->class, call->gpu, &call->args);
}

/* A buffer of another library's has had room made for it before the library asks the driver. */
void ms_serve_before_growth(const struct ms_call *call)
{
    const struct ms_call *outer = ms_thread.outermost;
    unsigned class = ms_rows[call->row]->class;
    int device;

    if (call->answered || !ms_families[ms_rows[call->row]->api].vendor || !needs_room(class, &call->args) ||
        !call->args.bytes || (outer && ms_rows[outer->row]->class == MS_CLASS_BUFFER_ALLOC))
        return;
    device = ms_serve_device_of_call(call);
    if (device >= 0 && could_hold(call->gpu, device, call->args.bytes, 0))
        ms_keep_before_followed(device, call->args.bytes);
}

/* Gives back what the pool keeps for later, and waits now for what the vendor's own free would have waited
 * for; then other processes are asked, once. */
static bool make_room(unsigned class, const struct ms_gpu *gpu, const struct ms_args *args,
                      struct ms_room *room)
{
    int device = serve_oom_device_of(class, gpu, args);
    bool made = false;

    if (device < 0 || !could_hold(gpu, device, args->bytes, 0))
        return false;
    if (ms_serve_is_on()) {
        made = ms_recycled_give_back(device) > 0;
        made = ms_room_make(device, !made && worth_waiting(gpu, device, args->bytes), room) || made;
    }
    if (made || room->asked)
        return made;
    room->asked = true;
    return ms_neighbours_ask(gpu, device, args->bytes);
}

bool ms_serve_make_room_in_call(const struct ms_call *call, struct ms_room *room)
{
    unsigned class = ms_rows[call->row]->class;

    return ms_limit_or_service() && needs_room(class, &call->args) &&
           make_room(class, call->gpu, &call->args, room);
}

bool ms_serve_make_room(unsigned row, const struct ms_gpu *gpu, const struct ms_args *args,
                        struct ms_room *room)
{
    unsigned class = ms_rows[row]->class;
    struct ms_hook_scope scope;
    bool made;

    if (!ms_families[ms_rows[row]->api].vendor || ms_thread.depth > 0 || !ms_limit_or_service() ||
        !needs_room(class, args))
        return false;
    ms_hook_scope_enter(&scope);
    made = make_room(class, gpu, args, room);
    ms_hook_scope_leave(&scope);
    return made;
}
