/* shards.c - the shards of each account: opening and locking them, and the peak that they have in common; see
 * shards.h.
 *
 * Floor 2. Locks: the account's (MS_RANK_PEAK), and then those of its shards (MS_RANK_SITE), in order.
 * Nothing is allocated but rows. */
#include "config.h"

#include <string.h>

#include "base/compiler.h"
#include "record/live/internal.h"
#include "record/live/shards.h"
#include "record/file/process.h"

enum { WAITS_MAX = 8, NO_TIMELINE_NS = 1 << 20, HEADROOM_SHARE = 64, HEADROOM_BYTES = 64 << 10 };

/* A lock's rank is looked at only where it is checked; without, this takes no room in the library. */
#ifdef MS_DEBUG_CHECKS
struct ms_shard ms_shards[MS_SHARDS][MS_ACCOUNTS] = {
    [0 ... MS_SHARDS - 1] = {[0 ... MS_ACCOUNTS - 1] = {.lock = MS_BIAS_INIT(MS_RANK_SITE)}}};
#else
struct ms_shard ms_shards[MS_SHARDS][MS_ACCOUNTS];
#endif
MS_TLS struct ms_shard_choice ms_shard_mine;

/* The part of an account that its shards have in common. */
static struct MS_CACHELINE common {
    struct ms_lock lock;
    uint32_t open;            /* bit k: shard k */
    uint64_t bound, until_ns; /* where there is more than one shard */
    bool is_measured;         /* there is an interval: ms_shards_begin_interval */
    struct ms_history *timeline;
} commons[MS_ACCOUNTS] = {[0 ... MS_ACCOUNTS - 1] = {.lock = MS_LOCK_INIT(MS_RANK_PEAK)}};

static struct ms_account aside[MS_ACCOUNTS]; /* where there is no memory for the table */
static struct ms_account *_Atomic accounts = aside;
static _Atomic uint32_t next_shard;
_Atomic uint64_t ms_shards_used[(MS_ACCOUNTS + 63) / 64];
static _Atomic bool first_is_measured; /* ms_shards_measure_first */

struct ms_account *ms_account_of(int device)
{
    return atomic_load_explicit(&accounts, memory_order_acquire) + ms_account_number(device);
}

/* Under the lock of the account, or where nobody else is yet. */
static void open_shard(unsigned number, unsigned account, struct ms_account *row)
{
    struct ms_shard *shard = &ms_shards[number][account];
    shard->number = (uint8_t)number;
    shard->device = (int8_t)ms_device_plain(ms_account_device(account));
    shard->is_alone = number == 0;
    shard->row = row;
    shard->peaks = ms_shards[0][account].peaks;
    if (!shard->latest_row) {
        shard->latest_site = MS_SITE_UNKNOWN;
        shard->latest_key = MS_SITE_NO_KEY;
    }
    commons[account].open |= UINT32_C(1) << number;
}

void ms_accounts_open(void)
{
    bool have = ms_table_reserve(MS_TABLE_ACCOUNTS, MS_ACCOUNTS);
    struct ms_account *rows = have ? MS_ROWS(ACCOUNTS, struct ms_account) : aside;
    if (ms_shards[0][0].row && atomic_load_explicit(&accounts, memory_order_relaxed) == rows)
        return;
    if (have)
        ms_table_publish(MS_TABLE_ACCOUNTS, MS_ACCOUNTS);
    for (unsigned i = 0; i < MS_ACCOUNTS; i++)
        open_shard(0, i, rows + i);
    atomic_store_explicit(&accounts, rows, memory_order_release);
}

/* --- locks --- */

static unsigned shards_number_of(const struct ms_shard *shard)
{
    return (unsigned)(shard - ms_shards[0]) / MS_ACCOUNTS;
}

/* Who has it only for a visit is no reason to leave. */
MS_NOINLINE void ms_shard_lock_after_wait(struct ms_shard *shard)
{
    ms_bias_lock(&shard->lock, MS_BIAS_SHARD);
    if (shards_number_of(shard) == ms_shard_mine.shard && !ms_bias_was_mine(&shard->lock) &&
        ++ms_shard_mine.waits >= WAITS_MAX) {
        ms_shard_mine.waits = 0;
        ms_shard_mine.shard =
            (uint8_t)(1 + atomic_fetch_add_explicit(&next_shard, 1, memory_order_relaxed) % (MS_SHARDS - 1));
    }
}

static void lock_shards(unsigned account, uint32_t shards)
{
    for (uint32_t left = shards; left; left &= left - 1)
        ms_bias_lock_plainly(&ms_shards[__builtin_ctz(left)][account].lock, MS_BIAS_SHARD);
}

