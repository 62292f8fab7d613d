/* json_oom.c - oom[] and inner_oom[]: times when there was no memory, who held it then, and what would have
 * made it fit.
 *
 * Floor 4. Runs in the process too. All figures are of the moment of the refusal, but for names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/write/json.h"

static json_t *json_oom_site_json(const struct ms_report_input *input, enum ms_layer layer, uint32_t site,
                                  uint64_t bytes)
{
    uint32_t place = ms_snapshot_layer_place(input->snapshot, layer, site);
    return place == UINT32_MAX
               ? NULL
               : json_pack("{s:I, s:I}", "site", (json_int_t)place, "bytes", (json_int_t)bytes);
}

static json_t *top_sites_json(const struct ms_oom *oom, const struct ms_report_input *input)
{
    json_t *top = json_array();
    for (uint32_t i = 0; i < oom->top_count && i < MS_OOM_TOP_SITES; i++)
        json_array_append_new(top, json_oom_site_json(input, ms_device_layer(oom->device), oom->top_sites[i],
                                                      oom->top_bytes[i]));
    return top;
}

static json_t *sites_json(const struct ms_oom *oom, const struct ms_report_input *input)
{
    json_t *sites = json_array();
    uint64_t bytes;
    uint32_t site;
    for (uint32_t k = 0; k < oom->site_count; k++) {
        if (ms_oom_site_at(oom, k, &site, &bytes))
            json_array_append_new(sites,
                                  json_oom_site_json(input, ms_device_layer(oom->device), site, bytes));
    }
    return sites;
}

static json_t *json_oom_phase_json(const struct ms_oom *oom, const struct ms_report_input *input)
{
    const struct ms_phases_told *phases = &input->snapshot->phases;
    const struct ms_phase *phase =
        oom->phase && oom->phase <= phases->phase_count ? &phases->phases[oom->phase - 1] : NULL;
    return phase && atomic_load_explicit(&phase->state, memory_order_relaxed) == 1 ? ms_json_phase_name(phase)
                                                                                   : NULL;
}

/* Those that held most give first, as many as it takes. */
static json_t *givers_json(const struct ms_oom *oom, const struct ms_report_input *input)
{
    json_t *givers = json_array();
    uint64_t lacks = oom->fit.free_bytes;
    for (uint32_t i = 0; i < oom->top_count && i < MS_OOM_TOP_SITES && lacks; i++) {
        uint64_t gives = oom->top_bytes[i] < lacks ? oom->top_bytes[i] : lacks;
        json_array_append_new(
            givers, json_oom_site_json(input, ms_device_layer(oom->device), oom->top_sites[i], gives));
        lacks -= gives;
    }
    return givers;
}

static json_t *fits_json(const struct ms_oom *oom, const struct ms_report_input *input)
{
    static const char *const names[MS_OOM_POLICIES] = {[MS_OOM_RAISE_LIMIT] = "MEMSHIM_LIMIT",
                                                       [MS_OOM_USE_VMM] = "MEMSHIM_BACKING",
                                                       [MS_OOM_NO_PREALLOC] = "MEMSHIM_PREALLOC",
                                                       [MS_OOM_EXPANDABLE] = "PYTORCH_CUDA_ALLOC_CONF",
                                                       [MS_OOM_RAISE_CACHE_LIMIT] =
                                                           "torch.cuda.set_per_process_memory_fraction"};
    const struct ms_oom_fit *fit = &oom->fit;
    json_t *fits = json_array();
    char value[32] = "0";
    if (fit->policy == MS_OOM_RAISE_LIMIT)
        snprintf(value, sizeof value, "%llu", (unsigned long long)fit->value);
    if (fit->policy == MS_OOM_USE_VMM)
        snprintf(value, sizeof value, "vmm");
    if (fit->policy == MS_OOM_EXPANDABLE)
        snprintf(value, sizeof value, "expandable_segments:True");
    if (fit->policy == MS_OOM_RAISE_CACHE_LIMIT)
        snprintf(value, sizeof value, "%.3f", (double)fit->value / 1000);
    if (fit->wait)
        json_array_append_new(fits, json_pack("{s:s}", "how", "wait"));
    if (fit->policy && fit->policy < MS_OOM_POLICIES)
        json_array_append_new(fits, json_pack("{s:s, s:s, s:s}", "how",
                                              fit->policy == MS_OOM_EXPANDABLE ? "try" : "policy", "name",
                                              names[fit->policy], "value", value));
    if (fit->free_bytes)
        json_array_append_new(fits, json_pack("{s:s, s:I, s:o}", "how", "free", "bytes",
                                              (json_int_t)fit->free_bytes, "sites", givers_json(oom, input)));
    if (fit->most_bytes)
        json_array_append_new(
            fits, json_pack("{s:s, s:I}", "how", "ask_for_less", "bytes", (json_int_t)fit->most_bytes));
    return fits;
}

