/* calls.c - calls to the vendor, and the settings behind them; see calls.h.
 *
 * Floor 5. */
#include "cli/screens/calls.h"

#include <string.h>

#include "base/compiler.h"
#include "report/read/layer.h"
#include "report/text/text.h"

/* The settings of the pool that decide how much memory it takes for how many calls. */
static const char *const policies[] = {"MEMSHIM_MODE",  "MEMSHIM_BACKING", "MEMSHIM_PACK",
                                       "MEMSHIM_FREE",  "MEMSHIM_KEEP",    "MEMSHIM_LIMBO",
                                       "MEMSHIM_ALIGN", "MEMSHIM_IPC",     "MEMSHIM_SINGLE_MIN",
                                       "MEMSHIM_LIMIT", "MEMSHIM_PREALLOC"};

struct ms_calls ms_calls_of(const struct ms_report *report)
{
    struct ms_calls calls = {.asked = 0};
    bool is_inner = ms_report_is_inner(report); /* calls are of blocks */
    json_t *device;
    size_t i;

    json_array_foreach (ms_report_array(report->root, is_inner ? "outer_devices" : "devices"), i, device) {
        calls.made = ms_report_sum(calls.made, ms_report_int(device, "vendor_calls"));
        calls.saved = ms_report_sum(calls.saved, ms_report_int(device, "vendor_calls_saved"));
        calls.saved_ns = ms_report_sum(calls.saved_ns, ms_report_int(device, "vendor_ns_saved"));
        if (!json_object_get(device, "program_calls"))
            calls.asked = -1;
        else if (calls.asked >= 0)
            calls.asked = ms_report_sum(calls.asked, ms_report_int(device, "program_calls"));
    }
    return calls;
}

static const json_t *setting(const struct ms_report *report, const char *name)
{
    json_t *row;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "config"), i, row)
        if (!strcmp(ms_report_text(row, "name"), name))
            return row;
    return NULL;
}

static const char *value_of(const struct ms_report *report, const char *name)
{
    const json_t *row = setting(report, name);

    return row ? ms_report_text(row, "value") : "";
}

/* "MEMSHIM_BACKING=vmm": the settings that somebody made. */
static bool put_policies(FILE *out, const struct ms_report *report)
{
    const char *before = "";

    for (size_t i = 0; i < MS_ARRAY_LEN(policies); i++) {
        const json_t *row = setting(report, policies[i]);

        if (!row || !strcmp(ms_report_text(row, "source"), "default"))
            continue;
        fprintf(out, "%s%s=", before, policies[i]);
        ms_text_put(out, ms_report_text(row, "value"));
        before = ", ";
    }
    return *before == ',';
}

void ms_calls_print(FILE *out, const struct ms_report *report)
{
    struct ms_calls calls = ms_calls_of(report);

    if (calls.asked <= 0 || calls.asked == calls.made)
        return;
    fprintf(out,
            "Calls %" JSON_INTEGER_FORMAT " to the vendor for %" JSON_INTEGER_FORMAT " of the program's: ",
            calls.made, calls.asked);
    if (calls.made > calls.asked) {
        fprintf(out, "%" JSON_INTEGER_FORMAT " more, the price of ", calls.made - calls.asked);
        if (!put_policies(out, report))
            fputs("the pool", out);
    } else {
        fprintf(out, "%" JSON_INTEGER_FORMAT " saved", calls.asked - calls.made);
        if (calls.saved_ns > 0)
            fprintf(out, ", about %s", ms_text_duration(calls.saved_ns).text);
    }
    fputc('\n', out);
}

/* --- of two reports ------------------------------------------------------------------------------------- */

static void put_calls(FILE *out, const char *name, json_int_t before, json_int_t after)
{
    json_int_t change;

    if (__builtin_sub_overflow(after, before, &change))
        return;
    fprintf(out, "%-18s%11" JSON_INTEGER_FORMAT "%11" JSON_INTEGER_FORMAT "%+12" JSON_INTEGER_FORMAT "\n",
            name, before, after, change);
}

static void put_changes(FILE *out, const struct ms_report *before, const struct ms_report *after)
{
    for (size_t i = 0; i < MS_ARRAY_LEN(policies); i++) {
        const char *old = value_of(before, policies[i]), *new = value_of(after, policies[i]);

        if (!strcmp(old, new))
            continue;
        fprintf(out, "%s: ", policies[i]);
        ms_text_put(out, *old ? old : "(not told)");
        fputs(" -> ", out);
        ms_text_put(out, *new ? new : "(not told)");
        fputc('\n', out);
    }
}

void ms_calls_compare(FILE *out, const struct ms_report *before, const struct ms_report *after)
{
    struct ms_calls old = ms_calls_of(before), new = ms_calls_of(after);

    if (old.asked >= 0 && new.asked >= 0)
        put_calls(out, "program's calls", old.asked, new.asked);
    put_calls(out, "vendor calls", old.made, new.made);
    put_calls(out, "vendor calls saved", old.saved, new.saved);
    if (old.saved_ns || new.saved_ns)
        fprintf(out, "%-18s%11s%11s\n", "time saved, about", ms_text_duration(old.saved_ns).text,
                ms_text_duration(new.saved_ns).text);
    put_changes(out, before, after);
}

json_t *ms_calls_json(const struct ms_report *report)
{
    struct ms_calls calls = ms_calls_of(report);
    json_t *object = json_pack("{s:I, s:I, s:I}", "vendor_calls", calls.made, "vendor_calls_saved",
                               calls.saved, "vendor_ns_saved", calls.saved_ns);

    if (calls.asked >= 0)
        json_object_set_new(object, "program_calls", json_integer(calls.asked));
    return object;
}
