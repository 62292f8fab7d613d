/* json_phases.c - phases[], and what is to be said of ranges that do not pair.
 *
 * Floor 4. Runs in the process too: no floating point functions of a library. */
#include <stdio.h>
#include <string.h>

#include "record/phases/phases.h"
#include "report/write/json.h"

enum { NAMES_SAID = 4 };

static const char *const sources[MS_PHASE_SOURCES] = {
    [MS_PHASE_MEMSHIM] = "memshim",
    [MS_PHASE_NVTX] = "nvtx",
    [MS_PHASE_ROCTX] = "roctx",
    [MS_PHASE_MSTX] = "mstx",
};

static void json_phases_sort(int64_t *values, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        int64_t value = values[i];
        unsigned k = i;
        for (; k > 0 && values[k - 1] > value; k--)
            values[k] = values[k - 1];
        values[k] = value;
    }
}

/* Of what the series has; of an even number half way between the middle two. */
static int64_t median(const struct ms_phase_figures *figures, bool of_growth)
{
    int64_t values[MS_PHASE_SERIES];
    for (unsigned i = 0; i < figures->series_count; i++)
        values[i] = of_growth ? figures->series[i].growth_bytes : (int64_t)figures->series[i].peak_bytes;
    json_phases_sort(values, figures->series_count);
    if (!figures->series_count)
        return 0;
    int64_t low = values[(figures->series_count - 1) / 2], high = values[figures->series_count / 2];
    return (low & high) + ((low ^ high) >> 1);
}

/* By how much the peak rises from one phase to the next: the slope of the line that fits the series best. */
static int64_t trend(const struct ms_phase_figures *figures)
{
    __int128 n = figures->series_count, sum_i = 0, sum_ii = 0, sum_p = 0, sum_ip = 0;
    for (unsigned i = 0; i < figures->series_count; i++) {
        sum_i += i;
        sum_ii += i * i;
        sum_p += (int64_t)figures->series[i].peak_bytes;
        sum_ip += (__int128)i * (int64_t)figures->series[i].peak_bytes;
    }
    __int128 divisor = n * sum_ii - sum_i * sum_i;
    return divisor
               ? (int64_t)((n * sum_ip - sum_i * sum_p) / divisor / ((__int128)1 << figures->series_shift))
               : 0;
}

static json_t *json_phases_spread(json_int_t least, json_int_t middle, json_int_t most)
{
    return json_pack("{s:I, s:I, s:I}", "min", least, "median", middle, "max", most);
}

static json_t *sites_json(const struct ms_phase_figures *figures, const struct ms_report_input *input)
{
    json_t *sites = json_array();
    for (unsigned i = 0; i < figures->top_count; i++) {
        uint32_t place =
            ms_snapshot_layer_place(input->snapshot, ms_device_layer(figures->device), figures->top_sites[i]);
        if (place != UINT32_MAX)
            json_array_append_new(sites, json_pack("{s:I, s:I}", "site", (json_int_t)place, "bytes",
                                                   (json_int_t)figures->top_bytes[i]));
    }
    return sites;
}

static json_t *device_json(const struct ms_phase_figures *figures, const struct ms_report_input *input)
{
    json_t *json = json_object();
    json_t *growth =
        json_phases_spread(figures->growth_bytes_min, median(figures, true), figures->growth_bytes_max);
    ms_json_set_device(json, figures->device);
    json_object_set_new(growth, "total", json_integer(figures->growth_bytes_sum));
    json_object_set_new(json, "count", json_integer((json_int_t)figures->count));
    json_object_set_new(json, "peak_bytes",
                        json_phases_spread((json_int_t)figures->peak_bytes_min, median(figures, false),
                                           (json_int_t)figures->peak_bytes_max));
    json_object_set_new(json, "peak_ns", json_integer((json_int_t)figures->peak_ns));
    json_object_set_new(json, "growth_bytes", growth);
    json_object_set_new(json, "trend_bytes", json_integer(trend(figures)));
    json_object_set_new(json, "allocated_bytes", json_integer((json_int_t)figures->allocated_bytes));
    json_object_set_new(json, "allocated_count", json_integer((json_int_t)figures->allocated_count));
    json_object_set_new(json, "freed_bytes", json_integer((json_int_t)figures->freed_bytes));
    json_object_set_new(json, "freed_count", json_integer((json_int_t)figures->freed_count));
    json_object_set_new(json, "sites", sites_json(figures, input));
    return json;
}

