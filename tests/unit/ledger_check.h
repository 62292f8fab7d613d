/* ledger_check.h - whether the sums of a record add up, for tests. */
#ifndef TESTS_LEDGER_CHECK_H
#define TESTS_LEDGER_CHECK_H

#include <stdio.h>
#include <sys/mman.h>

#include "record/live/internal.h"

/* What the live blocks add up to. */
struct sums {
    struct ms_amount devices[MS_ACCOUNTS], kinds[MS_KIND_COUNT];
    struct ms_amount sites[MS_SITES_MAX];
};

static void add_amount(struct ms_amount *amount, uint64_t bytes, uint64_t count)
{
    amount->live_bytes += bytes;
    amount->live_count += count;
}

static void add_block(void *arg, const struct ms_block *block)
{
    struct sums *sums = arg;
    if (ms_kind_is_device(block->kind))
        add_amount(&sums->devices[ms_account_number(block->device)], block->bytes, 1);
    add_amount(&sums->kinds[block->kind], block->bytes, 1);
    if (block->site < MS_SITES_MAX)
        add_amount(&sums->sites[block->site], block->bytes, 1);
}

static inline unsigned differs(const struct ms_amount *blocks, uint64_t live_bytes, uint64_t live_count,
                               const char *what, unsigned number)
{
    if (blocks->live_bytes == live_bytes && blocks->live_count == live_count)
        return 0;
    fprintf(stderr, "%s %u has %llu bytes in %llu blocks; its blocks have %llu in %llu\n", what, number,
            (unsigned long long)live_bytes, (unsigned long long)live_count,
            (unsigned long long)blocks->live_bytes, (unsigned long long)blocks->live_count);
    return 1;
}

static unsigned check_accounts(const struct sums *sums)
{
    unsigned wrong = 0;
    for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
        struct ms_account sum;
        ms_account_sum(i, &sum);
        wrong += differs(&sums->devices[i], sum.device.live_bytes, sum.device.live_count, "device", i);
        if (sum.device.peak_live_bytes < sum.device.live_bytes ||
            sum.device.total_bytes < sum.device.peak_live_bytes) {
            fprintf(stderr, "device %u: live, peak and total are out of order\n", i);
            wrong++;
        }
        if (!ms_account_is_bounded(i)) {
            fprintf(stderr, "device %u: its lanes may hold more than its peak\n", i);
            wrong++;
        }
    }
    for (unsigned kind = 0; kind < MS_KIND_COUNT; kind++) {
        struct ms_amount amount;
        if (ms_kind_is_device(kind))
            continue;
        ms_kind_amount(kind, &amount);
        wrong += differs(&sums->kinds[kind], amount.live_bytes, amount.live_count, "kind", kind);
    }
    return wrong;
}

static unsigned check_sites(const struct sums *sums)
{
    unsigned wrong = 0;
    uint64_t at_peak[MS_ACCOUNTS] = {0};
    for (uint32_t i = 0; i < ms_site_count(); i++) {
        const struct ms_site *site = ms_site_at(i);
        if (!site)
            continue;
        wrong += differs(&sums->sites[i], site->live_bytes, site->live_count, "site", i);
        if (ms_kind_is_device(site->kind))
            at_peak[ms_account_number(site->device)] +=
                ms_site_at_device_peak(ms_account_of(site->device), site);
    }
    for (unsigned i = 0; i < MS_ACCOUNTS && !ms_sites_dropped(); i++) {
        const struct ms_amount *device = &ms_account_of(ms_account_device(i))->device;
        if (at_peak[i] == device->peak_live_bytes)
            continue;
        fprintf(stderr, "device %u peaked at %llu bytes, its sites held %llu then\n", i,
                (unsigned long long)device->peak_live_bytes, (unsigned long long)at_peak[i]);
        wrong++;
    }
    return wrong;
}

/** Compares live blocks with the totals of devices, kinds and sites, and each device's peak with what its
 * sites held then. Returns how many equations do not hold (each is told on standard error), or -1 without
 * memory. Stops the world meanwhile. */
static inline int ledger_check(void)
{
    struct sums *sums = mmap(NULL, sizeof *sums, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sums == MAP_FAILED)
        return -1;
    ms_blocks_lock_all(10000);
    ms_accounts_lock_all(10000);
    ms_blocks_each(add_block, sums);
    unsigned wrong = check_accounts(sums) + check_sites(sums);
    ms_accounts_unlock_all();
    ms_blocks_unlock_all();
    munmap(sums, sizeof *sums);
    return (int)wrong;
}

#endif
