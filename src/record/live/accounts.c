/* accounts.c - counting blocks in and out of the totals of their device, in the shard of the thread that
 * makes them; blocks of the pool, which finds them itself, come and go here by their record ids.
 *
 * Floor 2. Locks: that of the shard; where it cannot do it by itself, the account's and those of all its
 * shards (shards.h). Nothing is allocated but rows and indices.
 *
 * Invariants (ms_ledger_check): the live blocks of a site's row add up to its live_bytes and live_count; the
 * rows of a device of device-memory kinds add up to its account; live <= charges <= bound <= peak, and what
 * the sites held at the peak adds up to it. */
#include "base/compiler.h"
#include "base/thread/guard.h"
#include "base/thread/slow_path.h"
#include "record/live/inner.h"
#include "record/live/internal.h"
#include "record/file/process.h"
#include "record/live/totals.h"
#include "record/file/trace.h"
#include "record/live/uses.h"

enum { SLOTS_AT_ONCE = 16 };

void ms_totals_raise_host(unsigned kind, uint64_t bytes, bool again)
{
    __typeof__(&ms_process()->kinds[0]) amount = &ms_process()->kinds[kind];
    uint64_t live = atomic_fetch_add_explicit(&amount->live_bytes, bytes, memory_order_relaxed) + bytes;
    uint64_t peak = atomic_load_explicit(&amount->peak_live_bytes, memory_order_relaxed);
    while (live > peak && !atomic_compare_exchange_weak_explicit(&amount->peak_live_bytes, &peak, live,
                                                                 memory_order_relaxed, memory_order_relaxed))
        ;
    atomic_fetch_add_explicit(&amount->live_count, 1, memory_order_relaxed);
    if (again)
        return;
    atomic_fetch_add_explicit(&amount->total_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&amount->total_count, 1, memory_order_relaxed);
}

void ms_totals_lower_host(unsigned kind, uint64_t bytes)
{
    __typeof__(&ms_process()->kinds[0]) amount = &ms_process()->kinds[kind];
    atomic_fetch_sub_explicit(&amount->live_bytes, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&amount->live_count, 1, memory_order_relaxed);
}

/* False when there is no memory for one more row, which is counted. */
static bool has_row(struct ms_shard *shard)
{
    uint64_t first;
    if (shard->free_list || shard->fresh != shard->fresh_end)
        return true;
    if (!ms_table_take(MS_TABLE_BLOCKS, SLOTS_AT_ONCE, &first)) {
        ms_table_drop(MS_TABLE_BLOCKS);
        return false;
    }
    shard->fresh = (uint32_t)first;
    shard->fresh_end = shard->fresh + SLOTS_AT_ONCE;
    return true;
}

/* A free row + 1, or 0 when there is none. */
static MS_NOINLINE uint32_t take_fresh_row(struct ms_shard *shard)
{
    return has_row(shard) ? ++shard->fresh : 0;
}

static MS_INLINE uint32_t take_row(struct ms_shard *shard)
{
    uint32_t block_row = shard->free_list;
    if (MS_UNLIKELY(!block_row))
        return take_fresh_row(shard);
    shard->free_list = ms_block_row_at(block_row - 1)->next;
    return block_row;
}

/* True if each block is told of: to the trace, or as a lifetime. */
static MS_INLINE bool is_told(void)
{
    return ms_trace_wanted() || ms_slow_path(MS_SLOW_PATH_USES);
}

static MS_NOINLINE void trace(uint32_t block_row, const struct ms_arrival *arrival)
{
    struct ms_block block = arrival->block;
    if (!arrival->again)
        block.born_ns = arrival->now_ns;
    block.site = ms_block_row_at(block_row)->site;
    if (ms_trace_wanted())
        ms_trace_put_alloc(block_row, arrival->now_ns);
    if (ms_uses_wanted() && block.kind != MS_KIND_INNER) {
        ms_uses_born(block_row, &block);
        if (arrival->again && block.space == MS_SPACE_ADDRESS) /* another life, nothing is known of it */
            ms_uses_mark(block.key, MS_LIFETIME_UNMAPPED);
    }
}

static MS_INLINE void trace_copy(uint32_t block_row, const struct ms_arrival *arrival)
{
    const struct ms_arrival copy = *arrival;
    trace(block_row, &copy);
}

/* Counts it in the shard, where there is room for it; returns its row + 1. Compiled once for the usual case
 * and once for all others. */
static MS_INLINE uint32_t accounts_enter(struct ms_shard *shard, uint32_t number,
                                         const struct ms_arrival *arrival)
{
    struct ms_site *site = ms_site_row(number);
    uint32_t record_id = take_row(shard);
    if (MS_UNLIKELY(!record_id))
        return 0;
    if (MS_LIKELY(site))
        keep_past(shard, site, arrival->now_ns);
    ms_totals_in(shard, ms_block_row_at(record_id - 1), number, site, arrival);
    if (is_told())
        trace_copy(record_id - 1, arrival);
    return record_id;
}

