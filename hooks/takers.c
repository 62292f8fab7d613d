/* takers.c - how much of a device goes to contexts and to modules: see takers.h.
 *
 * Runs in the program's threads, inside a section, with no lock held; asks the driver what is free, before
 * and after. No state. */
#include "hooks/takers.h"

#include "gpu/visit.h"
#include "hooks/balance.h"
#include "hooks/init.h"
#include "hooks/uses.h"
#include "ledger/takers.h"

/* Of the context's device; false if the driver cannot say. */
static bool ask(const struct ms_gpu *gpu, uint64_t context, size_t *free_p, size_t *total_p)
{
    struct ms_visit visit;
    bool known;

    if (!gpu || !gpu->mem_get_info || !context)
        return false;
    ms_visit_begin(&visit, gpu, context);
    known = ms_gpu_context_now(gpu) == context && gpu->mem_get_info(free_p, total_p) == CUDA_SUCCESS;
    ms_visit_end(&visit);
    return known;
}

/* What of the device is this process's, as far as memshim knows: all that can change between two looks. */
static uint64_t held(int device)
{
    struct ms_balance balance;

    ms_balance_of(device, &balance);
    return ms_balance_known(&balance);
}

/* Before: what is free where the calling thread is, if that is the device. */
static void look(struct ms_call *call, int device)
{
    uint64_t context;
    size_t total;

    call->look = (struct ms_look){.device = device};
    if (device < 0 || ms_gpu_current(call->gpu, &context) != device)
        return;
    call->look.held = held(device);
    call->look.is_known = ask(call->gpu, context, &call->look.left, &total);
}

static ms_stack_id stack_of(const struct ms_call *call)
{
    const struct ms_call *outer = ms_thread.outermost ? ms_thread.outermost : call;

    return outer->stack ? outer->stack : ms_stack_capture(outer->frame, outer->caller);
}

/* After: what is free now tells what was taken. Without a look before it is what nobody of ours holds, and no
 * more than contexts of the device took that could be told. */
static void take(struct ms_call *call, enum ms_taker taker, uint64_t context, uint64_t module)
{
    const struct ms_look *before = &call->look;
    size_t left = 0, total = 0;
    uint64_t now, least = ms_ledger_taken_least(before->device);
    struct ms_taking taking = {.taker = taker,
                               .context = context,
                               .module = module,
                               .device = (int16_t)before->device,
                               .thread = ms_thread_id(),
                               .api = ms_thread.outermost ? ms_thread.outermost->row : call->row};

    if (!ask(call->gpu, context, &left, &total))
        return;
    now = held(before->device);
    if (before->is_known) {
        taking.is_exact = now == before->held;
        taking.bytes = before->left > left ? before->left - left : 0;
        taking.bytes -= now <= before->held                 ? 0
                        : taking.bytes < now - before->held ? taking.bytes
                                                            : now - before->held;
    } else {
        taking.bytes = total - left > now ? total - left - now : 0;
        taking.bytes = least < taking.bytes ? least : taking.bytes;
    }
    if (taker == MS_TAKER_MODULE && !taking.bytes)
        return;
    taking.stack = stack_of(call);
    ms_call_describe_device(call->gpu, before->device);
    ms_ledger_took(&taking);
    if (taker == MS_TAKER_CONTEXT)
        ms_balance_look(call->gpu, 0, NULL, NULL);
}

static bool has_hidden_contexts(const struct ms_gpu *gpu)
{
    return gpu->vendor && gpu->vendor->maker != MS_MAKER_CUDA;
}

bool ms_takers_first_seen(const struct ms_gpu *gpu, int device, uint64_t context,
                          const struct ms_balance *balance, unsigned row, const void *frame,
                          const void *caller)
{
    const struct ms_call *outer = ms_thread.outermost;
    uint64_t others = ms_ledger_imported(device);
    struct ms_taking taking = {.taker = MS_TAKER_CONTEXT,
                               .context = context,
                               .device = (int16_t)device,
                               .thread = ms_thread_id(),
                               .bytes =
                                   balance->untracked_bytes -
                                   (others < balance->untracked_bytes ? others : balance->untracked_bytes)};

    if (!has_hidden_contexts(gpu) || !context || (!outer && !frame) ||
        ms_ledger_taken_least(device) != UINT64_MAX)
        return false;
    taking.api = outer ? outer->row : (uint16_t)row;
    taking.stack = outer && outer->stack ? outer->stack
                   : outer               ? ms_stack_capture(outer->frame, outer->caller)
                                         : ms_stack_capture(frame, caller);
    ms_ledger_took(&taking);
    return true;
}

void ms_takers_primary_begin(struct ms_call *call)
{
    if (ms_gpu_primary_is_dead(call->gpu, call->args.device))
        look(call, call->args.device);
    else
        call->look.device = MS_DEVICE_NONE;
}

void ms_takers_primary_end(struct ms_call *call, uint64_t context)
{
    if (call->look.device >= 0)
        take(call, MS_TAKER_CONTEXT, context, 0);
}

void ms_takers_begin(struct ms_call *call)
{
    uint64_t context;
    int device = call->args.device;

    /* a module goes where the thread is */
    if (ms_rows[call->row]->class != MS_CLASS_CONTEXT_CREATE)
        device = ms_gpu_current(call->gpu, &context);
    look(call, device);
}

void ms_takers_context_end(struct ms_call *call, int status)
{
    uint64_t context;

    if (status == 0 && ms_gpu_current(call->gpu, &context) == call->look.device)
        take(call, MS_TAKER_CONTEXT, context, 0);
}

void ms_takers_module_end(struct ms_call *call, int status)
{
    uint64_t context;

    if (status == 0 && call->look.is_known && ms_gpu_current(call->gpu, &context) == call->look.device)
        take(call, MS_TAKER_MODULE, context, *(const uint64_t *)call->args.out);
}

void ms_takers_module_gone(struct ms_call *call, int status)
{
    if (status == 0)
        ms_ledger_module_gone(call->args.key);
    if (status == 0)
        ms_layouts_forget();
}
