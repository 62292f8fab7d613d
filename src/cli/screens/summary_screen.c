/* summary_screen.c - one report on one screen; see summary.h.
 *
 * Floor 5. Words are those of the field: allocated, reserved, inactive, fragmentation; what else there is is
 * explained where it stands. Peaks of devices are never added up: each was at a time of its own. */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/screens/calls.h"
#include "cli/cli.h"
#include "cli/screens/device_line.h"
#include "cli/screens/leaks.h"
#include "cli/load.h"
#include "cli/screens/next.h"
#include "cli/screens/summary.h"
#include "report/analyse/callers.h"
#include "report/analyse/fold.h"
#include "report/read/layer.h"
#include "report/read/sites.h"
#include "report/text/text.h"

/* So that it is twenty lines at most; of sites and of leaks one fewer where there was no memory. */
enum { DEVICES_NAMED = 4, SITES_SHOWN = 3, GROWING_SHOWN = 2, LOST_SHOWN = 1 };

static size_t room(const struct ms_report *report, size_t shown)
{
    return json_array_size(ms_report_array(report->root, "oom")) ? shown - 1 : shown;
}

/* "cuda 0" */
static void put_device(FILE *out, const json_t *device)
{
    ms_text_put(out, *ms_report_text(device, "api") ? ms_report_text(device, "api") : "cuda");
    fprintf(out, " %" JSON_INTEGER_FORMAT, ms_report_int(device, "index"));
}

/* --- the peak ------------------------------------------------------------------------------------------- */

/* Call sites that have the program's own line and its callers, the function and the owner in common, as where
 * a library allocates in several places. */
struct line {
    const json_t *site, *own;
    json_int_t bytes;
    size_t sites;
};

/* Of so many sites, those that held most, lines are put together. */
enum { SITES_LOOKED_AT = 64 };

struct lines {
    struct line rows[SITES_LOOKED_AT];
    size_t count;
    json_int_t rest; /* of all other sites */
    size_t left;
};

static bool has_same_callers(const json_t *a, const json_t *b)
{
    const json_t *x = json_object_get(a, "callers"), *y = json_object_get(b, "callers");

    return x == y || json_equal(x, y);
}

static bool summary_screen_is_same(const struct line *line, const json_t *site, const json_t *own)
{
    return own && line->own == own && has_same_callers(line->site, site) &&
           !strcmp(ms_cli_site_api(line->site), ms_cli_site_api(site)) &&
           !strcmp(ms_report_text(line->site, "owner"), ms_report_text(site, "owner"));
}

static void summary_screen_add_site(struct lines *lines, const struct ms_report *report, const json_t *site,
                                    json_int_t bytes)
{
    bool inferred;
    const json_t *own = ms_fold_own(report, ms_report_int(site, "stack"), &inferred);
    size_t i = 0;

    while (i < lines->count && !summary_screen_is_same(&lines->rows[i], site, own))
        i++;
    if (i == lines->count)
        lines->rows[lines->count++] = (struct line){.site = site, .own = own};
    lines->rows[i].bytes = ms_report_sum(lines->rows[i].bytes, bytes);
    lines->rows[i].sites++;
}

static int by_bytes(const void *a, const void *b)
{
    const struct line *x = a, *y = b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return 0;
}

/* "  48.0 MiB  cudaMalloc, by cuBLAS, in state_new at training.c:201, for 3 callers" */
static void print_line(FILE *out, const struct ms_report *report, const struct line *line)
{
    const char *owner = ms_report_text(line->site, "owner");

    fprintf(out, "    %10s  ", ms_text_size(line->bytes).text);
    ms_text_put(out, ms_cli_site_api(line->site));
    if (*owner && strcmp(owner, "program") && strcmp(owner, "unknown") &&
        strcmp(owner, ms_cli_site_api(line->site))) {
        fputs(ms_report_is_inner(report) ? ", " : " by ", out);
        ms_text_put(out, owner);
    }
    ms_text_put_own(out, report, ms_report_int(line->site, "stack"));
    if (line->sites > 1)
        fprintf(out, ", %zu sites", line->sites);
    fputc('\n', out);
}