static MS_NOINLINE uint32_t enter_somehow(struct ms_shard *shard, uint32_t number,
                                          const struct ms_arrival *arrival)
{
    return accounts_enter(shard, number, arrival);
}

/* Without a row there is nothing to make room for: a charge that nobody uses would let others rise above the
 * peak. */
static MS_NOINLINE uint32_t enter_alone(struct ms_shard *shard, uint32_t number,
                                        const struct ms_arrival *arrival)
{
    const struct ms_block *block = &arrival->block;
    bool is_peak = false;
    ms_events_touch();
    if (!has_row(shard))
        return 0;
    if (number == UINT32_MAX && !arrival->again)
        number = ms_shard_make_site(shard, block, arrival->now_ns, UINT32_MAX);
    if (ms_kind_is_device(block->kind))
        is_peak = ms_shard_make_room(shard, block->bytes, arrival->now_ns);
    uint32_t record_id = enter_somehow(shard, number, arrival);
    if (is_peak)
        ms_shards_set_peak(ms_shard_account(shard), arrival->now_ns);
    return record_id;
}

/* Room is made last, or nobody might use it. */
MS_NOINLINE uint32_t ms_ledger_rises(struct ms_shard *shard, const struct ms_arrival *arrival)
{
    uint32_t record_id = shard->free_list;
    bool is_peak;
    if (!record_id || !ms_shard_rise(shard, arrival->block.bytes, arrival->now_ns, &is_peak) ||
        !ms_totals_past_is_kept(shard, arrival->now_ns))
        return 0;
    struct ms_block_row *row = ms_block_row_at(record_id - 1);
    shard->free_list = row->next;
    shard->is_active = true;
    ms_totals_in(shard, row, shard->latest_site, shard->latest_row, arrival);
    if (ms_trace_wanted())
        ms_trace_put_alloc(record_id - 1, arrival->now_ns);
    if (is_peak)
        ms_shards_set_peak(ms_shard_account(shard), arrival->now_ns);
    return record_id;
}

/* Under all locks: the number of the block's site in the shard, which may become shard 0: there a block is
 * counted for which the shard has no row of its own. */
static uint32_t site_among(struct ms_shard **shard_p, const struct ms_arrival *arrival)
{
    const struct ms_block *block = &arrival->block;
    struct ms_shard *first = &ms_shards[0][ms_shard_account(*shard_p)];
    uint32_t number = ms_shard_find_site(*shard_p, block->stack, block->api, block->kind);
    if (number != UINT32_MAX)
        return number;
    uint32_t whole = ms_shard_make_site(first, block, arrival->now_ns, UINT32_MAX);
    if (*shard_p != first)
        number = ms_shard_make_site(*shard_p, block, arrival->now_ns, whole);
    if (number != UINT32_MAX)
        return number;
    *shard_p = first;
    return whole;
}

/* Enters a block that a shard cannot enter by itself, as the first block of all: the shard has no room, or
 * does not know the site, or is not there yet. */
static MS_NOINLINE uint32_t enter_together(struct ms_shard *shard, const struct ms_arrival *arrival)
{
    const struct ms_block *block = &arrival->block;
    unsigned account = ms_shard_account(shard);
    ms_events_touch();
    shard = ms_shards_lock_with(shard);
    uint32_t number = arrival->again ? block->site : site_among(&shard, arrival);
    if (number == UINT32_MAX) /* a row's shard is that of its site */
        shard = &ms_shards[0][account];
    bool fits = has_row(shard), is_peak = false;
    if (fits && ms_kind_is_device(block->kind))
        is_peak = ms_shards_make_room(shard, block->bytes, arrival->now_ns);
    uint32_t record_id = fits ? enter_somehow(shard, number, arrival) : 0;
    if (is_peak)
        ms_shards_set_peak(account, arrival->now_ns);
    ms_shards_unlock(account);
    return record_id;
}

/* Of a row that is not locked `site` may be anything. */
static inline struct ms_shard *shard_of(uint32_t site, int device)
{
    const struct ms_site *row = site < ms_table_rows(MS_TABLE_SITES) ? ms_site_row(site) : NULL;
    return &ms_shards[row ? row->shard % MS_SHARDS : 0][ms_account_number(device)];
}

