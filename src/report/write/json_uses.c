/* json_uses.c - uses: what MEMSHIM_USES found out.
 *
 * Floor 4. Runs in the process too. */
#include "report/write/json.h"
#include "report/findings/uses_replay.h"

static struct ms_replay replay; /* one report at a time */

static json_t *json_uses_site_json(const struct ms_idle_site *told)
{
    static const char *const names[MS_IDLES] = {"never", "late", "early"};
    json_t *json = json_pack("{s:s, s:I}", "idle", names[told->idle], "site", (json_int_t)told->site);
    ms_json_set_device(json, told->device);
    json_t *rest =
        json_pack("{s:I, s:I, s:I, s:I, s:s}", "bytes", (json_int_t)told->bytes, "count",
                  (json_int_t)told->count, "byte_events", (json_int_t)told->byte_events, "falls_bytes",
                  (json_int_t)told->falls_bytes, "confidence", told->exact ? "exact" : "inferred");
    json_object_update(json, rest);
    json_decref(rest);
    return json;
}

static void write_rows(struct ms_out *out)
{
    ms_out_key(out, "idle");
    ms_out_begin_array(out);
    for (uint32_t i = 0; i < replay.site_count; i++)
        ms_out_element(out, json_uses_site_json(&replay.sites[i]));
    ms_out_end_array(out);
    ms_out_key(out, "pinned");
    ms_out_begin_array(out);
    for (uint32_t i = 0; i < replay.pinned_count; i++) {
        const struct ms_idle_pinned *row = &replay.pinned[i];
        ms_out_element(out,
                       json_pack("{s:I, s:I, s:I, s:I, s:s}", "site", (json_int_t)row->site, "bytes",
                                 (json_int_t)row->bytes, "reach_bytes", (json_int_t)row->reach_bytes, "count",
                                 (json_int_t)row->count, "confidence", row->exact ? "exact" : "inferred"));
    }
    ms_out_end_array(out);
}

void ms_json_uses_diagnostics(struct ms_out *out, const struct ms_report_input *input)
{
    unsigned long long left_out = input->snapshot->lives.all.left_out;
    char text[160];
    if (!left_out)
        return;
    snprintf(text, sizeof text,
             "uses: %llu %s no room, or not in the record any more: nothing is told of uses", left_out,
             left_out == 1 ? "block found" : "blocks found");
    ms_out_element(out, json_string(text));
}

void ms_json_uses(struct ms_out *out, const struct ms_report_input *input)
{
    const struct ms_lives_told *lives = &input->snapshot->lives;
    if (!lives->lives && !lives->all.left_out)
        return;
    ms_replay(input->snapshot, &replay);
    ms_out_key(out, "uses");
    ms_out_begin_object(out);
    ms_out_key(out, "state");
    ms_out_value(out, json_string(lives->all.no_layouts ? "unread" : replay.told ? "told" : "left_out"));
    ms_out_key(out, "lives");
    ms_out_value(out, json_integer((json_int_t)lives->count));
    ms_out_key(out, "left_out");
    ms_out_value(out, json_integer((json_int_t)lives->all.left_out));
    ms_out_key(out, "launches");
    ms_out_value(out, json_integer((json_int_t)lives->all.launches));
    ms_out_key(out, "graph_launches");
    ms_out_value(out, json_integer((json_int_t)lives->all.graph_launches));
    ms_out_key(out, "unread_launches");
    ms_out_value(out, json_integer((json_int_t)lives->all.unread));
    write_rows(out);
    ms_out_end_object(out);
}
