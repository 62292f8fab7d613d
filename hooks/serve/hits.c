/* hits.c - see hits.h.
 *
 * Runs in the program's threads. No lock of its own, and no call of the vendor's but what its questions about
 * streams, and an event that closes, take. */
#include "hooks/serve/hits.h"

#include "hooks/serve/serve_call.h"

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

    if (args->hit == MS_HIT_CONTEXT && ms_thread.fast.of_context.heap)
        return;
    ms_thread.errno_place = &errno;
    ms_thread.cancel_place = ms_cancel_place();
    if (!ms_thread.cancel_place)
        return;
    ms_hook_scope_enter_brief(&scope);
    if (args->hit == MS_HIT_CONTEXT)
        ms_fast_learn(&ms_thread);
    else
        ms_fast_learn_ordered(&ms_thread, driver, (struct ms_fast_order){args->stream, args->key});
    ms_hook_scope_leave_brief(&scope);
}

void ms_hit_answered(unsigned row, const struct ms_target *target, const struct ms_gpu *driver,
                     const struct ms_args *args, uint64_t word)
{
    if (args->out) {
        learn(driver, args);
    } else if (args->hit == MS_HIT_CONTEXT && ms_thread.fast.aside) {
        ms_guard_enter();
        ms_fast_choose_context(&ms_thread);
        ms_guard_leave();
    }
    if (MS_LIKELY(driver != NULL))
        note_site(row, target, driver, word);
}

bool ms_hit_look(struct ms_thread *me, uint64_t stream, uint16_t row)
{
    struct ms_hook_scope scope;
    struct ms_pool_wait wait;
    bool waits = false;
    const struct ms_gpu *gpu = ms_kept_site(row)->driver;
    int error = ms_gpu_error_before(gpu);

    enter(&scope, NULL);
    if (stream == MS_HIT_UNORDERED)
        waits = ms_fast_look(&me->fast, &wait);
    else
        ms_fast_look_ordered(me, stream);
    ms_ledger_call_counted(me->fast.counts, row, 0);
    leave(&scope, NULL);
    ms_hit_leave(me);
    if (MS_UNLIKELY(waits))
        ms_serve_wait(&wait);
    ms_gpu_error_rewind(gpu, error);
    return true;
}
