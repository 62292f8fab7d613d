/* totals.h - counting a block in or out: its row, its site's and its account's, in an order of stores that is
 * right after each of them.
 *
 * Floor 2, under the lock of the shard, for accounts.c and hit.h alone: what is compiled into each of their
 * ways has the block in registers. A row's state is written last as a block comes, and first as it goes: a
 * process may end at any instruction, and whatever the rows say then is in the totals. */
#ifndef MS_RECORD_LIVE_TOTALS_H
#define MS_RECORD_LIVE_TOTALS_H

#include "base/compiler.h"
#include "record/live/shards.h"

/** Memory that is not a device's has totals over all devices besides. */
void ms_totals_raise_host(unsigned kind, uint64_t bytes, bool again);
void ms_totals_lower_host(unsigned kind, uint64_t bytes);

/* A block that the pool serves has bytes, and fewer than the last class begins with. */
static MS_INLINE unsigned size_class(uint64_t bytes, bool served)
{
    if (served)
        return 64 - (unsigned)__builtin_clzll(bytes | 1);
    unsigned size = bytes ? 64 - (unsigned)__builtin_clzll(bytes) : 0;
    return size < MS_SIZE_CLASSES ? size : MS_SIZE_CLASSES - 1;
}

/* The bytes that the vendor was asked for beyond what the program asked for. */
static inline uint64_t rounding(uint64_t bytes, uint64_t requested)
{
    return bytes > requested ? bytes - requested : 0;
}

/* Born on one processor, freed on another, whose clocks differ a little. */
static inline uint64_t lifetime_ns(uint64_t born_ns, uint64_t end_ns)
{
    uint64_t ns;
    return MS_UNLIKELY(__builtin_sub_overflow(end_ns, born_ns, &ns)) ? 0 : ns;
}

/* Before a site changes: what it held at the latest peak is written down, unless that was done, and what it
 * holds at the end of the spans since. Once it says which peak it has seen the rest has to be so, and what it
 * holds may change: a process may be killed after any of these stores. */
static MS_INLINE void keep_past(const struct ms_shard *shard, struct ms_site *site, uint64_t now_ns)
{
    if (MS_UNLIKELY(site->peak_seen != shard->peaks)) {
        site->at_peak_bytes = site->live_bytes;
        atomic_signal_fence(memory_order_seq_cst);
        site->peak_seen = shard->peaks;
        atomic_signal_fence(memory_order_seq_cst);
    }
    ms_site_mark(site, now_ns, site->live_bytes);
}

/** True if the past of the shard's latest site is written down, or is now, and the bucket of time goes on, or
 * the next one has begun. */
bool ms_totals_past_slowly(struct ms_shard *shard, uint64_t now_ns);
static MS_INLINE bool ms_totals_past_is_kept(struct ms_shard *shard, uint64_t now_ns)
{
    return MS_LIKELY(now_ns < shard->latest_until_ns) || ms_totals_past_slowly(shard, now_ns);
}

/* A block that comes: `again` if it only returns, as its free was refused, or it has another size, by which
 * it may have grown. What is compiled into the usual way has it in registers; whoever is called from there
 * gets a copy. */
struct ms_arrival {
    struct ms_block block;
    uint64_t now_ns;
    bool served, again, sampled; /* sampled: as ms_stack_sampling() says */
    uint64_t grown_bytes;        /* of one that returns */
};

/** accounts.c: a hit of the shard's latest site (hit.h) after which more is live than the shard may have by
 * itself: the record id, or 0, and nothing has happened. */
uint32_t ms_ledger_rises(struct ms_shard *shard, const struct ms_arrival *arrival);

/* Its past is written down. */
static MS_INLINE void raise_site(struct ms_site *site, const struct ms_arrival *arrival)
{
    const struct ms_block *block = &arrival->block;
    uint64_t bytes = block->bytes;
    site->live_bytes += bytes;
    site->live_count++;
    if (site->live_bytes > site->max_bytes)
        site->max_bytes = site->live_bytes;
    uint64_t extra = rounding(bytes, block->requested);
    site->rounding_bytes += extra;
    if (MS_UNLIKELY(extra && !arrival->again))
        site->total_rounding_bytes += extra;
    if (MS_UNLIKELY(arrival->again)) {
        site->total_bytes += arrival->grown_bytes;
        site->free_count--;
        site->lifetime_ns_sum -= lifetime_ns(block->born_ns, block->freed_ns);
        return;
    }
    site->size_hist[size_class(bytes, arrival->served)]++;
    site->total_bytes += bytes;
    site->total_count++;
    site->last_ns = arrival->now_ns;
    if (MS_UNLIKELY(arrival->sampled) && site->stack)
        ms_estimate_add(&site->estimate, bytes);
}

