/* footprints.c - how much of a device goes to contexts and to modules: see footprints.h.
 *
 * Runs in the program's threads, inside a hook scope, with no lock held; asks the driver what is free, before
 * and after. Knows of itself only whether there ever was memory that goes back to the device by itself. */
#include "hooks/follow/footprints.h"

#include <stdatomic.h>

#include "vendor/context_scope.h"
#include "hooks/follow/balance.h"
#include "hooks/follow/graph_memory.h"
#include "hooks/init.h"
#include "hooks/serve/neighbours.h"
#include "hooks/follow/uses.h"
#include "record/footprint/footprints.h"

/* Of the context's device; false if the driver cannot say. */
static bool footprints_query(const struct ms_gpu *gpu, uint64_t context, size_t *free_p, size_t *total_p)
{
    struct ms_context_scope visit;
    bool known;

    if (!gpu || !gpu->mem_get_info || !context)
        return false;
    ms_context_scope_begin(&visit, gpu, context);
    known = ms_gpu_context_now(gpu) == context && gpu->mem_get_info(free_p, total_p) == CUDA_SUCCESS;
    ms_context_scope_end(&visit);
    return known;
}

static _Atomic bool returns_later;

void ms_footprints_returns_later(void)
{
    atomic_store_explicit(&returns_later, true, memory_order_relaxed);
}

enum { TRIES = 3 };

/* Looks at all that can change between two looks: what is free of the device, and what of it is this
 * process's, of one moment if that can be had. False if the driver cannot say. */
static bool footprints_look(struct ms_look *look_p, const struct ms_gpu *gpu, uint64_t context)
{
    struct ms_balance balance = {.asked_ns = 0};
    uint64_t others = ms_neighbours_use(gpu, look_p->device);
    bool still = false;

    look_p->others_least = look_p->others_most = others;
    for (int i = 0; i < TRIES && !still; i++) {
        look_p->since = ms_balance_stillness(look_p->device);
        if (!footprints_query(gpu, context, &look_p->left, &look_p->total))
            return false;
        still =
            ms_balance_of(look_p->device, &balance) && ms_balance_was_still(&look_p->since, look_p->device);
    }
    others = ms_neighbours_use(gpu, look_p->device); /* they take and give meanwhile */
    if (others < look_p->others_least)
        look_p->others_least = others;
    if (others > look_p->others_most)
        look_p->others_most = others;
    look_p->held = ms_balance_known(&balance);
    look_p->since.is_still = still;
    return true;
}

/* Before: what is free where the calling thread is, if that is the device. */
static void look_before(struct ms_call *call, int device)
{
    uint64_t context;

    call->look = (struct ms_look){.device = device};
    if (device >= 0 && ms_gpu_current(call->gpu, &context) == device)
        call->look.is_known = footprints_look(&call->look, call->gpu, context);
}

/* True if nothing else of this process can have taken or given back memory of the device between two looks:
 * no call was under way, what is held is the same, and all that was in use was held, or nothing goes back by
 * itself. */
static bool footprints_is_alone(const struct ms_look *before, const struct ms_look *after)
{
    bool all_held = before->total - before->left == before->held;

    return after->since.is_still && ms_balance_was_still(&before->since, before->device) &&
           after->held == before->held &&
           (all_held || !(atomic_load_explicit(&returns_later, memory_order_relaxed) ||
                          atomic_load_explicit(&ms_graph_memory_any, memory_order_relaxed)));
}

/* By what more of the device is gone than others of this process's calls took of it meanwhile, or gave back,
 * and than other processes say that they did. */
static uint64_t taken_between(const struct ms_look *before, const struct ms_look *after)
{
    uint64_t was = before->left + before->held + before->others_most,
             is = after->left + after->held + after->others_least;

    return was > is ? was - is : 0;
}

static ms_stack_id footprints_stack_of(const struct ms_call *call)
{
    const struct ms_call *outer = ms_thread.outermost ? ms_thread.outermost : call;

    return outer->stack ? outer->stack : ms_stack_capture(outer->frame, outer->caller);
}

/* After: what is free now tells what was taken. Without a look before it is what nobody of ours holds, nor
 * any process on the device's page, and no more than contexts of the device took that could be told. */
