/* serve_call.h - what every call that the pool answers does before and after: for serve.c and serve_stream.c
 * alone.
 *
 * Floor 3. A hook scope around it, one event in the record, under the name and with the stack of the
 * outermost frame. */
#ifndef MS_HOOKS_SERVE_SERVE_CALL_H
#define MS_HOOKS_SERVE_SERVE_CALL_H

#include <stdatomic.h>

#include "vendor/gpu.h"
#include "hooks/init.h"
#include "hooks/serve/serve.h"
#include "pool/api/pool.h"

/* Inside a runtime's hook cancellation is deferred already. */
static MS_INLINE void enter(struct ms_hook_scope *scope, const struct ms_call *outer)
{
    if (outer) {
        ms_hook_scope_enter_nested(scope);
    } else {
        ms_hook_scope_enter_brief(scope);
        ms_ledger_touch();
    }
}

/* The record has asked for the time meanwhile. A rest is seen to at once: after this call the program may
 * give the device work. */
static MS_INLINE void leave(struct ms_hook_scope *scope, const struct ms_call *outer)
{
    ms_serve_see_to();
    if (outer)
        ms_hook_scope_leave_nested(scope);
    else
        ms_hook_scope_leave_brief(scope);
}

/* The program has its answer: count the call, which is the outermost frame's if there is one. */
static MS_INLINE void count(struct ms_call *outer, const struct ms_gpu *gpu, unsigned row, int status,
                            uint64_t bytes)
{
    if (!outer && MS_LIKELY(status == 0)) {
        ms_ledger_call_answered((uint16_t)row, bytes);
    } else if (!outer) {
        ms_ledger_call((uint16_t)row, false, true, bytes);
    } else {
        outer->served = true;
        outer->driver = gpu;
        outer->bytes += bytes;
    }
}

struct request {
    unsigned row;
    const struct ms_gpu *gpu;
    const void *frame, *caller;
    uint64_t requested; /* by the program; `bytes` is what the vendor would be asked for */
    uint64_t bytes;
    uint64_t stream; /* of a request in stream order */
};

/** serve.c: where MEMSHIM_USES is on, by whom a block was freed, before anybody can have it. */
void ms_serve_note_free(uint64_t address, const struct ms_call *outer, const void *frame, const void *caller);
/** serve.c: the pool has no memory for it; `status` is the program's answer. */
void ms_serve_refuse(const struct request *request, struct ms_call *outer, uint64_t context, int device,
                     int status);

/* The stack of a call that is nobody's inside. */
static MS_INLINE ms_stack_id ms_serve_stack(uint64_t bytes, const void *frame, const void *caller)
{
    if (ms_stack_sampling() && !ms_stack_sampled(bytes))
        return 0;
    return ms_stack_capture(frame, caller);
}

static MS_INLINE ms_stack_id stack_of(const struct request *request, struct ms_call *outer)
{
    return outer ? ms_call_stack(outer, request->bytes)
                 : ms_serve_stack(request->bytes, request->frame, request->caller);
}

static MS_INLINE void record(const struct request *request, struct ms_call *outer,
                             const struct ms_pool_block *given)
{
    const struct ms_block block MS_CACHELINE = {.key = given->address,
                                                .space = MS_SPACE_ADDRESS,
                                                .bytes = request->bytes,
                                                .requested = request->requested,
                                                .context = given->context,
                                                .thread = ms_thread_id(),
                                                .kind = given->ordered ? MS_KIND_ASYNC : MS_KIND_DEVICE,
                                                .stream = request->stream,
                                                .outlives_context = given->ordered,
                                                .device = (int16_t)given->device,
                                                .api = outer ? outer->row : (uint16_t)request->row,
                                                .stack = stack_of(request, outer)};

    ms_pool_set_record_id(given, ms_ledger_serve(&block));
}

#endif