static MS_INLINE uint32_t arrive(struct ms_shard *shard, const struct ms_arrival *arrival)
{
    uint32_t number = arrival->block.site, record_id;
    ms_shard_lock(shard);
    if (MS_LIKELY(!arrival->again))
        number = ms_shard_find_site(shard, arrival->block.stack, arrival->block.api, arrival->block.kind);
    if (MS_LIKELY(number != UINT32_MAX && has_room(shard, arrival))) {
        shard->is_active = true;
        record_id = accounts_enter(shard, number, arrival);
        ms_shard_unlock(shard);
        return record_id;
    }
    const struct ms_arrival copy = *arrival;
    if (!shard->is_alone) {
        ms_shard_unlock(shard);
        return enter_together(shard, &copy);
    }
    record_id = enter_alone(shard, number, &copy);
    ms_shard_unlock(shard);
    return record_id;
}

static MS_INLINE uint32_t arrive_new(const struct ms_arrival *arrival)
{
    struct ms_shard *shard = &ms_shards[ms_shard_mine.shard][ms_account_number(arrival->block.device)];
    if (MS_UNLIKELY(!ms_shards[0][0].row))
        ms_accounts_open();
    MS_KEEP(shard);
    return arrive(shard, arrival);
}

uint32_t ms_account_add(const struct ms_block *block, uint64_t now_ns)
{
    const struct ms_arrival arrival = {*block, now_ns, false, false, ms_stack_sampling(), 0};
    return arrive_new(&arrival);
}

uint32_t ms_ledger_serve(const struct ms_block *block)
{
    const struct ms_arrival arrival = {*block, ms_ledger_now(), true, false, ms_stack_sampling(), 0};
    uint32_t record_id = arrive_new(&arrival);
    ms_trace_write_due();
    return record_id;
}

uint32_t ms_account_restore(const struct ms_block *block, uint64_t grown_bytes)
{
    const struct ms_arrival arrival = {*block, ms_ledger_now(), block->is_served, true, false, grown_bytes};
    return arrive(shard_of(block->site, block->device), &arrival);
}

static MS_UNSYNCHRONIZED struct ms_shard *shard_of_row(const struct ms_block_row *block_row)
{
    return shard_of(block_row->site, ms_block_row_device(block_row));
}

static MS_UNSYNCHRONIZED bool is_wanted(const struct ms_block_row *block_row, enum ms_space space,
                                        uint64_t key, bool served, uint64_t context)
{
    return ms_block_row_is_live(block_row) && block_row->key == key &&
           ms_block_row_space(block_row) == space && !(block_row->tags & MS_BLOCK_ROW_SERVED) == !served &&
           (!context || block_row->context == context);
}

/* The trace and some callers want it as it was. */
static MS_NOINLINE void accounts_tell(uint32_t record_id, uint64_t now_ns, struct ms_block *block_p)
{
    struct ms_block block;
    ms_block_row_read(ms_block_row_at(record_id - 1), &block);
    block.freed_ns = now_ns;
    if (ms_trace_wanted())
        ms_trace_put_free(record_id - 1, ms_thread_id(), now_ns);
    if (ms_uses_wanted() && block.kind != MS_KIND_INNER)
        ms_uses_ended(record_id - 1);
    if (block_p)
        *block_p = block;
}

static MS_INLINE void accounts_leave(struct ms_shard *shard, uint32_t record_id,
                                     struct ms_block_row *block_row, enum ms_block_end end, uint64_t now_ns,
                                     struct ms_block *block_p)
{
    if (block_p || is_told())
        accounts_tell(record_id, now_ns, block_p);
    struct ms_site *site = ms_site_row(block_row->site);
    if (MS_LIKELY(site))
        keep_past(shard, site, now_ns);
    ms_totals_out(shard, record_id, block_row, site, ms_block_row_kind(block_row), end, now_ns);
}

/* The past that a site has to write down before it is changed depends on the shard's peaks and on the spans
 * of its own, which only grow: while neither goes on, one comparison answers. */
bool ms_totals_past_slowly(struct ms_shard *shard, uint64_t now_ns)
{
    struct ms_site *site = shard->latest_row;
    bool is_peak;
    if (now_ns >= shard->until_ns && !ms_shard_rise(shard, 0, now_ns, &is_peak))
        return false;
    keep_past(shard, site, now_ns);
    uint64_t span_ns = (uint64_t)(site->span_last + 1u) << site->span_shift;
    shard->latest_until_ns = span_ns < shard->until_ns ? span_ns : shard->until_ns;
    return true;
}