static void set_words(json_t *json, const struct ms_oom *oom)
{
    static const char *const asked[MS_ASKED_KINDS] = {
#define MS_ASKED_ROW(kind, word, group, told) [MS_ASKED_##kind] = word,
#include "record/live/oom.def"
    };
    static const char *const causes[MS_OOM_CAUSES] = {
#define MS_OOM_CAUSE_ROW(cause, word) [MS_OOM_##cause] = word,
#include "record/live/oom.def"
    };
    static const char *const kinds[MS_OOM_FRAGMENTATIONS] = {
        [MS_OOM_INTERLEAVED] = "interleaved",
        [MS_OOM_SEGMENTS] = "segments",
        [MS_OOM_STREAMS] = "streams",
    };
    if (oom->asked < MS_ASKED_KINDS && asked[oom->asked])
        json_object_set_new(json, "kind", json_string(asked[oom->asked]));
    if (oom->cause < MS_OOM_CAUSES && causes[oom->cause])
        json_object_set_new(json, "cause", json_string(causes[oom->cause]));
    if (oom->fragmentation < MS_OOM_FRAGMENTATIONS && kinds[oom->fragmentation])
        json_object_set_new(json, "fragmentation", json_string(kinds[oom->fragmentation]));
}

/* The rows of oom[] that are a part of this one, which was raised behind them: places in that list. */
static json_t *refused_json(const struct ms_events_copy *events, unsigned at)
{
    const struct ms_oom *oom = &events->ooms[at];
    json_t *refused = json_array();
    json_int_t place = 0;
    for (unsigned i = 0; i < at; i++)
        place += !ms_device_is_inner(events->ooms[i].device);
    for (unsigned i = at; i-- > 0 && json_array_size(refused) < oom->refused;) {
        if (ms_device_is_inner(events->ooms[i].device))
            continue;
        place--;
        if (events->ooms[i].thread == oom->thread)
            json_array_insert_new(refused, 0, json_integer(place));
    }
    return refused;
}

static json_t *oom_json(const struct ms_oom *oom, const struct ms_report_input *input)
{
    json_t *json = json_pack("{s:I}", "t_ns", (json_int_t)oom->t_ns),
           *phase = json_oom_phase_json(oom, input);
    ms_json_set_device(json, ms_device_plain(oom->device));
    json_object_set_new(json, "api", json_string(ms_events_api_name(oom->api)));
    json_object_set_new(json, "requested", json_integer((json_int_t)oom->requested));
    set_words(json, oom);
    json_object_set_new(json, "live", json_integer((json_int_t)oom->live_bytes));
    json_object_set_new(json, "reserved", json_integer((json_int_t)oom->reserved_bytes));
    json_object_set_new(json, "largest_free", json_integer((json_int_t)oom->largest_free_bytes));
    json_object_set_new(json, "top_sites", top_sites_json(oom, input));
    json_object_set_new(json, "stack", json_integer(ms_report_stacks_at(input->stacks, oom->stack)));
    json_object_set_new(json, "sites", sites_json(oom, input));
    if (!ms_device_is_inner(oom->device))
        json_object_set_new(json, "parts", ms_json_parts(&oom->parts));
    json_object_set_new(json, "contexts", json_integer((json_int_t)oom->taken_bytes));
    if (oom->total_bytes) {
        json_object_set_new(json, "device_free", json_integer((json_int_t)oom->free_bytes));
        json_object_set_new(json, "device_total", json_integer((json_int_t)oom->total_bytes));
    }
    if (phase)
        json_object_set_new(json, "phase", phase);
    if (oom->is_answered)
        json_object_set_new(json, "answered", json_true());
    json_object_set_new(json, "would_fit", fits_json(oom, input));
    return json;
}

void ms_json_ooms(struct ms_out *out, const struct ms_report_input *input, enum ms_layer layer)
{
    const struct ms_events_copy *events = &input->snapshot->events;
    ms_out_key(out, layer == MS_LAYER_INNER ? "inner_oom" : "oom");
    ms_out_begin_array(out);
    for (unsigned i = 0; i < events->oom_count; i++) {
        if (ms_device_layer(events->ooms[i].device) != layer)
            continue;
        json_t *json = oom_json(&events->ooms[i], input);
        if (layer == MS_LAYER_INNER)
            json_object_set_new(json, "refused", refused_json(events, i));
        ms_out_element(out, json);
    }
    ms_out_end_array(out);
}
