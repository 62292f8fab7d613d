/* no_memory.c - see no_memory.h. Runs in the program's threads, inside a hook scope. No lock of its own, no
 * allocation; asks the driver, in visits, what it has left. */
#include "hooks/follow/no_memory.h"

#include <stdlib.h>
#include <string.h>

#include "vendor/gpu.h"
#include "hooks/follow/balance.h"
#include "hooks/init.h"
#include "hooks/lookup/listeners.h"
#include "hooks/lookup/resolve.h"
#include "hooks/serve/serve.h"

_Static_assert((int)MS_ASKED_IMPORTED == (int)MS_ASKED_DEVICE + (int)MS_KIND_IMPORTED,
               "oom.def has each kind");

static enum ms_asked asked_by_class(unsigned class, const struct ms_args *args)
{
    if (ms_class_allocates(class))
        return ms_asked_of_kind(args->kind);
    switch (class) {
    case MS_CLASS_IMPORT:
    case MS_CLASS_IPC_OPEN:
        return MS_ASKED_IMPORTED;
    case MS_CLASS_HANDLE_MAP:
    case MS_CLASS_HANDLE_UNMAP:
    case MS_CLASS_RECYCLED_MAP:
        return MS_ASKED_MAPPING;
    case MS_CLASS_CONTEXT_CREATE:
    case MS_CLASS_PRIMARY_RETAIN:
    case MS_CLASS_GREEN_CREATE:
    case MS_CLASS_GREEN:
        return MS_ASKED_CONTEXT;
    case MS_CLASS_MODULE_LOAD:
        return MS_ASKED_CODE;
    case MS_CLASS_STREAM_CREATE:
        return MS_ASKED_STREAM;
    case MS_CLASS_GRAPH_NODE:
    case MS_CLASS_GRAPH:
    case MS_CLASS_CAPTURE:
        return MS_ASKED_GRAPH;
    case MS_CLASS_MEMPOOL:
        return MS_ASKED_MEMPOOL;
    case MS_CLASS_LAUNCH:
        return MS_ASKED_LAUNCH;
    default:
        return MS_ASKED_OTHER;
    }
}

/* The device that was asked: a context before it is there, and memory behind a handle, on the device that the
 * program names. */
static int no_memory_device_of(unsigned class, enum ms_asked asked, const struct ms_gpu *gpu,
                               const struct ms_args *args)
{
    uint64_t context;

    if (asked == MS_ASKED_PINNED || asked == MS_ASKED_REGISTERED)
        return MS_DEVICE_NONE;
    if (class == MS_CLASS_CONTEXT_CREATE || class == MS_CLASS_PRIMARY_RETAIN || asked == MS_ASKED_HANDLE)
        return args->device >= 0 && args->device < MS_DEVICES_MAX ? args->device : MS_DEVICE_NONE;
    return ms_gpu_current(gpu, &context);
}

static void no_memory_remember(unsigned row, unsigned named, const struct ms_gpu *gpu,
                               const struct ms_args *args, ms_stack_id stack, const void *frame,
                               const void *caller)
{
    unsigned class = ms_rows[row]->class;
    enum ms_asked asked = args->asked ? (enum ms_asked)args->asked : asked_by_class(class, args);
    struct ms_oom_asked what = {.kind = asked,
                                .device = no_memory_device_of(class, asked, gpu, args),
                                .bytes = args->bytes,
                                .stream = MS_OOM_NO_STREAM};
    struct ms_oom_view view;

    if (what.device >= 0)
        ms_call_describe_device(gpu, what.device);
    ms_balance_look(gpu, row, frame, caller);
    view = ms_serve_oom_view(gpu, &what);
    ms_ledger_oom((uint16_t)named, what.device, what.bytes, stack, &view);
}

/* A failure is rare enough to be looked at in full, even where stacks are sampled. */
static ms_stack_id no_memory_stack_of(const struct ms_call *named)
{
    return named->stack ? named->stack : ms_stack_capture(named->frame, named->caller);
}

/* A frame that only names what is nested in it keeps no arguments (name.h). */
static bool keeps_arguments(unsigned class)
{
    return class != MS_CLASS_NAME && class != MS_CLASS_NAME_ALLOC && class != MS_CLASS_COMMUNICATOR;
}

void ms_no_memory_in_call(struct ms_call *call, int status)
{
    static const struct ms_args none;
    struct ms_call *named = ms_thread.outermost ? ms_thread.outermost : call;
    const struct ms_gpu *gpu = call->gpu ? call->gpu : ms_library_driver();

    if (!ms_is_no_memory(ms_rows[call->row]->api, status) || named->told)
        return;
    named->told = true;
    no_memory_remember(call->row, named->row, gpu,
                       keeps_arguments(ms_rows[call->row]->class) ? &call->args : &none,
                       no_memory_stack_of(named), call->frame, call->caller);
}

/* While a tool listens for launches nothing is asked on their behalf. */
static bool is_left_to_tools(unsigned row)
{
    return ms_rows[row]->class == MS_CLASS_LAUNCH && ms_listener_is_there(false);
}

MS_NOINLINE void ms_no_memory(unsigned row, const struct ms_gpu *gpu, const struct ms_args *args,
                              const void *frame, const void *caller)
{
    struct ms_call *outer = ms_call_around(__builtin_frame_address(0));
    struct ms_hook_scope scope;

    if (ms_thread.depth > 0 || !ms_init_active() || is_left_to_tools(row) ||
        (outer && (outer->told || ms_thread.recording)))
        return;
    ms_hook_scope_enter(&scope);
    ms_ledger_touch();
    if (outer)
        outer->told = true;
    no_memory_remember(row, outer ? outer->row : row, gpu, args,
                       outer ? no_memory_stack_of(outer) : ms_stack_capture(frame, caller), frame, caller);
    ms_hook_scope_leave(&scope);
}

/* The segments of PyTorch grow where it maps them, piece by piece. */
static bool pytorch_is_expandable(void)
{
    static const char *const names[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
                                        "PYTORCH_HIP_ALLOC_CONF"};
    bool is_expandable = false;

    for (unsigned i = 0; i < MS_ARRAY_LEN(names); i++) {
        const char *value = getenv(names[i]);

        is_expandable |= value && strstr(value, "expandable_segments:True");
    }
    return is_expandable;
}

MS_NOINLINE void ms_no_memory_inner(enum ms_row row, const struct ms_inner_report *report, const void *frame,
                                    const void *caller)
{
    struct ms_oom_asked asked = {.kind = MS_ASKED_INNER,
                                 .bytes = (uint64_t)report->bytes,
                                 .stream = MS_OOM_NO_STREAM,
                                 .cache_bytes = report->reserved};
    struct ms_hook_scope scope;
    struct ms_oom_view view;

    if (ms_thread.depth > 0 || !ms_init_active() || report->bytes <= 0 ||
        !ms_inner_device(report->device, &asked.device))
        return;
    ms_hook_scope_enter(&scope);
    ms_ledger_touch();
    if (report->reserved > report->allocated)
        asked.cache_free_bytes = report->reserved - report->allocated;
    asked.is_expandable = pytorch_is_expandable();
    view = ms_serve_oom_view(ms_library_driver(), &asked);
    ms_ledger_oom((uint16_t)row, ms_device_inner(asked.device), asked.bytes, ms_stack_capture(frame, caller),
                  &view);
    ms_hook_scope_leave(&scope);
}
