/* json.c - the report as a whole, and its small parts: schema_version, tool, config, coverage, overhead,
 * diagnostics.
 *
 * Floor 4. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/objects.h"
#include "report/json.h"

/* As the process wrote them down: "NAME=", a letter for where it comes from, the value. */
static void write_config(struct ms_out *out)
{
    const char *option, *equals;
    uint64_t cursor = 0;
    ms_out_key(out, "config");
    ms_out_begin_array(out);
    while ((option = ms_process_next_text("option", &cursor)) != NULL) {
        char name[64];
        if (!(equals = strchr(option, '=')) || !equals[1])
            continue;
        snprintf(name, sizeof name, "MEMSHIM_%.*s", (int)(equals - option), option);
        ms_out_element(out, json_pack("{s:o, s:o, s:s}", "name", ms_out_string(name), "value",
                                      ms_out_string(equals + 2), "source",
                                      equals[1] == 'e'   ? "environment"
                                      : equals[1] == 'f' ? "file"
                                                         : "default"));
    }
    ms_out_end_array(out);
}

static void write_coverage(struct ms_out *out)
{
    const char *line;
    struct ms_process *process = ms_process();
    json_t *blind_spots = json_array();
    for (unsigned i = 0; (line = ms_events_blind_spot(i)) != NULL; i++)
        json_array_append_new(blind_spots, ms_out_string(line));
    ms_out_key(out, "coverage");
    ms_out_value(out, json_pack("{s:{s:I, s:I, s:I}, s:I, s:I, s:I, s:o, s:I}", "routes", "exported",
                                (json_int_t)atomic_load(&process->routes[MS_ROUTE_EXPORTED]), "dlsym",
                                (json_int_t)atomic_load(&process->routes[MS_ROUTE_DLSYM]), "get_proc_address",
                                (json_int_t)atomic_load(&process->routes[MS_ROUTE_GET_PROC]), "divergent",
                                (json_int_t)atomic_load(&process->divergent), "unseen_frees",
                                (json_int_t)atomic_load(&process->unseen_frees), "late_frees",
                                (json_int_t)atomic_load(&process->late_frees), "blind_spots", blind_spots,
                                "replaced_blocks", (json_int_t)ms_blocks_replaced()));
}

static uint64_t all_calls(void)
{
    const struct ms_api_row *row;
    uint64_t calls = 0;
    for (unsigned i = 0; (row = ms_events_api(i)) != NULL; i++)
        calls += atomic_load(&row->calls);
    return calls;
}

static void write_overhead(struct ms_out *out, const struct ms_report_input *input)
{
    ms_out_key(out, "overhead");
    ms_out_value(out, json_pack("{s:I, s:I, s:I, s:I, s:I}", "calls", (json_int_t)all_calls(), "report_ns",
                                (json_int_t)(ms_ledger_now() - input->began_ns), "ledger_bytes",
                                (json_int_t)(ms_arena_bytes() + ms_store_bytes()), "dropped_events",
                                (json_int_t)(ms_blocks_dropped() + ms_sites_dropped()), "dropped_stacks",
                                (json_int_t)ms_stack_dropped()));
}

/* What the report itself leaves out comes after what was said during the run. */
static void write_diagnostics(struct ms_out *out, const struct ms_report_input *input)
{
    const char *line;
    char text[160];
    struct ms_oom oom;
    struct ms_context_died death;
    uint64_t lost_ooms, lost_deaths;
    const struct ms_snapshot *snapshot = input->snapshot;
    ms_out_key(out, "diagnostics");
    ms_out_begin_array(out);
    for (unsigned i = 0; (line = ms_diagnostic_line(i)) != NULL; i++)
        ms_out_element(out, ms_out_string(line));
    if (snapshot->block_count < snapshot->block_total) {
        snprintf(text, sizeof text, "report: segments[] has the %llu largest of %llu live blocks",
                 (unsigned long long)snapshot->block_count, (unsigned long long)snapshot->block_total);
        ms_out_element(out, json_string(text));
    }
    ms_events_oom(0, &oom, &lost_ooms);
    ms_events_death(0, &death, &lost_deaths);
    if (lost_ooms || lost_deaths) {
        snprintf(text, sizeof text,
                 "report: %llu earlier out-of-memory errors and %llu deaths of contexts are not shown",
                 (unsigned long long)lost_ooms, (unsigned long long)lost_deaths);
        ms_out_element(out, json_string(text));
    }
    if (ms_objects_dropped()) {
        snprintf(text, sizeof text, "report: %u loaded objects are missing from modules[]",
                 ms_objects_dropped());
        ms_out_element(out, json_string(text));
    }
    if (!snapshot->consistent)
        ms_out_element(
            out, json_string("report: written while another thread changed the record; sums may not add up"));
    ms_out_end_array(out);
}

void ms_json_write(struct ms_out *out, const struct ms_report_input *input)
{
    ms_out_begin_object(out);
    ms_out_key(out, "schema_version");
    ms_out_value(out, json_string("1.0"));
    ms_out_key(out, "tool");
    ms_out_value(out, json_pack("{s:s, s:s, s:s}", "name", "memshim", "version", PACKAGE_VERSION, "commit",
                                MEMSHIM_COMMIT));
    ms_json_run(out, input);
    write_config(out);
    ms_json_devices(out, input);
    ms_json_stacks(out, input);
    ms_json_sites(out, input);
    ms_json_events(out, input);
    write_coverage(out);
    write_overhead(out, input);
    write_diagnostics(out, input);
    ms_out_end_object(out);
}
