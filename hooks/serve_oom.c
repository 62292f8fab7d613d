/* serve_oom.c - why there was no memory.
 *
 * Asks the pool and the driver; inside a section, with no lock held, behind ms_balance_look: what the driver
 * took for itself may not have been seen before. The causes, the first that holds:
 *   limit           MEMSHIM_LIMIT leaves less
 *   capacity        the device could not hold it beside what is live, however that lay
 *   limbo           what was freed and may still be in use would have been enough
 *   fragmentation   what is free and idle would have been enough, in one piece
 *   other_process   the rest is held by others */
#include "hooks/balance.h"
#include "hooks/oom_fit.h"
#include "hooks/serve.h"
#include "hooks/serve_handles.h"

#include <stdatomic.h>
#include <string.h>

#include "gpu/gpu.h"
#include "ledger/takers.h"
#include "pool/stream.h"

static enum ms_oom_cause cause_of(const struct ms_pool_figures *f, uint64_t live, uint64_t total,
                                  uint64_t free_bytes, uint64_t bytes)
{
    uint64_t idle = f->parts.cached + f->parts.stranded;

    if (bytes > total || live > total - bytes)
        return MS_OOM_CAPACITY;
    if (free_bytes + idle < bytes && free_bytes + idle + f->parts.limbo >= bytes)
        return MS_OOM_LIMBO;
    if (free_bytes + idle >= bytes)
        return MS_OOM_FRAGMENTATION;
    return MS_OOM_OTHER_PROCESS;
}

struct ms_oom_view ms_serve_oom_view(const struct ms_gpu *gpu, int device, uint64_t bytes, uint64_t stream)
{
    struct ms_oom_view view = {.cause = MS_OOM_UNKNOWN};
    struct ms_pool_figures figures;
    struct ms_balance balance;
    uint64_t room = UINT64_MAX, free_bytes, total;

    memset(&figures, 0, sizeof(figures));
    if (device < 0)
        return view;
    if (ms_serve_is_on()) {
        ms_pool_figures(device, &figures);
        view.reserved = figures.reserved_bytes;
        view.limbo = figures.parts.limbo;
        view.largest_free = figures.largest_free_bytes;
        room = ms_pool_room(device);
    }
    view.is_one_moment = ms_balance_ask(gpu, device, 0, &balance);
    view.is_inferred = ms_ledger_taken_is_inferred(device);
    view.taken = balance.contexts_bytes;
    view.followed = balance.followed_bytes;
    view.driver_rounding = balance.driver_rounding_bytes;
    view.driver_cached = balance.driver_cached_bytes;
    view.parts = balance.parts;
    view.total = total = balance.total_bytes;
    view.free = free_bytes = total - balance.in_use_bytes;
    if (room < bytes)
        view.cause = MS_OOM_LIMIT;
    else if (view.total)
        view.cause = cause_of(&figures, ms_ledger_live(device), total, free_bytes, bytes);
    if (free_bytes > view.largest_free && view.cause != MS_OOM_LIMIT)
        view.largest_free = free_bytes;
    if (view.cause == MS_OOM_FRAGMENTATION)
        view.fragmentation = ms_oom_fragmentation(&view, gpu, device, bytes, stream);
    ms_oom_fit(&view, device, bytes, room);
    return view;
}

/* What is larger than the device is no reason to give anything back. */
static bool could_hold(const struct ms_gpu *gpu, int device, uint64_t bytes, uint64_t live)
{
    struct ms_gpu_description about = {.total_bytes = 0};

    if (device >= 0)
        ms_gpu_describe(gpu, device, &about);
    return !about.total_bytes || (bytes <= about.total_bytes && live <= about.total_bytes - bytes);
}

/* Whether waiting for what was freed could make room: not if live blocks leave less of the device. */
static bool worth_waiting(const struct ms_gpu *gpu, int device, uint64_t bytes)
{
    return could_hold(gpu, device, bytes, ms_ledger_live(device));
}

/* Kinds of memory that are not served need room too: what the pool keeps for later is theirs first, and what
 * the vendor's own free would have waited for is waited for now. */
bool ms_serve_make_room(const struct ms_call *call, struct ms_room *room)
{
    const struct ms_row_info *row = ms_rows[call->row];
    struct ms_section section;
    uint64_t context;
    bool made;
    int device;

    if (!ms_families[row->api].vendor || ms_thread.depth > 0 || !ms_serve_is_on())
        return false;
    if (row->class != MS_CLASS_ALLOC && row->class != MS_CLASS_ALLOC_ASYNC && row->class != MS_CLASS_PITCH &&
        row->class != MS_CLASS_HANDLE_CREATE && row->class != MS_CLASS_WHOLE_CREATE)
        return false;
    if (call->args.kind == MS_KIND_PINNED || call->args.kind == MS_KIND_REGISTERED ||
        call->args.kind == MS_KIND_IMPORTED)
        return false; /* nothing of the device's */
    ms_section_enter(&section);
    device = row->class == MS_CLASS_HANDLE_CREATE || row->class == MS_CLASS_WHOLE_CREATE
                 ? call->args.device
                 : ms_gpu_current(call->gpu, &context);
    if (!could_hold(call->gpu, device, call->args.bytes, 0))
        device = MS_DEVICE_NONE;
    made = device >= 0 && ms_whole_give_back(device) > 0;
    if (device >= 0)
        made |= ms_room_make(device, !made && worth_waiting(call->gpu, device, call->args.bytes), room);
    ms_section_leave(&section);
    return made;
}
