/* runtime.c - see runtime.h.
 *
 * Runs in the program's threads. No lock of its own, no call of the vendor's but "which context is current?"
 * and, where blocks are large, a fence's event. Every answer is a success: where there is an error to tell,
 * the runtime tells it and remembers it. */
#include "hooks/serve/runtime.h"

#include "hooks/serve/serve_call.h"
#include "record/live/uses.h"

_Atomic uint64_t ms_runtime_frees;

void ms_runtime_learn(enum ms_runtime_call which, const struct ms_target *target, const struct ms_gpu *driver)
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

/* A signal handler's calls go to the vendor meanwhile, and look at no entry that is half written. */
static void keep_site(struct ms_kept_site *kept, const struct ms_target *target, const struct ms_gpu *driver,
                      uint64_t word)
{
    kept->word = 0;
    atomic_signal_fence(memory_order_seq_cst);
    if (kept->target.real != target->real) { /* reached by no export of ours */
        kept->key = 0;
        kept->target = *target;
    }
    kept->driver = driver;
    atomic_signal_fence(memory_order_seq_cst);
    kept->word = word;
}

/* A call of that row was answered when ms_slow_path_now() said `word`: the next may take the fast path. */
static void note_site(unsigned row, const struct ms_target *target, const struct ms_gpu *driver,
                      uint64_t word)
{
    const struct ms_kept_site *known = ms_kept_site(row);
    struct ms_kept_site *kept;

    if (MS_LIKELY(known->word == word && known->target.real == target->real) || ms_slow_path_any(word))
        return;
    ms_guard_enter();
    kept = ms_kept_site_mine(row);
    if (kept)
        keep_site(kept, target, driver, word);
    ms_guard_leave();
}

/* The thread knows where its errno and its cancellation are, and what the call used comes to hand. */
static void learn(const struct ms_gpu *driver, const struct ms_args *args)
{
    struct ms_hook_scope scope;

    if (args->runtime == MS_RUNTIME_CONTEXT && ms_thread.fast.of_context.heap)
        return;
    ms_thread.errno_place = &errno;
    ms_thread.cancel_place = ms_cancel_place();
    if (!ms_thread.cancel_place)
        return;
    ms_hook_scope_enter_brief(&scope);
    if (args->runtime == MS_RUNTIME_CONTEXT)
        ms_fast_learn(&ms_thread);
    else
        ms_fast_learn_ordered(&ms_thread, driver, (struct ms_fast_order){args->stream, args->key});
    ms_hook_scope_leave_brief(&scope);
}

bool ms_runtime_alloc(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                      const struct ms_args *args)
{
    const struct ms_target driver = {.gpu = ms_runtime_mine(args->runtime)->gpu};
    uint64_t word = ms_slow_path_now();
    int status = 0;

    if (MS_UNLIKELY(word & MS_SLOW_PATH_SERVICE) ||
        !(args->runtime == MS_RUNTIME_CONTEXT ? ms_serve_ALLOC : ms_serve_ALLOC_ASYNC)(row, &driver, frame,
                                                                                       caller, args, &status))
        return false;
    learn(driver.gpu, args);
    note_site(row, target, driver.gpu, word);
    return true;
}

/* The driver that a free ends in: in stream order, of whatever this thread got from it. */
static const struct ms_gpu *driver_of(enum ms_runtime_call which)
{
    const struct ms_gpu *gpu = ms_runtime_mine(which)->gpu;

    return which == MS_RUNTIME_CURRENT && !gpu ? ms_runtime_mine(MS_RUNTIME_POOL)->gpu : gpu;
}

/* A free whose stack is to be known is the driver's hook's. */
bool ms_runtime_free(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                     const struct ms_args *args)
{
    const struct ms_target driver = {.gpu = driver_of(args->runtime)};
    bool is_ordered = args->runtime != MS_RUNTIME_CONTEXT;
    uint64_t word = ms_slow_path_now();
    int status = 0;

    if (MS_UNLIKELY(!args->key || word & MS_SLOW_PATH_SERVICE || ms_uses_wanted()) ||
        (is_ordered && !driver.gpu))
        return false;
    ms_serve_expect_free(args->key);
    if (!(is_ordered ? ms_serve_free_ordered : ms_serve_FREE)(row, &driver, frame, caller, args, &status))
        return false;
    if (!is_ordered && ms_thread.fast.aside) {
        ms_guard_enter();
        ms_fast_choose_context(&ms_thread);
        ms_guard_leave();
    }
    if (MS_LIKELY(driver.gpu != NULL))
        note_site(row, target, driver.gpu, word);
    return true;
}

bool ms_runtime_look(struct ms_thread *me, uint64_t stream, uint16_t row)
{
    struct ms_hook_scope scope;
    struct ms_pool_wait wait;
    bool waits = false;

    enter(&scope, NULL);
    if (stream == MS_RUNTIME_UNORDERED)
        waits = ms_fast_look(&me->fast, &wait);
    else
        ms_fast_look_ordered(me, stream);
    ms_ledger_call_counted(me->fast.counts, row, 0);
    leave(&scope, NULL);
    ms_runtime_leave_fast(me);
    if (MS_UNLIKELY(waits))
        ms_serve_wait(&wait);
    return true;
}
