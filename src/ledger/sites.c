/* sites.c - accounts (one per device) and sites (one per stack, device, api and kind).
 *
 * Floor 2. Everything of a device is under the lock of its account, its sites included, for a site has one
 * device. The tables are rows of the record, append-only; the indices are this process's own.
 *
 * Invariants (ms_ledger_check): the live blocks of a site add up to its live_bytes and live_count; the sites
 * of a device of device-memory kinds add up to the account's; peak >= live. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "ledger/process.h"

enum { INDEX_START = 64 };

/* What a process needs to find the sites of a device. */
static struct own {
    struct ms_lock lock;
    uint32_t slots, count;
    uint32_t *index; /* hash table of site numbers + 1 */
    struct ms_timeline *timeline;
} own[MS_ACCOUNTS] = {[0 ... MS_ACCOUNTS - 1] = {.lock = MS_LOCK_INIT(MS_RANK_SITE)}};

static struct ms_account aside[MS_ACCOUNTS]; /* where there is no memory for the table */
static struct ms_account *_Atomic accounts = aside;

void ms_accounts_open(void)
{
    if (atomic_load_explicit(&accounts, memory_order_relaxed) != aside ||
        !ms_table_reserve(MS_TABLE_ACCOUNTS, MS_ACCOUNTS))
        return;
    ms_table_publish(MS_TABLE_ACCOUNTS, MS_ACCOUNTS);
    atomic_store_explicit(&accounts, MS_ROWS(ACCOUNTS, struct ms_account), memory_order_release);
}

unsigned ms_account_number(int device)
{
    return device >= 0 && device < MS_DEVICES_MAX ? (unsigned)device : MS_DEVICES_MAX;
}

struct ms_account *ms_account_of(int device)
{
    return atomic_load_explicit(&accounts, memory_order_acquire) + ms_account_number(device);
}

static struct own *own_of(const struct ms_account *account)
{
    return &own[account - atomic_load_explicit(&accounts, memory_order_relaxed)];
}

void ms_account_lock(const struct ms_account *account)
{
    ms_lock(&own_of(account)->lock);
}

bool ms_account_lock_within(const struct ms_account *account, unsigned timeout_ms)
{
    return ms_lock_within(&own_of(account)->lock, timeout_ms);
}

void ms_account_unlock(const struct ms_account *account)
{
    ms_unlock(&own_of(account)->lock);
}

struct ms_site *ms_site_at(uint32_t site)
{
    if (site >= ms_table_rows(MS_TABLE_SITES))
        return NULL;
    struct ms_site *row = &MS_ROWS(SITES, struct ms_site)[site];
    return atomic_load_explicit(&row->state, memory_order_acquire) ? row : NULL;
}

uint32_t ms_site_count(void)
{
    return (uint32_t)ms_table_rows(MS_TABLE_SITES);
}

uint64_t ms_sites_dropped(void)
{
    return ms_table_dropped(MS_TABLE_SITES);
}

