/* direct.c - see direct.h.
 *
 * Runs in the program's threads, inside a section. No lock of its own, no call of the vendor's but "which
 * context is current?" and, where blocks are large, a fence's event. Every answer is a success: where there
 * is an error to tell, the runtime tells it and remembers it.
 *
 * What is handed on about a block is read back as soon as it was written: it begins with a cache line, since
 * what lies across two takes so much longer that it shows (a tenth of a call, and only for some depths of the
 * stack). */
#include "hooks/direct.h"

#include "base/unusual.h"
#include "gpu/gpu.h"
#include "hooks/ipc.h"
#include "hooks/resolve.h"
#include "hooks/serve_call.h"
#include "pool/hit.h"

MS_TLS struct ms_direct ms_direct_mine[MS_DIRECTLY_END];
_Atomic uint64_t ms_direct_frees;

void ms_direct_learn(enum ms_directly which, const struct ms_target *target, const struct ms_gpu *driver)
{
    uint64_t changes = ms_objects_changes();
    struct ms_section section;
    bool plain;

    if (ms_thread.depth > 0)
        return;
    ms_section_enter(&section);
    plain = driver->ctx_record_event && ms_library_is_plain_runtime(target->real);
    ms_direct_mine[which] = (struct ms_direct){target->real, plain ? driver : NULL, changes};
    if (plain)
        atomic_store_explicit(&ms_direct_frees, changes + 1, memory_order_relaxed);
    ms_section_leave(&section);
}

bool ms_direct_is_ordinary(void)
{
    return !ms_unusual(MS_UNUSUAL_SERVICE);
}

static MS_INLINE bool hits(uint64_t context, uint64_t bytes, struct ms_pool_block *given)
{
    if (!ms_serve_context_is_ordinary(context) && !(context && ms_serve_context_is_served(context)))
        return false;
    ms_ipc_before_alloc();
    return ms_pool_hit(context, bytes, given);
}

/* Nothing is out of the ordinary, the thread's cancellation is deferred, and it has something at hand. */
static MS_INLINE bool may_hit(const struct ms_thread *me)
{
    return MS_LIKELY(me->pass.heap != NULL) && !ms_unusual(MS_UNUSUAL_ANY) && ms_cancel_is_deferred();
}

/* Between the two a signal handler's calls go to the vendor. */
static MS_INLINE void enter_hit(struct ms_thread *me)
{
    me->depth = 1;
    atomic_signal_fence(memory_order_seq_cst);
}

static MS_INLINE void leave_hit(struct ms_thread *me)
{
    atomic_signal_fence(memory_order_seq_cst);
    me->depth = 0;
}

/* The driver may leave something in errno; what else is done here does not. */
static MS_INLINE uint64_t context_now(const struct ms_thread *me, const struct ms_gpu *gpu)
{
    int saved_errno = *me->errno_place;
    uint64_t context = ms_gpu_context_now(gpu);

    *me->errno_place = saved_errno;
    return context;
}

/* Out of what the thread has at hand: 0, and nothing has happened, for all else. `context_p` is the context
 * that is current, if the driver was asked. */
static MS_INLINE uint64_t hit_alloc(struct ms_thread *me, unsigned row, const void *frame, const void *caller,
                                    uint64_t bytes, uint64_t *context_p)
{
    uint64_t context, address = 0;

    if (MS_UNLIKELY(!may_hit(me) || !ms_ipc_is_looked_for()))
        return 0;
    enter_hit(me);
    context = *context_p = context_now(me, ms_direct_mine[MS_DIRECTLY].gpu);
    if (MS_LIKELY(context))
        address = ms_hit_alloc(me, context, bytes, ms_stack_capture(frame, caller), (uint16_t)row);
    leave_hit(me);
    return address;
}

static MS_INLINE bool hit_free(struct ms_thread *me, uint64_t address)
{
    bool served;

    if (MS_UNLIKELY(!may_hit(me)))
        return false;
    enter_hit(me);
    served = ms_hit_free(me, address);
    leave_hit(me);
    return served;
}

/* `context`: 0 if the driver was not asked yet. */
static MS_NOINLINE bool alloc_somehow(unsigned row, const void *frame, const void *caller, uint64_t *out,
                                      uint64_t bytes, uint64_t context)
{
    struct ms_section section;
    struct ms_pool_block given MS_CACHELINE;
    bool served;

    enter(&section, NULL);
    if (!context)
        context = ms_gpu_context_now(ms_direct_mine[MS_DIRECTLY].gpu);
    served = hits(context, bytes, &given);
    if (MS_LIKELY(served)) {
        ms_stack_id stack = ms_serve_stack(bytes, frame, caller);
        ms_pool_set_ticket(&given, ms_ledger_serve_plain(given.address, bytes, given.context, stack,
                                                         given.device, (uint16_t)row));
        ms_ledger_call_answered((uint16_t)row, bytes);
        *out = given.address;
        if (!ms_thread.pass.heap) {
            ms_thread.errno_place = &errno;
            ms_hit_learn(&ms_thread);
        }
    }
    leave(&section, NULL);
    return served;
}

bool ms_direct_alloc(unsigned row, const void *frame, const void *caller, uint64_t *out, uint64_t bytes)
{
    uint64_t address, context = 0;

    if (!out || !bytes || !ms_direct_is_ordinary())
        return false;
    address = hit_alloc(&ms_thread, row, frame, caller, bytes, &context);
    if (MS_UNLIKELY(!address))
        return alloc_somehow(row, frame, caller, out, bytes, context);
    ms_ledger_call_answered((uint16_t)row, bytes);
    *out = address;
    return true;
}

static MS_NOINLINE bool free_somehow(unsigned row, uint64_t address)
{
    struct ms_section section;
    struct ms_pool_block block MS_CACHELINE;
    struct ms_pool_wait wait;
    bool served, waits = false;

    enter(&section, NULL);
    ms_ledger_expect(ms_pool_free_expect(address, &block));
    served = ms_pool_free_hit(address, &block);
    if (MS_LIKELY(served)) {
        ms_ledger_unserve(block.ticket, block.address, NULL);
        waits = MS_UNLIKELY(ms_pool_free_hit_end(&block)) && ms_pool_wait_begin(&block, &wait);
        ms_ledger_call_answered((uint16_t)row, 0);
    }
    leave(&section, NULL);
    if (MS_UNLIKELY(waits))
        ms_serve_wait(&wait);
    return served;
}

bool ms_direct_free(unsigned row, uint64_t address)
{
    if (!address || !ms_direct_is_ordinary())
        return false;
    if (MS_UNLIKELY(!hit_free(&ms_thread, address)))
        return free_somehow(row, address);
    ms_ledger_call_answered((uint16_t)row, 0);
    return true;
}
