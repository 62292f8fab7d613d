/* programs_quota.c - threads that take memory under a limit: together never more than it allows, and nobody
 * is refused for what another was refused. */
#include <stddef.h>

#include "engine.h"
#include "programs.h"
#include "quota/quota.h"

enum { DEVICE = 0, LIMIT = 10, TASKS_MOST = 2 };

static _Atomic uint64_t at_vendor; /* what it has given */
static _Atomic bool got[TASKS_MOST];

static void prepare_quota(void)
{
    ms_quota_bound();
    ms_quota_allow(DEVICE, LIMIT);
}

static void vendor_gives(uint64_t bytes)
{
    uint64_t given = atomic_fetch_add(&at_vendor, bytes) + bytes;
    if (given > LIMIT)
        engine_fail("%u of %u are given", (unsigned)given, LIMIT);
}

/* As the pool does for a segment. */
static bool take(uint64_t bytes)
{
    if (!ms_quota_reserve(DEVICE, bytes))
        return false;
    vendor_gives(bytes);
    return true;
}

static void take_6(void *arg)
{
    got[(size_t)arg] = take(6);
}

static void take_too_much(void *arg)
{
    got[(size_t)arg] = take(LIMIT + 1 - 3) || take(LIMIT + 1 - 3);
}

static void take_6_and_give(void *arg)
{
    take_6(arg);
    if (!got[(size_t)arg])
        return;
    atomic_fetch_sub(&at_vendor, 6);
    ms_quota_give_back(DEVICE, 6);
}

/* As a hooked call does: what it has reserved comes into the record, or goes back where the vendor refuses.
 */
static void call_6(void *arg)
{
    ms_quota_call_begins();
    if (ms_quota_call_reserve(DEVICE, 6)) {
        vendor_gives(6);
        ms_quota_came(DEVICE, 6);
        got[(size_t)arg] = true;
    }
    ms_quota_call_ends();
}

static void call_is_refused(void *arg)
{
    (void)arg;
    ms_quota_call_begins();
    ms_quota_call_reserve(DEVICE, 3);
    ms_quota_call_ends();
}

/* A free: the memory counts until the vendor has it back. */
static void call_frees(void *arg)
{
    (void)arg;
    ms_quota_call_begins();
    ms_quota_went(DEVICE, 6);
    atomic_fetch_sub(&at_vendor, 6);
    ms_quota_call_ends();
}

static void check_count(void)
{
    if (ms_quota_taken(DEVICE) != at_vendor)
        engine_fail("%u are counted, and the vendor gave %u", (unsigned)ms_quota_taken(DEVICE),
                    (unsigned)at_vendor);
}

static void check_one(void)
{
    check_count();
    if (got[0] + got[1] != 1)
        engine_fail("%u have what is there for one", (unsigned)(got[0] + got[1]));
}

static void check_fits(void)
{
    check_count();
    if (got[0] || !got[1])
        engine_fail("a request that fits is refused beside one that does not");
}

static void check_called(void)
{
    check_count();
    if (!got[0])
        engine_fail("a request that fits is refused beside one that the vendor refuses");
}

static void start_two(void)
{
    engine_task(take_6, (void *)0);
    engine_task(take_6, (void *)1);
}

static void prepare_beside(void)
{
    prepare_quota();
    take(3);
}

static void start_beside(void)
{
    engine_task(take_too_much, (void *)0);
    engine_task(take_6, (void *)1);
}

static void start_call_and_pool(void)
{
    engine_task(call_6, (void *)0);
    engine_task(take_6, (void *)1);
}

static void start_refused(void)
{
    engine_task(call_6, (void *)0);
    engine_task(call_is_refused, NULL);
}

static void start_given(void)
{
    engine_task(take_6_and_give, (void *)0);
    engine_task(call_6, (void *)1);
}

static void prepare_freed(void)
{
    prepare_quota();
    take(6);
}

static void start_freed(void)
{
    engine_task(call_frees, NULL);
    engine_task(take_6, (void *)0);
}

const struct program quota_programs[] = {
    {"small-quota-two", "two threads take more than half of a limit each", prepare_quota, start_two,
     check_one, RIGHT},
    {"small-quota-beside", "one asks for too much, the other for what fits", prepare_beside, start_beside,
     check_fits, RIGHT},
    {"small-quota-call", "a call and the pool take more than half of a limit each", prepare_quota,
     start_call_and_pool, check_one, RIGHT},
    {"small-quota-refused", "the vendor refuses one call, and answers the other", prepare_quota,
     start_refused, check_called, RIGHT},
    {"small-quota-given", "one gives back what a call of the other asks for", prepare_quota, start_given,
     check_count, RIGHT},
    {"small-quota-freed", "a call frees what the other asks for", prepare_freed, start_freed, check_count,
     RIGHT},
    {NULL, NULL, NULL, NULL, NULL, RIGHT}};
