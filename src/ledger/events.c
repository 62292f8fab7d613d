/* events.c - what is counted besides blocks: calls, routes, out-of-memory, deaths of contexts, blind spots,
 * devices.
 *
 * Floor 2. Counters are atomics; the rare lists are rings under one lock. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/compiler.h"
#include "base/options.h"
#include "ledger/internal.h"

static const struct ms_api_info *apis;
static unsigned api_total;
static struct ms_api_count *_Atomic api_counts; /* NULL until init, or without memory */

static _Atomic uint64_t started_ns;
static atomic_bool touched;
static _Atomic uint64_t routes[MS_ROUTE_COUNT];
static _Atomic uint64_t divergent, unseen_frees;

static struct ms_lock list_lock = MS_LOCK_INIT(MS_RANK_TIMELINE);
static struct ms_oom ooms[MS_OOM_MAX];
static struct ms_context_died deaths[MS_CONTEXTS_DIED_MAX];
static uint64_t oom_count, death_count; /* ever */
static char blind_spots[MS_BLIND_SPOTS_MAX][MS_BLIND_SPOT_BYTES];
static _Atomic unsigned blind_spot_count;
static struct ms_device_info devices[MS_DEVICES_MAX];
static _Atomic uint64_t devices_known; /* one bit each */
_Static_assert(MS_DEVICES_MAX <= 64, "devices_known has a bit for each device");

static uint64_t monotonic_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t ms_ledger_now(void)
{
    uint64_t now = monotonic_ns(), start = atomic_load_explicit(&started_ns, memory_order_relaxed);
    if (MS_UNLIKELY(start == 0)) {
        /* The first to ask starts the clock: a constructor may have allocated before ms_ledger_init. */
        if (atomic_compare_exchange_strong(&started_ns, &start, now))
            start = now;
    }
    return now > start ? now - start : 0;
}

void ms_ledger_init(const struct ms_api_info *api_infos, unsigned count)
{
    ms_ledger_now();
    apis = api_infos;
    api_total = count;
    if (!atomic_load_explicit(&touched, memory_order_relaxed) && ms_option_int(MS_OPT_TIMELINE) > 0)
        ms_timeline_configure((unsigned)ms_option_int(MS_OPT_TIMELINE));
    atomic_store_explicit(&api_counts, ms_arena_alloc(count * sizeof(struct ms_api_count)),
                          memory_order_release);
}

void ms_events_touch(void)
{
    if (MS_UNLIKELY(!atomic_load_explicit(&touched, memory_order_relaxed)))
        atomic_store_explicit(&touched, true, memory_order_relaxed);
}

bool ms_ledger_touched(void)
{
    return atomic_load_explicit(&touched, memory_order_relaxed);
}

void ms_ledger_call(uint16_t api, bool succeeded, uint64_t bytes)
{
    struct ms_api_count *counts = atomic_load_explicit(&api_counts, memory_order_acquire);
    ms_events_touch();
    if (!counts || api >= api_total)
        return;
    atomic_fetch_add_explicit(&counts[api].calls, 1, memory_order_relaxed);
    if (succeeded && bytes)
        atomic_fetch_add_explicit(&counts[api].bytes, bytes, memory_order_relaxed);
    if (!succeeded)
        atomic_fetch_add_explicit(&counts[api].failures, 1, memory_order_relaxed);
}

const struct ms_api_info *ms_events_apis(unsigned *count_p)
{
    *count_p = api_total;
    return apis;
}

const struct ms_api_count *ms_events_api_count(unsigned api)
{
    struct ms_api_count *counts = atomic_load_explicit(&api_counts, memory_order_acquire);
    return counts ? &counts[api] : NULL;
}

void ms_ledger_oom(uint16_t api, int device, uint64_t requested, ms_stack_id stack)
{
    struct ms_oom oom = {.t_ns = ms_ledger_now(), .requested = requested, .stack = stack, .api = api};
    const struct ms_account *account = ms_account_of(device);
    ms_events_touch();
    oom.device = (int16_t)device;
    ms_account_lock(account);
    oom.live_bytes = account->device.live_bytes;
    ms_account_unlock(account);
    oom.top_count = ms_account_top_sites(device, oom.top_sites, oom.top_bytes);
    ms_lock(&list_lock);
    ooms[oom_count++ % MS_OOM_MAX] = oom;
    ms_unlock(&list_lock);
}

void ms_events_context_died(const struct ms_context_died *death)
{
    ms_lock(&list_lock);
    deaths[death_count++ % MS_CONTEXTS_DIED_MAX] = *death;
    ms_unlock(&list_lock);
}

