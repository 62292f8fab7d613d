/* sites.c - accounts (one per device) and sites (one per stack, device, api and kind).
 *
 * Floor 2. Everything of a device is under the lock of its account, its sites included, for a site has one
 * device. The table of sites is append-only, from the arena.
 *
 * Invariants (ms_ledger_check): the live blocks of a site add up to its live_bytes and live_count; the sites
 * of a device of device-memory kinds add up to the account's; peak >= live. */
#include "config.h"

#include <string.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "ledger/internal.h"

enum {
    SITES_PER_CHUNK = 256,
    SITE_CHUNKS_MAX = MS_SITES_MAX / SITES_PER_CHUNK,
    INDEX_START = 64,
    NO_ACCOUNT = MS_DEVICES_MAX
};

static struct ms_account accounts[MS_ACCOUNTS];
static struct ms_lock locks[MS_ACCOUNTS] = {[0 ... MS_ACCOUNTS - 1] = MS_LOCK_INIT(MS_RANK_SITE)};
static struct ms_site *_Atomic chunks[SITE_CHUNKS_MAX];
static _Atomic uint32_t site_count; /* given out; a site past the arena's end has no chunk */
static _Atomic uint64_t sites_dropped;

/* What is not device memory, over all devices, because a sum's peak is not the sum of peaks. */
static struct {
    _Atomic uint64_t live_bytes, live_count, peak_live_bytes, total_bytes, total_count;
} kinds[MS_KIND_COUNT];

struct ms_account *ms_account_of(int device)
{
    return &accounts[device >= 0 && device < MS_DEVICES_MAX ? device : NO_ACCOUNT];
}

void ms_account_lock(const struct ms_account *account)
{
    ms_lock(&locks[account - accounts]);
}

bool ms_account_lock_within(const struct ms_account *account, unsigned timeout_ms)
{
    return ms_lock_within(&locks[account - accounts], timeout_ms);
}

void ms_account_unlock(const struct ms_account *account)
{
    ms_unlock(&locks[account - accounts]);
}

struct ms_site *ms_site_at(uint32_t site)
{
    if (site >= MS_SITES_MAX)
        return NULL;
    struct ms_site *chunk = atomic_load_explicit(&chunks[site / SITES_PER_CHUNK], memory_order_acquire);
    return chunk ? &chunk[site % SITES_PER_CHUNK] : NULL;
}

uint32_t ms_site_count(void)
{
    uint32_t count = atomic_load_explicit(&site_count, memory_order_acquire);
    return count < MS_SITES_MAX ? count : MS_SITES_MAX;
}