static void print_lines(FILE *out, const struct ms_report *report, struct lines *lines, size_t shown)
{
    size_t left = lines->left;
    json_int_t rest = lines->rest;

    qsort(lines->rows, lines->count, sizeof(lines->rows[0]), by_bytes);
    for (size_t i = 0; i < lines->count; i++) {
        if (i < shown) {
            print_line(out, report, &lines->rows[i]);
            continue;
        }
        rest = ms_report_sum(rest, lines->rows[i].bytes);
        left += lines->rows[i].sites;
    }
    if (left)
        fprintf(out, "    %10s  at %zu more call site%s\n", ms_text_size(rest).text, left,
                left == 1 ? "" : "s");
}

/* The lines that held most at the device's peak, and how much the others did. */
static void print_sites(FILE *out, const struct ms_report *report, const json_t *device, size_t shown)
{
    size_t count, row = ms_report_device_first(report, device), looked = 0;
    json_t **sites = ms_cli_sites_by(report, "at_peak_bytes", &count);
    struct lines lines = {.count = 0};

    for (size_t i = 0; i < count; i++) {
        json_int_t bytes = ms_report_int(sites[i], "at_peak_bytes");

        if (bytes <= 0 || !ms_report_is_device_memory(sites[i]) ||
            ms_report_device_of(report, sites[i]) != row)
            continue;
        if (looked++ < SITES_LOOKED_AT) {
            summary_screen_add_site(&lines, report, sites[i], bytes);
            continue;
        }
        lines.rest = ms_report_sum(lines.rest, bytes);
        lines.left++;
    }
    free(sites);
    print_lines(out, report, &lines, shown);
}

static int summary_screen_by_peak(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    json_int_t left = ms_report_int(x, "peak_live_bytes"), right = ms_report_int(y, "peak_live_bytes");

    if (left != right)
        return left > right ? -1 : 1;
    left = ms_report_int(x, "index"), right = ms_report_int(y, "index");
    return left < right ? -1 : left > right;
}

static void print_fullest(FILE *out, const struct ms_report *report, const json_t *device)
{
    json_int_t reserved = ms_report_int(device, "peak_reserved_bytes") ? ms_report_reserved(device) : 0;

    bool has_inner = ms_report_has_inner(report);

    fprintf(out, "%s %s allocated on ", has_inner ? "Blocks" : "Peak ",
            ms_text_size(ms_report_int(device, "peak_live_bytes")).text);
    put_device(out, device);
    fprintf(out, " of %s", ms_text_size(ms_report_int(device, "total_bytes")).text);
    if (reserved)
        fprintf(out, "; %s reserved at most", ms_text_size(reserved).text);
    fputs("; ", out);
    ms_text_put(out, ms_report_text(device, "name"));
    fputc('\n', out);
    ms_summary_print_held(out, report, device);
    if (!has_inner)
        print_sites(out, report, device, room(report, SITES_SHOWN));
}

/* True if live tensors are in no segment of the report: some of what seems idle may be theirs. */
static bool leaves_out(const struct ms_report *inner)
{
    static const char *const lists[] = {"devices", "segments"};
    json_t *row;
    size_t i;

    for (size_t k = 0; k < MS_ARRAY_LEN(lists); k++)
        json_array_foreach (ms_report_array(inner->root, lists[k]), i, row)
            if (ms_report_int(row, "bytes_left_out"))
                return true;
    return false;
}

/* The bytes that lie free in segments with tensors: nobody else can have them. Those that are free all over
 * may be given back. */
