/* shards.h - the shards of an account: what threads that record at the same time do not share.
 *
 * Floor 2, for accounts.c and sites.c. A shard has its own totals, its own rows of sites and its own rows,
 * under a lock of its own. All threads begin in shard 0; one that has to wait for the lock often goes to a
 * shard of its own. A block stays in the shard in which it was counted, whoever frees it.
 *
 * The peak of a device is exact all the same. Each shard has a charge, up to which its live bytes may rise
 * without anybody else hearing of it; the charges of all shards add up to no more than the bound, which is
 * never above the peak. Where a charge does not suffice, all shards stop, what is live in all of them is
 * counted, and either there is room below the bound, which is shared out anew, or the bound rises, and with
 * it perhaps the peak. The bound lies somewhat above what is live, so that shards stop seldom: by so much
 * what the timeline says of a bucket may be less than there was. While there is one shard its charge is the
 * bound, which is the most that was live in the current bucket, and nobody has to be stopped. */
#ifndef MS_RECORD_LIVE_SHARDS_H
#define MS_RECORD_LIVE_SHARDS_H

#include "base/thread/bias.h"
#include "record/live/rows.h"

struct MS_CACHELINE ms_shard {
    struct ms_bias lock; /* MS_RANK_SITE */
    uint8_t number;
    int8_t device;  /* of its account, as rows have it */
    bool is_alone;  /* the account has no other */
    bool is_active; /* something was counted in since the charges were shared out */
    uint32_t site_mask;
    uint64_t charge, until_ns; /* until_ns: the end of the bucket for which the charge is */
    uint64_t peaks;            /* of the device: a copy of the row's */
    struct ms_account *row;    /* NULL until the shard is opened */
    uint32_t *site_index;      /* hash table of numbers of sites, + 1 */
    uint32_t free_list;        /* row + 1, linked through `next` of the free rows */
    uint32_t fresh, fresh_end; /* rows that were taken and not used yet */
    uint32_t site_count;
    /* The site that was looked for last, as a program asks for the same again and again: its number; by
       ms_site_key; its row; and until when nothing but what it holds has to be written there (totals.h), 0 if
       that is not known. MS_SITE_UNKNOWN and MS_SITE_NO_KEY, which no site has, before the first. */
    uint32_t latest_site;
    uint64_t latest_key;
    struct ms_site *latest_row;
    uint64_t latest_until_ns;
};

#define MS_SITE_UNKNOWN (UINT32_MAX - 1)
#define MS_SITE_NO_KEY  UINT64_MAX

extern MS_HIDDEN struct ms_shard ms_shards[MS_SHARDS][MS_ACCOUNTS];

/** In which shard this thread counts, and how often it had to wait there. */
struct ms_shard_choice {
    uint8_t shard, waits;
};
extern MS_TLS struct ms_shard_choice ms_shard_mine;

static inline unsigned ms_shard_account(const struct ms_shard *shard)
{
    return (unsigned)(shard - ms_shards[0]) % MS_ACCOUNTS;
}

/** Threads that wait for each other go separate ways. */
void ms_shard_lock_after_wait(struct ms_shard *shard);
static inline void ms_shard_lock(struct ms_shard *shard)
{
    if (MS_UNLIKELY(!ms_bias_try(&shard->lock, MS_BIAS_SHARD)))
        ms_shard_lock_after_wait(shard);
}
static inline void ms_shard_unlock(struct ms_shard *shard)
{
    ms_bias_unlock(&shard->lock, MS_BIAS_SHARD);
}

/** All locks of an account. */
void ms_shards_lock(unsigned account);
void ms_shards_unlock(unsigned account);
/** All locks of that shard's account; the shard is opened if it was not. Returns the shard; shard 0, where it
 * cannot be had. */
struct ms_shard *ms_shards_lock_with(struct ms_shard *shard);

/** Under the shard's lock, of an only shard: room for `bytes` more, now. Returns whether what is live then is
 * a new peak. */
bool ms_shard_make_room(struct ms_shard *shard, uint64_t bytes, uint64_t now_ns);
/** As ms_shard_make_room, of a shard that may have others beside it, or nothing in it yet: false, and nothing
 * has happened, where it needs more than its own lock. */
bool ms_shard_rise(struct ms_shard *shard, uint64_t bytes, uint64_t now_ns, bool *is_peak_p);
/** As ms_shard_make_room, among however many shards, under all locks of the account. The room that there is
 * beyond is for the shards that are active. */
bool ms_shards_make_room(struct ms_shard *shard, uint64_t bytes, uint64_t now_ns);
/** After the block that made a new peak was counted, under the same locks. */
void ms_shards_set_peak(unsigned account, uint64_t now_ns);
/** With none of them: a bucket of the timeline ended, the next one begins with what is live now. */
void ms_shards_begin_bucket(unsigned account, uint64_t now_ns);

/** Under all locks of the account, or of its only shard: an interval begins (phases.h), or nobody measures
 * any more. Its peak is what is live now, and from here on each rise of it is one of `peaks`. */
void ms_shards_begin_interval(unsigned account, bool is_measured, uint64_t now_ns);
/** Sets whether an account that is used for the first time begins an interval by that: so it is while phases
 * are open. */
void ms_shards_measure_first(bool is_measured);
/** Under the same: the sites that held most at the latest rise. At most MS_OOM_TOP_SITES, largest first. */
unsigned ms_shards_top_at_rise(unsigned account, uint32_t *sites, uint64_t *bytes);
/** Bit i of word i / 64: something was counted in account i. */
extern _Atomic uint64_t ms_shards_used[(MS_ACCOUNTS + 63) / 64];

/* sites.c, under the shard's lock. */
/** NULL for UINT32_MAX. */
static inline struct ms_site *ms_site_row(uint32_t number)
{
    return number == UINT32_MAX ? NULL : &MS_ROWS(SITES, struct ms_site)[number];
}
/** Tells one site of an account from all others. */
static inline uint64_t ms_site_key(ms_stack_id stack, unsigned api, unsigned kind)
{
    return (uint64_t)stack << 24 | api << 8 | kind;
}

/** The number of the site in this shard; UINT32_MAX if it has none. */
uint32_t ms_shard_look_for_site(struct ms_shard *shard, uint64_t key);
static inline uint32_t ms_shard_find_site(struct ms_shard *shard, ms_stack_id stack, unsigned api,
                                          unsigned kind)
{
    uint64_t key = ms_site_key(stack, api, kind);
    if (MS_LIKELY(shard->latest_key == key && shard->latest_row))
        return shard->latest_site;
    return ms_shard_look_for_site(shard, key);
}
/** The number of the site in this shard, which is made where there is none. In shard 0, where there is no
 * room, it is the site without a stack of its device, function and kind; UINT32_MAX where that has none
 * either, which is counted. In another shard `whole` is its number in shard 0, and all shards are locked;
 * UINT32_MAX: the block is to be counted there. */
uint32_t ms_shard_make_site(struct ms_shard *shard, const struct ms_block *block, uint64_t now_ns,
                            uint32_t whole);

#endif
