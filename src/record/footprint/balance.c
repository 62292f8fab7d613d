/* balance.c - see balance.h.
 *
 * Floor 2. Two rows for each device. What is followed is a sum beside the accounts, which count what is
 * served in the same words: a free that is answered by the pool never comes here. One lock
 * (MS_RANK_TIMELINE). */
#include <errno.h>

#include "quota/quota.h"
#include "record/footprint/balance.h"
#include "record/footprint/granules.h"

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_TIMELINE);
static _Atomic uint64_t followed[MS_DEVICES_MAX], in_pools[MS_DEVICES_MAX], imported[MS_DEVICES_MAX], managed;
static _Atomic uint64_t beside[MS_DEVICES_MAX]; /* bytes that the vendor made, managed ones too */

static struct ms_balance_row *balance_row_of(int device, enum ms_balance_moment moment)
{
    return &MS_ROWS(BALANCES, struct ms_balance_row)[device * MS_BALANCE_MOMENTS + (int)moment];
}

bool ms_balance_close(struct ms_balance *balance)
{
    uint64_t known = ms_balance_known(balance);
    balance->untracked_bytes = balance->in_use_bytes > known ? balance->in_use_bytes - known : 0;
    return balance->in_use_bytes >= known;
}

static void take_off(uint64_t *term, uint64_t *excess)
{
    uint64_t less = *term < *excess ? *term : *excess;
    *term -= less;
    *excess -= less;
}

bool ms_balance_close_less(struct ms_balance *balance)
{
    uint64_t known = ms_balance_known(balance),
             excess = known > balance->in_use_bytes ? known - balance->in_use_bytes : 0;
    take_off(&balance->driver_rounding_bytes, &excess);
    take_off(&balance->driver_cached_bytes, &excess);
    return ms_balance_close(balance);
}

/* Which sum a block counts in. */
static _Atomic uint64_t *sum_of(int device, enum ms_kind kind)
{
    if (kind == MS_KIND_MANAGED)
        return &managed;
    if (device < 0 || device >= MS_DEVICES_MAX)
        return NULL;
    return ms_kind_is_vendors(kind) ? &followed[device] : kind == MS_KIND_IMPORTED ? &imported[device] : NULL;
}

static bool has_address(const struct ms_block_row *row)
{
    return ms_block_row_kind(row) == MS_KIND_DEVICE && ms_block_row_space(row) == MS_SPACE_ADDRESS;
}

static bool is_in_pool(const struct ms_block_row *row)
{
    return ms_block_row_kind(row) == MS_KIND_ASYNC && row->device >= 0;
}

static bool is_beside(const struct ms_block_row *row)
{
    return (unsigned)row->device < MS_DEVICES_MAX && ms_kind_is_vendors(ms_block_row_kind(row));
}

uint64_t ms_balance_beside(int device)
{
    return device >= 0 && device < MS_DEVICES_MAX ? atomic_load(&beside[device]) : 0;
}

void ms_balance_follow(const struct ms_block_row *row, uint64_t now_ns)
{
    _Atomic uint64_t *sum = sum_of(row->device, ms_block_row_kind(row));
    if (is_beside(row)) {
        uint64_t before = atomic_fetch_add(&beside[row->device], row->bytes);
        ms_pools_beside(row->device, now_ns, before + row->bytes, row->bytes);
        ms_quota_came(row->device, row->bytes);
    }
    if (sum)
        atomic_fetch_add_explicit(sum, row->bytes, memory_order_relaxed);
    if (has_address(row))
        ms_granules_in(row->device, row->key, row->bytes);
    else if (ms_block_row_kind(row) == MS_KIND_ARRAY)
        ms_granules_array(row->device, row->bytes, 1);
    else if (is_in_pool(row))
        atomic_fetch_add_explicit(&in_pools[row->device], row->bytes, memory_order_relaxed);
}

void ms_balance_unfollow(const struct ms_block_row *row, uint64_t now_ns)
{
    _Atomic uint64_t *sum = sum_of(row->device, ms_block_row_kind(row));
    if (is_beside(row)) {
        uint64_t before = atomic_fetch_sub(&beside[row->device], row->bytes);
        ms_pools_beside(row->device, now_ns, before - row->bytes, -row->bytes);
        ms_quota_went(row->device, row->bytes);
    }
    if (sum)
        atomic_fetch_sub_explicit(sum, row->bytes, memory_order_relaxed);
    if (has_address(row))
        ms_granules_out(row->device, row->key, row->bytes);
    else if (ms_block_row_kind(row) == MS_KIND_ARRAY)
        ms_granules_array(row->device, row->bytes, -1);
    else if (is_in_pool(row))
        atomic_fetch_sub_explicit(&in_pools[row->device], row->bytes, memory_order_relaxed);
}

static uint64_t sum_now(const _Atomic uint64_t *sums, int device)
{
    return device >= 0 && device < MS_DEVICES_MAX ? atomic_load_explicit(&sums[device], memory_order_relaxed)
                                                  : 0;
}

uint64_t ms_ledger_followed(int device)
{
    return sum_now(followed, device);
}

uint64_t ms_ledger_followed_in_pools(int device)
{
    return sum_now(in_pools, device);
}

uint64_t ms_ledger_managed(void)
{
    return atomic_load_explicit(&managed, memory_order_relaxed);
}

uint64_t ms_ledger_imported(int device)
{
    return sum_now(imported, device);
}

static bool open_rows(int device)
{
    uint64_t rows = ((uint64_t)device + 1) * MS_BALANCE_MOMENTS;
    if (!ms_table_reserve(MS_TABLE_BALANCES, rows))
        return false;
    if (ms_table_rows(MS_TABLE_BALANCES) < rows)
        ms_table_publish(MS_TABLE_BALANCES, rows);
    return true;
}

