/* phases.c - phases that begin and end; see phases.h.
 *
 * Floor 2. One lock, in which a boundary goes through the accounts that were ever used, one after the other,
 * and through all phases that are open. */
#include <string.h>

#include "base/compiler.h"
#include "base/thread/guard.h"
#include "base/lock.h"
#include "record/live/internal.h"
#include "record/live/shards.h"
#include "record/phases/phases.h"
#include "record/file/process.h"
#include "record/file/trace.h"

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_PHASE);
static uint64_t latest_id;
/* Rows of the table of open phases are used below `open_end`, and the first of them that is free is not below
 * `open_free`. */
static unsigned open_end, open_free, open_count;
static unsigned inherited; /* of a parent that forked, and not ended here so far */

static struct ms_phase_open *open_at(unsigned i)
{
    return &MS_ROWS(PHASE_OPENS, struct ms_phase_open)[i];
}

static bool is_open(const struct ms_phase_open *open)
{
    return atomic_load_explicit(&open->id, memory_order_relaxed) != 0;
}

static void count_fault(enum ms_phase_fault fault)
{
    atomic_fetch_add_explicit(&ms_process()->phase_faults[fault], 1, memory_order_relaxed);
}

/* --- intervals --- */

/* The lock of the only shard, or all of the account; returns whether it is the former. */
static bool lock_account(unsigned number)
{
    struct ms_shard *first = &ms_shards[0][number];
    ms_shard_lock(first);
    if (MS_LIKELY(first->is_alone))
        return true;
    ms_shard_unlock(first);
    ms_shards_lock(number);
    return false;
}

void ms_phase_interval_end(unsigned number, bool is_measured, uint64_t top_above, uint64_t now_ns,
                           struct ms_phase_interval *interval_p)
{
    struct ms_account sum;
    bool alone = lock_account(number);
    ms_account_sum(number, &sum);
    bool was_measured = sum.interval_peak_ns != 0 && sum.interval_peak_bytes >= sum.device.live_bytes;
    *interval_p = (struct ms_phase_interval){.live_bytes = sum.device.live_bytes,
                                             .live_count = sum.device.live_count,
                                             .total_bytes = sum.device.total_bytes,
                                             .total_count = sum.device.total_count,
                                             .peak_bytes = was_measured ? sum.interval_peak_bytes
                                                                        : sum.device.live_bytes,
                                             .peak_ns = was_measured ? sum.interval_peak_ns : now_ns};
    if (was_measured && interval_p->peak_bytes > top_above)
        interval_p->top_count = ms_shards_top_at_rise(number, interval_p->top_sites, interval_p->top_bytes);
    ms_shards_begin_interval(number, is_measured, now_ns);
    if (alone)
        ms_shard_unlock(&ms_shards[0][number]);
    else
        ms_shards_unlock(number);
}

static struct ms_phase_open_device *on_device(struct ms_phase_open *open, int device)
{
    for (unsigned i = 0; i < open->device_count; i++) {
        if (open->devices[i].device == device)
            return &open->devices[i];
    }
    if (open->device_count == MS_PHASE_DEVICES)
        return NULL;
    open->devices[open->device_count] = (struct ms_phase_open_device){.device = (int16_t)device};
    return &open->devices[open->device_count++];
}

/* Above which peak of an interval somebody wants to know who held it: a phase whose own peak it would be, and
 * the largest of its name. */
static uint64_t wanted_above(int device)
{
    uint64_t above = UINT64_MAX;
    for (unsigned i = 0; i < open_end && above; i++) {
        struct ms_phase_open *open = open_at(i);
        if (!is_open(open))
            continue;
        const struct ms_phase_open_device *on = on_device(open, device);
        const struct ms_phase_figures *figures = ms_phase_figures_of(open->phase, device, false);
        uint64_t own = on ? on->peak_bytes : UINT64_MAX;
        if (figures && figures->peak_bytes_max > own)
            own = figures->peak_bytes_max;
        above = own < above ? own : above;
    }
    return above;
}

static void add_interval(struct ms_phase_open *open, int device, const struct ms_phase_interval *interval)
{
    struct ms_phase_open_device *on = on_device(open, device);
    if (!on || (on->peak_ns && interval->peak_bytes <= on->peak_bytes))
        return;
    on->peak_bytes = interval->peak_bytes;
    on->peak_ns = interval->peak_ns;
    on->top_count = (uint16_t)interval->top_count;
    memcpy(on->top_sites, interval->top_sites, sizeof on->top_sites);
    memcpy(on->top_bytes, interval->top_bytes, sizeof on->top_bytes);
}

