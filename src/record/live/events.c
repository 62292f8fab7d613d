/* events.c - what is counted besides blocks: routes, out-of-memory, deaths of contexts, blind spots,
 * devices.
 *
 * Floor 2. Counters are atomics in rows of the record; the rare lists are rings under one lock. What may be
 * counted before the file is there is written under ms_store_hold(). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/options/options.h"
#include "base/thread/guard.h"
#include "record/phases/phases.h"
#include "record/file/job_copies.h"
#include "record/file/process.h"

_Atomic uint64_t ms_ledger_running_since_ns;
static _Atomic uint64_t started_ns;
static uint64_t frozen_ns;
static atomic_bool touched;

static struct ms_lock list_lock = MS_LOCK_INIT(MS_RANK_TIMELINE);
typedef char blind_spot[MS_BLIND_SPOT_BYTES];

uint64_t ms_ledger_now_slowly(void)
{
    if (frozen_ns)
        return frozen_ns;
    uint64_t now = ms_clock_ns(), start = 0;
    /* The first to ask starts the clock: a constructor may have allocated before ms_ledger_init. */
    if (atomic_compare_exchange_strong(&started_ns, &start, now))
        start = now;
    atomic_store_explicit(&ms_ledger_running_since_ns, start, memory_order_relaxed);
    return now > start ? now - start : 0;
}

uint64_t ms_events_started_ns(void)
{
    return atomic_load_explicit(&started_ns, memory_order_relaxed);
}

void ms_events_freeze(uint64_t now_ns)
{
    frozen_ns = now_ns ? now_ns : 1;
    atomic_store_explicit(&ms_ledger_running_since_ns, 0, memory_order_relaxed);
}

bool ms_events_frozen(void)
{
    return frozen_ns != 0;
}

