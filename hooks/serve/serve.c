/* serve.c - a request and a free that the pool answers: the slow path.
 *
 * Runs in the program's threads, inside a hook scope. No lock of its own, no allocation. The steps of a
 * request are the hook scope, the driver's answer to "which context?", the pool, the record. It is gone in
 * the driver's hook, where a call nested in a runtime's hook is recorded under that hook's name and stack; or
 * in the runtime's hook already (runtime.h), and then only with what the pool has at hand. */
#include "hooks/serve/serve.h"

#include <stdatomic.h>
#include <string.h>

#include "base/options/options.h"
#include "vendor/gpu.h"
#include "hooks/serve/answer.h"
#include "hooks/follow/balance.h"
#include "hooks/init.h"
#include "hooks/follow/ipc.h"
#include "hooks/observe/invalid_free.h"
#include "hooks/serve/serve_call.h"
#include "record/live/uses.h"
#include "pool/stream/stream.h"

static _Atomic uint64_t dropped_frees;

uint64_t ms_serve_dropped_frees(void)
{
    return atomic_load(&dropped_frees);
}

MS_NOINLINE void ms_serve_refuse(const struct request *request, struct ms_call *outer, uint64_t context,
                                 int device, int status)
{
    bool is_async = ms_rows[request->row]->class == MS_CLASS_ALLOC_ASYNC;
    const struct ms_oom_asked asked = {.kind = is_async ? MS_ASKED_ASYNC : MS_ASKED_DEVICE,
                                       .device = device,
                                       .bytes = request->bytes,
                                       .stream = is_async ? request->stream : MS_OOM_NO_STREAM};
    struct ms_oom_view view;
    ms_stack_id stack;

    ms_serve_status(context, status);
    if (status != CUDA_ERROR_OUT_OF_MEMORY)
        return;
    ms_balance_look(request->gpu, request->row, request->frame, request->caller);
    view = ms_serve_oom_view(request->gpu, &asked);
    if (outer)
        outer->told = true;
    stack = outer ? outer->stack : 0;
    if (!stack)
        stack = outer ? ms_stack_capture(outer->frame, outer->caller)
                      : ms_stack_capture(request->frame, request->caller);
    ms_ledger_oom(outer ? outer->row : (uint16_t)request->row, device, request->bytes, stack, &view);
}

/* True if the driver would refuse a call just now, whatever is asked for: without a context or with a dead
 * one, after an error that stays, in a host function, in a capture that forbids it. It is asked to free
 * nothing. */
static bool is_refused(const struct ms_gpu *gpu, int *status_p)
{
    *status_p = gpu->mem_free ? (int)gpu->mem_free(MS_NOWHERE) : CUDA_SUCCESS;
    return *status_p != CUDA_SUCCESS && *status_p != CUDA_ERROR_INVALID_VALUE;
}

/* Under MEMSHIM_FREE=strict what the driver forbids just now stays forbidden: then it is the driver that
 * answers. */
static MS_INLINE bool is_served(const struct ms_gpu *gpu, uint64_t *context_p, int *device_p)
{
    int status;

    *device_p = ms_gpu_current(gpu, context_p);
    return *context_p && *device_p >= 0 && ms_serve_context(gpu, *context_p, *device_p) &&
           !(MS_UNLIKELY(ms_serve_strictly) && is_refused(gpu, &status));
}

static MS_INLINE bool ask_pool(const struct request *request, struct ms_call *outer, uint64_t context,
                               int device, enum ms_pool_how how, uint64_t *out, int *status_p)
{
    struct ms_pool_block given;

    ms_ipc_before_alloc();
    switch (ms_pool_alloc(request->gpu, context, device, request->bytes, how, &given, status_p)) {
    case MS_POOL_SERVED:
        record(request, outer, &given);
        count(outer, request->gpu, request->row, 0, request->bytes);
        *out = given.address;
        *status_p = 0;
        ms_balance_see(request->gpu, request->row, request->frame, request->caller);
        return true;
    case MS_POOL_REFUSED:
        ms_serve_refuse(request, outer, context, device, *status_p);
        count(outer, request->gpu, request->row, *status_p, 0);
        return true;
    default:
        return false;
    }
}

bool ms_serve_ALLOC(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                    const struct ms_args *args, int *status_p)
{
    const struct request request = {row, target->gpu, frame, caller, args->bytes, args->bytes, 0};
    struct ms_call *outer = ms_call_around(__builtin_frame_address(0));
    uint64_t context, *out = (uint64_t *)(uintptr_t)args->out;
    struct ms_hook_scope scope;
    bool served;
    int device;

    if (!out || !args->bytes || (outer && ms_thread.recording) || !ms_serve_matters())
        return false;
    enter(&scope, outer);
    served = is_served(target->gpu, &context, &device) &&
             ask_pool(&request, outer, context, device, ms_serve_how(target), out, status_p);
    if (served && *status_p != 0)
        *out = 0; /* as vendors leave it where they refuse (docs/user/hardware/facts.md, 5.23) */
    leave(&scope, outer);
    return served;
}