static void footprints_take(struct ms_call *call, enum ms_footprint kind, uint64_t context, uint64_t module)
{
    const struct ms_look *before = &call->look;
    struct ms_look after = {.device = before->device};
    uint64_t least = ms_ledger_taken_least(before->device);
    struct ms_footprint_event taking = {.kind = kind,
                                        .context = context,
                                        .module = module,
                                        .device = (int16_t)before->device,
                                        .thread = ms_thread_id(),
                                        .api = ms_thread.outermost ? ms_thread.outermost->row : call->row};

    if (!footprints_look(&after, call->gpu, context))
        return;
    if (before->is_known) {
        taking.is_exact = footprints_is_alone(before, &after);
        taking.bytes = taken_between(before, &after);
    } else {
        uint64_t in_use = after.total - after.left;
        uint64_t told = after.held + after.others_least;
        taking.bytes = in_use > told ? in_use - told : 0;
        taking.bytes = least < taking.bytes ? least : taking.bytes;
    }
    if (kind == MS_FOOTPRINT_MODULE && !taking.bytes)
        return;
    taking.stack = footprints_stack_of(call);
    ms_call_describe_device(call->gpu, before->device);
    ms_ledger_footprint_grew(&taking);
    if (kind == MS_FOOTPRINT_CONTEXT)
        ms_balance_scan(call->gpu, before->device, context);
}

static bool has_hidden_contexts(const struct ms_gpu *gpu)
{
    return gpu->vendor && gpu->vendor->maker != MS_MAKER_CUDA;
}

/* Of what is untracked now, what is known not to be of a context that is seen for the first time: what other
 * processes say that they have, others' memory that is mapped here, or all that was untracked when the driver
 * was asked before. */
static uint64_t not_taken(const struct ms_gpu *gpu, int device, bool is_first)
{
    struct ms_balance before;
    uint64_t imported = ms_ledger_imported(device) + ms_neighbours_use(gpu, device);

    if (is_first || !ms_balance_read(device, MS_BALANCE_LATEST, &before))
        return imported;
    return before.untracked_bytes > imported ? before.untracked_bytes : imported;
}

/* A second one of a device is another runtime's in the same process, which AMD's alone tells apart. */
static bool is_new(const struct ms_gpu *gpu, int device, uint64_t context, bool is_first)
{
    return is_first || (gpu->vendor->maker == MS_MAKER_HIP && !ms_ledger_taken_by(device, context));
}

bool ms_footprints_first_seen(const struct ms_gpu *gpu, int device, uint64_t context,
                              const struct ms_balance *balance, unsigned row, const void *frame,
                              const void *caller)
{
    const struct ms_call *outer = ms_thread.outermost;
    bool is_first = ms_ledger_taken_least(device) == UINT64_MAX;
    uint64_t others = not_taken(gpu, device, is_first);
    struct ms_footprint_event taking = {.kind = MS_FOOTPRINT_CONTEXT,
                                        .context = context,
                                        .device = (int16_t)device,
                                        .thread = ms_thread_id(),
                                        .bytes = balance->untracked_bytes - (others < balance->untracked_bytes
                                                                                 ? others
                                                                                 : balance->untracked_bytes)};

    if (!has_hidden_contexts(gpu) || !context || (!outer && !frame) ||
        !is_new(gpu, device, context, is_first))
        return false;
    taking.api = outer ? outer->row : (uint16_t)row;
    taking.stack = outer && outer->stack ? outer->stack
                   : outer               ? ms_stack_capture(outer->frame, outer->caller)
                                         : ms_stack_capture(frame, caller);
    ms_ledger_footprint_grew(&taking);
    return true;
}

void ms_footprints_primary_begin(struct ms_call *call)
{
    if (ms_gpu_primary_is_dead(call->gpu, call->args.device))
        look_before(call, call->args.device);
    else
        call->look.device = MS_DEVICE_NONE;
}

void ms_footprints_primary_end(struct ms_call *call, uint64_t context)
{
    if (call->look.device >= 0)
        footprints_take(call, MS_FOOTPRINT_CONTEXT, context, 0);
}

void ms_footprints_begin(struct ms_call *call)
{
    uint64_t context;
    int device = call->args.device;

    /* a module goes where the thread is */
    if (ms_rows[call->row]->class != MS_CLASS_CONTEXT_CREATE)
        device = ms_gpu_current(call->gpu, &context);
    look_before(call, device);
}

void ms_footprints_context_end(struct ms_call *call, int status)
{
    uint64_t context;

    if (status == 0 && ms_gpu_current(call->gpu, &context) == call->look.device)
        footprints_take(call, MS_FOOTPRINT_CONTEXT, context, 0);
}

void ms_footprints_module_end(struct ms_call *call, int status)
{
    uint64_t context;

    if (status == 0 && call->look.is_known && ms_gpu_current(call->gpu, &context) == call->look.device)
        footprints_take(call, MS_FOOTPRINT_MODULE, context, *(const uint64_t *)call->args.out);
}

void ms_footprints_module_gone(struct ms_call *call, int status)
{
    if (status == 0)
        ms_ledger_module_gone(call->args.key);
    if (status == 0)
        ms_layouts_forget();
}

static void footprints_hooks_reset(void)
{
    atomic_store_explicit(&returns_later, false, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_HOOKS, footprints_hooks_reset);
