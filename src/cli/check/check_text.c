/* check_text.c - results of checks for people, and as JSON; see check.h.
 *
 * Floor 5. */
#include <stdlib.h>
#include <string.h>

#include "cli/check/check.h"
#include "base/compiler.h"
#include "cli/load.h"
#include "report/text/text.h"

static void put_result(FILE *out, const struct ms_check_result *result)
{
    char *message = ms_check_message(result), *line = ms_check_line(result);

    fputs(result->held ? "ok      " : "FAILED  ", out);
    ms_text_put(out, message ? message : "?");
    fputc('\n', out);
    if (!result->held && line) {
        fprintf(out, "        %s by ", ms_text_size(result->measure.site_bytes).text);
        ms_text_put(out, line);
        fputc('\n', out);
    }
    free(message);
    free(line);
}

void ms_check_put_text(FILE *out, const struct ms_check_results *results)
{
    const char *path = NULL;

    for (size_t i = 0; i < results->count; i++) {
        if (!path || strcmp(path, results->rows[i].path)) {
            fputs(path ? "\n" : "", out);
            path = results->rows[i].path;
            ms_text_put(out, path);
            fputc('\n', out);
        }
        put_result(out, &results->rows[i]);
    }
    if (results->fresh)
        fprintf(out, "%zu figure%s not in the baseline\n", results->fresh,
                results->fresh == 1 ? " is" : "s are");
    fprintf(out, "%zu of %zu checks failed\n", results->failed, results->count);
}

static void set_process(json_t *row, const struct ms_check_result *result, const json_t *rank)
{
    static const char *const copied[] = {"rank", "host", "pid"};

    for (size_t i = 0; i < MS_ARRAY_LEN(copied); i++)
        if (json_object_get(rank, copied[i]))
            json_object_set(row, copied[i], json_object_get(rank, copied[i]));
    json_object_set_new(row, "of_processes", json_integer(result->measure.processes));
    json_object_set_new(row, "more_processes", json_integer((json_int_t)result->more));
    if (result->measure.job_site >= 0 && !result->held) {
        json_object_set_new(row, "job_site", json_integer(result->measure.job_site));
        json_object_set_new(row, "site_bytes", json_integer(result->measure.site_bytes));
    }
}

static json_t *result_json(const struct ms_check_result *result)
{
    const struct ms_check_measure *measure = &result->measure;
    char *message = ms_check_message(result);
    json_t *row =
        json_pack("{s:s, s:b, s:s, s:s, s:s, s:I, s:I, s:s, s:s}", "file", result->path, "held", result->held,
                  "figure", ms_check_figures[measure->figure].name, "of", ms_check_kinds[measure->of], "name",
                  measure->name, "bytes", measure->bytes, "allowed_bytes", result->allowed, "rule",
                  result->rule, "message", message ? message : "?");
    const json_t *site = ms_check_site(result);

    const json_t *rank = measure->process < 0 ? NULL
                                              : json_array_get(ms_report_array(result->report->root, "ranks"),
                                                               (size_t)measure->process);

    free(message);
    if (row)
        json_object_set_new(row, "layer", json_string(measure->tensors ? "tensors" : "blocks"));
    if (row && rank)
        set_process(row, result, rank);
    if (row && site && !result->held) {
        json_object_set_new(row, measure->tensors ? "inner_site" : "site", json_integer(measure->site));
        json_object_set_new(row, "site_bytes", json_integer(measure->site_bytes));
        ms_cli_set_stack(row, result->report, ms_report_int(site, "stack"));
    }
    return row;
}

json_t *ms_check_json(const struct ms_check_results *results)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < results->count; i++)
        json_array_append_new(rows, result_json(&results->rows[i]));
    return json_pack("{s:I, s:I, s:o}", "failed", (json_int_t)results->failed, "not_in_baseline",
                     (json_int_t)results->fresh, "checks", rows);
}
