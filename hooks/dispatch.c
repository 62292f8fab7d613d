/* dispatch.c - before and after a hooked call, by class.
 *
 * Runs in the program's threads with the guard closed; takes no lock of its own and calls the vendor only
 * through gpu.h. */
#include "hooks/dispatch.h"

#include <stdatomic.h>
#include <string.h>

#include "vendor/gpu.h"
#include "hooks/follow/balance.h"
#include "hooks/follow/buffers.h"
#include "hooks/follow/communicators.h"
#include "hooks/follow/graph_memory.h"
#include "hooks/init.h"
#include "hooks/follow/ipc.h"
#include "hooks/observe/invalid_free.h"
#include "hooks/follow/no_memory.h"
#include "hooks/lookup/resolve.h"
#include "hooks/serve/limit.h"
#include "hooks/serve/serve.h"
#include "hooks/serve/serve_handles.h"
#include "hooks/follow/footprints.h"
#include "hooks/follow/uses.h"
#include "record/footprint/footprints.h"
#include "pool/stream/stream.h"

/* Primary contexts by device, learned when they are retained: reset and release name the device only. */
static _Atomic uint64_t primary_contexts[MS_DEVICES_MAX];

static uint64_t read_out(const struct ms_args *args)
{
    uint32_t narrow;
    uint64_t wide;

    if (!args->out)
        return args->given;
    if (args->out_is_32) {
        memcpy(&narrow, args->out, sizeof(narrow));
        return narrow;
    }
    memcpy(&wide, args->out, sizeof(wide));
    return wide;
}

static uint64_t block_bytes(const struct ms_args *args)
{
    uint32_t narrow;
    uint64_t wide;

    if (!args->pitch)
        return args->bytes;
    if (args->out_is_32) {
        memcpy(&narrow, args->pitch, sizeof(narrow));
        return narrow * args->height;
    }
    memcpy(&wide, args->pitch, sizeof(wide));
    return wide * args->height;
}

static const struct ms_call *outermost(const struct ms_call *call)
{
    return ms_thread.outermost ? ms_thread.outermost : call;
}

void ms_call_describe_device(const struct ms_gpu *gpu, int device)
{
    struct ms_gpu_description seen;
    struct ms_device_info info;

    if (device < 0 || device >= MS_DEVICES_MAX || ms_ledger_device_known(device))
        return;
    ms_gpu_describe(gpu, device, &seen);
    memset(&info, 0, sizeof(info));
    memcpy(info.name, seen.name, sizeof(info.name));
    memcpy(info.uuid, seen.uuid, sizeof(info.uuid));
    info.total_bytes = seen.total_bytes;
    info.granularity_bytes = seen.granularity_bytes;
    ms_ledger_device(device, &info);
}

/* A library that rounds what it was asked for asks the driver for more. */
static uint64_t requested_bytes(const struct ms_call *call, const struct ms_call *named, uint64_t bytes)
{
    if (ms_rows[named->row]->class == MS_CLASS_BUFFER_ALLOC && named->args.bytes && named->args.bytes < bytes)
        return named->args.bytes;
    return call->args.bytes ? call->args.bytes : bytes;
}

static void dispatch_record(struct ms_call *call, enum ms_space space, uint64_t key, uint64_t bytes,
                            int device, uint64_t context)
{
    struct ms_call *outer = ms_thread.outermost;
    const struct ms_call *named = outermost(call);
    enum ms_kind kind = call->args.kind;
    struct ms_block block = {.key = key,
                             .space = (uint8_t)space,
                             .bytes = bytes,
                             .requested = requested_bytes(call, named, bytes),
                             .stream = call->args.stream,
                             .thread = ms_thread_id(),
                             .kind = (uint8_t)kind,
                             .device = (int16_t)device,
                             .outlives_context = kind == MS_KIND_ASYNC || kind == MS_KIND_HANDLE ||
                                                 space == MS_SPACE_HANDLE ||
                                                 ms_rows[call->row]->class == MS_CLASS_ALLOC_ASYNC,
                             .context = context,
                             .api = named->row,
                             .stack = named->stack};

    ms_call_describe_device(call->gpu, device);
    ms_ledger_alloc(&block);
    ms_balance_grew(device);
    if (kind == MS_KIND_ASYNC)
        ms_footprints_returns_later();
    if (outer)
        outer->bytes += bytes;
}