json_t *ms_json_phase_name(const struct ms_phase *phase)
{
    json_t *json = json_pack("{s:o, s:s}", "name", ms_out_string(ms_phase_text_at(phase->name)), "source",
                             sources[phase->source]);
    if (phase->domain)
        json_object_set_new(json, "domain", ms_out_string(ms_phase_text_at(phase->domain)));
    return json;
}

static json_t *json_phases_phase_json(const struct ms_phases_told *told, uint32_t i,
                                      const struct ms_report_input *input)
{
    const struct ms_phase *phase = &told->phases[i];
    json_t *json = ms_json_phase_name(phase), *devices[MS_LAYERS] = {json_array(), json_array()};
    json_object_set_new(json, "count", json_integer((json_int_t)(phase->ended + told->open[i])));
    json_object_set_new(json, "open", json_integer(told->open[i]));
    json_object_set_new(json, "marks", json_integer((json_int_t)phase->marks));
    json_object_set_new(json, "first_ns", json_integer((json_int_t)phase->first_ns));
    json_object_set_new(json, "last_ns", json_integer((json_int_t)phase->last_ns));
    json_object_set_new(json, "total_ns", json_integer((json_int_t)phase->total_ns));
    for (uint32_t k = 0; k < told->figures_count; k++) {
        if (told->figures[k].phase == i && told->figures[k].count)
            json_array_append_new(devices[ms_device_layer(told->figures[k].device)],
                                  device_json(&told->figures[k], input));
    }
    json_object_set_new(json, "devices", devices[MS_LAYER_OUTER]);
    if (json_array_size(devices[MS_LAYER_INNER]))
        json_object_set(json, "inner_devices", devices[MS_LAYER_INNER]);
    json_decref(devices[MS_LAYER_INNER]);
    return json;
}

void ms_json_phases(struct ms_out *out, const struct ms_report_input *input)
{
    const struct ms_phases_told *told = &input->snapshot->phases;
    ms_out_key(out, "phases");
    ms_out_begin_array(out);
    for (uint32_t i = 0; i < told->phase_count; i++) {
        if (atomic_load_explicit(&told->phases[i].state, memory_order_relaxed) == 1)
            ms_out_element(out, json_phases_phase_json(told, i, input));
    }
    ms_out_end_array(out);
}

/* "step was open at the end", for the first few. */
static void say_open(struct ms_out *out, const struct ms_phases_told *told)
{
    char text[MS_PHASE_NAME_BYTES + 80];
    unsigned names = 0;
    for (uint32_t i = 0; i < told->phase_count; i++) {
        if (!told->open[i] || ++names > NAMES_SAID)
            continue;
        snprintf(text, sizeof text, "phases: %s was open at the end, %u time%s",
                 ms_phase_text_at(told->phases[i].name), told->open[i], told->open[i] == 1 ? "" : "s");
        ms_out_element(out, ms_out_string(text));
    }
    if (names <= NAMES_SAID)
        return;
    snprintf(text, sizeof text, "phases: so were those of %u more names", names - NAMES_SAID);
    ms_out_element(out, json_string(text));
}

void ms_json_phase_diagnostics(struct ms_out *out, const struct ms_report_input *input)
{
    const struct ms_phases_told *told = &input->snapshot->phases;
    const _Atomic uint64_t *faults = ms_process()->phase_faults;
    unsigned long long missing = atomic_load_explicit(&faults[MS_PHASE_NOT_OPEN], memory_order_relaxed);
    unsigned long long dropped = atomic_load_explicit(&faults[MS_PHASE_NO_ROOM], memory_order_relaxed);
    char text[200];
    if (input->reason != MS_END_RUNNING)
        say_open(out, told);
    if (missing) {
        snprintf(text, sizeof text, "phases: %llu %s ended that %s not open", missing,
                 missing == 1 ? "was" : "were", missing == 1 ? "was" : "were");
        ms_out_element(out, json_string(text));
    }
    if (dropped) {
        snprintf(text, sizeof text, "phases: %llu began for which there was no room beside %u that were open",
                 dropped, (unsigned)MS_PHASE_OPENS);
        ms_out_element(out, json_string(text));
    }
    if (told->phase_count && atomic_load_explicit(&told->phases[0].state, memory_order_relaxed)) {
        snprintf(text, sizeof text, "phases: those of names beyond %u are one row, \"...\"",
                 (unsigned)MS_TABLE_PHASES_ROWS - 1);
        ms_out_element(out, json_string(text));
    }
}
