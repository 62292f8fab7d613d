/* balance.c - see balance.h.
 *
 * Runs in the program's threads. The driver's answer and what is held are of one moment if no call to the
 * driver was under way before, and none began meanwhile: those of frames are counted (balance.h), and so is
 * what the pool asks for, from before it is asked for until the figures have it. What goes is out of the
 * figures before the driver has it back, and charged until afterwards, so that charge and reserved memory
 * differ; changes of the charge are counted. Owns what was held when each device was asked last; no lock. */
#include "hooks/follow/balance.h"

#include <stdatomic.h>

#include "base/log.h"
#include "vendor/context_scope.h"
#include "hooks/follow/graph_memory.h"
#include "hooks/serve/neighbours.h"
#include "hooks/serve/serve.h"
#include "hooks/follow/footprints.h"
#include "record/footprint/granules.h"
#include "record/footprint/footprints.h"
#include "pool/api/pool.h"
#include "pool/external/recycled.h"
#include "pool/stream/stream.h"

enum {
    TRIES = 3,
    GROWTH_SHARE = 8,       /* asked again when an eighth more is held: some 90 times on the way to 80 GiB */
    GROWTH_LEAST = 1 << 20, /* bytes on top of that eighth */
};

_Atomic uint64_t ms_balance_begun, ms_balance_over;
_Atomic uint32_t ms_balance_due;
static _Atomic uint64_t latest[MS_DEVICES_MAX]; /* what was held when the driver was asked, + 1; 0: never */
static _Atomic uint64_t most[MS_DEVICES_MAX];   /* the most that was held when it was asked */

static bool is_serving(void)
{
    return atomic_load_explicit(&ms_serve_on, memory_order_relaxed);
}

/* Quickly: as much as memory that the driver gave can tell. */
static uint64_t held_about(int device)
{
    return ms_ledger_followed(device) + ms_ledger_taken(device) +
           (is_serving() ? ms_pool_charged(device) + ms_recycled_bytes(device) : 0);
}

void ms_balance_grew(int device)
{
    uint64_t held, before;

    if (device < 0 || device >= MS_DEVICES_MAX)
        return;
    held = held_about(device);
    before = atomic_load_explicit(&most[device], memory_order_relaxed);
    if (held > before + before / GROWTH_SHARE + (before ? GROWTH_LEAST : 0))
        atomic_store_explicit(&ms_balance_due, 1, memory_order_relaxed);
}

/* No call is under way, but this thread's, and nothing is coming of which the figures know nothing yet. */
static bool is_still(int device)
{
    uint64_t begun = atomic_load(&ms_balance_begun), over = atomic_load(&ms_balance_over);

    return begun - over == (ms_thread.recording ? 1u : 0u) && !ms_pool_is_growing(device);
}

/* The memory that the driver's own pools have of the device beyond the blocks that lie there, its or ours. */
static uint64_t in_drivers_pools(int device)
{
    struct ms_mempool_sums sums = ms_mempool_sums_of(device);
    uint64_t in_blocks = ms_ledger_followed_in_pools(device) + sums.held;

    return sums.idle + (sums.used > in_blocks ? sums.used - in_blocks : 0);
}

bool ms_balance_of(int device, struct ms_balance *balance_p)
{
    struct ms_pool_figures figures = {.reserved_bytes = 0};
    bool still = is_still(device);
    uint64_t charged = 0;

    *balance_p = (struct ms_balance){.asked_ns = 0};
    if (is_serving()) {
        charged = ms_pool_charged(device);
        ms_pool_figures(device, &figures);
        balance_p->parts = figures.parts;
        balance_p->parts.cached += ms_recycled_bytes(device);
    }
    balance_p->followed_bytes = ms_ledger_followed(device);
    balance_p->driver_rounding_bytes = ms_granules_beyond(device);
    balance_p->driver_cached_bytes = in_drivers_pools(device);
    balance_p->contexts_bytes = ms_ledger_taken(device);
    balance_p->managed_bytes = ms_ledger_managed();
    return still && charged == figures.reserved_bytes;
}

static bool is_as_before(const struct ms_stillness *since, int device)
{
    return atomic_load(&ms_balance_begun) == since->begun && ms_pool_changes(device) == since->changes;
}

/* A call that is under way now may be over before anything else is read: so stillness is looked at last. */
struct ms_stillness ms_balance_stillness(int device)
{
    struct ms_stillness now = {atomic_load(&ms_balance_begun), ms_pool_changes(device), false};

    now.is_still = is_still(device);
    return now;
}

bool ms_balance_was_still(const struct ms_stillness *since, int device)
{
    return since->is_still && is_still(device) && is_as_before(since, device);
}