static json_int_t between_tensors(const struct ms_report *inner)
{
    json_t *segment, *block;
    json_int_t bytes = 0;
    size_t i, k;

    json_array_foreach (ms_report_array(inner->root, "segments"), i, segment) {
        json_int_t free_bytes = 0;

        json_array_foreach (ms_report_array(segment, "blocks"), k, block)
            free_bytes = ms_report_sum(free_bytes, strcmp(ms_report_text(block, "state"), "free")
                                                       ? 0
                                                       : ms_report_int(block, "bytes"));
        bytes = ms_report_sum(bytes, free_bytes < ms_report_int(segment, "bytes") ? free_bytes : 0);
    }
    return bytes;
}

static void print_cached(FILE *out, const struct ms_report *inner)
{
    json_t *heap;
    json_int_t cached = 0, between = between_tensors(inner);
    size_t i;

    json_array_foreach (ms_report_array(inner->root, "heaps"), i, heap)
        cached = ms_report_sum(cached,
                               ms_report_int(heap, "device") < 0 ? 0 : ms_report_int(heap, "cached_bytes"));
    if (!cached)
        return;
    fprintf(out, "      %s cached by ", ms_text_size(cached).text);
    ms_report_put_heaps(out, inner);
    if (strcmp(ms_report_text(json_object_get(inner->root, "run"), "end_reason"), "running") != 0)
        fputs(" at the end", out);
    if (between)
        fprintf(out, ", %s%s of it fragmented between tensors", leaves_out(inner) ? "at least " : "",
                ms_text_size(between).text);
    if (leaves_out(inner))
        fputs("; the report leaves tensors out", out);
    fputc('\n', out);
}

/* "Peak  21.40 GiB allocated by tensors, 23.10 GiB reserved by PyTorch, of 80.00 GiB on cuda 0", with the
 * lines that held them: what a framework's allocator reported, of the device that was fullest by that. */
static void print_tensors(FILE *out, const struct ms_report *report)
{
    const json_t *fullest = ms_report_inner_fullest(report);
    struct ms_report inner;

    if (!ms_report_has_inner(report) || !ms_report_open_inner(report, &inner))
        return;
    ms_callers_annotate(&inner); /* whose each row is stands in it since the report was loaded */
    if (fullest) {
        fprintf(out, "Peak  %s allocated by tensors",
                ms_text_size(ms_report_int(fullest, "peak_live_bytes")).text);
        if (ms_report_heaps_say_reserved(&inner))
            fprintf(out, ", %s reserved by ", ms_text_size(ms_report_int(fullest, "peak_held_bytes")).text);
        else
            fputs(" of ", out);
        ms_report_put_heaps(out, &inner);
        fprintf(out, ", of %s on ", ms_text_size(ms_report_int(fullest, "total_bytes")).text);
        put_device(out, fullest);
        fputc('\n', out);
        print_sites(out, &inner, fullest, room(report, SITES_SHOWN));
    }
    print_cached(out, &inner);
    ms_report_close(&inner);
}

/* "      and at other times 7.0 MiB on cuda 1, 3.0 MiB on cuda 2" */
static void print_others(FILE *out, json_t *const *rows, size_t count)
{
    for (size_t i = 1; i < count && i <= DEVICES_NAMED; i++) {
        fprintf(out, "%s %s on ", i == 1 ? "      and, each at a time of its own," : ",",
                ms_text_size(ms_report_int(rows[i], "peak_live_bytes")).text);
        put_device(out, rows[i]);
    }
    if (count > DEVICES_NAMED + 1)
        fprintf(out, ", less on %zu more", count - DEVICES_NAMED - 1);
    if (count > 1)
        fputc('\n', out);
}

static json_int_t sum_of_terms(const json_t *row, const char *const keys[])
{
    json_int_t sum = 0;

    for (size_t i = 0; keys[i]; i++)
        sum = ms_report_sum(sum, ms_report_int(row, keys[i]));
    return sum;
}