bool ms_serve_PITCH(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                    const struct ms_args *args, int *status_p)
{
    struct request request = {row, target->gpu, frame, caller, args->bytes, 0, 0};
    struct ms_call *outer = ms_call_around(__builtin_frame_address(0));
    uint64_t context, multiple, pitch, *out = (uint64_t *)(uintptr_t)args->out;
    struct ms_hook_scope scope;
    bool served = false;
    int device;

    if (!out || !args->pitch || !args->width || !args->height || args->width > UINT64_MAX / 4 ||
        (outer && ms_thread.recording) || !ms_serve_matters())
        return false;
    enter(&scope, outer);
    if (is_served(target->gpu, &context, &device) &&
        (multiple = ms_serve_pitch(target->gpu, context, device, (unsigned)args->flags)) != 0) {
        pitch = (args->width + multiple - 1) / multiple * multiple;
        if (!__builtin_mul_overflow(pitch, args->height, &request.bytes))
            served = ask_pool(&request, outer, context, device, MS_POOL_ANYHOW, out, status_p);
        if (served && *status_p == 0) {
            *(uint64_t *)(uintptr_t)args->pitch = pitch;
            if (args->given)
                memcpy((void *)(uintptr_t)args->given, (const uint64_t[]){args->width, args->key},
                       2 * sizeof(uint64_t));
        }
    }
    leave(&scope, outer);
    return served;
}

/* A handler that interrupted memshim's own code, in which the pool's locks may be held: the block is lost to
 * the program, which the report says. The vendor must not see the address: it would free memory that others
 * live in. */
static MS_NOINLINE bool serve_drop(uint64_t address, int *status_p)
{
    if (!ms_pool_owns(address))
        return false;
    atomic_fetch_add_explicit(&dropped_frees, 1, memory_order_relaxed);
    *status_p = 0;
    return true;
}

void ms_serve_note_free(uint64_t address, const struct ms_call *outer, const void *frame, const void *caller)
{
    ms_uses_freed(address,
                  outer ? ms_stack_capture(outer->frame, outer->caller) : ms_stack_capture(frame, caller));
}

/* From here on the block is nobody's: the record forgets it before the pool can hand it out again. */
static MS_INLINE int free_served(struct ms_pool_block *block, const struct ms_call *outer, const void *frame,
                                 const void *caller)
{
    int status;

    ms_ledger_unserve(block->record_id, block->address, NULL);
    if (ms_uses_wanted())
        ms_serve_note_free(block->address, outer, frame, caller);
    if (MS_UNLIKELY(block->pinned))
        ms_ipc_block_freed(block);
    status = ms_pool_free_end(block);
    if (status != 0)
        ms_serve_status(block->context, status);
    return status;
}

/* True if the driver might refuse: the runtime has seen to it that there is a context, and only `strict`
 * minds captures and host functions. A runtime whose context was ended by the driver's functions goes on with
 * the dead one; what came from a pool of the program's has outlived it. */
static bool is_doubtful(const struct ms_target *target, const struct ms_call *outer, uint64_t address)
{
    uint64_t context;

    if (ms_serve_strictly || ms_serve_any_down())
        return true;
    if (outer)
        return MS_UNLIKELY(atomic_load_explicit(&ms_serve_one_has_ended, memory_order_relaxed)) &&
               ms_stream_owns(address);
    return ms_gpu_current(target->gpu, &context) < 0 || !context;
}

static MS_INLINE bool free_begin(const struct ms_target *target, const struct ms_call *outer,
                                 uint64_t address, enum ms_pool_how how, struct ms_pool_block *block_p,
                                 int *status_p, enum ms_pool_verdict *verdict_p)
{
    if (!how && MS_UNLIKELY(is_doubtful(target, outer, address)) && ms_pool_owns(address) &&
        is_refused(target->gpu, status_p))
        *verdict_p = MS_POOL_REFUSED;
    else
        *verdict_p = ms_pool_free_begin(address, how, block_p, status_p);
    return *verdict_p != MS_POOL_PASSED;
}

bool ms_serve_FREE(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                   const struct ms_args *args, int *status_p)
{
    uint64_t address = args->key;
    struct ms_call *outer = ms_call_around(__builtin_frame_address(0));
    enum ms_pool_verdict verdict;
    struct ms_hook_scope scope;
    struct ms_pool_block block;
    struct ms_pool_wait wait;
    bool served, waits;

    if (!address || !ms_serve_matters())
        return address && ms_thread.depth > 0 && serve_drop(address, status_p);
    enter(&scope, outer);
    served = free_begin(target, outer, address, ms_serve_how(target), &block, status_p, &verdict);
    if (verdict == MS_POOL_SERVED)
        *status_p = free_served(&block, outer, frame, caller);
    else if (verdict == MS_POOL_REFUSED)
        ms_invalid_free_served(outer, row, frame, caller, address);
    waits = verdict == MS_POOL_SERVED && MS_UNLIKELY(block.over) && ms_pool_wait_begin(&block, &wait);
    if (served)
        count(outer, target->gpu, row, *status_p, 0);
    leave(&scope, outer);
    if (MS_UNLIKELY(waits))
        ms_serve_wait(&wait);
    return served;
}

bool ms_serve_FREE_ASYNC(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                         const struct ms_args *args, int *status_p)
{
    uint64_t address = args->key;
    struct ms_call *outer = ms_call_around(__builtin_frame_address(0));
    struct ms_hook_scope scope;
    struct ms_pool_block block;

    if (!address || !ms_serve_matters())
        return address && ms_thread.depth > 0 && serve_drop(address, status_p);
    if (ms_stream_owns(address))
        return ms_serve_free_ordered(row, target, frame, caller, args, status_p);
    if (!ms_pool_owns(address))
        return false;
    enter(&scope, outer);
    *status_p = CUDA_ERROR_INVALID_VALUE;
    if (ms_pool_find(address, &block) && block.address == address)
        *status_p = ms_pool_order_after(target->gpu, args->stream, block.context);
    if (*status_p == 0 && ms_pool_free_begin(address, MS_POOL_ANYHOW, &block, status_p) == MS_POOL_SERVED) {
        block.in_order = true;
        *status_p = free_served(&block, outer, frame, caller);
    } else {
        ms_invalid_free_served(outer, row, frame, caller, address);
    }
    count(outer, target->gpu, row, *status_p, 0);
    leave(&scope, outer);
    return true;
}
