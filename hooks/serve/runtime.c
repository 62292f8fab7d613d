/* runtime.c - see runtime.h.
 *
 * Runs in the program's threads. No lock of its own, no call of the vendor's but "which context is current?"
 * and, where blocks are large, a fence's event. Every answer is a success: where there is an error to tell,
 * the runtime tells it and remembers it. */
#include "hooks/serve/runtime.h"

#include "hooks/serve/serve_call.h"
#include "record/live/uses.h"

_Atomic uint64_t ms_runtime_frees;

void ms_runtime_learn(enum ms_hit which, const struct ms_target *target, const struct ms_gpu *driver)
{
    uint64_t changes = ms_objects_changes();
    struct ms_hook_scope scope;
    struct ms_own *own;
    bool plain;

    if (ms_thread.depth > 0)
        return;
    ms_hook_scope_enter(&scope);
    plain = driver->ctx_record_event && ms_library_is_plain_runtime(target->real);
    own = ms_own_mine();
    if (own)
        ((struct ms_runtime *)(void *)own->runtimes)[which] =
            (struct ms_runtime){target->real, plain ? driver : NULL, changes};
    if (plain)
        atomic_store_explicit(&ms_runtime_frees, changes + 1, memory_order_relaxed);
    ms_hook_scope_leave(&scope);
}

bool ms_runtime_alloc(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                      const struct ms_args *args)
{
    const struct ms_target driver = {.gpu = ms_runtime_mine(args->hit)->gpu};
    uint64_t word = ms_slow_path_now();
    int status = 0;

    if (MS_UNLIKELY(word & MS_SLOW_PATH_SERVICE) ||
        !(args->hit == MS_HIT_CONTEXT ? ms_serve_ALLOC : ms_serve_ALLOC_ASYNC)(row, &driver, frame, caller,
                                                                               args, &status))
        return false;
    ms_hit_answered(row, target, driver.gpu, args, word);
    return true;
}

/* The driver that a free ends in: in stream order, of whatever this thread got from it. */
static const struct ms_gpu *driver_of(enum ms_hit which)
{
    const struct ms_gpu *gpu = ms_runtime_mine(which)->gpu;

    return which == MS_HIT_CURRENT && !gpu ? ms_runtime_mine(MS_HIT_POOL)->gpu : gpu;
}

/* A free whose stack is to be known is the driver's hook's. */
bool ms_runtime_free(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                     const struct ms_args *args)
{
    const struct ms_target driver = {.gpu = driver_of(args->hit)};
    bool is_ordered = args->hit != MS_HIT_CONTEXT;
    uint64_t word = ms_slow_path_now();
    int status = 0;

    if (MS_UNLIKELY(!args->key || word & MS_SLOW_PATH_SERVICE || ms_uses_wanted()) ||
        (is_ordered && !driver.gpu))
        return false;
    ms_serve_expect_free(args->key);
    if (!(is_ordered ? ms_serve_free_ordered : ms_serve_FREE)(row, &driver, frame, caller, args, &status))
        return false;
    ms_hit_answered(row, target, driver.gpu, args, word);
    return true;
}
