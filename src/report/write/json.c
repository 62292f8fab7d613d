/* json.c - the report as a whole, and its small parts: schema_version, tool, config, coverage, overhead,
 * diagnostics.
 *
 * Floor 4. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/objects/objects.h"
#include "report/write/json.h"

/* As the process wrote them down: "NAME=", a letter for where it comes from, the value. A ledger may be
 * damaged: what is no name is left out. */
static void write_config(struct ms_out *out)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    const char *option, *equals;
    uint64_t cursor = 0;
    ms_out_key(out, "config");
    ms_out_begin_array(out);
    while ((option = ms_process_next_text("option", &cursor)) != NULL) {
        char name[64];
        equals = option + strspn(option, letters);
        if (equals == option || equals - option > 32 || *equals != '=' || !equals[1])
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

static unsigned long long count_of(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

/* The number of late frees comes to be known after the report is written, so it has its place. */
static void write_coverage(struct ms_out *out, struct ms_report_input *input)
{
    char text[320];
    const char *line;
    struct ms_process *process = ms_process();
    json_t *blind_spots = json_array();
    for (unsigned i = 0; (line = ms_events_blind_spot(i)) != NULL; i++)
        json_array_append_new(blind_spots, ms_out_string(line));
    ms_out_key(out, "coverage");
    snprintf(text, sizeof text,
             "{\"routes\":{\"exported\":%llu,\"dlsym\":%llu,\"get_proc_address\":%llu},\"divergent\":%llu,"
             "\"unseen_frees\":%llu,\"late_frees\":",
             count_of(&process->routes[MS_ROUTE_EXPORTED]), count_of(&process->routes[MS_ROUTE_DLSYM]),
             count_of(&process->routes[MS_ROUTE_GET_PROC]), count_of(&process->divergent),
             (unsigned long long)input->snapshot->events.unseen_frees);
    ms_out_raw(out, text);
    input->late_frees_at = ms_out_offset(out);
    snprintf(text, sizeof text, MS_REPORT_LATE_FREES ",\"blind_spots\":", count_of(&process->late_frees));
    ms_out_raw(out, text);
    ms_out_value(out, blind_spots);
    snprintf(text, sizeof text, ",\"replaced_blocks\":%llu}", (unsigned long long)ms_blocks_replaced());
    ms_out_raw(out, text);
}

/* Only of a process that asked others for memory, or was asked. */
static void write_neighbours(struct ms_out *out)
{
    const _Atomic uint64_t *counts = ms_process()->neighbours;
    if (!count_of(&counts[MS_NEIGHBOURS_ASKED]) && !count_of(&counts[MS_NEIGHBOURS_ASKED_HERE]))
        return;
    ms_out_key(out, "neighbours");
    ms_out_value(out, json_pack("{s:I, s:I, s:I, s:I, s:I}", "asked",
                                (json_int_t)count_of(&counts[MS_NEIGHBOURS_ASKED]), "heard",
                                (json_int_t)count_of(&counts[MS_NEIGHBOURS_HEARD]), "brought_bytes",
                                (json_int_t)count_of(&counts[MS_NEIGHBOURS_BROUGHT]), "asked_here",
                                (json_int_t)count_of(&counts[MS_NEIGHBOURS_ASKED_HERE]), "given_bytes",
                                (json_int_t)count_of(&counts[MS_NEIGHBOURS_GIVEN])));
}

static uint64_t all_calls(const struct ms_snapshot *snapshot)
{
    uint64_t calls = 0;
    for (unsigned i = 0; i < snapshot->counts_count; i++)
        calls += snapshot->counts[i].calls;
    return calls;
}

static void write_overhead(struct ms_out *out, const struct ms_report_input *input)
{
    json_t *json =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "calls", (json_int_t)all_calls(input->snapshot),
                  "report_ns", (json_int_t)(ms_ledger_now() - input->began_ns), "ledger_bytes",
                  (json_int_t)(ms_arena_bytes() + ms_store_bytes()), "dropped_events",
                  (json_int_t)(ms_blocks_dropped() + ms_sites_dropped()), "dropped_stacks",
                  (json_int_t)ms_stack_dropped(), "merged_events", (json_int_t)ms_sites_merged());

    if (input->snapshot->events.lost_ooms)
        json_object_set_new(json, "ooms_left_out",
                            json_integer((json_int_t)input->snapshot->events.lost_ooms));
    if (input->snapshot->events.lost_ooms)
        json_object_set_new(json, "oom_events",
                            json_integer((json_int_t)(atomic_load(&ms_process()->oom_count) -
                                                      atomic_load(&ms_process()->oom_parts))));
    if (ms_table_dropped(MS_TABLE_FOOTPRINTS))
        json_object_set_new(json, "contexts_left_out",
                            json_integer((json_int_t)ms_table_dropped(MS_TABLE_FOOTPRINTS)));
    ms_out_key(out, "overhead");
    ms_out_value(out, json);
}

/* Lines about what the report itself leaves out come after those that were said during the run. */
static void write_diagnostics(struct ms_out *out, const struct ms_report_input *input)
{
    const char *line;
    char text[240];
    const struct ms_snapshot *snapshot = input->snapshot;
    ms_out_key(out, "diagnostics");
    ms_out_begin_array(out);
    for (unsigned i = 0; (line = ms_diagnostic_line(i)) != NULL; i++)
        ms_out_element(out, ms_out_string(line));
    const struct ms_snapshot_blocks *blocks = &snapshot->blocks[MS_LAYER_OUTER];
    if (blocks->count < blocks->total) {
        snprintf(text, sizeof text, "report: segments[] has the %llu largest of %llu live blocks",
                 (unsigned long long)blocks->count, (unsigned long long)blocks->total);
        ms_out_element(out, json_string(text));
    }
    const struct ms_snapshot_blocks *pieces = &snapshot->blocks[MS_LAYER_INNER];
    if (input->pieces_left_out) {
        snprintf(text, sizeof text,
                 "report: inner_segments[] leaves out %llu of %llu live pieces: blocks_left_out and "
                 "bytes_left_out count them",
                 (unsigned long long)input->pieces_left_out, (unsigned long long)pieces->total);
        ms_out_element(out, json_string(text));
    }
    if (snapshot->events.lost_ooms || snapshot->events.lost_deaths) {
        snprintf(text, sizeof text,
                 "report: %llu earlier out-of-memory errors and %llu deaths of contexts are not shown",
                 (unsigned long long)snapshot->events.lost_ooms,
                 (unsigned long long)snapshot->events.lost_deaths);
        ms_out_element(out, json_string(text));
    }
    if (ms_sites_merged()) {
        snprintf(text, sizeof text,
                 "report: %llu allocations came from call sites beyond the %u that are told apart: they "
                 "count at the site "
                 "without a stack of their function",
                 (unsigned long long)ms_sites_merged(), (unsigned)MS_SITES_OWN_MAX);
        ms_out_element(out, json_string(text));
    }
    if (ms_objects_dropped()) {
        snprintf(text, sizeof text, "report: %u loaded objects are missing from modules[]",
                 ms_objects_dropped());
        ms_out_element(out, json_string(text));
    }
    ms_json_phase_diagnostics(out, input);
    ms_json_uses_diagnostics(out, input);
    if (input->recovered && ms_store_memory_only()) {
        snprintf(text, sizeof text,
                 "report: %llu bytes of the record were in the process's memory alone, for want of room in "
                 "its file",
                 (unsigned long long)ms_store_memory_only());
        ms_out_element(out, json_string(text));
    } else if (!snapshot->consistent && input->reason != MS_END_RUNNING) { /* of one that runs run says it */
        ms_out_element(
            out, json_string("report: written while another thread changed the record; sums may not add up"));
    }
    ms_out_end_array(out);
}

void ms_json_write(struct ms_out *out, struct ms_report_input *input)
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
    ms_json_phases(out, input);
    ms_json_contexts(out, input);
    ms_json_balances(out, input);
    ms_json_uses(out, input);
    ms_json_events(out, input);
    ms_json_inner(out, input);
    write_coverage(out, input);
    write_neighbours(out);
    write_overhead(out, input);
    write_diagnostics(out, input);
    ms_out_end_object(out);
}
