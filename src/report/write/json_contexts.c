/* json_contexts.c - contexts[]: what the driver took of devices for itself.
 *
 * Floor 4. Runs in the process too. */
#include "config.h"

#include <stdio.h>

#include "report/write/json.h"

static json_t *json_contexts_row_json(const struct ms_footprint_row *row, const struct ms_report_input *input)
{
    uint64_t ended_ns = row->ended_ns;
    char context[32];
    snprintf(context, sizeof context, "0x%llx", (unsigned long long)row->context);
    json_t *json = json_pack("{s:s}", "kind", row->taker == MS_FOOTPRINT_CONTEXT ? "context" : "module");
    ms_json_set_device(json, row->device);
    json_t *rest = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s}", "context", context, "api",
        ms_events_api_name(row->api), "stack", (json_int_t)ms_report_stacks_at(input->stacks, row->stack),
        "thread", (json_int_t)row->thread, "t_ns", (json_int_t)row->first_ns, "bytes", (json_int_t)row->bytes,
        "count", (json_int_t)row->count, "total_bytes", (json_int_t)row->total_bytes, "total_count",
        (json_int_t)row->total_count, "confidence", row->is_inferred ? "inferred" : "exact");
    json_object_update(json, rest);
    json_decref(rest);
    if (ended_ns)
        json_object_set_new(json, "ended_ns", json_integer((json_int_t)ended_ns));
    return json;
}

void ms_json_contexts(struct ms_out *out, const struct ms_report_input *input)
{
    ms_out_key(out, "contexts");
    ms_out_begin_array(out);
    for (uint32_t i = 0; i < input->snapshot->taker_count; i++)
        ms_out_element(out, json_contexts_row_json(&input->snapshot->takers[i], input));
    ms_out_end_array(out);
}