void ms_shards_lock(unsigned account)
{
    ms_lock(&commons[account].lock);
    lock_shards(account, commons[account].open);
}

void ms_shards_unlock(unsigned account)
{
    for (uint32_t left = commons[account].open; left; left &= left - 1)
        ms_bias_unlock_plainly(&ms_shards[__builtin_ctz(left)][account].lock);
    ms_unlock(&commons[account].lock);
}

static bool has_rows(unsigned number, unsigned account)
{
    uint64_t rows = (uint64_t)(number + 1) * MS_ACCOUNTS;
    if (ms_shards[0][account].row == &aside[account] || !ms_table_reserve(MS_TABLE_ACCOUNTS, rows))
        return false;
    if (ms_table_rows(MS_TABLE_ACCOUNTS) < rows)
        ms_table_publish(MS_TABLE_ACCOUNTS, rows);
    return true;
}

/* Under all locks. */
static void open_another(unsigned number, unsigned account)
{
    struct ms_shard *first = &ms_shards[0][account];
    if (first->is_alone) {
        commons[account].bound = first->charge;
        commons[account].until_ns = first->until_ns;
        first->is_alone = false;
    }
    open_shard(number, account, MS_ROWS(ACCOUNTS, struct ms_account) + number * MS_ACCOUNTS + account);
}

struct ms_shard *ms_shards_lock_with(struct ms_shard *shard)
{
    unsigned account = ms_shard_account(shard), number = shards_number_of(shard);
    ms_lock(&commons[account].lock);
    bool is_new = !(commons[account].open >> number & 1);
    if (is_new && !has_rows(number, account)) {
        is_new = false;
        ms_shard_mine.shard = 0;
        shard = &ms_shards[0][account];
    }
    /* It is open when all are locked, and no sooner: until then the only shard sums up what is open by
     * itself. */
    lock_shards(account, commons[account].open | (uint32_t)is_new << number);
    if (is_new)
        open_another(number, account);
    return shard;
}

void ms_account_lock(int device)
{
    ms_shards_lock(ms_account_number(device));
}

void ms_account_unlock(int device)
{
    ms_shards_unlock(ms_account_number(device));
}

/* Which locks ms_accounts_lock_all got; only the report's thread uses it. Shards are not opened meanwhile. */
static struct {
    bool common, shards[MS_SHARDS];
} held[MS_ACCOUNTS];

static bool lock_within(struct ms_lock *lock, unsigned *timeout_ms_p)
{
    bool good = ms_lock_within(lock, *timeout_ms_p);
    if (!good)
        *timeout_ms_p = 0; /* the wait is paid once */
    return good;
}

static bool shard_within(struct ms_shard *shard, unsigned *timeout_ms_p)
{
    bool good = ms_bias_lock_within(&shard->lock, MS_BIAS_SHARD, *timeout_ms_p);
    if (!good)
        *timeout_ms_p = 0;
    return good;
}

bool ms_accounts_lock_all(unsigned timeout_ms)
{
    bool all = true;
    for (unsigned i = 0; i < MS_ACCOUNTS; i++)
        all &= held[i].common = lock_within(&commons[i].lock, &timeout_ms);
    for (unsigned k = 0; k < MS_SHARDS; k++) {
        for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
            bool open = commons[i].open >> k & 1;
            held[i].shards[k] = open && shard_within(&ms_shards[k][i], &timeout_ms);
            all &= held[i].shards[k] == open;
        }
    }
    return all;
}

void ms_accounts_unlock_all(void)
{
    for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
        for (unsigned k = 0; k < MS_SHARDS; k++) {
            if (held[i].shards[k])
                ms_bias_unlock_plainly(&ms_shards[k][i].lock);
        }
        if (held[i].common)
            ms_unlock(&commons[i].lock);
    }
}

/* --- the peak --- */

static uint64_t end_of_stretch(const struct ms_history *timeline, uint64_t now_ns)
{
    unsigned shift = ms_history_shift(timeline);
    return timeline ? ((uint64_t)timeline->last + 1) << shift : now_ns + NO_TIMELINE_NS;
}

/* A bucket of the timeline began, or more is live than ever was in this one: `live` becomes `after`. Returns
 * the end of the bucket. */
