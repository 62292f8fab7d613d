/* hit.h - the record's half of a hit: a block that a thread counts in or out by itself, in the shard that it
 * has at hand and whose lock it holds (base/thread/fast_cache.h).
 *
 * Floor 2, for src/pool/blocks/hit.c alone. It is ms_ledger_serve_plain and ms_ledger_unserve where the shard
 * needs nobody: what it would have to ask for is looked at first, and is left to those. Both ways count by
 * totals.h. */
#ifndef MS_RECORD_LIVE_HIT_H
#define MS_RECORD_LIVE_HIT_H

#include "record/live/totals.h"

/* The tags in the row of a block that is counted in here, and of none that differs in any way. */
enum { MS_HIT_TAGS = MS_KIND_DEVICE | MS_SPACE_ADDRESS << 4 | MS_BLOCK_ROW_SERVED };

/** A site was looked for in the shard, and there is a latest one from now on. */
static inline bool ms_ledger_hit_may_be(const struct ms_shard *shard)
{
    return shard->latest_row != NULL;
}

/** True if the site is in the shard, whose latest it is then. */
static MS_INLINE bool ms_ledger_hit_site(struct ms_shard *shard, ms_stack_id stack, uint16_t api)
{
    uint64_t key = ms_site_key(stack, api, MS_KIND_DEVICE);
    return MS_LIKELY(shard->latest_key == key) || ms_shard_look_for_site(shard, key) != UINT32_MAX;
}

/** As ms_ledger_serve_plain, of the shard's latest site; or 0, and nothing has happened, for want of a row or
 * room. */
static MS_INLINE uint32_t ms_ledger_hit_in(struct ms_shard *shard, uint32_t thread, uint64_t address,
                                           uint64_t bytes, uint64_t context, uint16_t api, uint64_t now_ns)
{
    const struct ms_arrival arrival = {.block = {.key = address,
                                                 .bytes = bytes,
                                                 .requested = bytes,
                                                 .context = context,
                                                 .thread = thread,
                                                 .api = api,
                                                 .space = MS_SPACE_ADDRESS,
                                                 .kind = MS_KIND_DEVICE},
                                       .now_ns = now_ns,
                                       .served = true};
    if (MS_UNLIKELY(shard->row->device.live_bytes + bytes > shard->charge)) {
        const struct ms_arrival copy = arrival; /* or all of it would lie in memory */
        return ms_ledger_hit_rises(shard, &copy);
    }
    if (MS_UNLIKELY(!ms_totals_past_is_kept(shard, now_ns)))
        return 0;
    uint32_t record_id = shard->free_list;
    if (MS_UNLIKELY(!record_id))
        return 0;
    struct ms_block_row *row = ms_block_row_at(record_id - 1);
    struct ms_site *site = shard->latest_row;
    if (!site)
        __builtin_unreachable(); /* ms_ledger_hit_may_be */
    shard->free_list = row->next;
    shard->is_active = true;
    ms_totals_in(shard, row, shard->latest_site, site, &arrival);
    return record_id;
}

/** True if the row has the block, and the shard can count it out by itself: then *site_p is its site. In a
 * row that is another shard's, what is read may be anything. */
static MS_UNSYNCHRONIZED_INLINE bool ms_ledger_hit_row(struct ms_shard *shard, const struct ms_block_row *row,
                                                       uint64_t key, uint64_t now_ns, struct ms_site **site_p)
{
    struct ms_site *site = *site_p = shard->latest_row;
    if (MS_UNLIKELY(!ms_block_row_is_live(row) || row->key != key || row->tags != MS_HIT_TAGS))
        return false;
    if (MS_LIKELY(row->site == shard->latest_site))
        return ms_totals_past_is_kept(shard, now_ns);
    bool is_peak;
    if (row->site >= ms_table_rows(MS_TABLE_SITES) ||
        (now_ns >= shard->until_ns && !ms_shard_rise(shard, 0, now_ns, &is_peak)))
        return false;
    site = *site_p = ms_site_row(row->site);
    if (site->shard != shard->number || site->device != shard->device)
        return false;
    keep_past(shard, site, now_ns);
    return true;
}

/** Counts out the block that ms_ledger_hit_row has found, as ms_ledger_unserve does. */
static MS_INLINE void ms_ledger_hit_out(struct ms_shard *shard, uint32_t record_id, struct ms_block_row *row,
                                        struct ms_site *site, uint64_t now_ns)
{
    if (!site)
        __builtin_unreachable();
    ms_totals_out(shard, record_id, row, site, MS_KIND_DEVICE, MS_BLOCK_FREED, now_ns);
}

#endif
