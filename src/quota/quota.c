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
    _Atomic(const struct ms_quota_bound *) bounds[MS_QUOTA_BOUNDS]; /* NULL: has no say */
};

_Atomic bool ms_quota_bounded;
static struct quota quotas[MS_DEVICES_MAX];
static MS_TLS uint64_t purse;
static MS_TLS uint64_t call_reserved; /* bytes of `call_device`, by the call that has the purse open */
static MS_TLS int call_device;
static MS_TLS struct refusal {
    int device;
    enum ms_quota_who who;
} refusal = {0, MS_QUOTA_NOBODY};

/* --- the limit ------------------------------------------------------------------------------------------ */

void ms_quota_bound(void)
{
    atomic_store_explicit(&ms_quota_bounded, true, memory_order_relaxed);
}

void ms_quota_unbound(void)
{
    atomic_store_explicit(&ms_quota_bounded, false, memory_order_relaxed);
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

void ms_quota_ask(int device, enum ms_quota_who who, const struct ms_quota_bound *bound)
{
    if (ms_device_is_known(device))
        atomic_store(&quotas[device].bounds[who], bound);
}

static const struct ms_quota_bound *bound_of(int device, int who)
{
    return atomic_load_explicit(&quotas[device].bounds[who], memory_order_acquire);
}

bool ms_quota_is_asked(int device, enum ms_quota_who who)
{
    return ms_device_is_known(device) && bound_of(device, who);
}

static void answered(int device, uint64_t bytes)
{
    for (int who = 0; who < MS_QUOTA_BOUNDS; who++) {
        const struct ms_quota_bound *bound = bound_of(device, who);
        if (MS_UNLIKELY(bound && bound->answered))
            bound->answered(device, bytes);
    }
}

static void gone(int device, int bounds, uint64_t bytes)
{
    for (int who = 0; who < bounds; who++) {
        const struct ms_quota_bound *bound = bound_of(device, who);
        if (MS_UNLIKELY(bound && bound->give_back))
            bound->give_back(device, bytes);
    }
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

static bool refused(int device, int who)
{
    refusal = (struct refusal){device, (enum ms_quota_who)who};
    return false;
}

enum ms_quota_who ms_quota_refused_by(int device)
{
    enum ms_quota_who who = refusal.device == device ? refusal.who : MS_QUOTA_NOBODY;
    refusal.who = MS_QUOTA_NOBODY;
    return who;
}

bool ms_quota_reserve(int device, uint64_t bytes)
{
    uint64_t before;
    if (!ms_device_is_known(device))
        return true;
    if (!reserve_own(&quotas[device], ms_quota_limit(device), bytes, &before))
        return refused(device, MS_QUOTA_LIMIT);
    for (int who = 0; who < MS_QUOTA_BOUNDS; who++) {
        const struct ms_quota_bound *bound = bound_of(device, who);
        if (MS_LIKELY(!bound || bound->take(device, bytes, before)))
            continue;
        atomic_fetch_sub(&quotas[device].taken, bytes);
        gone(device, who, bytes);
        return refused(device, who);
    }
    refusal.who = MS_QUOTA_NOBODY;
    return true;
}

void ms_quota_hold(int device, uint64_t bytes)
{
    if (!ms_device_is_known(device) || !bytes)
        return;
    atomic_fetch_add(&quotas[device].taken, bytes);
    for (int who = 0; who < MS_QUOTA_BOUNDS; who++) {
        const struct ms_quota_bound *bound = bound_of(device, who);
        if (MS_UNLIKELY(bound && bound->note))
            bound->note(device, bytes);
    }
}

void ms_quota_give_back(int device, uint64_t bytes)
{
    if (!ms_device_is_known(device))
        return;
    atomic_fetch_sub(&quotas[device].taken, bytes);
    gone(device, MS_QUOTA_BOUNDS, bytes);
}

void ms_quota_settle(int device, uint64_t reserved, uint64_t given)
{
    if (!ms_device_is_known(device))
        return;
    answered(device, reserved);
    if (given < reserved)
        ms_quota_give_back(device, reserved - given);
    else
        ms_quota_came(device, given - reserved); /* more than it was asked for */
}

uint64_t ms_quota_taken(int device)
{
    return ms_device_is_known(device) ? atomic_load(&quotas[device].taken) : 0;
}

uint64_t ms_quota_room_of(int device, enum ms_quota_who who)
{
    return ms_quota_is_asked(device, who) ? bound_of(device, who)->room(device) : NO_LIMIT;
}

uint64_t ms_quota_room(int device)
{
    uint64_t least = ms_quota_own_room(device);
    for (int who = 0; who < MS_QUOTA_BOUNDS; who++) {
        uint64_t room = ms_quota_room_of(device, (enum ms_quota_who)who);
        least = room < least ? room : least;
    }
    return least;
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
    if (!ms_device_is_known(device))
        return true;
    if (!ms_quota_reserve(device, bytes))
        return false;
    call_device = device;
    call_reserved += bytes;
    ms_quota_went(device, bytes);
    return true;
}

void ms_quota_call_ends(void)
{
    uint64_t left = purse, reserved = call_reserved;
    purse = call_reserved = 0;
    if (reserved)
        answered(call_device, reserved);
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
    ms_quota_hold(device, bytes - part);
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
    purse = call_reserved = 0;
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        atomic_store(&quotas[device].taken, 0);
        atomic_store(&quotas[device].limit, 0);
        atomic_store(&quotas[device].known, false);
        for (int who = 0; who < MS_QUOTA_BOUNDS; who++)
            atomic_store(&quotas[device].bounds[who], NULL);
    }
}
MS_AT_FORK(MS_FORK_POOL, quota_reset);
