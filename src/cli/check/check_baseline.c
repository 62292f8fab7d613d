/* check_baseline.c - what was measured once, kept in a file to hold later reports against; see check.h.
 *
 * Floor 5. Of several reports, the most of any. A file of JSON that people may edit: the rows' order is that
 * of the report, and an update keeps the tolerances that stand there. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/check/check.h"
#include "cli/cli.h"
#include "export/json_text.h"

static int check_baseline_refuse(const char *path, const char *what)
{
    ms_cli_error(
        "%s is no baseline: %s; memshim check --baseline FILE --update-baseline REPORT... writes one", path,
        what);
    return -1;
}

static int check_baseline_index_of(const char *name, bool kind)
{
    for (int i = 0; i < (kind ? (int)MS_CHECK_KINDS : (int)MS_CHECK_FIGURES); i++)
        if (!strcmp(name, kind ? ms_check_kinds[i] : ms_check_figures[i].name))
            return i;
    return -1;
}

static int check_baseline_take_row(const char *path, const json_t *json, struct ms_check_rules *rules)
{
    int figure = check_baseline_index_of(ms_report_text(json, "figure"), false),
        of = check_baseline_index_of(ms_report_text(json, "of"), true);
    struct ms_check_base *row = &rules->base[rules->base_count];

    if (figure < 0 || of < 0 || !json_is_integer(json_object_get(json, "bytes")))
        return check_baseline_refuse(path, "a row lacks figure, of or bytes");
    *row = (struct ms_check_base){(enum ms_check_figure)figure, (enum ms_check_of)of,
                                  !strcmp(ms_report_text(json, "layer"), "tensors"),
                                  strdup(ms_report_text(json, "name")), ms_report_int(json, "bytes")};
    if (!row->name)
        return -1;
    rules->base_count++;
    return 0;
}

/* Tolerances of the command line go first, then those that stand in the file, then the usual ones. */
static int take_tolerances(const json_t *json, struct ms_check_rules *rules)
{
    for (unsigned figure = 0; figure < MS_CHECK_FIGURES; figure++) {
        const struct ms_check_figure_info *info = &ms_check_figures[figure];
        const char *kept = ms_report_text(json, info->name);

        if (!rules->tolerance_given[figure] &&
            ms_check_amount_read("a baseline's tolerance", *kept ? kept : info->share,
                                 &rules->tolerance[figure]) < 0)
            return -1;
    }
    return 0;
}

int ms_check_baseline_read(const char *path, struct ms_check_rules *rules)
{
    json_error_t error;
    json_t *root, *rows, *row;
    size_t i;
    int status;

    rules->baseline = path;
    root = json_load_file(path, 0, &error);
    if (!root) {
        ms_cli_error("cannot read the baseline %s: %s", path, error.text);
        return -1;
    }
    rows = ms_report_array(root, "figures");
    if (ms_report_int(root, "memshim_baseline") != 1 || !rows) {
        json_decref(root);
        return check_baseline_refuse(path, "memshim_baseline is not 1, or there are no figures");
    }
    rules->base = calloc(json_array_size(rows) + 1, sizeof(*rules->base));
    status = rules->base ? take_tolerances(json_object_get(root, "tolerances"), rules) : -1;
    json_array_foreach (rows, i, row)
        status = status ? status : check_baseline_take_row(path, row, rules);
    json_decref(root);
    return status;
}

/* The row of the same figure of the same thing gets the larger. */
static int check_baseline_keep(struct ms_check_measures *kept, const struct ms_check_measure *row)
{
    struct ms_check_measure *added;

    for (size_t i = 0; i < kept->count; i++) {
        struct ms_check_measure *other = &kept->rows[i];

        if (ms_check_is_same(other, row)) {
            other->bytes = row->bytes > other->bytes ? row->bytes : other->bytes;
            return 0;
        }
    }
    added = ms_check_measure_add(kept, row->figure, row->of, row->name, row->bytes);
    if (added)
        added->tensors = row->tensors;
    return added ? 0 : -1;
}

static int keep_all(const struct ms_report *reports, size_t count, struct ms_check_measures *kept)
{
    int status = 0;

    for (size_t i = 0; status == 0 && i < count; i++) {
        struct ms_check_measures measures;

        status = ms_check_measure(&reports[i], &measures);
        for (size_t k = 0; status == 0 && k < measures.count; k++)
            status = measures.rows[k].of == MS_CHECK_CLASS ? 0 : check_baseline_keep(kept, &measures.rows[k]);
        ms_check_measures_free(&measures);
    }
    return status;
}

static void put_baseline(FILE *out, const struct ms_check_rules *rules, const struct ms_check_measures *kept)
{
    fputs("{\"memshim_baseline\": 1,\n \"tolerances\": {", out);
    for (unsigned figure = 0; figure < MS_CHECK_FIGURES; figure++)
        fprintf(out, "%s\"%s\": \"%" PRIu64 "%s\"", figure ? ", " : "", ms_check_figures[figure].name,
                rules->tolerance[figure].bytes, rules->tolerance[figure].percent ? "%" : "");
    fputs("},\n \"figures\": [", out);
    for (size_t i = 0; i < kept->count; i++) {
        const struct ms_check_measure *row = &kept->rows[i];

        fprintf(out, "%s{\"figure\": \"%s\", %s\"of\": \"%s\", \"name\": ", i ? ",\n  " : "\n  ",
                ms_check_figures[row->figure].name, row->tensors ? "\"layer\": \"tensors\", " : "",
                ms_check_kinds[row->of]);
        ms_json_put(out, row->name);
        fprintf(out, ", \"bytes\": %" JSON_INTEGER_FORMAT "}", row->bytes);
    }
    fputs("\n ]}\n", out);
}

int ms_check_baseline_write(const char *path, const struct ms_check_rules *rules,
                            const struct ms_report *reports, size_t count)
{
    struct ms_check_measures kept = {.rows = NULL};
    struct ms_check_rules with = *rules;
    int status = MS_EXIT_USAGE;
    FILE *out;

    if (keep_all(reports, count, &kept) < 0)
        ms_cli_error("no memory for %s", path);
    else if ((rules->base || take_tolerances(NULL, &with) == 0) && (out = ms_cli_open_output(path, true))) {
        put_baseline(out, &with, &kept);
        status = ms_cli_close_output(out);
    }
    ms_check_measures_free(&kept);
    return status;
}