static uint64_t note_live(unsigned account, uint64_t now_ns, uint64_t live, uint64_t after)
{
    struct common *common = &commons[account];
    if (MS_UNLIKELY(!common->timeline))
        common->timeline = ms_history_of(account, true);
    ms_history_note(common->timeline, now_ns, live, after);
    atomic_store_explicit(&ms_process()->latest_ns, now_ns, memory_order_release);
    return end_of_stretch(common->timeline, now_ns);
}

static uint64_t live_in_all(unsigned account)
{
    uint64_t live = 0;
    for (uint32_t left = commons[account].open; left; left &= left - 1)
        live += ms_shards[__builtin_ctz(left)][account].row->device.live_bytes;
    return live;
}

/* Of the device, or of the interval that is measured. */
static uint64_t shards_peak_of(unsigned account)
{
    const struct ms_account *row = ms_shards[0][account].row;
    uint64_t peak = row->device.peak_live_bytes;
    return commons[account].is_measured && row->interval_peak_bytes < peak ? row->interval_peak_bytes : peak;
}

static bool is_new_peak(unsigned account, uint64_t live)
{
    return live > shards_peak_of(account);
}

/* How far shards may rise together before anybody hears of it, where `live` bytes are live: no peak is
 * missed, and what the timeline says of a bucket may be as much less than there was. */
static uint64_t bound_for(unsigned account, uint64_t live)
{
    uint64_t peak = shards_peak_of(account), bound = live + live / HEADROOM_SHARE + HEADROOM_BYTES;
    return bound <= peak ? bound : live > peak ? live : peak;
}

static void count_peak(unsigned account)
{
    struct ms_account *row = ms_shards[0][account].row;
    row->peaks++;
    for (uint32_t left = commons[account].open; left; left &= left - 1) {
        struct ms_shard *shard = &ms_shards[__builtin_ctz(left)][account];
        shard->peaks = row->peaks;
        shard->latest_until_ns = 0;
    }
}

/* An account that begins to be used while phases are open is in an interval from its first block on. Whoever
 * begins a phase says so and then looks who is used: one of both sees the other. */
static void note_used(unsigned account, uint64_t now_ns)
{
    uint64_t bit = UINT64_C(1) << account % 64;
    if (!(atomic_fetch_or(&ms_shards_used[account / 64], bit) & bit) && atomic_load(&first_is_measured))
        ms_shards_begin_interval(account, true, now_ns);
}

void ms_shards_measure_first(bool is_measured)
{
    atomic_store(&first_is_measured, is_measured);
}

void ms_shards_set_peak(unsigned account, uint64_t now_ns)
{
    struct ms_account *row = ms_shards[0][account].row;
    uint64_t live = live_in_all(account);
    bool is_device = live > row->device.peak_live_bytes;
    if (is_device)
        row->device.peak_live_bytes = live;
    count_peak(account);
    if (is_device) {
        row->device_peaks = row->peaks;
        row->peak_ns = now_ns;
    }
    if (commons[account].is_measured) {
        row->interval_peak_bytes = live;
        row->interval_peak_ns = now_ns;
    }
}

static void set_until(struct ms_shard *shard, uint64_t until_ns)
{
    shard->until_ns = until_ns;
    shard->latest_until_ns = 0;
}

bool ms_shard_make_room(struct ms_shard *shard, uint64_t bytes, uint64_t now_ns)
{
    unsigned account = ms_shard_account(shard);
    uint64_t live = shard->row->device.live_bytes, after = live + bytes;
    if (now_ns >= shard->until_ns) {
        set_until(shard, note_live(account, now_ns, live, live));
        shard->charge = live;
    }
    if (after <= shard->charge)
        return false;
    if (MS_UNLIKELY(!live))
        note_used(account, now_ns);
    set_until(shard, note_live(account, now_ns, live, after));
    shard->charge = after;
    return is_new_peak(account, after);
}

bool ms_shard_rise(struct ms_shard *shard, uint64_t bytes, uint64_t now_ns, bool *is_peak_p)
{
    if (!shard->is_alone || !shard->row->device.live_bytes)
        return false;
    *is_peak_p = ms_shard_make_room(shard, bytes, now_ns);
    return true;
}

static unsigned count_active(unsigned account)
{
    unsigned count = 0;
    for (uint32_t left = commons[account].open; left; left &= left - 1)
        count += ms_shards[__builtin_ctz(left)][account].is_active;
    return count;
}

/* The room that is left below the bound is for the shards that were active since it was last shared out. */
static void share_out(unsigned account, uint64_t room)
{
    struct common *common = &commons[account];
    unsigned active = count_active(account);
    for (uint32_t left = common->open; left; left &= left - 1) {
        struct ms_shard *shard = &ms_shards[__builtin_ctz(left)][account];
        shard->charge = shard->row->device.live_bytes + (shard->is_active ? room / active : 0);
        set_until(shard, common->until_ns);
        shard->is_active = false;
    }
}