/* Ring of `size` with `total` ever put in: the place of the i-th that is left, or -1. */
static int ring_place(unsigned i, uint64_t total, unsigned size, uint64_t *lost_p)
{
    uint64_t lost = total > size ? total - size : 0;
    *lost_p = lost;
    return i < total - lost ? (int)((lost + i) % size) : -1;
}

bool ms_events_oom(unsigned i, struct ms_oom *oom_p, uint64_t *lost_p)
{
    ms_lock(&list_lock);
    int place = ring_place(i, oom_count, MS_OOM_MAX, lost_p);
    if (place >= 0)
        *oom_p = ooms[place];
    ms_unlock(&list_lock);
    return place >= 0;
}

bool ms_events_death(unsigned i, struct ms_context_died *death_p, uint64_t *lost_p)
{
    ms_lock(&list_lock);
    int place = ring_place(i, death_count, MS_CONTEXTS_DIED_MAX, lost_p);
    if (place >= 0)
        *death_p = deaths[place];
    ms_unlock(&list_lock);
    return place >= 0;
}

void ms_ledger_route(enum ms_route route)
{
    atomic_fetch_add_explicit(&routes[route], 1, memory_order_relaxed);
}

void ms_ledger_divergent(void)
{
    atomic_fetch_add_explicit(&divergent, 1, memory_order_relaxed);
}

void ms_ledger_unseen_free(void)
{
    atomic_fetch_add_explicit(&unseen_frees, 1, memory_order_relaxed);
}

uint64_t ms_events_route(enum ms_route route)
{
    return atomic_load_explicit(&routes[route], memory_order_relaxed);
}

uint64_t ms_events_divergent(void)
{
    return atomic_load_explicit(&divergent, memory_order_relaxed);
}

uint64_t ms_events_unseen_frees(void)
{
    return atomic_load_explicit(&unseen_frees, memory_order_relaxed);
}

void ms_ledger_blind_spot(const char *line)
{
    int saved_errno = errno;
    char text[MS_BLIND_SPOT_BYTES];
    snprintf(text, sizeof text, "%s", line);
    ms_lock(&list_lock);
    unsigned count = atomic_load_explicit(&blind_spot_count, memory_order_relaxed), i = 0;
    while (i < count && strcmp(blind_spots[i], text) != 0)
        i++;
    if (i == count && count < MS_BLIND_SPOTS_MAX) {
        memcpy(blind_spots[count], text, sizeof text);
        atomic_store_explicit(&blind_spot_count, count + 1, memory_order_release);
    }
    ms_unlock(&list_lock);
    errno = saved_errno;
}

const char *ms_events_blind_spot(unsigned i)
{
    return i < atomic_load_explicit(&blind_spot_count, memory_order_acquire) ? blind_spots[i] : NULL;
}

void ms_ledger_device(int device, const struct ms_device_info *info)
{
    if (device < 0 || device >= MS_DEVICES_MAX || ms_ledger_device_known(device))
        return;
    ms_lock(&list_lock);
    if (!ms_ledger_device_known(device)) {
        devices[device] = *info;
        devices[device].name[sizeof devices[device].name - 1] = '\0';
        atomic_fetch_or_explicit(&devices_known, UINT64_C(1) << device, memory_order_release);
    }
    ms_unlock(&list_lock);
}

bool ms_ledger_device_known(int device)
{
    return device >= 0 && device < MS_DEVICES_MAX &&
           (atomic_load_explicit(&devices_known, memory_order_acquire) >> device & 1);
}

bool ms_events_device(int device, struct ms_device_info *info_p)
{
    if (!ms_ledger_device_known(device))
        return false;
    *info_p = devices[device];
    return true;
}

void ms_events_reset(void)
{
    atomic_store_explicit(&started_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&touched, false, memory_order_relaxed);
    atomic_store_explicit(&api_counts, NULL, memory_order_relaxed);
    for (unsigned i = 0; i < MS_ROUTE_COUNT; i++)
        atomic_store_explicit(&routes[i], 0, memory_order_relaxed);
    atomic_store_explicit(&divergent, 0, memory_order_relaxed);
    atomic_store_explicit(&unseen_frees, 0, memory_order_relaxed);
    atomic_store_explicit(&blind_spot_count, 0, memory_order_relaxed);
    atomic_store_explicit(&devices_known, 0, memory_order_relaxed);
    oom_count = death_count = 0;
    ms_lock_reset(&list_lock);
}