static MS_INLINE void raise_amount(struct ms_amount *amount, const struct ms_arrival *arrival)
{
    amount->live_bytes += arrival->block.bytes;
    amount->live_count++;
    amount->total_bytes += arrival->again ? arrival->grown_bytes : arrival->block.bytes;
    amount->total_count += !arrival->again;
}

static inline void lower_amount(struct ms_amount *amount, uint64_t bytes)
{
    amount->live_bytes -= bytes;
    amount->live_count--;
}

static MS_INLINE void raise_account(struct ms_account *row, const struct ms_arrival *arrival)
{
    const struct ms_block *block = &arrival->block;
    struct ms_amount *kind = &row->kinds[block->kind];
    row->last_ns = arrival->now_ns;
    raise_amount(kind, arrival);
    if (kind->live_bytes > kind->peak_live_bytes)
        kind->peak_live_bytes = kind->live_bytes;
    if (MS_LIKELY(ms_kind_is_device(block->kind)))
        raise_amount(&row->device, arrival);
    else
        ms_totals_raise_host(block->kind, block->bytes, arrival->again);
}

static MS_INLINE bool has_room(const struct ms_shard *shard, const struct ms_arrival *arrival)
{
    return !ms_kind_is_device(arrival->block.kind) ||
           (shard->row->device.live_bytes + arrival->block.bytes <= shard->charge &&
            arrival->now_ns < shard->until_ns);
}

/* Everything but that it is live. Returns the word of its state. */
static MS_INLINE uint32_t fill_row(struct ms_block_row *block_row, uint32_t site,
                                   const struct ms_shard *shard, const struct ms_arrival *arrival)
{
    const struct ms_block *block = &arrival->block;
    uint32_t state = ms_block_row_set(block_row, MS_BLOCK_ROW_CHANGING);
    atomic_thread_fence(memory_order_release);
    block_row->key = block->key;
    block_row->bytes = block->bytes;
    block_row->requested = block->requested;
    block_row->context = block->context;
    block_row->stream = block->stream;
    block_row->born_ns = arrival->again ? block->born_ns : arrival->now_ns;
    block_row->site = site;
    block_row->thread = block->thread;
    block_row->api = block->api;
    block_row->device = shard->device;
    block_row->tags =
        (uint8_t)(block->kind | (block->space & 3) << 4 | block->outlives_context * MS_BLOCK_ROW_OUTLIVES |
                  arrival->served * MS_BLOCK_ROW_SERVED);
    return state;
}

/* A free row becomes the block's, and what it counts in is raised. `site` may be NULL, or its past is
 * written down. */
static MS_INLINE void ms_totals_in(struct ms_shard *shard, struct ms_block_row *block_row, uint32_t number,
                                   struct ms_site *site, const struct ms_arrival *arrival)
{
    uint32_t state = fill_row(block_row, number, shard, arrival);
    if (MS_LIKELY(site))
        raise_site(site, arrival);
    raise_account(shard->row, arrival);
    ms_block_row_set_from(block_row, state, MS_BLOCK_ROW_LIVE);
}

static MS_INLINE void lower_site(struct ms_site *site, const struct ms_block_row *block_row,
                                 enum ms_block_end end, uint64_t now_ns)
{
    site->live_bytes -= block_row->bytes;
    site->live_count--;
    if (MS_UNLIKELY(block_row->bytes != block_row->requested))
        site->rounding_bytes -= rounding(block_row->bytes, block_row->requested);
    if (end == MS_BLOCK_FREED) {
        site->free_count++;
        site->lifetime_ns_sum += lifetime_ns(block_row->born_ns, now_ns);
        site->freed_key = block_row->key;
        site->freed_bytes = block_row->bytes;
        site->freed_ns = now_ns;
    } else if (end == MS_BLOCK_DIED) {
        site->died_bytes += block_row->bytes;
        site->died_count++;
    }
}

static MS_INLINE void lower_account(struct ms_account *row, unsigned kind, uint64_t bytes, uint64_t now_ns)
{
    row->last_ns = now_ns;
    lower_amount(&row->kinds[kind], bytes);
    if (MS_LIKELY(ms_kind_is_device(kind)))
        lower_amount(&row->device, bytes);
    else
        ms_totals_lower_host(kind, bytes);
}

/* The row becomes the first of the free ones, and what it counted in is lowered. `site` may be NULL, or its
 * past is written down. */
static MS_INLINE void ms_totals_out(struct ms_shard *shard, uint32_t record_id,
                                    struct ms_block_row *block_row, struct ms_site *site, unsigned kind,
                                    enum ms_block_end end, uint64_t now_ns)
{
    ms_block_row_set(block_row, MS_BLOCK_ROW_FREE);
    if (MS_LIKELY(site))
        lower_site(site, block_row, end, now_ns);
    lower_account(shard->row, kind, block_row->bytes, now_ns);
    block_row->freed_ns = now_ns;
    block_row->next = shard->free_list;
    shard->free_list = record_id;
}

#endif
