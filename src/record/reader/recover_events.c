/* recover_events.c - what happened once, in a loaded ledger: out of memory, ends of contexts, refused frees,
 * and what the driver took; see recover.h.
 *
 * Floor 2, command line only; one thread. */
#include <string.h>

#include "record/live/invalid_frees.h"
#include "record/reader/recover_clean.h"
#include "record/footprint/footprints.h"

/* Each row of what sites held is one error's: the first of them that names it has it. */
static void clean_oom_sites(struct ms_oom *oom, uint8_t *taken)
{
    uint32_t site;
    uint64_t bytes;
    clamp(&oom->site_first, INT64_MAX / 2);
    if (oom->site_count > MS_TABLE_OOM_SITES_ROWS)
        oom->site_count = MS_TABLE_OOM_SITES_ROWS;
    for (uint32_t k = 0; k < oom->site_count; k++) {
        uint64_t row = (oom->site_first + k) % MS_TABLE_OOM_SITES_ROWS;
        if (!ms_oom_site_at(oom, k, &site, &bytes))
            continue;
        if (taken[row])
            oom->site_count = k;
        taken[row] = 1;
    }
}

void ms_recover_rings(void)
{
    static uint8_t taken[MS_TABLE_OOM_SITES_ROWS];
    memset(taken, 0, sizeof taken);
    for (uint64_t i = 0; i < ms_table_rows(MS_TABLE_OOMS); i++) {
        struct ms_oom *oom = &MS_ROWS(OOMS, struct ms_oom)[i];
        clamp(&oom->t_ns, INT64_MAX);
        clamp(&oom->requested, INT64_MAX);
        clamp(&oom->live_bytes, INT64_MAX);
        clamp(&oom->reserved_bytes, INT64_MAX);
        clamp(&oom->largest_free_bytes, INT64_MAX);
        clamp(&oom->free_bytes, INT64_MAX);
        clamp(&oom->total_bytes, INT64_MAX);
        clamp(&oom->taken_bytes, INT64_MAX / 16);
        clamp(&oom->followed_bytes, INT64_MAX / 16);
        clamp(&oom->driver_rounding_bytes, INT64_MAX / 16);
        clamp(&oom->driver_cached_bytes, INT64_MAX / 16);
        clamp(&oom->fit.free_bytes, INT64_MAX);
        clamp(&oom->fit.value, INT64_MAX);
        clamp(&oom->fit.most_bytes, INT64_MAX);
        clean_oom_sites(oom, taken);
        ms_figure_bound(&ms_figure_parts, &oom->parts, INT64_MAX);
        oom->fit.policy = oom->fit.policy < MS_OOM_POLICIES ? oom->fit.policy : MS_OOM_NO_POLICY;
        *(uint8_t *)&oom->fit.wait &= 1;
        oom->fragmentation = oom->fragmentation < MS_OOM_FRAGMENTATIONS ? oom->fragmentation : MS_OOM_WHOLE;
        oom->is_answered = oom->is_answered != 0;
        oom->asked = oom->asked < MS_ASKED_KINDS ? oom->asked : MS_ASKED_UNKNOWN;
        oom->cause = oom->cause < MS_OOM_CAUSES ? oom->cause : MS_OOM_UNKNOWN;
        if (!ms_device_is_known(oom->device) && !ms_device_is_inner(oom->device))
            oom->device = MS_DEVICE_NONE;
        oom->top_count = oom->top_count > MS_OOM_TOP_SITES ? 0 : oom->top_count;
        for (unsigned k = 0; k < oom->top_count; k++) {
            clamp(&oom->top_bytes[k], INT64_MAX);
            if (!ms_site_at(oom->top_sites[k]))
                oom->top_count = k;
        }
    }
    for (uint64_t i = 0; i < ms_table_rows(MS_TABLE_OOM_SITES); i++)
        clamp(&MS_ROWS(OOM_SITES, struct ms_oom_site)[i].bytes, INT64_MAX);
    for (uint64_t i = 0; i < ms_table_rows(MS_TABLE_DEATHS); i++) {
        struct ms_context_died *death = &MS_ROWS(DEATHS, struct ms_context_died)[i];
        clamp(&death->t_ns, INT64_MAX);
        clamp(&death->bytes, INT64_MAX);
        clamp(&death->count, INT64_MAX);
        if (!ms_device_is_known(death->device))
            death->device = MS_DEVICE_NONE;
    }
}

/* A rule that nobody knows is no row. */
void ms_recover_invalid_frees(void)
{
    for (uint64_t i = 0; i < ms_table_rows(MS_TABLE_INVALID_FREES); i++) {
        struct ms_invalid_free_row *row = &MS_ROWS(INVALID_FREES, struct ms_invalid_free_row)[i];
        clamp_atomic(&row->count, INT64_MAX);
        clamp(&row->bytes, INT64_MAX);
        clamp(&row->block_bytes, INT64_MAX);
        clamp(&row->t_ns, INT64_MAX);
        row->stack = row->stack <= ms_stack_count() ? row->stack : 0;
        row->site = ms_site_at(row->site) ? row->site : UINT32_MAX;
        row->device = ms_device_is_known(row->device) ? row->device : MS_DEVICE_NONE;
        row->space = row->space < MS_SPACE_COUNT ? row->space : MS_SPACE_ADDRESS;
        if (ms_invalid_free_is_use(row->rule) && row->block_bytes > ms_stack_count())
            row->block_bytes = 0;
        if (row->rule == MS_INVALID_FREE_NONE || row->rule > MS_INVALID_FREE_FORKED)
            atomic_store(&row->count, 0);
    }
}

void ms_recover_footprints(void)
{
    for (uint64_t i = 0; i < ms_table_rows(MS_TABLE_FOOTPRINTS); i++) {
        struct ms_footprint_row *row = &MS_ROWS(FOOTPRINTS, struct ms_footprint_row)[i];
        clamp(&row->first_ns, INT64_MAX);
        clamp_atomic(&row->ended_ns, INT64_MAX);
        clamp_atomic(&row->bytes, INT64_MAX / MS_TABLE_FOOTPRINTS_ROWS);
        clamp_atomic(&row->count, INT64_MAX);
        clamp_atomic(&row->total_bytes, INT64_MAX);
        clamp_atomic(&row->total_count, INT64_MAX);
        clamp_atomic(&row->bytes, atomic_load(&row->total_bytes));
        clamp_atomic(&row->count, atomic_load(&row->total_count));
        row->stack = row->stack <= ms_stack_count() ? row->stack : 0;
        if (row->kind >= MS_FOOTPRINTS || !ms_device_is_known(row->device))
            atomic_store(&row->state, 0);
    }
}