uint64_t ms_sites_dropped(void)
{
    return atomic_load_explicit(&sites_dropped, memory_order_relaxed);
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
static bool make_room(struct ms_account *account)
{
    if (account->site_count < account->site_slots / 2)
        return true;
    uint32_t slots = account->site_slots ? account->site_slots * 2 : INDEX_START;
    uint32_t *index = ms_arena_alloc(slots * sizeof *index);
    if (!index)
        return false;
    for (uint32_t i = 0; i < account->site_slots; i++) {
        if (!account->site_index[i])
            continue;
        const struct ms_site *site = ms_site_at(account->site_index[i] - 1);
        uint32_t slot = hash(site->stack, site->api, site->kind) & (slots - 1);
        while (index[slot])
            slot = (slot + 1) & (slots - 1);
        index[slot] = account->site_index[i];
    }
    account->site_index = index;
    account->site_slots = slots;
    return true;
}

/* The chunk of a site that was just given out; two devices may race for the first site of a chunk. */
static struct ms_site *chunk_for(uint32_t site)
{
    struct ms_site *_Atomic *place = &chunks[site / SITES_PER_CHUNK];
    struct ms_site *chunk = atomic_load_explicit(place, memory_order_acquire);
    if (chunk)
        return chunk;
    struct ms_site *fresh = ms_arena_alloc(SITES_PER_CHUNK * sizeof *fresh);
    if (!fresh)
        return NULL;
    return atomic_compare_exchange_strong(place, &chunk, fresh) ? fresh : chunk;
}

static uint32_t new_site(const struct ms_block *block)
{
    uint32_t number = atomic_load_explicit(&site_count, memory_order_relaxed);
    do {
        if (number >= MS_SITES_MAX)
            return UINT32_MAX;
    } while (!atomic_compare_exchange_weak(&site_count, &number, number + 1));
    struct ms_site *chunk = chunk_for(number);
    if (!chunk)
        return UINT32_MAX;
    struct ms_site *site = &chunk[number % SITES_PER_CHUNK];
    site->stack = block->stack;
    site->device = block->device;
    site->api = block->api;
    site->kind = block->kind;
    site->first_ns = block->born_ns;
    return number;
}

static uint32_t find_site(struct ms_account *account, const struct ms_block *block)
{
    if (!make_room(account))
        return UINT32_MAX;
    uint32_t mask = account->site_slots - 1;
    uint32_t slot = hash(block->stack, block->api, block->kind) & mask;
    for (; account->site_index[slot]; slot = (slot + 1) & mask) {
        uint32_t number = account->site_index[slot] - 1;
        if (is_site_of(ms_site_at(number), block))
            return number;
    }
    uint32_t number = new_site(block);
    if (number == UINT32_MAX) {
        atomic_fetch_add_explicit(&sites_dropped, 1, memory_order_relaxed);
        return number;
    }
    account->site_index[slot] = number + 1;
    account->site_count++;
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
    uint64_t live = atomic_fetch_add_explicit(&kinds[kind].live_bytes, bytes, memory_order_relaxed) + bytes;
    uint64_t peak = atomic_load_explicit(&kinds[kind].peak_live_bytes, memory_order_relaxed);
    while (live > peak && !atomic_compare_exchange_weak_explicit(&kinds[kind].peak_live_bytes, &peak, live,
                                                                 memory_order_relaxed, memory_order_relaxed))
        ;
    atomic_fetch_add_explicit(&kinds[kind].live_count, 1, memory_order_relaxed);
}

static void lower_kind(unsigned kind, uint64_t bytes)
{
    atomic_fetch_sub_explicit(&kinds[kind].live_bytes, bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&kinds[kind].live_count, 1, memory_order_relaxed);
}

void ms_kind_amount(enum ms_kind kind, struct ms_amount *amount_p)
{
    amount_p->live_bytes = atomic_load_explicit(&kinds[kind].live_bytes, memory_order_relaxed);
    amount_p->live_count = atomic_load_explicit(&kinds[kind].live_count, memory_order_relaxed);
    amount_p->peak_live_bytes = atomic_load_explicit(&kinds[kind].peak_live_bytes, memory_order_relaxed);
    amount_p->total_bytes = atomic_load_explicit(&kinds[kind].total_bytes, memory_order_relaxed);
    amount_p->total_count = atomic_load_explicit(&kinds[kind].total_count, memory_order_relaxed);
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

/* Live totals of the account and of the block's site, one block up. */
static void raise_live(struct ms_account *account, const struct ms_block *block, uint64_t now_ns)
{
    struct ms_site *site = ms_site_at(block->site);
    if (site) {
        keep_peak(account, site);
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
    ms_timeline_note(&account->timeline, now_ns, before, account->device.live_bytes);
}

uint32_t ms_account_add(const struct ms_block *new_block)
{
    struct ms_block block = *new_block;
    struct ms_account *account = ms_account_of(block.device);
    ms_account_lock(account);
    block.site = find_site(account, &block);
    struct ms_site *site = ms_site_at(block.site);
    if (site) {
        site->total_bytes += block.bytes;
        site->total_count++;
        site->last_ns = block.born_ns;
        site->size_hist[size_class(block.bytes)]++;
    }
    account->kinds[block.kind].total_bytes += block.bytes;
    account->kinds[block.kind].total_count++;
    if (ms_kind_is_device(block.kind)) {
        account->device.total_bytes += block.bytes;
        account->device.total_count++;
    } else {
        atomic_fetch_add_explicit(&kinds[block.kind].total_bytes, block.bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&kinds[block.kind].total_count, 1, memory_order_relaxed);
    }
    raise_live(account, &block, block.born_ns);
    ms_account_unlock(account);
    return block.site;
}

/* How a block ended, in its site's figures. */
static void count_end(struct ms_site *site, const struct ms_block *block, enum ms_block_end end,
                      uint64_t now_ns)
{
    if (end == MS_BLOCK_FREED) {
        site->free_count++;
        site->lifetime_ns_sum += now_ns - block->born_ns;
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
    if (site) {
        keep_peak(account, site);
        site->live_bytes -= block->bytes;
        site->live_count--;
        site->rounding_bytes -= rounding(block);
        count_end(site, block, end, now_ns);
    }
    lower_amount(&account->kinds[block->kind], block->bytes);
    if (ms_kind_is_device(block->kind)) {
        uint64_t before = account->device.live_bytes;
        lower_amount(&account->device, block->bytes);
        ms_timeline_note(&account->timeline, now_ns, before, account->device.live_bytes);
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
        site->lifetime_ns_sum -= block->freed_ns - block->born_ns;
    }
    raise_live(account, block, now_ns);
    ms_account_unlock(account);
}

unsigned ms_account_top_sites(int device, uint32_t *sites, uint64_t *bytes)
{
    struct ms_account *account = ms_account_of(device);
    unsigned count = 0;
    ms_account_lock(account);
    for (uint32_t slot = 0; slot < account->site_slots; slot++) {
        const struct ms_site *site =
            account->site_index[slot] ? ms_site_at(account->site_index[slot] - 1) : NULL;
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
            sites[place] = account->site_index[slot] - 1;
        }
    }
    ms_account_unlock(account);
    return count;
}

void ms_accounts_reset(void)
{
    memset(accounts, 0, sizeof accounts);
    memset((void *)kinds, 0, sizeof kinds);
    for (unsigned i = 0; i < MS_ACCOUNTS; i++)
        ms_lock_reset(&locks[i]);
    for (unsigned i = 0; i < SITE_CHUNKS_MAX; i++)
        atomic_store_explicit(&chunks[i], NULL, memory_order_relaxed);
    atomic_store_explicit(&site_count, 0, memory_order_relaxed);
    atomic_store_explicit(&sites_dropped, 0, memory_order_relaxed);
}