bool ms_shards_make_room(struct ms_shard *shard, uint64_t bytes, uint64_t now_ns)
{
    unsigned account = ms_shard_account(shard);
    struct common *common = &commons[account];
    if (shard->is_alone)
        return ms_shard_make_room(shard, bytes, now_ns);
    uint64_t live = live_in_all(account), after = live + bytes;
    if (now_ns >= common->until_ns) {
        common->until_ns = note_live(account, now_ns, live, live);
        common->bound = bound_for(account, live);
    }
    if (after > common->bound) {
        if (MS_UNLIKELY(!live))
            note_used(account, now_ns);
        common->until_ns = note_live(account, now_ns, live, after);
        common->bound = bound_for(account, after);
    }
    shard->is_active |= bytes != 0;
    share_out(account, common->bound - after);
    shard->charge += bytes;
    return is_new_peak(account, after);
}

/* Marks of the device's peak that stand in the words that intervals use are kept aside. */
static void keep_device_peak(unsigned account)
{
    const struct ms_account *row = ms_shards[0][account].row;
    if (row->device_peaks != row->peaks)
        return;
    for (uint32_t i = 0; i < ms_site_count(); i++) {
        struct ms_site *site = ms_site_at(i);
        if (site && ms_account_number(site->device) == account)
            site->kept_peak_bytes = ms_site_at_peak(row->peaks, site);
    }
}

/* The bound is what is live now, so that whatever rises above it is heard of. */
static void lower_bound(unsigned account, uint64_t live)
{
    struct ms_shard *first = &ms_shards[0][account];
    if (first->is_alone) {
        first->charge = live;
        return;
    }
    commons[account].bound = live;
    share_out(account, 0);
}

void ms_shards_begin_interval(unsigned account, bool is_measured, uint64_t now_ns)
{
    struct ms_account *row = ms_shards[0][account].row;
    uint64_t live = live_in_all(account);
    commons[account].is_measured = is_measured;
    if (is_measured) {
        keep_device_peak(account);
        count_peak(account);
        lower_bound(account, live);
    }
    row->interval_peak_bytes = is_measured ? live : 0;
    row->interval_peak_ns = now_ns;
}

MS_NOINLINE void ms_shards_begin_bucket(unsigned account, uint64_t now_ns)
{
    ms_shards_lock(account);
    ms_shards_make_room(&ms_shards[0][account], 0, now_ns);
    ms_shards_unlock(account);
}

/* --- reading --- */

static void add_amount(struct ms_amount *sum, const struct ms_amount *amount)
{
    sum->live_bytes += amount->live_bytes;
    sum->live_count += amount->live_count;
    sum->peak_live_bytes += amount->peak_live_bytes;
    sum->total_bytes += amount->total_bytes;
    sum->total_count += amount->total_count;
}

void ms_account_sum(unsigned number, struct ms_account *sum_p)
{
    *sum_p = *ms_account_of(ms_account_device(number));
    for (uint32_t left = commons[number].open & ~UINT32_C(1); left; left &= left - 1) {
        const struct ms_account *row = ms_shards[__builtin_ctz(left)][number].row;
        add_amount(&sum_p->device, &row->device);
        for (unsigned kind = 0; kind < MS_KIND_COUNT; kind++)
            add_amount(&sum_p->kinds[kind], &row->kinds[kind]);
        sum_p->last_ns = row->last_ns > sum_p->last_ns ? row->last_ns : sum_p->last_ns;
    }
    for (unsigned kind = 0; ms_kind_is_device(kind); kind++) {
        struct ms_amount *amount = &sum_p->kinds[kind];
        if (amount->peak_live_bytes > sum_p->device.peak_live_bytes)
            amount->peak_live_bytes = sum_p->device.peak_live_bytes;
    }
}

uint64_t ms_account_live(int device)
{
    unsigned account = ms_account_number(device);
    ms_shards_lock(account);
    uint64_t live = live_in_all(account);
    ms_shards_unlock(account);
    return live;
}

bool ms_account_is_bounded(unsigned number)
{
    uint64_t charges = 0, peak = ms_shards[0][number].row->device.peak_live_bytes;
    for (uint32_t left = commons[number].open; left; left &= left - 1) {
        const struct ms_shard *shard = &ms_shards[__builtin_ctz(left)][number];
        if (shard->row->device.live_bytes > shard->charge || shard->peaks != ms_shards[0][number].row->peaks)
            return false;
        charges += shard->charge;
    }
    uint64_t bound = ms_shards[0][number].is_alone ? ms_shards[0][number].charge : commons[number].bound;
    return charges <= bound && bound <= peak;
}

