/* cmd_leaks.c - memshim leaks: what was allocated and never freed, by call site.
 *
 * Floor 5. */
#include "cli/cli.h"
#include "cli/screens/leaks.h"
#include "cli/load.h"
#include "cli/screens/multi_report.h"
#include "report/text/text.h"
#include "report/analyse/view.h"

struct leaks_options {
    struct ms_cli_printing printing;
    uint64_t min_bytes;
};

static int leaks_take(void *arg, int id, const char *value)
{
    struct leaks_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    return ms_cli_size("--min-bytes", value, &options->min_bytes);
}

static json_t *leak_json(const struct ms_report *report, json_t *leak)
{
    static const char *const keys[] = {"site",  "class",    "pattern", "framework", "bytes",
                                       "count", "first_ns", "last_ns", "names"};
    json_t *site = ms_report_site(report, ms_report_int(leak, "site"));
    json_int_t stack = ms_report_int(site, "stack");
    json_t *object = json_object();
    size_t i;

    for (i = 0; i < MS_ARRAY_LEN(keys); i++)
        if (json_object_get(leak, keys[i]))
            json_object_set(object, keys[i], json_object_get(leak, keys[i]));
    json_object_set_new(object, "api", json_string(ms_report_text(site, "api")));
    if (json_object_get(site, "device"))
        json_object_set(object, "device", json_object_get(site, "device"));
    if (json_object_get(site, "device_api"))
        json_object_set(object, "device_api", json_object_get(site, "device_api"));
    json_object_set_new(object, "owner", json_string(ms_text_stack_module(report, stack)));
    ms_cli_set_stack(object, report, stack);
    return object;
}

/* Bytes, blocks and sites of each class that there is. */
static json_t *classes_json(const struct ms_leak_sums *sums)
{
    json_t *object = json_object();

    for (unsigned class = 0; class < MS_LEAK_CLASSES; class ++) {
        const struct ms_leak_sum *sum = &sums->of[class];

        if (sum->sites || sum->bytes)
            json_object_set_new(object, ms_leak_class_word(class),
                                json_pack("{s:I, s:I, s:I}", "bytes", sum->bytes, "count", sum->blocks,
                                          "sites", (json_int_t)sum->sites));
    }
    return object;
}

static json_t *leaks_report_json(const char *path, const struct ms_report *report, const void *view,
                                 const void *options)
{
    const struct ms_leaks *leaks = view;
    const struct ms_leak_sum *left_out = &leaks->left_out;
    json_t *rows = json_array(), *run = json_object_get(report->root, "run"), *object;

    (void)options;
    for (size_t i = 0; i < leaks->count; i++)
        json_array_append_new(rows, leak_json(report, leaks->rows[i]));
    object = json_pack("{s:s, s:I, s:I, s:I, s:o, s:{s:I, s:I, s:I}, s:o}", "file", path, "leaked_bytes",
                       ms_leak_sums_leaked(&leaks->sums).bytes, "cached_bytes",
                       leaks->sums.of[MS_LEAK_CACHE].bytes, "late_frees",
                       ms_report_int(json_object_get(report->root, "coverage"), "late_frees"), "classes",
                       classes_json(&leaks->sums), "left_out", "bytes", left_out->bytes, "count",
                       left_out->blocks, "sites", (json_int_t)left_out->sites, "leaks", rows);
    ms_cli_set_view(object, report);
    if (json_object_get(run, "pid"))
        json_object_set(object, "pid", json_object_get(run, "pid"));
    if (json_object_get(run, "rank"))
        json_object_set(object, "rank", json_object_get(run, "rank"));
    return object;
}

static int open_leaks(const struct ms_report *report, const void *options, void *view_p)
{
    return ms_leaks_open(report, ((const struct leaks_options *)options)->min_bytes, view_p);
}

static void close_leaks(void *view)
{
    ms_leaks_close(view);
}

static void leaks_sum_up(const void *view, json_int_t figures[MS_MANY_FIGURES])
{
    struct ms_leak_sum sum = ms_leak_sums_leaked(&((const struct ms_leaks *)view)->sums);

    figures[0] = sum.bytes;
    figures[1] = sum.blocks;
    figures[2] = (json_int_t)sum.sites;
}

static void leaks_print_text(FILE *out, const struct ms_report *report, const void *view, const void *options)
{
    ms_view_print(out, report, "");
    ms_leaks_print_sums(out, report, view, ((const struct leaks_options *)options)->min_bytes);
    ms_leaks_print(out, report, view, SIZE_MAX, MS_REPORT_DEPTH_MAX);
}

int ms_cmd_leaks(int argc, char **argv)
{
    static const struct ms_many_verb verb = {
        .view_bytes = sizeof(struct ms_leaks),
        .open = open_leaks,
        .close = close_leaks,
        .figures = leaks_sum_up,
        .json = leaks_report_json,
        .columns = {{"leaked", MS_FIGURE_BYTES}, {"blocks", MS_FIGURE_COUNT}, {"sites", MS_FIGURE_COUNT}},
        .after_path = ": ",
        .text = leaks_print_text};
    struct leaks_options options = {0};

    return ms_many_run(argc, argv, leaks_take, &options.printing, &verb, &options);
}