/* A row of balances[] as a line has it (device_line.h); NULL without memory. */
static json_t *line_of(const json_t *row, json_int_t total)
{
    static const char *const live[] = {"requested", "rounding", "pinned", "followed", NULL};
    static const char *const cached[] = {"limbo", "cached", "stranded", NULL};
    json_int_t in_use = ms_report_int(row, "in_use_bytes"), contexts = ms_report_int(row, "contexts"),
               allocated = sum_of_terms(row, live), kept = sum_of_terms(row, cached),
               neighbours = ms_report_int(row, "neighbours_bytes"), rest = ms_report_int(row, "untracked");

    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b}", "total_bytes", total, "free_bytes",
                     total - in_use, "yours_bytes", ms_report_sum(ms_report_sum(allocated, kept), contexts),
                     "allocated_bytes", allocated, "cached_bytes", kept, "contexts_bytes", contexts,
                     "neighbours_bytes", neighbours, "unaccounted_bytes", rest - neighbours,
                     "contexts_at_most", ms_report_int(row, "contexts_inferred") > 0);
}

static const json_t *fullest_of(const struct ms_report *report)
{
    const json_t *device, *fullest = NULL;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "devices"), i, device)
        if (!fullest || summary_screen_by_peak(&device, &fullest) < 0)
            fullest = device;
    return fullest;
}

/* "Most  cuda 0: 8.00 GiB = 7.50 GiB free + 500.0 MiB yours (...) + ...", when most was in use. */
static void print_whole(FILE *out, const struct ms_report *report)
{
    const json_t *device = fullest_of(report), *row;
    json_int_t total = ms_report_int(device, "total_bytes");
    size_t i;

    json_array_foreach (ms_report_array(report->root, "balances"), i, row) {
        json_t *line;

        if (strcmp(ms_report_text(row, "moment"), "peak") != 0 || !device ||
            ms_report_device_of(report, row) != ms_report_device_first(report, device) ||
            ms_report_int(row, "in_use_bytes") > total || (line = line_of(row, total)) == NULL)
            continue;
        fputs("Most  ", out);
        put_device(out, device);
        fputs(": ", out);
        ms_device_line_put(out, line);
        fputc('\n', out);
        json_decref(line);
    }
}

/* The fullest device with the sites, and how full the others were. */
static void print_peak(FILE *out, const struct ms_report *report)
{
    json_t *devices = ms_report_array(report->root, "devices"), *device;
    size_t count = json_array_size(devices), i;
    json_t **rows = calloc(count + 1, sizeof(*rows));

    if (!count || !rows) {
        fputs("Peak  no device memory was allocated\n", out);
        free(rows);
        return;
    }
    json_array_foreach (devices, i, device)
        rows[i] = device;
    qsort(rows, count, sizeof(*rows), summary_screen_by_peak);
    print_fullest(out, report, rows[0]);
    print_others(out, rows, count);
    free(rows);
}

/* --- leaks ---------------------------------------------------------------------------------------------- */

/* The line says that it is of blocks where there are tensors, which memshim leaks shows then. */
static void print_leaked(FILE *out, const struct ms_leak_sums *sums, bool has_inner)
{
    struct ms_leak_sum leaked = ms_leak_sums_leaked(sums);
    const char *layer = has_inner ? " of blocks" : "";

    if (leaked.sites)
        fprintf(out, "Leak  %s%s never freed, in %" JSON_INTEGER_FORMAT " block%s",
                ms_text_size(leaked.bytes).text, layer, leaked.blocks, leaked.blocks == 1 ? "" : "s");
    else
        fprintf(out, "Leak  none%s", layer);
    ms_leaks_put_classes(out, sums);
    ms_leaks_put_others(out, sums);
    if (sums->of[MS_LEAK_CACHE].sites)
        fprintf(out, "; %s kept by caches of frameworks, which is no leak",
                ms_text_size(sums->of[MS_LEAK_CACHE].bytes).text);
    fputc('\n', out);
}