/* Ends the interval on each device for all that are open; `begins` begins, `ends` does that. */
static void cross(struct ms_phase_open *begins, struct ms_phase_open *ends, uint64_t now_ns)
{
    bool goes_on = open_count + (begins != NULL) > (ends != NULL);
    ms_shards_measure_first(goes_on);
    for (unsigned number = 0; number < MS_ACCOUNTS; number++) {
        uint64_t used =
            atomic_load_explicit(&ms_shards_used[number / 64], memory_order_relaxed) >> number % 64;
        struct ms_phase_interval interval;
        if (!used) {
            number |= 63;
            continue;
        }
        number += (unsigned)__builtin_ctzll(used);
        int device = ms_account_device(number);
        if (!ms_device_is_known(ms_device_plain(device))) /* memory of none */
            continue;
        ms_phase_interval_end(number, goes_on, wanted_above(device), now_ns, &interval);
        for (unsigned i = 0; i < open_end; i++) {
            if (is_open(open_at(i)))
                add_interval(open_at(i), device, &interval);
        }
        struct ms_phase_open_device *on = begins || ends ? on_device(begins ? begins : ends, device) : NULL;
        if (begins && on) {
            on->live_bytes = interval.live_bytes;
            on->live_count = interval.live_count;
            on->total_bytes = interval.total_bytes;
            on->total_count = interval.total_count;
        }
        struct ms_phase_figures *figures = ends && on ? ms_phase_figures_of(ends->phase, device, true) : NULL;
        if (figures)
            ms_phase_figures_add(figures, on, &interval);
    }
}

/* --- phases --- */

static struct ms_trace_phase traced(uint32_t row)
{
    const struct ms_phase *phase = ms_phase_at(row);
    return (struct ms_trace_phase){row, (uint8_t)phase->source, ms_phase_text_at(phase->domain),
                                   ms_phase_text_at(phase->name)};
}

static struct ms_phase_open *take_open(void)
{
    unsigned i = open_free;
    while (i < open_end && is_open(open_at(i)))
        i++;
    if (i == MS_PHASE_OPENS || !ms_table_reserve(MS_TABLE_PHASE_OPENS, i + 1))
        return NULL;
    if (i == open_end) {
        open_end++;
        ms_table_publish(MS_TABLE_PHASE_OPENS, open_end);
    }
    open_free = i + 1;
    return open_at(i);
}

/* Under the lock: the number of the phase, 0 without room. */
static uint64_t phases_begin(enum ms_phase_source source, uint32_t domain, uint32_t name, bool is_nested)
{
    uint64_t now_ns = ms_ledger_now();
    uint32_t row = ms_phase_row(source, domain, name, now_ns);
    struct ms_phase_open *open = row == UINT32_MAX ? NULL : take_open();
    if (!open) {
        count_fault(MS_PHASE_NO_ROOM);
        return 0;
    }
    ms_phase_at(row)->last_ns = now_ns;
    open->phase = row;
    open->thread = ms_thread_id();
    open->domain = domain << 2 | source;
    open->is_nested = is_nested;
    open->device_count = 0;
    open->begun_ns = now_ns;
    cross(open, NULL, now_ns);
    /* Low bits: where it is. */
    uint64_t id = ++latest_id << 10 | (uint64_t)(open - open_at(0));
    atomic_store_explicit(&open->id, id, memory_order_release);
    open_count++;
    if (ms_trace_wanted()) {
        const struct ms_trace_phase told = traced(row);
        ms_trace_put_begin(&told, id, is_nested, now_ns);
    }
    return id;
}
_Static_assert(MS_PHASE_OPENS <= 1 << 10 && MS_PHASE_SOURCES <= 4, "bits of a number and of a domain");

static void phases_end(struct ms_phase_open *open)
{
    uint64_t now_ns = ms_ledger_now();
    struct ms_phase *phase = ms_phase_at(open->phase);
    cross(NULL, open, now_ns);
    if (ms_trace_wanted())
        ms_trace_put_finish(atomic_load_explicit(&open->id, memory_order_relaxed), now_ns);
    phase->ended++;
    phase->last_ns = now_ns;
    phase->total_ns += now_ns - open->begun_ns;
    atomic_store_explicit(&open->id, 0, memory_order_release);
    unsigned i = (unsigned)(open - open_at(0));
    open_free = i < open_free ? i : open_free;
    while (open_end && !is_open(open_at(open_end - 1)))
        open_end--;
    open_count--;
}

