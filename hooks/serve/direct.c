/* direct.c - see direct.h.
 *
 * Runs in the program's threads, inside a hook scope. No lock of its own, no call of the vendor's but "which
 * context is current?" and, where blocks are large, a fence's event. Every answer is a success: where there
 * is an error to tell, the runtime tells it and remembers it.
 *
 * What is handed on about a block is read back as soon as it was written: it begins with a cache line, since
 * what lies across two takes so much longer that it shows (a tenth of a call, and only for some depths of the
 * stack). */
#include "hooks/serve/direct.h"

#include "base/thread/slow_path.h"
#include "vendor/gpu.h"
#include "hooks/follow/ipc.h"
#include "hooks/lookup/resolve.h"
#include "hooks/serve/serve_call.h"
#include "record/live/uses.h"
#include "fastpath/fastpath.h"

_Atomic uint64_t ms_direct_frees;

void ms_direct_learn(enum ms_directly which, const struct ms_target *target, const struct ms_gpu *driver)
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
        ((struct ms_direct *)(void *)own->direct)[which] =
            (struct ms_direct){target->real, plain ? driver : NULL, changes};
    if (plain)
        atomic_store_explicit(&ms_direct_frees, changes + 1, memory_order_relaxed);
    ms_hook_scope_leave(&scope);
}

/* A signal handler's calls go to the vendor meanwhile, and look at no entry that is half written. */
static void direct_note(struct ms_kept_site *kept, const struct ms_target *target,
                        const struct ms_gpu *driver, uint64_t word)
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

void ms_direct_note_anew(unsigned row, const struct ms_target *target, const struct ms_gpu *driver,
                         uint64_t word)
{
    struct ms_kept_site *kept;

    if (ms_slow_path_any(word) || !driver)
        return;
    ms_guard_enter();
    kept = ms_kept_site_mine(row);
    if (kept)
        direct_note(kept, target, driver, word);
    ms_guard_leave();
}

bool ms_direct_is_ordinary(void)
{
    return !ms_slow_path(MS_SLOW_PATH_SERVICE);
}

bool ms_direct_may_learn(void)
{
    const unsigned char *place = ms_cancel_place();

    ms_thread.errno_place = &errno;
    ms_thread.cancel_place = place;
    return place != NULL;
}

const struct ms_gpu *ms_direct_driver(enum ms_directly which)
{
    const struct ms_gpu *gpu = ms_direct_mine(which)->gpu;

    return which == MS_DIRECTLY_CURRENT && !gpu ? ms_direct_mine(MS_DIRECTLY_POOL)->gpu : gpu;
}

static MS_INLINE bool hits(uint64_t context, uint64_t bytes, struct ms_pool_block *given)
{
    if (!ms_serve_context_is_ordinary(context) && !(context && ms_serve_context_is_served(context)))
        return false;
    ms_ipc_before_alloc();
    return ms_pool_hit(context, bytes, given);
}

bool ms_direct_alloc(unsigned row, const void *frame, const void *caller, uint64_t *out, uint64_t bytes)
{
    struct ms_hook_scope scope;
    struct ms_pool_block given MS_CACHELINE;
    bool served;

    if (!ms_direct_is_ordinary())
        return false;
    enter(&scope, NULL);
    served = hits(ms_gpu_context_now(ms_direct_mine(MS_DIRECTLY)->gpu), bytes, &given);
    if (MS_LIKELY(served)) {
        ms_stack_id stack = ms_serve_stack(bytes, frame, caller);
        ms_pool_set_record_id(&given, ms_ledger_serve_plain(given.address, bytes, given.context, stack,
                                                            given.device, (uint16_t)row));
        ms_ledger_call_answered((uint16_t)row, bytes);
        *out = given.address;
        if (!ms_thread.fast.of_context.heap && ms_direct_may_learn())
            ms_fast_learn(&ms_thread);
    }
    leave(&scope, NULL);
    return served;
}

bool ms_direct_free(unsigned row, uint64_t address)
{
    struct ms_hook_scope scope;
    struct ms_pool_block block MS_CACHELINE;
    struct ms_pool_wait wait;
    bool served, waits = false;

    if (!address || !ms_direct_is_ordinary() || ms_uses_wanted()) /* whose stack is to be known */
        return false;
    enter(&scope, NULL);
    ms_ledger_expect(ms_pool_free_expect(address, &block));
    served = ms_pool_free_hit(address, &block);
    if (MS_LIKELY(served)) {
        ms_ledger_unserve(block.record_id, block.address, NULL);
        waits = MS_UNLIKELY(ms_pool_free_hit_end(&block)) && ms_pool_wait_begin(&block, &wait);
        ms_ledger_call_answered((uint16_t)row, 0);
    }
    leave(&scope, NULL);
    if (MS_UNLIKELY(waits))
        ms_serve_wait(&wait);
    return served;
}

bool ms_direct_look(struct ms_thread *me, uint64_t stream, uint16_t row)
{
    struct ms_hook_scope scope;
    struct ms_pool_wait wait;
    bool waits = false;

    enter(&scope, NULL);
    if (stream == MS_DIRECTLY_UNORDERED)
        waits = ms_fast_look(&me->fast, &wait);
    else
        ms_fast_look_ordered(me, stream);
    ms_ledger_call_counted(me->fast.counts, row, 0);
    leave(&scope, NULL);
    if (MS_UNLIKELY(waits))
        ms_serve_wait(&wait);
    return true;
}