/* Word by word, since a row is read while it is written; the reader finds that out by its sequence. */
static void copy(struct ms_balance *to, const struct ms_balance *from)
{
    typedef uint64_t __attribute__((may_alias)) word;
    _Static_assert(sizeof *to % sizeof(word) == 0, "made of words");
    for (size_t i = 0; i < sizeof *to / sizeof(word); i++)
        __atomic_store_n((word *)to + i, __atomic_load_n((const word *)from + i, __ATOMIC_RELAXED),
                         __ATOMIC_RELAXED);
}

static void write_row(struct ms_balance_row *row, const struct ms_balance *balance)
{
    uint32_t sequence = atomic_load_explicit(&row->sequence, memory_order_relaxed);
    atomic_store_explicit(&row->sequence, sequence | 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    copy(&row->balance, balance);
    atomic_store_explicit(&row->sequence, (sequence | 1) + 1, memory_order_release);
}

void ms_ledger_balance(int device, const struct ms_balance *balance)
{
    int saved_errno = errno;
    if (device < 0 || device >= MS_DEVICES_MAX)
        return;
    ms_events_touch();
    ms_lock(&lock);
    if (open_rows(device)) {
        struct ms_balance_row *peak = balance_row_of(device, MS_BALANCE_PEAK),
                              *latest = balance_row_of(device, MS_BALANCE_LATEST);
        if (balance->in_use_bytes >= peak->balance.in_use_bytes || !atomic_load(&peak->sequence))
            write_row(peak, balance);
        if (balance->asked_ns >= latest->balance.asked_ns)
            write_row(latest, balance);
    }
    ms_unlock(&lock);
    errno = saved_errno;
}

void ms_ledger_balance_missed(int device, enum ms_balance_miss miss)
{
    if (device < 0 || device >= MS_DEVICES_MAX)
        return;
    ms_events_touch();
    ms_lock(&lock);
    if (open_rows(device))
        atomic_fetch_add_explicit(&balance_row_of(device, MS_BALANCE_LATEST)->missed[miss], 1,
                                  memory_order_relaxed);
    ms_unlock(&lock);
}

uint32_t ms_balance_missed(int device, enum ms_balance_miss miss)
{
    if (device < 0 || ((uint64_t)device + 1) * MS_BALANCE_MOMENTS > ms_table_rows(MS_TABLE_BALANCES))
        return 0;
    return atomic_load_explicit(&balance_row_of(device, MS_BALANCE_LATEST)->missed[miss],
                                memory_order_relaxed);
}

bool ms_balance_read(int device, enum ms_balance_moment moment, struct ms_balance *balance_p)
{
    if (device < 0 || ((uint64_t)device + 1) * MS_BALANCE_MOMENTS > ms_table_rows(MS_TABLE_BALANCES))
        return false;
    const struct ms_balance_row *row = balance_row_of(device, moment);
    uint32_t sequence = atomic_load_explicit(&row->sequence, memory_order_acquire);
    copy(balance_p, &row->balance);
    atomic_thread_fence(memory_order_acquire);
    return sequence && !(sequence & 1) &&
           atomic_load_explicit(&row->sequence, memory_order_relaxed) == sequence;
}

/* No term is more than the sum, however large a damaged file says that it is. */
static bool adds_up(const struct ms_balance *balance)
{
    const struct ms_parts *p = &balance->parts;
    const uint64_t terms[] = {p->requested,
                              p->rounding,
                              p->pending,
                              p->cached,
                              p->stranded,
                              p->pinned,
                              balance->followed_bytes,
                              balance->driver_rounding_bytes,
                              balance->driver_cached_bytes,
                              balance->contexts_bytes,
                              balance->untracked_bytes};
    uint64_t left = balance->in_use_bytes;
    for (size_t i = 0; i < sizeof terms / sizeof terms[0]; i++) {
        if (terms[i] > left)
            return false;
        left -= terms[i];
    }
    return !left;
}

static void adopt(void *unused, const struct ms_block *block)
{
    (void)unused;
    if (block->is_served)
        return;
    if (block->kind == MS_KIND_DEVICE && block->space == MS_SPACE_ADDRESS)
        ms_granules_in(block->device, block->key, block->bytes);
    else if (block->kind == MS_KIND_ARRAY)
        ms_granules_array(block->device, block->bytes, 1);
}

void ms_balance_adopt(void)
{
    ms_blocks_each(adopt, NULL);
}

void ms_balance_clean(void)
{
    for (uint64_t i = 0; i < ms_table_rows(MS_TABLE_BALANCES); i++) {
        struct ms_balance_row *row = &MS_ROWS(BALANCES, struct ms_balance_row)[i];
        const struct ms_balance *balance = &row->balance;
        if (balance->in_use_bytes > INT64_MAX || balance->asked_ns > INT64_MAX / 4 ||
            balance->managed_bytes > INT64_MAX || balance->neighbours_bytes > INT64_MAX || !adds_up(balance))
            atomic_store(&row->sequence, 0);
    }
}

static void balance_reset(void)
{
    ms_lock_reset(&lock);
    atomic_store_explicit(&managed, 0, memory_order_relaxed);
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        atomic_store_explicit(&followed[device], 0, memory_order_relaxed);
        atomic_store(&beside[device], 0);
        atomic_store_explicit(&in_pools[device], 0, memory_order_relaxed);
        atomic_store_explicit(&imported[device], 0, memory_order_relaxed);
    }
}
MS_AT_FORK(MS_FORK_RECORD, balance_reset);