void ms_ledger_init(const struct ms_api_info *apis, unsigned count)
{
    ms_ledger_now();
    if (!atomic_load_explicit(&touched, memory_order_relaxed) && ms_option_int(MS_OPT_TIMELINE) > 0)
        ms_history_configure((unsigned)ms_option_int(MS_OPT_TIMELINE));
    ms_process_open();
    ms_accounts_open();
    if (!ms_table_reserve(MS_TABLE_APIS, count))
        return;
    ms_store_hold();
    for (unsigned i = 0; i < count; i++) {
        struct ms_api_row *row = &MS_ROWS(APIS, struct ms_api_row)[i];
        snprintf(row->name, sizeof row->name, "%s", apis[i].name);
        snprintf(row->family, sizeof row->family, "%s", apis[i].family);
    }
    ms_table_publish(MS_TABLE_APIS, count);
    ms_store_release();
    ms_counts_open(count);
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

const struct ms_api_row *ms_events_api(unsigned api)
{
    return api < ms_table_rows(MS_TABLE_APIS) ? &MS_ROWS(APIS, struct ms_api_row)[api] : NULL;
}

const char *ms_events_api_name(unsigned api)
{
    const struct ms_api_row *row = ms_events_api(api);
    return row ? row->name : "unknown";
}

/* The row of the n-th ever in a ring of `size`, marked as being written; NULL without memory. */
static void *ring_row(enum ms_table table, void *rows, uint64_t number, uint64_t size, size_t row_bytes)
{
    uint64_t place = number % size;
    if (!ms_table_reserve(table, place + 1))
        return NULL;
    if (ms_table_rows(table) < place + 1)
        ms_table_publish(table, place + 1);
    return (char *)rows + place * row_bytes;
}

uint64_t ms_ledger_live(int device)
{
    return ms_account_live(device);
}

static void top_sites(struct ms_oom *oom, int device)
{
    oom->live_bytes = ms_ledger_live(device);
    oom->top_count = ms_account_top_sites(device, oom->top_sites, oom->top_bytes);
}

void ms_ledger_oom(uint16_t api, int device, uint64_t requested, ms_stack_id stack,
                   const struct ms_oom_view *view)
{
    struct ms_oom oom = {.t_ns = ms_ledger_now(),
                         /* a report has no larger number */
                         .requested = requested < INT64_MAX ? requested : INT64_MAX,
                         .stack = stack,
                         .api = api,
                         .reserved_bytes = view->reserved,
                         .largest_free_bytes = view->largest_free,
                         .limbo_bytes = view->pending,
                         .asked = view->asked,
                         .thread = ms_thread_id(),
                         .cause = view->cause,
                         .fragmentation = view->fragmentation,
                         .phase = ms_phase_now(),
                         .free_bytes = view->free,
                         .total_bytes = view->total,
                         .taken_bytes = view->taken,
                         .followed_bytes = view->followed,
                         .driver_rounding_bytes = view->driver_rounding,
                         .driver_cached_bytes = view->driver_cached,
                         .is_inferred = view->is_inferred,
                         .is_one_moment = view->is_one_moment,
                         .parts = view->parts,
                         .fit = view->fit};
    struct ms_process *process = ms_process();
    ms_events_touch();
    oom.device = (int16_t)device;
    if (ms_device_is_inner(device)) {
        oom.refused = ms_thread.refused;
        atomic_fetch_add_explicit(&process->oom_parts, oom.refused, memory_order_relaxed);
        ms_thread.refused = 0;
    } else {
        ms_thread.refused++;
    }
    top_sites(&oom, device);
    ms_oom_note_sites(&oom);
    if (!ms_table_reserve(MS_TABLE_OOMS, 1))
        return;
    ms_lock(&list_lock);
    uint64_t number = atomic_load_explicit(&process->oom_count, memory_order_relaxed);
    struct ms_oom *row =
        ring_row(MS_TABLE_OOMS, MS_ROWS(OOMS, struct ms_oom), number, MS_OOM_MAX, sizeof *row);
    if (row) {
        atomic_store_explicit(&row->number, 0, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
        memcpy((char *)row + sizeof row->number, (char *)&oom + sizeof oom.number,
               sizeof oom - sizeof oom.number);
        atomic_store_explicit(&row->number, number + 1, memory_order_release);
        atomic_store_explicit(&process->oom_count, number + 1, memory_order_release);
    }
    ms_unlock(&list_lock);
    ms_job_copies_keep(ms_device_is_inner(device));
}

/* The last row of this thread's that is the vendor's refusal, from the `*back_p`-th on, the latest being 0,
 * under the lock; NULL past the oldest. */
static struct ms_oom *refused_before(uint64_t *back_p)
{
    uint64_t count = atomic_load_explicit(&ms_process()->oom_count, memory_order_relaxed);
    while (*back_p < count && *back_p < MS_OOM_MAX) {
        struct ms_oom *row = &MS_ROWS(OOMS, struct ms_oom)[(count - 1 - (*back_p)++) % MS_OOM_MAX];
        if (row->thread == ms_thread_id() && !ms_device_is_inner(row->device))
            return row;
    }
    return NULL;
}

enum ms_oom_cause ms_ledger_refused(void)
{
    uint64_t back = 0;
    if (!ms_thread.refused)
        return MS_OOM_UNKNOWN;
    ms_lock(&list_lock);
    const struct ms_oom *row = refused_before(&back);
    enum ms_oom_cause cause = row ? (enum ms_oom_cause)row->cause : MS_OOM_UNKNOWN;
    ms_unlock(&list_lock);
    return cause;
}

void ms_ledger_refused_answered(uint64_t least, uint64_t most)
{
    uint64_t back = 0, answered = 0;
    ms_lock(&list_lock);
    for (unsigned left = ms_thread.refused; left; left--) {
        struct ms_oom *row = refused_before(&back);
        if (!row || (row->asked != MS_ASKED_HANDLE && (row->requested < least || row->requested > most)))
            continue;
        answered += !row->is_answered;
        row->is_answered = 1;
    }
    ms_unlock(&list_lock);
    atomic_fetch_add_explicit(&ms_process()->oom_parts, answered, memory_order_relaxed);
    ms_thread.refused = 0;
}

void ms_events_context_died(const struct ms_context_died *death)
{
    struct ms_process *process = ms_process();
    if (!ms_table_reserve(MS_TABLE_DEATHS, 1))
        return;
    ms_lock(&list_lock);
    uint64_t number = atomic_load_explicit(&process->death_count, memory_order_relaxed);
    struct ms_context_died *row = ring_row(MS_TABLE_DEATHS, MS_ROWS(DEATHS, struct ms_context_died), number,
                                           MS_CONTEXTS_DIED_MAX, sizeof *row);
    if (row) {
        atomic_store_explicit(&row->number, 0, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
        memcpy((char *)row + sizeof row->number, (const char *)death + sizeof death->number,
               sizeof *death - sizeof death->number);
        atomic_store_explicit(&row->number, number + 1, memory_order_release);
        atomic_store_explicit(&process->death_count, number + 1, memory_order_release);
    }
    ms_unlock(&list_lock);
}

/* The i-th row that is left of a ring with `total` ever put in; NULL past the last. The oldest may have been
 * in the middle of giving way to the next when its process was killed. */
static const void *ring_at(enum ms_table table, const void *rows, size_t row_bytes, uint64_t size, unsigned i,
                           uint64_t total, uint64_t *lost_p)
{
    uint64_t there = ms_table_rows(table), number;
    const char *row = NULL;
    *lost_p = total > size ? total - size : 0;
    for (unsigned skipped = 0; skipped < 2; skipped++) {
        number = *lost_p + i;
        if (number >= total || number % size >= there)
            return NULL;
        row = (const char *)rows + *lost_p % size * row_bytes; /* `number` comes first in each row */
        if (atomic_load_explicit((const _Atomic uint64_t *)(const void *)row, memory_order_acquire) ==
            *lost_p + 1)
            break;
        ++*lost_p;
    }
    row = (const char *)rows + number % size * row_bytes;
    uint64_t found = atomic_load_explicit((const _Atomic uint64_t *)(const void *)row, memory_order_acquire);
    return found == number + 1 ? row : NULL;
}

/* Under the lock, as the next one. */
static bool read_oom(unsigned i, struct ms_oom *oom_p, uint64_t *lost_p)
{
    const struct ms_oom *row = ring_at(MS_TABLE_OOMS, MS_ROWS(OOMS, struct ms_oom), sizeof *row, MS_OOM_MAX,
                                       i, atomic_load(&ms_process()->oom_count), lost_p);
    if (row)
        memcpy((void *)oom_p, row, sizeof *oom_p);
    return row != NULL;
}

static bool read_death(unsigned i, struct ms_context_died *death_p, uint64_t *lost_p)
{
    const struct ms_context_died *row =
        ring_at(MS_TABLE_DEATHS, MS_ROWS(DEATHS, struct ms_context_died), sizeof *row, MS_CONTEXTS_DIED_MAX,
                i, atomic_load(&ms_process()->death_count), lost_p);
    if (row)
        memcpy((void *)death_p, row, sizeof *death_p);
    return row != NULL;
}

bool ms_events_copy(struct ms_events_copy *copy_p, unsigned timeout_ms)
{
    copy_p->oom_count = copy_p->death_count = 0;
    copy_p->lost_ooms = copy_p->lost_deaths = 0;
    copy_p->unseen_frees = atomic_load_explicit(&ms_process()->unseen_frees, memory_order_relaxed);
    if (!ms_lock_within(&list_lock, timeout_ms))
        return false;
    while (copy_p->oom_count < MS_OOM_MAX &&
           read_oom(copy_p->oom_count, &copy_p->ooms[copy_p->oom_count], &copy_p->lost_ooms))
        copy_p->oom_count++;
    while (copy_p->death_count < MS_CONTEXTS_DIED_MAX &&
           read_death(copy_p->death_count, &copy_p->deaths[copy_p->death_count], &copy_p->lost_deaths))
        copy_p->death_count++;
    ms_unlock(&list_lock);
    return true;
}

/* Rare, and perhaps before there is a file. */
static void count_rarely(_Atomic uint64_t *counter)
{
    ms_store_hold();
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
    ms_store_release();
}

void ms_ledger_route(enum ms_route route)
{
    count_rarely(&ms_process()->routes[route]);
}

void ms_ledger_divergent(void)
{
    count_rarely(&ms_process()->divergent);
}

void ms_ledger_unseen_free(void)
{
    atomic_fetch_add_explicit(&ms_process()->unseen_frees, 1, memory_order_relaxed);
}

void ms_ledger_blind_spot(const char *line)
{
    int saved_errno = errno;
    blind_spot text = "";
    snprintf(text, sizeof text, "%s", line);
    ms_lock(&list_lock);
    unsigned count = (unsigned)ms_table_rows(MS_TABLE_BLIND_SPOTS), i = 0;
    while (i < count && strcmp(MS_ROWS(BLIND_SPOTS, blind_spot)[i], text) != 0)
        i++;
    if (i == count && ms_table_reserve(MS_TABLE_BLIND_SPOTS, count + 1)) {
        ms_store_hold();
        memcpy(MS_ROWS(BLIND_SPOTS, blind_spot)[count], text, sizeof text);
        ms_table_publish(MS_TABLE_BLIND_SPOTS, count + 1);
        ms_store_release();
    }
    ms_unlock(&list_lock);
    errno = saved_errno;
}

const char *ms_events_blind_spot(unsigned i)
{
    return i < ms_table_rows(MS_TABLE_BLIND_SPOTS) ? MS_ROWS(BLIND_SPOTS, blind_spot)[i] : NULL;
}

void ms_ledger_device(int device, const struct ms_device_info *info)
{
    if (device < 0 || device >= MS_DEVICES_MAX || ms_ledger_device_known(device))
        return;
    ms_lock(&list_lock);
    if (!ms_ledger_device_known(device) && ms_table_reserve(MS_TABLE_DEVICES, (uint64_t)device + 1)) {
        ms_store_hold();
        struct ms_device_row *row = &MS_ROWS(DEVICES, struct ms_device_row)[device];
        row->info = *info;
        row->info.name[sizeof row->info.name - 1] = '\0';
        atomic_store_explicit(&row->known, 1, memory_order_release);
        if (ms_table_rows(MS_TABLE_DEVICES) < (uint64_t)device + 1)
            ms_table_publish(MS_TABLE_DEVICES, (uint64_t)device + 1);
        ms_store_release();
    }
    ms_unlock(&list_lock);
}

bool ms_ledger_device_known(int device)
{
    return device >= 0 && (uint64_t)device < ms_table_rows(MS_TABLE_DEVICES) &&
           atomic_load_explicit(&MS_ROWS(DEVICES, struct ms_device_row)[device].known, memory_order_acquire);
}

bool ms_events_device(int device, struct ms_device_info *info_p)
{
    if (!ms_ledger_device_known(device))
        return false;
    *info_p = MS_ROWS(DEVICES, struct ms_device_row)[device].info;
    return true;
}

static void events_reset(void)
{
    atomic_store_explicit(&started_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&ms_ledger_running_since_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&touched, false, memory_order_relaxed);
    frozen_ns = 0;
    ms_lock_reset(&list_lock);
}
MS_AT_FORK(MS_FORK_RECORD, events_reset);
