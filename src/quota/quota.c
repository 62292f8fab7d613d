/* quota.c - see quota.h.
 *
 * A purse is one word of the thread's: bit 63 while it is open, the device in 8 bits from bit 48 on, and the
 * bytes below. No lock; what is counted changes by one atomic step. */
#include "quota/quota.h"

#include <stddef.h>

#include "base/at_fork.h"

#define OPEN     (UINT64_C(1) << 63)
#define BYTES    ((UINT64_C(1) << 48) - 1)
#define NO_LIMIT UINT64_MAX

struct quota {
    _Atomic uint64_t taken; /* bytes */
    _Atomic uint64_t limit; /* bytes, + 1; 0: it is not known yet, or there is none */
    _Atomic bool known;
    _Atomic(const struct ms_quota_others *) others; /* NULL: it is not shared */
};

_Atomic bool ms_quota_bounded;
static struct quota quotas[MS_DEVICES_MAX];
static MS_TLS uint64_t purse;

/* --- the limit ------------------------------------------------------------------------------------------ */

void ms_quota_bound(void)
{
    atomic_store_explicit(&ms_quota_bounded, true, memory_order_relaxed);
}

void ms_quota_allow(int device, uint64_t limit_bytes)
{
    uint64_t none = 0;
    if (!ms_device_is_known(device))
        return;
    if (limit_bytes != NO_LIMIT)
        atomic_compare_exchange_strong(&quotas[device].limit, &none,
                                       (limit_bytes < BYTES ? limit_bytes : BYTES) + 1);
    atomic_store(&quotas[device].known, true);
}

bool ms_quota_is_known(int device)
{
    return !ms_device_is_known(device) || atomic_load(&quotas[device].known);
}

uint64_t ms_quota_limit(int device)
{
    return ms_device_is_known(device) ? atomic_load(&quotas[device].limit) - 1 : NO_LIMIT;
}

/* --- yes or no ------------------------------------------------------------------------------------------ */

void ms_quota_share(int device, const struct ms_quota_others *others)
{
    if (ms_device_is_known(device))
        atomic_store(&quotas[device].others, others);
}

static const struct ms_quota_others *others_of(int device)
{
    return atomic_load_explicit(&quotas[device].others, memory_order_acquire);
}

bool ms_quota_is_shared(int device)
{
    return ms_device_is_known(device) && others_of(device);
}

static bool reserve_own(struct quota *quota, uint64_t limit, uint64_t bytes, uint64_t *before_p)
{
    if (MS_LIKELY(limit == NO_LIMIT)) {
        *before_p = atomic_fetch_add(&quota->taken, bytes);
        return true;
    }
    *before_p = atomic_load(&quota->taken);
    do {
        if (bytes > limit || *before_p > limit - bytes)
            return false;
    } while (!atomic_compare_exchange_weak(&quota->taken, before_p, *before_p + bytes));
    return true;
}

bool ms_quota_reserve(int device, uint64_t bytes)
{
    uint64_t before;
    if (!ms_device_is_known(device))
        return true;
    if (!reserve_own(&quotas[device], ms_quota_limit(device), bytes, &before))
        return false;
    const struct ms_quota_others *others = others_of(device);
    if (MS_LIKELY(!others || others->take(device, bytes, before)))
        return true;
    atomic_fetch_sub(&quotas[device].taken, bytes);
    return false;
}

void ms_quota_give_back(int device, uint64_t bytes)
{
    if (!ms_device_is_known(device))
        return;
    atomic_fetch_sub(&quotas[device].taken, bytes);
    const struct ms_quota_others *others = others_of(device);
    if (MS_UNLIKELY(others))
        others->give_back(device, bytes);
}

uint64_t ms_quota_taken(int device)
{
    return ms_device_is_known(device) ? atomic_load(&quotas[device].taken) : 0;
}

uint64_t ms_quota_room(int device)
{
    uint64_t own = ms_quota_own_room(device), left = NO_LIMIT;
    if (ms_quota_is_shared(device))
        left = others_of(device)->room(device);
    return own < left ? own : left;
}

uint64_t ms_quota_own_room(int device)
{
    uint64_t limit = ms_quota_limit(device), taken = ms_quota_taken(device);
    if (limit == NO_LIMIT)
        return NO_LIMIT;
    return limit > taken ? limit - taken : 0;
}

/* --- the purse ------------------------------------------------------------------------------------------ */

static uint64_t purse_of(int device, uint64_t bytes)
{
    return OPEN | (uint64_t)device << 48 | bytes;
}

static int device_in(uint64_t what)
{
    return (int)(what >> 48 & 0xff);
}

void ms_quota_call_begins(void)
{
    ms_quota_call_ends();
    purse = OPEN;
}

bool ms_quota_call_reserve(int device, uint64_t bytes)
{
    bool reserved = ms_quota_reserve(device, bytes);
    if (reserved)
        ms_quota_went(device, bytes);
    return reserved;
}

void ms_quota_call_ends(void)
{
    uint64_t left = purse;
    purse = 0;
    if (left & BYTES)
        ms_quota_give_back(device_in(left), left & BYTES);
}

void ms_quota_came(int device, uint64_t bytes)
{
    uint64_t there = purse & BYTES, part = 0;
    if (!ms_device_is_known(device))
        return;
    if (there && device_in(purse) == device) {
        part = there < bytes ? there : bytes;
        purse -= part;
    }
    if (bytes == part)
        return;
    atomic_fetch_add(&quotas[device].taken, bytes - part);
    const struct ms_quota_others *others = others_of(device);
    if (MS_UNLIKELY(others))
        others->note(device, bytes - part);
}

void ms_quota_went(int device, uint64_t bytes)
{
    uint64_t there = purse & BYTES;
    if (!ms_device_is_known(device))
        return;
    if (purse && (!there || device_in(purse) == device) && bytes <= BYTES - there)
        purse = purse_of(device, there + bytes);
    else
        ms_quota_give_back(device, bytes);
}

/* A child asks anew what it may take. */
static void quota_reset(void)
{
    purse = 0;
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        atomic_store(&quotas[device].taken, 0);
        atomic_store(&quotas[device].limit, 0);
        atomic_store(&quotas[device].known, false);
        atomic_store(&quotas[device].others, NULL);
    }
}
MS_AT_FORK(MS_FORK_POOL, quota_reset);
