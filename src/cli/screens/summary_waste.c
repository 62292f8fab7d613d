/* summary_waste.c - what was reserved and not allocated, and what of it goes back when memory is short; see
 * summary.h.
 *
 * Floor 5. */
#include <string.h>

#include "base/compiler.h"
#include "cli/screens/summary.h"
#include "report/text/text.h"

static const struct part {
    const char *key, *text;
} parts[] = {
    {"stranded", "inactive between allocated blocks (fragmentation)"},
    {"cached", "inactive in whole segments (kept for what comes)"},
    {"limbo", "freed and still in use by the device (pending)"},
    {"rounding", "granted beyond what was asked for (internal fragmentation)"},
    {"pinned", "freed here and still shared with others"},
};

/* Memory that MEMSHIM_PREALLOC took is never given back, so it does not shrink. */
static bool is_preallocated(const struct ms_report *report)
{
    json_t *row;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "config"), i, row)
        if (!strcmp(ms_report_text(row, "name"), "MEMSHIM_PREALLOC") &&
            strcmp(ms_report_text(row, "value"), "0") != 0)
            return true;
    return false;
}

/* Whole free segments go back when memory is short, and pending frees are waited for; what lies between
 * blocks, rounding and what is shared stay. So much is what the program needs of the device at most. */
static void print_shrinks(FILE *out, const json_t *device)
{
    const json_t *row = json_object_get(device, "peak_parts");
    json_int_t shrinks = ms_report_sum(ms_report_int(row, "cached"), ms_report_int(row, "limbo")),
               live = ms_report_int(device, "peak_live_bytes"),
               needs = ms_report_sum(ms_report_reserved(device), -shrinks);

    if (shrinks <= 0)
        return;
    fprintf(out, "      %s of it shrink when memory is short: about %s would do\n",
            ms_text_size(shrinks).text, ms_text_size(needs > live ? needs : live).text);
}

/* The memory that was reserved and not allocated when most was reserved, of the device of which that is most;
 * then the largest part of it. */
void ms_summary_print_waste(FILE *out, const struct ms_report *report)
{
    json_t *device, *of = NULL;
    json_int_t most = 0;
    const struct part *largest = NULL;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "devices"), i, device) {
        const json_t *row = json_object_get(device, "peak_parts");
        json_int_t sum = 0;

        for (size_t k = 0; k < MS_ARRAY_LEN(parts); k++)
            sum = ms_report_sum(sum, ms_report_int(row, parts[k].key));
        if (sum > most)
            most = sum, of = device;
    }
    if (!of) {
        fputs("Waste none seen: nothing was reserved beyond what was allocated\n", out);
        return;
    }
    for (i = 0; i < MS_ARRAY_LEN(parts); i++) {
        const json_t *row = json_object_get(of, "peak_parts");

        if (!largest || ms_report_int(row, parts[i].key) > ms_report_int(row, largest->key))
            largest = &parts[i];
    }
    fprintf(out, "Waste %s of %s %s; ", ms_text_size(most).text,
            ms_text_size(ms_report_int(of, "peak_reserved_bytes")).text,
            ms_report_reserved(of) > ms_report_int(of, "peak_reserved_bytes") ? "that the pool reserved"
                                                                              : "reserved");
    fprintf(out, "%s of it %s\n",
            ms_text_size(ms_report_int(json_object_get(of, "peak_parts"), largest->key)).text, largest->text);
    if (!is_preallocated(report))
        print_shrinks(out, of);
}
