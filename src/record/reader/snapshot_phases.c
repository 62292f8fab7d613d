/* snapshot_phases.c - copies of the phases for the report, and the rows of a file made sound.
 *
 * Floor 2. Copies under the locks of the snapshot, into one private mapping of their own. */
#include <string.h>
#include <sys/mman.h>

#include "record/phases/phases.h"
#include "record/reader/snapshot.h"

enum { VALUES_MAX = 1 << 13 }; /* so many of the largest amount still add up */

static uint32_t rows_of(enum ms_table table)
{
    return (uint32_t)ms_table_rows(table);
}

/* One more row for each phase that is open, on each device. */
static bool map_memory(struct ms_phases_told *told)
{
    size_t phases = told->phase_count * sizeof *told->phases,
           figures = (rows_of(MS_TABLE_PHASE_FIGURES) + rows_of(MS_TABLE_PHASE_OPENS) * MS_PHASE_DEVICES) *
                     sizeof *told->figures;
    told->memory_bytes = phases + figures + told->phase_count * sizeof *told->open;
    void *memory = mmap(NULL, told->memory_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    told->memory = memory;
    told->figures = memory;
    told->phases = (struct ms_phase *)(void *)((char *)memory + figures);
    told->open = (uint32_t *)(void *)((char *)memory + figures + phases);
    return true;
}

static struct ms_phase_figures *figures_in(struct ms_phases_told *told, uint32_t phase, int device)
{
    for (uint32_t i = 0; i < told->figures_count; i++) {
        if (told->figures[i].phase == phase && told->figures[i].device == device)
            return &told->figures[i];
    }
    struct ms_phase_figures *figures = &told->figures[told->figures_count++];
    figures->phase = phase;
    figures->device = (int16_t)device;
    return figures;
}

/* The sites that held most when this interval was at its peak. */
static void find_top(const struct ms_snapshot *snapshot, int device, struct ms_phase_interval *interval)
{
    for (uint32_t i = 0; i < snapshot->site_count; i++) {
        const struct ms_site *site = &snapshot->sites[i].site;
        uint64_t held = site->kept_peak_bytes;
        if (site->device != device || !ms_kind_is_device(site->kind) || !held)
            continue;
        unsigned rank = interval->top_count < MS_OOM_TOP_SITES ? interval->top_count++ : MS_OOM_TOP_SITES;
        for (; rank > 0 && interval->top_bytes[rank - 1] < held; rank--) {
            if (rank < MS_OOM_TOP_SITES) {
                interval->top_bytes[rank] = interval->top_bytes[rank - 1];
                interval->top_sites[rank] = interval->top_sites[rank - 1];
            }
        }
        if (rank < MS_OOM_TOP_SITES) {
            interval->top_bytes[rank] = held;
            interval->top_sites[rank] = site->whole;
        }
    }
}

static struct ms_phase_interval interval_now(const struct ms_snapshot *snapshot, int device)
{
    const struct ms_account *account = &snapshot->devices[ms_account_number(device)].account;
    const struct ms_amount *amount = &account->device;
    struct ms_phase_interval interval = {.live_bytes = amount->live_bytes,
                                         .live_count = amount->live_count,
                                         .total_bytes = amount->total_bytes,
                                         .total_count = amount->total_count,
                                         .peak_bytes = amount->live_bytes,
                                         .peak_ns = snapshot->now_ns};
    if (account->interval_peak_bytes < amount->live_bytes)
        return interval;
    interval.peak_bytes = account->interval_peak_bytes;
    interval.peak_ns = account->interval_peak_ns;
    find_top(snapshot, device, &interval);
    return interval;
}

/* As if it ended now. A device that came while it was open is known to it only at the next boundary. */
static void add_open(const struct ms_snapshot *snapshot, struct ms_phases_told *told,
                     const struct ms_phase_open *open)
{
    told->open[open->phase]++;
    told->phases[open->phase].total_ns +=
        snapshot->now_ns > open->begun_ns ? snapshot->now_ns - open->begun_ns : 0;
    for (unsigned number = 0; number < MS_ACCOUNTS; number++) {
        int device = ms_account_device(number);
        struct ms_phase_open_device on = {.device = (int16_t)device};
        if (!ms_device_is_known(ms_device_plain(device)) ||
            !snapshot->devices[number].account.device.total_count)
            continue;
        bool is_known = open->device_count < MS_PHASE_DEVICES;
        for (unsigned i = 0; i < open->device_count; i++) {
            if (open->devices[i].device != device)
                continue;
            on = open->devices[i];
            is_known = true;
        }
        struct ms_phase_interval interval = interval_now(snapshot, device);
        if (is_known)
            ms_phase_figures_add(figures_in(told, open->phase, device), &on, &interval);
    }
}

void ms_phases_copy(struct ms_snapshot *snapshot)
{
    struct ms_phases_told *told = &snapshot->phases;
    told->phase_count = rows_of(MS_TABLE_PHASES);
    if (!told->phase_count || !map_memory(told)) {
        told->phase_count = 0;
        return;
    }
    memcpy((void *)told->phases, ms_phase_at(0), told->phase_count * sizeof *told->phases);
    const struct ms_phase_figures *figures = MS_ROWS(PHASE_FIGURES, struct ms_phase_figures);
    for (uint32_t i = 0; i < rows_of(MS_TABLE_PHASE_FIGURES); i++) {
        if (atomic_load_explicit(&figures[i].state, memory_order_acquire) == 1)
            memcpy((void *)&told->figures[told->figures_count++], &figures[i], sizeof *figures);
    }
    for (uint32_t i = 0; i < rows_of(MS_TABLE_PHASE_OPENS); i++) {
        const struct ms_phase_open *open = &MS_ROWS(PHASE_OPENS, struct ms_phase_open)[i];
        if (atomic_load_explicit(&open->id, memory_order_acquire))
            add_open(snapshot, told, open);
    }
}

void ms_phases_release(struct ms_snapshot *snapshot)
{
    if (snapshot->phases.memory)
        munmap(snapshot->phases.memory, snapshot->phases.memory_bytes);
    snapshot->phases.memory = NULL;
}

/* --- a file's rows --- */

static void clamp(uint64_t *value)
{
    if (*value > INT64_MAX / VALUES_MAX)
        *value = INT64_MAX / VALUES_MAX;
}

static void clamp_growth(int64_t *value)
{
    const int64_t most = INT64_MAX / VALUES_MAX;
    *value = *value > most ? most : *value < -most ? -most : *value;
}

static uint16_t sound_top(uint16_t count, const uint32_t *sites, uint64_t *bytes)
{
    count = count > MS_OOM_TOP_SITES ? 0 : count;
    for (uint16_t i = 0; i < count; i++) {
        clamp(&bytes[i]);
        if (!ms_site_at(sites[i]))
            return i;
    }
    return count;
}

static void clean_figures(struct ms_phase_figures *figures)
{
    uint64_t *values[] = {&figures->count,       &figures->peak_bytes_min,  &figures->peak_bytes_max,
                          &figures->peak_ns,     &figures->allocated_bytes, &figures->allocated_count,
                          &figures->freed_bytes, &figures->freed_count};
    if (figures->phase >= rows_of(MS_TABLE_PHASES) || !ms_device_is_known(ms_device_plain(figures->device)) ||
        figures->series_count > MS_PHASE_SERIES || figures->series_shift > 62)
        atomic_store(&figures->state, 0);
    for (unsigned i = 0; i < MS_ARRAY_LEN(values); i++)
        clamp(values[i]);
    clamp_growth(&figures->growth_bytes_min);
    clamp_growth(&figures->growth_bytes_max);
    clamp_growth(&figures->growth_bytes_sum);
    if (figures->peak_bytes_min > figures->peak_bytes_max)
        figures->peak_bytes_min = figures->peak_bytes_max;
    if (!figures->series_count) /* whose median is 0 then */
        figures->peak_bytes_min = 0;
    for (unsigned i = 0; i < MS_PHASE_SERIES; i++) {
        uint64_t *peak = &figures->series[i].peak_bytes;
        *peak = *peak < figures->peak_bytes_min   ? figures->peak_bytes_min
                : *peak > figures->peak_bytes_max ? figures->peak_bytes_max
                                                  : *peak;
        clamp_growth(&figures->series[i].growth_bytes);
    }
    figures->top_count = sound_top(figures->top_count, figures->top_sites, figures->top_bytes);
}

static void clean_open(struct ms_phase_open *open)
{
    if (open->phase >= rows_of(MS_TABLE_PHASES) || open->device_count > MS_PHASE_DEVICES)
        atomic_store(&open->id, 0);
    clamp(&open->begun_ns);
    for (unsigned i = 0; i < MS_PHASE_DEVICES; i++) {
        struct ms_phase_open_device *on = &open->devices[i];
        clamp(&on->live_bytes);
        clamp(&on->live_count);
        clamp(&on->total_bytes);
        clamp(&on->total_count);
        clamp(&on->peak_bytes);
        clamp(&on->peak_ns);
        on->top_count = sound_top(on->top_count, on->top_sites, on->top_bytes);
    }
}

void ms_phases_clean(void)
{
    uint32_t text_bytes = rows_of(MS_TABLE_PHASE_TEXT);
    if (text_bytes)
        MS_ROWS(PHASE_TEXT, char)[text_bytes - 1] = '\0';
    for (uint32_t i = 0; i < rows_of(MS_TABLE_PHASES); i++) {
        struct ms_phase *phase = ms_phase_at(i);
        uint64_t *values[] = {&phase->ended, &phase->marks, &phase->first_ns, &phase->last_ns,
                              &phase->total_ns};
        for (unsigned k = 0; k < MS_ARRAY_LEN(values); k++)
            clamp(values[k]);
        phase->source = phase->source < MS_PHASE_SOURCES ? phase->source : MS_PHASE_MEMSHIM;
    }
    for (uint32_t i = 0; i < rows_of(MS_TABLE_PHASE_FIGURES); i++)
        clean_figures(&MS_ROWS(PHASE_FIGURES, struct ms_phase_figures)[i]);
    for (uint32_t i = 0; i < rows_of(MS_TABLE_PHASE_OPENS); i++)
        clean_open(&MS_ROWS(PHASE_OPENS, struct ms_phase_open)[i]);
}