/* The lines of what grows or was lost; what is held to the end is the program's business. */
static void print_leaks(FILE *out, const struct ms_report *report)
{
    struct ms_leaks leaks;

    if (ms_leaks_open(report, 0, &leaks) < 0)
        return;
    print_leaked(out, &leaks.sums, ms_report_has_inner(report));
    for (unsigned class = MS_LEAK_GROWING; class <= MS_LEAK_LOST; class ++) {
        struct lines lines = {.count = 0};
        size_t looked = 0;

        for (size_t i = 0; i < leaks.count; i++) {
            const json_t *site = ms_report_site(report, ms_report_int(leaks.rows[i], "site"));
            json_int_t bytes = ms_leak_bytes(leaks.rows[i]);

            if (ms_leak_class_of(leaks.rows[i]) != class)
                continue;
            if (looked++ < SITES_LOOKED_AT) {
                summary_screen_add_site(&lines, report, site, bytes);
                continue;
            }
            lines.rest = ms_report_sum(lines.rest, bytes);
            lines.left++;
        }
        print_lines(out, report, &lines, class == MS_LEAK_GROWING ? room(report, GROWING_SHOWN) : LOST_SHOWN);
    }
    ms_leaks_close(&leaks);
}

/* --- what is others' ------------------------------------------------------------------------------------ */

/* Memory that others exported and this process opened: theirs, but as long as it is open here they cannot
 * have it back. */
static void print_imported(FILE *out, const struct ms_report *report)
{
    const struct ms_site_row *sites = ms_report_sites(report), *most = NULL;
    size_t count = sites ? json_array_size(report->sites) : 0;
    json_int_t opened = 0, blocks = 0, bytes = 0;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(sites[i].kind, "imported") != 0)
            continue;
        opened = ms_report_sum(opened, sites[i].total_bytes);
        bytes = ms_report_sum(bytes, sites[i].live_bytes);
        blocks = ms_report_sum(blocks, sites[i].live_count);
        most = !most || sites[i].live_bytes > most->live_bytes ? &sites[i] : most;
    }
    if (!most)
        return;
    fprintf(out, "Imported  %s of others' memory", ms_text_size(opened).text);
    if (blocks)
        fprintf(out, "; %s in %" JSON_INTEGER_FORMAT " block%s still open", ms_text_size(bytes).text, blocks,
                blocks == 1 ? "" : "s");
    fputs(": ", out);
    ms_text_put(out, ms_cli_site_api(most->json));
    ms_text_put_own(out, report, ms_report_int(most->json, "stack"));
    fputc('\n', out);
}

/* --- what was found ------------------------------------------------------------------------------------ */

static void print_finding(FILE *out, const struct ms_report *report)
{
    const json_t *row = ms_next_finding(report);
    size_t count = json_array_size(ms_report_array(report->root, "findings"));

    if (!row)
        return;
    fputs("Found ", out);
    ms_text_put(out, ms_report_text(row, "message"));
    fputs("\n      to do: ", out);
    ms_text_put(out, ms_report_text(row, "advice"));
    if (count > 1)
        fprintf(out, " (%zu more: memshim findings)", count - 1);
    fputc('\n', out);
}

/* --- what failed, what is not known, what comes next -----------------------------------------------------
 */

static void print_unseen(FILE *out, const struct ms_report *report)
{
    size_t spots = json_array_size(ms_report_array(json_object_get(report->root, "coverage"), "blind_spots"));

    if (spots)
        fprintf(out,
                "Not seen: %zu way%s to the GPU, so there may be more than this (memshim summary --all)\n",
                spots, spots == 1 ? "" : "s");
}

void ms_summary_screen(FILE *out, const char *path, const struct ms_report *report,
                       const struct ms_next_report *all, size_t count)
{

    ms_summary_print_run(out, path, report);
    ms_summary_print_failed(out, report, "");
    print_whole(out, report);
    print_tensors(out, report);
    print_peak(out, report);
    print_leaks(out, report);
    print_imported(out, report);
    ms_summary_print_waste(out, report);
    ms_calls_print(out, report);
    print_finding(out, report);
    print_unseen(out, report);
    ms_next_print(out, "Next  ", all, count);
}