void ms_call_record(struct ms_call *call, enum ms_space space, uint64_t key, uint64_t bytes, int device)
{
    uint64_t context;

    ms_gpu_current(call->gpu, &context);
    dispatch_record(call, space, key, bytes, device, context);
}

/* Host memory belongs to no device. Memory of a context lies on the context's device; what comes from a pool
 * or from elsewhere may lie on another, and only the driver knows. */
static int dispatch_device_of(const struct ms_call *call, uint64_t key, uint64_t *context_p)
{
    int device = ms_gpu_current(call->gpu, context_p);

    switch (call->args.kind) {
    case MS_KIND_PINNED:
    case MS_KIND_REGISTERED:
        return MS_DEVICE_NONE;
    case MS_KIND_ASYNC: /* a pool that the program names may be the host's */
        return call->args.key != MS_MEMPOOL_CURRENT && ms_gpu_is_host(call->gpu, key)
                   ? MS_DEVICE_NONE
                   : ms_gpu_device_of(call->gpu, key, device);
    case MS_KIND_IMPORTED:
        return call->args.space == MS_SPACE_ADDRESS ? ms_gpu_device_of(call->gpu, key, device) : device;
    default:
        return device;
    }
}

/* Asked of pools alone that the program names; the device's own is plain memory. */
static bool is_of_managed_pool(const struct ms_call *call, uint64_t key)
{
    return call->args.kind == MS_KIND_ASYNC && call->args.key != MS_MEMPOOL_CURRENT &&
           ms_gpu_is_managed(call->gpu, key);
}

static void after_alloc(struct ms_call *call, int status)
{
    uint64_t key, context;

    if (status != 0 || (key = read_out(&call->args)) == 0)
        return;
    int device = dispatch_device_of(call, key, &context);
    if (is_of_managed_pool(call, key))
        call->args.kind = MS_KIND_MANAGED;
    if (call->args.kind == MS_KIND_ASYNC)
        ms_mempool_seen(call->gpu, device, call->args.key);
    if (call->args.kind == MS_KIND_ASYNC && ms_graph_memory_captured(call)) {
        ms_graph_memory_node(call, key, device);
        if (ms_thread.outermost)
            ms_thread.outermost->bytes += call->args.bytes;
        return;
    }
    dispatch_record(call, call->args.space, key, block_bytes(&call->args), device, context);
}

/* Memory that was imported from a pool is freed as any other is. */
static void before_free(struct ms_call *call)
{
    if (call->args.key && !ms_import_close_begin(call) &&
        !(call->is_node = ms_graph_memory_freed_by_node(call)))
        call->found = ms_ledger_free_begin(call->args.space, call->args.key, &call->block);
}

static void after_free(struct ms_call *call, int status)
{
    if (call->object)
        ms_import_close_end(call, status);
    else if (call->found && status != 0)
        ms_ledger_free_abort(&call->block);
    else if (status == 0 && call->found)
        ms_graph_memory_freed(call->args.key);
    else if (call->found || !call->args.key)
        return;
    else if (status != 0)
        ms_invalid_free_of_call(call, (enum ms_space)call->args.space, call->args.key);
    else if (!ms_graph_memory_is_node(call->args.key))
        ms_ledger_unseen_free();
}

static void after_buffer_free(struct ms_call *call, int status)
{
    if (status != 0)
        ms_invalid_free_of_buffer(call);
}

static void after_handle_create(struct ms_call *call, int status)
{
    if (status == 0)
        ms_handle_created(call);
}

static void before_device_end(struct ms_call *call)
{
    ms_recycled_device_ending(call->gpu, -1);
}

static void after_handle_retain(struct ms_call *call, int status)
{
    if (status == 0)
        ms_handle_retained(call);
}

static void after_import(struct ms_call *call, int status)
{
    if (status == 0)
        ms_import_opened(call);
}

static void before_import_end(struct ms_call *call)
{
    ms_import_close_begin(call);
}

