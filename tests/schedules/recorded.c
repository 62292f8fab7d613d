/* recorded.c - the record beside the pool; see recorded.h. */
#include <errno.h>

#include "base/thread/guard.h"
#include "book.h"
#include "engine.h"
#include "record/live/internal.h"
#include "fastpath/fastpath.h"
#include "pool/api/pool.h"
#include "recorded.h"
#include "tests/unit/ledger_check.h"

enum { API = 0, STACK = 5, TIMEOUT_MS = 1000 };

static bool is_on;
static unsigned between; /* calls that have changed the pool, perhaps, and not the record yet, or likewise */
static ms_stack_id stack;

bool recorded_is_on(void)
{
    return is_on;
}

/* The counter goes with the clock (subject.h). Both begin anew with each schedule: so the record has begun
 * when they did. */
static void trust_the_counter(void)
{
    uint64_t begin_ns = ms_clock_ns() - engine_ticks();
#if defined(__x86_64__) /* elsewhere the system's clock is asked */
    atomic_store(&ms_clock_anchor.ticks, 0);
    atomic_store(&ms_clock_anchor.ns, begin_ns);
    atomic_store(&ms_clock_anchor.rate, (uint64_t)1 << MS_CLOCK_RATE_BITS);
#endif
    atomic_store(&ms_ledger_running_since_ns, begin_ns);
}

void recorded_start(void)
{
    is_on = true;
    book_start(true, "MEMSHIM_TIMELINE=16");
    stack = book_stack(STACK);
    trust_the_counter();
}

static MS_UNSYNCHRONIZED void count_between(int change)
{
    if (is_on)
        between += (unsigned)change;
}

uint64_t recorded_hit(uint64_t context, uint64_t bytes, bool in_turn)
{
    struct ms_thread *me = &ms_thread;
    if (!is_on || !me->fast.of_context.heap)
        return 0;
    count_between(in_turn);
    uint64_t address = ms_fast_alloc_in(me, context, bytes, stack, API);
    count_between(-in_turn);
    return address;
}

bool recorded_free_hit(uint64_t address)
{
    struct ms_thread *me = &ms_thread;
    enum ms_fast hit = is_on && me->fast.of_context.heap ? ms_fast_free(me, address) : MS_FAST_NONE;
    struct ms_pool_wait wait;
    if (hit == MS_FAST_LOOK && ms_fast_look(&me->fast, &wait))
        ms_pool_wait_poll(&wait);
    return hit != MS_FAST_NONE;
}

void recorded_begin(void)
{
    count_between(1);
}

void recorded_end(void)
{
    count_between(-1);
}

void recorded_learn(void)
{
    ms_thread.errno_place = &errno;
    if (is_on && !ms_thread.fast.of_context.heap)
        ms_fast_learn(&ms_thread);
}

uint32_t recorded_serve(const struct ms_pool_block *block, uint64_t bytes)
{
    const struct ms_block recorded = {.key = block->address,
                                      .bytes = bytes,
                                      .requested = bytes,
                                      .context = block->context,
                                      .stack = stack,
                                      .thread = ms_thread_id(),
                                      .device = (int16_t)block->device,
                                      .api = API,
                                      .space = MS_SPACE_ADDRESS,
                                      .kind = MS_KIND_DEVICE};
    return ms_ledger_serve(&recorded);
}

bool recorded_unserve(const struct ms_pool_block *block)
{
    return !is_on || ms_ledger_unserve(block->record_id, block->address, NULL);
}

void recorded_died(uint64_t context)
{
    if (is_on)
        ms_ledger_context_died(context);
}

/* Whoever changes it holds what is locked here, or counts. */
static MS_UNSYNCHRONIZED bool is_at_rest(void)
{
    return !between;
}

void recorded_expect_live(uint64_t bytes)
{
    struct ms_account sum;
    if (!is_on)
        return;
    ms_accounts_lock_all(TIMEOUT_MS);
    ms_account_sum(0, &sum);
    bool same = sum.device.live_bytes == bytes || !is_at_rest();
    ms_accounts_unlock_all();
    if (!same)
        engine_fail("stopped, the pool has %llu bytes live, the record %llu", (unsigned long long)bytes,
                    (unsigned long long)sum.device.live_bytes);
}

void recorded_expect(uint32_t record_id, uint64_t address, uint64_t bytes)
{
    struct ms_block block;
    if (!ms_blocks_read(record_id, &block) || block.key != address || block.requested != bytes)
        engine_fail("the record does not have the block at %#llx", (unsigned long long)address);
}

void recorded_expect_count(unsigned count)
{
    struct ms_account sum;
    ms_account_sum(0, &sum);
    if (sum.device.live_count != count)
        engine_fail("of %u blocks the record has %llu", count, (unsigned long long)sum.device.live_count);
    else if (ledger_check() != 0)
        engine_fail("the ledger's sums do not add up");
}