bool ms_balance_query(const struct ms_gpu *gpu, int device, uint64_t context, struct ms_balance *balance_p)
{
    struct ms_context_scope visit;
    bool still = false;

    for (int i = 0; i < TRIES && !still; i++) {
        struct ms_stillness before = ms_balance_stillness(device);
        uint64_t cached = in_drivers_pools(device); /* another thread's wait may give it back */
        size_t left = 0, total = 0;

        ms_context_scope_begin(&visit, gpu, context);
        bool known = ms_gpu_memory(gpu, &left, &total) && left <= total;
        ms_context_scope_end(&visit);
        still = ms_balance_of(device, balance_p) && before.is_still && is_as_before(&before, device) &&
                balance_p->driver_cached_bytes == cached;
        if (!known)
            return false;
        ms_neighbours_tell_free(device, left);
        balance_p->in_use_bytes = total - left;
        balance_p->total_bytes = total;
        balance_p->neighbours_bytes = ms_neighbours_have(device);
    }
    return still;
}

/* A context whose size was told from what was in use may have been charged with others' memory: once that is
 * gone, what is held is more than what is in use. */
static bool close_it(int device, struct ms_balance *balance)
{
    bool closes = ms_balance_close(balance), less = false;

    if (!closes) {
        uint64_t known = ms_balance_known(balance);
        balance->contexts_bytes -= ms_ledger_footprint_shrank(device, known - balance->in_use_bytes);
        closes = ms_balance_close(balance) || (less = ms_balance_close_less(balance));
    }
    balance->is_inferred = less || balance->untracked_bytes || balance->driver_rounding_bytes ||
                           ms_ledger_taken_is_inferred(device);
    balance->asked_ns = ms_ledger_now();
    return closes;
}

/* A runtime that only knows what it gave out itself, as HIP's did at first, says less than is held where
 * there are two of them in one process. No term is wrong, but such a row would not add up. */
static void miss_more_held(int device)
{
    static _Atomic bool told;

    ms_ledger_balance_missed(device, MS_BALANCE_MORE_HELD);
    if (!atomic_exchange(&told, true))
        ms_diagnostic(MS_LOG_INFO, "balance",
                      "more is held of device %d than its driver says is in use: no balance is taken",
                      ms_device_index(device));
}

/* `visited` as in ms_balance_query. */
static void balance_look_at(const struct ms_gpu *gpu, int device, uint64_t context, uint64_t visited,
                            unsigned row, const void *frame, const void *caller)
{
    struct ms_balance balance;
    uint64_t held;

    ms_graph_memory_query();
    if (!ms_balance_query(gpu, device, visited, &balance)) {
        if (balance.total_bytes)
            ms_ledger_balance_missed(device, MS_BALANCE_NEVER_STILL);
        return;
    }
    held = held_about(device);
    ms_call_describe_device(gpu, device);
    ms_balance_close(&balance);
    if (ms_footprints_first_seen(gpu, device, context, &balance, row, frame, caller)) {
        balance.contexts_bytes = ms_ledger_taken(device);
        held = held_about(device);
    }
    if (close_it(device, &balance))
        ms_ledger_balance(device, &balance);
    else
        miss_more_held(device);
    atomic_store_explicit(&latest[device], held + 1, memory_order_relaxed);
    if (held > atomic_load_explicit(&most[device], memory_order_relaxed))
        atomic_store_explicit(&most[device], held, memory_order_relaxed);
}

void ms_balance_look(const struct ms_gpu *gpu, unsigned row, const void *frame, const void *caller)
{
    uint64_t context = 0;
    int device;

    if (!gpu) /* a library's call, of whose driver nothing is known here: the next one looks */
        return;
    atomic_store_explicit(&ms_balance_due, 0, memory_order_relaxed);
    if ((device = ms_gpu_current(gpu, &context)) >= 0)
        balance_look_at(gpu, device, context, 0, row, frame, caller);
}

void ms_balance_scan(const struct ms_gpu *gpu, int device, uint64_t context)
{
    balance_look_at(gpu, device, context, context, 0, NULL, NULL);
}

void ms_balance_waited(const struct ms_gpu *gpu, unsigned row, const void *frame, const void *caller)
{
    uint64_t context = 0;
    int device = gpu ? ms_gpu_current(gpu, &context) : MS_GPU_NO_DEVICE;

    if (device >= 0 && atomic_load_explicit(&latest[device], memory_order_relaxed) != held_about(device) + 1)
        balance_look_at(gpu, device, context, 0, row, frame, caller);
}

static void balance_hooks_reset(void)
{
    atomic_store(&ms_balance_begun, 0);
    atomic_store(&ms_balance_over, 0);
    atomic_store(&ms_balance_due, 0);
    for (int i = 0; i < MS_DEVICES_MAX; i++) {
        atomic_store(&latest[i], 0);
        atomic_store(&most[i], 0);
    }
}
MS_AT_FORK(MS_FORK_HOOKS, balance_hooks_reset);
