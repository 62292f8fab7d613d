/* phase_figures.c - what phases of one name were on a device, folded as each of them ends.
 *
 * Floor 2. Rows are appended and found by a hash index of fixed size, which is this process's own. Under the
 * lock of phases.c, or in a copy. */
#include <string.h>

#include "record/phases/phases.h"

enum { PLACES = 2 * MS_TABLE_PHASE_FIGURES_ROWS };
static uint32_t index_of[PLACES]; /* number, + 1 */

static struct ms_phase_figures *figures_at(uint32_t row)
{
    return &MS_ROWS(PHASE_FIGURES, struct ms_phase_figures)[row];
}

struct ms_phase_figures *ms_phase_figures_of(uint32_t phase, int device, bool create)
{
    uint32_t place = (phase * 131u + (uint32_t)device) * 2654435761u % PLACES, number;
    for (; (number = index_of[place]) != 0; place = (place + 1) % PLACES) {
        struct ms_phase_figures *figures = figures_at(number - 1);
        if (figures->phase == phase && figures->device == device)
            return figures;
    }
    uint64_t rows = ms_table_rows(MS_TABLE_PHASE_FIGURES);
    if (!create || rows >= MS_TABLE_PHASE_FIGURES_ROWS ||
        !ms_table_reserve(MS_TABLE_PHASE_FIGURES, rows + 1)) {
        if (create)
            ms_table_drop(MS_TABLE_PHASE_FIGURES);
        return NULL;
    }
    struct ms_phase_figures *figures = figures_at((uint32_t)rows);
    figures->phase = phase;
    figures->device = (int16_t)device;
    atomic_store_explicit(&figures->state, 1, memory_order_release);
    ms_table_publish(MS_TABLE_PHASE_FIGURES, rows + 1);
    index_of[place] = (uint32_t)rows + 1;
    return figures;
}

/* Of a series that is full every other one stays. */
static void note_in_series(struct ms_phase_figures *figures, const struct ms_phase_instance *instance)
{
    if (figures->count & ((UINT64_C(1) << figures->series_shift) - 1))
        return;
    if (figures->series_count == MS_PHASE_SERIES) {
        for (unsigned i = 0; i < MS_PHASE_SERIES / 2; i++)
            figures->series[i] = figures->series[2 * i];
        figures->series_count = MS_PHASE_SERIES / 2;
        figures->series_shift++;
        if (figures->count & ((UINT64_C(1) << figures->series_shift) - 1))
            return;
    }
    figures->series[figures->series_count++] = *instance;
}

static void note_top(struct ms_phase_figures *figures, uint32_t count, const uint32_t *sites,
                     const uint64_t *bytes)
{
    figures->top_count = (uint16_t)count;
    memcpy(figures->top_sites, sites, sizeof figures->top_sites);
    memcpy(figures->top_bytes, bytes, sizeof figures->top_bytes);
}

/* The largest of the instances so far, with what held it. */
static void note_peak(struct ms_phase_figures *figures, const struct ms_phase_open_device *open,
                      const struct ms_phase_interval *end)
{
    bool is_last = end->peak_bytes > open->peak_bytes || !open->peak_ns;
    figures->peak_bytes_max = is_last ? end->peak_bytes : open->peak_bytes;
    figures->peak_ns = is_last ? end->peak_ns : open->peak_ns;
    if (is_last)
        note_top(figures, end->top_count, end->top_sites, end->top_bytes);
    else
        note_top(figures, open->top_count, open->top_sites, open->top_bytes);
}

/* The difference, which is none where a damaged file has the larger one first. */
static uint64_t phase_figures_less(uint64_t from, uint64_t value)
{
    return from > value ? from - value : 0;
}

void ms_phase_figures_add(struct ms_phase_figures *figures, const struct ms_phase_open_device *open,
                          const struct ms_phase_interval *end)
{
    uint64_t allocated = phase_figures_less(end->total_bytes, open->total_bytes);
    uint64_t blocks = phase_figures_less(end->total_count, open->total_count);
    struct ms_phase_instance instance = {.peak_bytes = end->peak_bytes > open->peak_bytes ? end->peak_bytes
                                                                                          : open->peak_bytes,
                                         .growth_bytes = (int64_t)(end->live_bytes - open->live_bytes)};
    if (!figures->count || instance.peak_bytes > figures->peak_bytes_max)
        note_peak(figures, open, end);
    if (!figures->count || instance.peak_bytes < figures->peak_bytes_min)
        figures->peak_bytes_min = instance.peak_bytes;
    if (!figures->count || instance.growth_bytes < figures->growth_bytes_min)
        figures->growth_bytes_min = instance.growth_bytes;
    if (!figures->count || instance.growth_bytes > figures->growth_bytes_max)
        figures->growth_bytes_max = instance.growth_bytes;
    figures->growth_bytes_sum += instance.growth_bytes;
    figures->allocated_bytes += allocated;
    figures->allocated_count += blocks;
    figures->freed_bytes += phase_figures_less(allocated + open->live_bytes, end->live_bytes);
    figures->freed_count += phase_figures_less(blocks + open->live_count, end->live_count);
    note_in_series(figures, &instance);
    figures->count++;
}

void ms_phase_figures_reset(void)
{
    memset(index_of, 0, sizeof index_of);
}