static void after_graph_node(struct ms_call *call, int status)
{
    if (status == 0 && ms_uses_wanted())
        ms_use_of_node(call->gpu, (const CUgraphNodeParams *)(uintptr_t)call->args.given);
    if (status != 0 || call->args.kind != MS_KIND_GRAPH) /* a node of another type */
        return;
    ms_graph_memory_node(call, read_out(&call->args), call->args.device);
    if (ms_thread.outermost)
        ms_thread.outermost->bytes += call->args.bytes;
}

static void context_died(uint64_t context)
{
    if (!context)
        return;
    ms_gpu_context_ended(context);
    ms_ipc_context_ended(context);
    ms_imports_context_ended(context);
    ms_ledger_context_died(context);
    ms_ledger_footprints_died(context);
    ms_layouts_forget();
    ms_graph_memory_query();
}

static void before_context_end(struct ms_call *call)
{
    ms_serve_context_ending(call->args.key);
}

static void after_context_end(struct ms_call *call, int status)
{
    ms_serve_context_ended(call->args.key, status == 0);
    if (status == 0)
        context_died(call->args.key);
}

static _Atomic uint64_t *primary_of(const struct ms_call *call)
{
    int device = call->args.device;
    return device >= 0 && device < MS_DEVICES_MAX ? &primary_contexts[device] : NULL;
}

/* Of vendors without contexts that a program sees: each device has the one. */
static bool has_one_context(const struct ms_call *call)
{
    return call->gpu && call->gpu->vendor && call->gpu->vendor->context_of;
}

/* The context that a device's end takes with it. */
static uint64_t primary_context(const struct ms_call *call)
{
    _Atomic uint64_t *primary = primary_of(call);

    if (has_one_context(call))
        return call->gpu->vendor->context_of(call->gpu, call->args.device);
    return primary ? atomic_load_explicit(primary, memory_order_relaxed) : 0;
}

static void after_primary_retain(struct ms_call *call, int status)
{
    _Atomic uint64_t *primary = primary_of(call);

    if (status == 0 && primary)
        atomic_store_explicit(primary, read_out(&call->args), memory_order_relaxed);
    if (status == 0)
        ms_pool_primary(call->args.device, read_out(&call->args));
    if (status == 0)
        ms_footprints_primary_end(call, read_out(&call->args));
}

static void after_green_create(struct ms_call *call, int status)
{
    if (status == 0)
        ms_pool_green(call->args.device, primary_context(call));
}

static void before_primary_end(struct ms_call *call)
{
    if (call->args.device >= 0)
        ms_recycled_device_ending(call->gpu, call->args.device);
    ms_serve_context_ending(primary_context(call));
}

static void primary_ended(struct ms_call *call, bool dead)
{
    uint64_t context = primary_context(call);

    ms_serve_context_ended(context, dead);
    if (dead && !has_one_context(call))
        ms_pool_primary(call->args.device, 0);
    if (dead)
        context_died(context);
}

static void after_primary_reset(struct ms_call *call, int status)
{
    primary_ended(call, status == 0);
}

static void after_primary_end(struct ms_call *call, int status)
{
    primary_ended(call, status == 0 && ms_gpu_primary_is_dead(call->gpu, call->args.device));
}

static void after_lookup(struct ms_call *call, int status)
{
    const struct ms_args *args = &call->args;

    if (status == 0 && args->pfn && *args->pfn)
        *args->pfn = ms_resolve_driver_pointer(*args->pfn, args->name, args->version, args->flags);
}

static const struct {
    void (*before)(struct ms_call *);
    void (*after)(struct ms_call *, int);
    bool takes_stack;
} classes[MS_CLASS_COUNT] = {
#define MS_CLASS(name, before, after, takes_stack) [MS_CLASS_##name] = {before, after, takes_stack},
#include "hooks/table/classes.def"
};

/* Frames that record, as opposed to those that name and those that look up. A function called from inside one
 * is the vendor's own business, whichever interface's it is; lookups are answered wherever they come from. */
static bool is_recording_class(uint16_t row)
{
    uint8_t class = ms_rows[row]->class;
    return ms_families[ms_rows[row]->api].vendor != NULL && class != MS_CLASS_LOOKUP &&
           class != MS_CLASS_ENTRY_POINT;
}

/* Each block decides for itself, by its size, which only the driver frame knows; the stack is still that of
 * the outermost frame, whose function has not returned. */