/* The bytes that a site holds in all shards, now or at the latest rise. */
static uint64_t held_by(const struct ms_site *site, const uint64_t *peaks)
{
    uint64_t bytes = peaks ? ms_site_at_peak(*peaks, site) : site->live_bytes;
    for (uint32_t next = site->next; next; next = ms_site_row(next - 1)->next) {
        const struct ms_site *more = ms_site_row(next - 1);
        bytes += peaks ? ms_site_at_peak(*peaks, more) : more->live_bytes;
    }
    return bytes;
}

/* Under the locks of the account, or of its only shard. */
static unsigned top_sites(const struct ms_shard *first, const uint64_t *peaks, uint32_t *sites,
                          uint64_t *bytes)
{
    unsigned count = 0;
    for (uint32_t place = 0; first->site_index && place <= first->site_mask; place++) {
        const struct ms_site *site =
            first->site_index[place] ? ms_site_row(first->site_index[place] - 1) : NULL;
        uint64_t live = site && ms_kind_is_device(site->kind) ? held_by(site, peaks) : 0;
        if (!live)
            continue;
        unsigned rank = count < MS_OOM_TOP_SITES ? count++ : MS_OOM_TOP_SITES;
        for (; rank > 0 && bytes[rank - 1] < live; rank--) {
            if (rank < MS_OOM_TOP_SITES) {
                bytes[rank] = bytes[rank - 1];
                sites[rank] = sites[rank - 1];
            }
        }
        if (rank < MS_OOM_TOP_SITES) {
            bytes[rank] = live;
            sites[rank] = site->whole;
        }
    }
    return count;
}

void ms_account_each_site(int device, void (*tell)(void *arg, uint32_t site, uint64_t bytes), void *arg)
{
    const struct ms_shard *first = &ms_shards[0][ms_account_number(device)];
    ms_account_lock(device);
    for (uint32_t place = 0; first->site_index && place <= first->site_mask; place++) {
        const struct ms_site *site =
            first->site_index[place] ? ms_site_row(first->site_index[place] - 1) : NULL;
        uint64_t live = site && ms_kind_is_device(site->kind) ? held_by(site, NULL) : 0;
        if (live)
            tell(arg, site->whole, live);
    }
    ms_account_unlock(device);
}

unsigned ms_account_top_sites(int device, uint32_t *sites, uint64_t *bytes)
{
    ms_account_lock(device);
    unsigned count = top_sites(&ms_shards[0][ms_account_number(device)], NULL, sites, bytes);
    ms_account_unlock(device);
    return count;
}

unsigned ms_shards_top_at_rise(unsigned account, uint32_t *sites, uint64_t *bytes)
{
    const struct ms_shard *first = &ms_shards[0][account];
    return top_sites(first, &first->row->peaks, sites, bytes);
}

/* A shard is locked before it is open: a fork may come between, and who had it is no more. */
static bool was_locked(const struct ms_shard *shard)
{
    return atomic_load_explicit(&shard->lock.lock.state, memory_order_relaxed) ||
           atomic_load_explicit(&shard->lock.lock.waiters, memory_order_relaxed) ||
           atomic_load_explicit(&shard->lock.owner, memory_order_relaxed);
}

static void accounts_reset(void)
{
    memset(aside, 0, sizeof aside);
    atomic_store_explicit(&accounts, aside, memory_order_relaxed);
    atomic_store_explicit(&next_shard, 0, memory_order_relaxed);
    atomic_store(&first_is_measured, false);
    for (unsigned i = 0; i < MS_ARRAY_LEN(ms_shards_used); i++)
        atomic_store_explicit(&ms_shards_used[i], 0, memory_order_relaxed);
    for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
        for (unsigned number = 0; number < MS_SHARDS; number++) {
            struct ms_shard *shard = &ms_shards[number][i];
            if (!(commons[i].open >> number & 1) && !was_locked(shard))
                continue;
            memset((void *)shard, 0, sizeof *shard);
            shard->lock.lock.rank = MS_RANK_SITE;
        }
        memset((void *)&commons[i], 0, sizeof commons[i]);
        commons[i].lock.rank = MS_RANK_PEAK;
    }
    ms_shard_mine.shard = ms_shard_mine.waits = 0;
}
MS_AT_FORK(MS_FORK_RECORD, accounts_reset);