static uint32_t hash(ms_stack_id stack, unsigned api, unsigned kind)
{
    uint64_t h = ((uint64_t)stack << 24 | api << 8 | kind) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

static bool is_site_of(const struct ms_site *site, const struct ms_block *block)
{
    return site->stack == block->stack && site->api == block->api && site->kind == block->kind;
}

/* Makes the index hold one more at half load. Slots hold site + 1; 0 is empty. */
static bool make_room(struct own *mine)
{
    if (mine->count < mine->slots / 2)
        return true;
    uint32_t slots = mine->slots ? mine->slots * 2 : INDEX_START;
    uint32_t *index = ms_arena_alloc(slots * sizeof *index);
    if (!index)
        return false;
    for (uint32_t i = 0; i < mine->slots; i++) {
        if (!mine->index[i])
            continue;
        const struct ms_site *site = ms_site_at(mine->index[i] - 1);
        uint32_t slot = hash(site->stack, site->api, site->kind) & (slots - 1);
        while (index[slot])
            slot = (slot + 1) & (slots - 1);
        index[slot] = mine->index[i];
    }
    mine->index = index;
    mine->slots = slots;
    return true;
}

static uint32_t new_site(const struct ms_block *block)
{
    uint64_t number;
    if (!ms_table_take(MS_TABLE_SITES, 1, &number))
        return UINT32_MAX;
    struct ms_site *site = &MS_ROWS(SITES, struct ms_site)[number];
    site->stack = block->stack;
    site->device = block->device;
    site->api = block->api;
    site->kind = block->kind;
    site->first_ns = block->born_ns;
    site->span_shift = MS_SPAN_SHIFT_START;
    atomic_store_explicit(&site->state, 1, memory_order_release);
    return (uint32_t)number;
}

static uint32_t find_site(struct own *mine, const struct ms_block *block)
{
    if (!make_room(mine))
        return UINT32_MAX;
    uint32_t mask = mine->slots - 1;
    uint32_t slot = hash(block->stack, block->api, block->kind) & mask;
    for (; mine->index[slot]; slot = (slot + 1) & mask) {
        uint32_t number = mine->index[slot] - 1;
        if (is_site_of(ms_site_at(number), block))
            return number;
    }
    uint32_t number = new_site(block);
    if (number == UINT32_MAX) {
        ms_table_drop(MS_TABLE_SITES);
        return number;
    }
    mine->index[slot] = number + 1;
    mine->count++;
    return number;
}

/* What the vendor was asked for beyond what the program asked for. */
static uint64_t rounding(const struct ms_block *block)
{
    return block->bytes > block->requested ? block->bytes - block->requested : 0;
}

static unsigned size_class(uint64_t bytes)
{
    unsigned power = bytes ? 63 - (unsigned)__builtin_clzll(bytes) : 0;
    return power < MS_SIZE_CLASSES ? power : MS_SIZE_CLASSES - 1;
}

static void raise_amount(struct ms_amount *amount, uint64_t bytes)
{
    amount->live_bytes += bytes;
    amount->live_count++;
    if (amount->live_bytes > amount->peak_live_bytes)
        amount->peak_live_bytes = amount->live_bytes;
}

static void lower_amount(struct ms_amount *amount, uint64_t bytes)
{
    amount->live_bytes -= bytes;
    amount->live_count--;
}

static void raise_kind(unsigned kind, uint64_t bytes)
{
    __typeof__(&ms_process()->kinds[0]) amount = &ms_process()->kinds[kind];
    uint64_t live = atomic_fetch_add_explicit(&amount->live_bytes, bytes, memory_order_relaxed) + bytes;
    uint64_t peak = atomic_load_explicit(&amount->peak_live_bytes, memory_order_relaxed);
    while (live > peak && !atomic_compare_exchange_weak_explicit(&amount->peak_live_bytes, &peak, live,
                                                                 memory_order_relaxed, memory_order_relaxed))
        ;
    atomic_fetch_add_explicit(&amount->live_count, 1, memory_order_relaxed);
}

static void lower_kind(unsigned kind, uint64_t bytes)
{
    __typeof__(&ms_process()->kinds[0]) amount = &ms_process()->kinds[kind];
    atomic_fetch_sub_explicit(&amount->live_bytes, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&amount->live_count, 1, memory_order_relaxed);
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

uint64_t ms_site_at_peak(const struct ms_account *account, const struct ms_site *site)
{
    return site->peak_seen == account->peaks ? site->at_peak_bytes : site->live_bytes;
}

/* Before a site changes: write down what it held at the latest peak, unless that was done. */
static void keep_peak(const struct ms_account *account, struct ms_site *site)
{
    site->at_peak_bytes = ms_site_at_peak(account, site);
    site->peak_seen = account->peaks;
}

/* The device's live bytes were `before` until now. */
static void note_live(struct ms_account *account, uint64_t now_ns, uint64_t before)
{
    struct own *mine = own_of(account);
    if (MS_UNLIKELY(!mine->timeline))
        mine->timeline = ms_timeline_of((unsigned)(mine - own), true);
    ms_timeline_note(mine->timeline, now_ns, before, account->device.live_bytes);
}

/* Live totals of the account and of the block's site, one block up. */
static void raise_live(struct ms_account *account, struct ms_site *site, const struct ms_block *block,
                       uint64_t now_ns)
{
    account->last_ns = now_ns;
    if (site) {
        keep_peak(account, site);
        ms_site_mark(site, now_ns, site->live_bytes);
        site->live_bytes += block->bytes;
        site->live_count++;
        site->rounding_bytes += rounding(block);
        if (site->live_bytes > site->max_bytes)
            site->max_bytes = site->live_bytes;
    }
    raise_amount(&account->kinds[block->kind], block->bytes);
    if (!ms_kind_is_device(block->kind)) {
        raise_kind(block->kind, block->bytes);
        return;
    }
    uint64_t before = account->device.live_bytes, peak = account->device.peak_live_bytes;
    raise_amount(&account->device, block->bytes);
    if (account->device.peak_live_bytes > peak) {
        account->peaks++;
        account->peak_ns = now_ns;
    }
    note_live(account, now_ns, before);
}

uint32_t ms_account_add(const struct ms_block *block)
{
    struct ms_account *account = ms_account_of(block->device);
    ms_account_lock(account);
    uint32_t number = find_site(own_of(account), block);
    struct ms_site *site = ms_site_at(number);
    if (site) {
        site->size_hist[size_class(block->bytes)]++;
        site->total_bytes += block->bytes;
        site->total_count++;
        site->last_ns = block->born_ns;
        if (ms_stack_sampling() && block->stack)
            ms_estimate_add(&site->estimate, block->bytes);
    }
    account->kinds[block->kind].total_bytes += block->bytes;
    account->kinds[block->kind].total_count++;
    if (ms_kind_is_device(block->kind)) {
        account->device.total_bytes += block->bytes;
        account->device.total_count++;
    } else {
        __typeof__(&ms_process()->kinds[0]) amount = &ms_process()->kinds[block->kind];
        atomic_fetch_add_explicit(&amount->total_bytes, block->bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&amount->total_count, 1, memory_order_relaxed);
    }
    raise_live(account, site, block, block->born_ns);
    ms_account_unlock(account);
    return number;
}

/* Born on one processor, freed on another, whose clocks differ a little. */
static uint64_t lifetime_ns(const struct ms_block *block, uint64_t end_ns)
{
    return end_ns > block->born_ns ? end_ns - block->born_ns : 0;
}

/* How a block ended, in its site's figures. */
static void count_end(struct ms_site *site, const struct ms_block *block, enum ms_block_end end,
                      uint64_t now_ns)
{
    if (end == MS_BLOCK_FREED) {
        site->free_count++;
        site->lifetime_ns_sum += lifetime_ns(block, now_ns);
    } else if (end == MS_BLOCK_DIED) {
        site->died_bytes += block->bytes;
        site->died_count++;
    }
}

void ms_account_remove(const struct ms_block *block, enum ms_block_end end, uint64_t now_ns)
{
    struct ms_account *account = ms_account_of(block->device);
    ms_account_lock(account);
    struct ms_site *site = ms_site_at(block->site);
    account->last_ns = now_ns;
    if (site) {
        keep_peak(account, site);
        ms_site_mark(site, now_ns, site->live_bytes);
        site->live_bytes -= block->bytes;
        site->live_count--;
        site->rounding_bytes -= rounding(block);
        count_end(site, block, end, now_ns);
    }
    lower_amount(&account->kinds[block->kind], block->bytes);
    if (ms_kind_is_device(block->kind)) {
        uint64_t before = account->device.live_bytes;
        lower_amount(&account->device, block->bytes);
        note_live(account, now_ns, before);
    } else {
        lower_kind(block->kind, block->bytes);
    }
    ms_account_unlock(account);
}

void ms_account_restore(const struct ms_block *block)
{
    struct ms_account *account = ms_account_of(block->device);
    uint64_t now_ns = ms_ledger_now();
    ms_account_lock(account);
    struct ms_site *site = ms_site_at(block->site);
    if (site) {
        site->free_count--;
        site->lifetime_ns_sum -= lifetime_ns(block, block->freed_ns);
    }
    raise_live(account, site, block, now_ns);
    ms_account_unlock(account);
}

unsigned ms_account_top_sites(int device, uint32_t *sites, uint64_t *bytes)
{
    struct ms_account *account = ms_account_of(device);
    const struct own *mine = own_of(account);
    unsigned count = 0;
    ms_account_lock(account);
    for (uint32_t slot = 0; slot < mine->slots; slot++) {
        const struct ms_site *site = mine->index[slot] ? ms_site_at(mine->index[slot] - 1) : NULL;
        if (!site || !site->live_bytes || !ms_kind_is_device(site->kind))
            continue;
        unsigned place = count < MS_OOM_TOP_SITES ? count++ : MS_OOM_TOP_SITES;
        for (; place > 0 && bytes[place - 1] < site->live_bytes; place--) {
            if (place < MS_OOM_TOP_SITES) {
                bytes[place] = bytes[place - 1];
                sites[place] = sites[place - 1];
            }
        }
        if (place < MS_OOM_TOP_SITES) {
            bytes[place] = site->live_bytes;
            sites[place] = mine->index[slot] - 1;
        }
    }
    ms_account_unlock(account);
    return count;
}

void ms_accounts_reset(void)
{
    memset(aside, 0, sizeof aside);
    atomic_store_explicit(&accounts, aside, memory_order_relaxed);
    for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
        own[i].slots = own[i].count = 0;
        own[i].index = NULL;
        own[i].timeline = NULL;
        ms_lock_reset(&own[i].lock);
    }
}