static void count_missing(void)
{
    if (inherited)
        inherited--;
    else
        count_fault(MS_PHASE_NOT_OPEN);
}

/* The thread's latest of a domain, NULL if there is none, and how many there are. */
static struct ms_phase_open *innermost(enum ms_phase_source source, uint32_t domain, int *count_p)
{
    struct ms_phase_open *latest = NULL;
    uint32_t thread = ms_thread_id();
    *count_p = 0;
    for (unsigned i = 0; i < open_end; i++) {
        struct ms_phase_open *open = open_at(i);
        if (!is_open(open) || !open->is_nested || open->thread != thread ||
            open->domain != (domain << 2 | source))
            continue;
        ++*count_p;
        if (!latest || open->id > latest->id)
            latest = open;
    }
    return latest;
}

static uint32_t text_of(const char *text, bool is_phases)
{
    ms_lock(&lock);
    uint32_t at = ms_phase_text_locked(text, is_phases);
    ms_unlock(&lock);
    return at;
}

uint32_t ms_phase_text(const char *text)
{
    return text_of(text, true);
}

uint32_t ms_phase_text_other(const char *text)
{
    return text_of(text, false);
}

int ms_phase_push(enum ms_phase_source source, uint32_t domain, uint32_t name)
{
    int level;
    ms_lock(&lock);
    innermost(source, domain, &level);
    phases_begin(source, domain, name, true);
    ms_unlock(&lock);
    return level;
}

int ms_phase_pop(enum ms_phase_source source, uint32_t domain)
{
    int count;
    ms_lock(&lock);
    struct ms_phase_open *open = innermost(source, domain, &count);
    if (open)
        phases_end(open);
    else
        count_missing();
    ms_unlock(&lock);
    return count - 1;
}

uint64_t ms_phase_begin(enum ms_phase_source source, uint32_t domain, uint32_t name)
{
    ms_lock(&lock);
    uint64_t id = phases_begin(source, domain, name, false);
    ms_unlock(&lock);
    return id;
}

void ms_phase_end(uint64_t id)
{
    unsigned i = (unsigned)(id & (MS_PHASE_OPENS - 1));
    ms_lock(&lock);
    if (id && i < open_end && atomic_load_explicit(&open_at(i)->id, memory_order_relaxed) == id &&
        !open_at(i)->is_nested)
        phases_end(open_at(i));
    else
        count_missing();
    ms_unlock(&lock);
}

uint32_t ms_phase_now(void)
{
    const struct ms_phase_open *own = NULL, *any = NULL;
    uint32_t thread = ms_thread_id(), row = 0;
    ms_lock(&lock);
    for (unsigned i = 0; i < open_end; i++) {
        const struct ms_phase_open *open = open_at(i);
        if (!is_open(open))
            continue;
        if (open->is_nested && open->thread == thread && (!own || open->id > own->id))
            own = open;
        if (!open->is_nested && (!any || open->id > any->id))
            any = open;
    }
    if (own || any)
        row = (own ? own : any)->phase + 1;
    ms_unlock(&lock);
    return row;
}

void ms_phase_mark(enum ms_phase_source source, uint32_t domain, uint32_t name)
{
    uint64_t now_ns = ms_ledger_now();
    ms_lock(&lock);
    uint32_t row = ms_phase_row(source, domain, name, now_ns);
    if (row != UINT32_MAX) {
        ms_phase_at(row)->marks++;
        ms_phase_at(row)->last_ns = now_ns;
        const struct ms_trace_phase told = traced(row);
        if (ms_trace_wanted())
            ms_trace_put_mark(&told, now_ns);
    }
    ms_unlock(&lock);
}

bool ms_phases_lock_within(unsigned timeout_ms)
{
    return ms_lock_within(&lock, timeout_ms);
}

void ms_phases_unlock(void)
{
    ms_unlock(&lock);
}

static void phases_reset(void)
{
    ms_lock_reset(&lock);
    if (latest_id)
        ms_phase_figures_reset();
    inherited += open_count;
    open_end = open_free = open_count = 0;
}
MS_AT_FORK(MS_FORK_RECORD, phases_reset);