/* Under the lock of the shard, which may be let go on the way. */
static MS_INLINE bool remove_from(struct ms_shard *shard, uint32_t record_id, struct ms_block_row *block_row,
                                  enum ms_space space, uint64_t key, bool served, uint64_t context,
                                  enum ms_block_end end, uint64_t now_ns, struct ms_block *block_p)
{
    /* The shard of a row that is in use again is the same, but it was told from a site that was not there
     * yet. */
    bool found = is_wanted(block_row, space, key, served, context) &&
                 (shard->is_alone || shard_of_row(block_row) == shard);
    if (found && MS_UNLIKELY(now_ns >= shard->until_ns) && !shard->is_alone) {
        ms_shard_unlock(shard);
        ms_shards_begin_bucket(ms_shard_account(shard), now_ns);
        ms_shard_lock(shard);
        found = is_wanted(block_row, space, key, served, context) && shard_of_row(block_row) == shard;
    } else if (found && MS_UNLIKELY(now_ns >= shard->until_ns)) {
        ms_shard_make_room(shard, 0, now_ns);
    }
    if (MS_LIKELY(found))
        accounts_leave(shard, record_id, block_row, end, now_ns, block_p);
    return found;
}

/* While an account has one shard it is the row's, whatever its site says: that is looked at again under the
 * lock. */
static MS_UNSYNCHRONIZED struct ms_shard *only_shard_of(const struct ms_block_row *block_row)
{
    struct ms_shard *first = &ms_shards[0][ms_account_number(ms_block_row_device(block_row))];
    return MS_LIKELY(first->is_alone) ? first : NULL;
}

static MS_INLINE bool remove_block(uint32_t record_id, enum ms_space space, uint64_t key, bool served,
                                   uint64_t context, enum ms_block_end end, uint64_t now_ns,
                                   struct ms_block *block_p)
{
    struct ms_block_row *block_row = ms_block_row_at(record_id - 1);
    struct ms_shard *only = only_shard_of(block_row), *shard = only ? only : shard_of_row(block_row);
    MS_KEEP(block_row);
    MS_KEEP(shard);
    ms_shard_lock(shard);
    if (MS_UNLIKELY(only && !shard->is_alone)) {
        ms_shard_unlock(shard);
        shard = shard_of_row(block_row);
        ms_shard_lock(shard);
    }
    bool found = remove_from(shard, record_id, block_row, space, key, served, context, end, now_ns, block_p);
    ms_shard_unlock(shard);
    return found;
}

bool ms_account_remove(uint32_t record_id, enum ms_space space, uint64_t key, bool served, uint64_t context,
                       enum ms_block_end end, uint64_t now_ns, struct ms_block *block_p)
{
    return remove_block(record_id, space, key, served, context, end, now_ns, block_p);
}

/* The site is known as soon as the row is there; what is read of it without a lock serves for that alone. */
static inline MS_UNSYNCHRONIZED void expect_site(const struct ms_block_row *block_row)
{
    const struct ms_site *site = &MS_ROWS(SITES, struct ms_site)[block_row->site];
    __builtin_prefetch(site, 1);
    __builtin_prefetch(&site->last_ns, 1);
}

static MS_INLINE bool unserve(uint32_t record_id, uint64_t key, struct ms_block *block_p)
{
    if (!record_id || record_id > ms_table_rows(MS_TABLE_BLOCKS))
        return false;
    expect_site(ms_block_row_at(record_id - 1));
    bool found =
        remove_block(record_id, MS_SPACE_ADDRESS, key, true, 0, MS_BLOCK_FREED, ms_ledger_now(), block_p);
    ms_trace_write_due();
    ms_blocks_look_if_late(found);
    return found;
}

static MS_NOINLINE bool unserve_with_pieces(uint32_t record_id, uint64_t key, struct ms_block *block_p)
{
    struct ms_block block;
    bool found = unserve(record_id, key, &block);
    if (found)
        ms_inner_end_within(&block);
    if (found && block_p)
        *block_p = block;
    return found;
}

bool ms_ledger_unserve(uint32_t record_id, uint64_t key, struct ms_block *block_p)
{
    return ms_slow_path(MS_SLOW_PATH_INNER) ? unserve_with_pieces(record_id, key, block_p)
                                            : unserve(record_id, key, block_p);
}

struct ms_bias *ms_ledger_shard(int device, struct ms_shard **shard_p)
{
    *shard_p = &ms_shards[ms_shard_mine.shard][ms_account_number(device)];
    return &(*shard_p)->lock;
}

void ms_kind_amount(enum ms_kind kind, struct ms_amount *amount_p)
{
    __typeof__(&ms_process()->kinds[0]) amount = &ms_process()->kinds[kind];
    amount_p->live_bytes = atomic_load_explicit(&amount->live_bytes, memory_order_relaxed);
    amount_p->live_count = atomic_load_explicit(&amount->live_count, memory_order_relaxed);
    amount_p->peak_live_bytes = atomic_load_explicit(&amount->peak_live_bytes, memory_order_relaxed);
    amount_p->total_bytes = atomic_load_explicit(&amount->total_bytes, memory_order_relaxed);
    amount_p->total_count = atomic_load_explicit(&amount->total_count, memory_order_relaxed);
}