ms_stack_id ms_call_stack_sampled(struct ms_call *outer, uint64_t bytes)
{
    if (classes[ms_rows[outer->row]->class].takes_stack)
        outer->stack = ms_stack_sampled(bytes) ? ms_stack_capture(outer->frame, outer->caller) : 0;
    return outer->stack;
}

/* A request that a stream captures takes no memory yet. */
static void reserve(struct ms_call *call)
{
    if (call->answered || (call->args.kind == MS_KIND_ASYNC && ms_graph_memory_captured(call)) ||
        ms_limit_reserve(call))
        return;
    call->answered = true;
    call->status = ms_families[ms_rows[call->row]->api].no_memory[0];
}

/* Memory is counted from before the vendor is asked until it has that back: what comes and goes meanwhile
 * lies in the thread's purse (quota.h). */
static void call_before(struct ms_call *call)
{
    uint8_t class = ms_rows[call->row]->class;
    bool is_bounded = call->records && ms_quota_is_bounded();

    if (is_bounded)
        ms_quota_call_begins();
    if (classes[class].before)
        classes[class].before(call);
    if (call->records && ms_serve_is_on())
        ms_serve_before_growth(call);
    if (is_bounded)
        reserve(call);
}

void ms_call_begin(struct ms_call *call)
{
    uint8_t class = ms_rows[call->row]->class;
    bool nested = ms_call_around(call) != NULL;

    call->records = is_recording_class(call->row);
    if (ms_thread.depth > 0 || !ms_init_active() || (call->records && nested && ms_thread.recording)) {
        call->passes = true;
        return;
    }
    /* Of a thread that may be cancelled anywhere, cancellation stays off over the vendor's function, for it
     * would leave blocks that nobody counted; the outermost frame sees to it for those nested in it. */
    if (nested)
        ms_hook_scope_enter_nested(&call->scope);
    else
        ms_hook_scope_enter_brief(&call->scope);
    if (class != MS_CLASS_LOOKUP && class != MS_CLASS_ENTRY_POINT)
        ms_ledger_touch();
    if (!nested) {
        call->left = ms_thread.outermost;
        call->left_recording = ms_thread.recording;
        ms_thread.outermost = call;
        ms_thread.recording = 0;
        if (classes[class].takes_stack && !ms_stack_sampling())
            call->stack = ms_stack_capture(call->frame, call->caller);
    }
    if (call->records) {
        ms_thread.recording = 1;
        ms_balance_call_begins();
        if (classes[class].takes_stack && ms_stack_sampling())
            ms_call_stack(ms_thread.outermost, call->args.bytes);
    }
    call_before(call);
    ms_guard_leave();
    errno = call->scope.saved_errno;
}

void ms_call_end(struct ms_call *call, int status)
{
    uint8_t class = ms_rows[call->row]->class;

    call->open = 0;
    if (call->passes)
        return;
    call->scope.saved_errno = errno;
    ms_guard_enter();
    /* Forked in the middle of the call, by a signal handler perhaps: the record is the parent's. */
    bool owner = ms_init_owner();
    if (classes[class].after && MS_LIKELY(owner))
        classes[class].after(call, status);
    if (call->records && MS_LIKELY(owner))
        ms_quota_call_ends();
    if (MS_UNLIKELY(status != 0) && MS_LIKELY(owner)) {
        ms_no_memory_in_call(call, status);
        ms_invalid_free_forked(call, status);
    }
    if (call->records && MS_LIKELY(owner)) {
        ms_balance_see(call->gpu, call->row, call->frame, call->caller);
        ms_balance_call_ends();
    }
    if (call->records)
        ms_thread.recording = 0;
    if (MS_LIKELY(owner))
        ms_recycled_see_to_rest(call);
    if (ms_thread.outermost == call) {
        if (class != MS_CLASS_LOOKUP && class != MS_CLASS_ENTRY_POINT && MS_LIKELY(owner))
            ms_ledger_call(call->row, status == 0, call->served, call->bytes);
        ms_thread.outermost = call->left;
        ms_thread.recording = call->left_recording;
        ms_hook_scope_leave_brief(&call->scope);
    } else {
        ms_hook_scope_leave_nested(&call->scope);
    }
}
