/* many.c - several reports in one page; see many.h.
 *
 * Floor 5. */
#include "cli/many.h"

#include <stdlib.h>

#include "cli/load.h"
#include "report/text.h"

static void print_figures(FILE *out, const struct ms_many *many, const json_int_t *figures)
{
    char number[32];

    for (size_t i = 0; i < MS_MANY_FIGURES && many->columns[i].heading; i++) {
        snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, figures[i]);
        fprintf(out, " %11s", many->columns[i].is_count ? number : ms_text_size(figures[i]).text);
    }
}

void ms_many_begin(FILE *out, const struct ms_many *many)
{
    fprintf(out, "%-10s %5s", "process", "rank");
    for (size_t i = 0; i < MS_MANY_FIGURES && many->columns[i].heading; i++)
        fprintf(out, " %11s", many->columns[i].heading);
    fputs("  report\n", out);
}

void ms_many_row(FILE *out, struct ms_many *many, const char *path, const struct ms_report *report,
                 const json_int_t figures[MS_MANY_FIGURES])
{
    const json_t *run = json_object_get(report->root, "run");
    char rank[32] = "-";

    if (json_object_get(run, "rank"))
        snprintf(rank, sizeof(rank), "%" JSON_INTEGER_FORMAT, ms_report_int(run, "rank"));
    fprintf(out, "%-10" JSON_INTEGER_FORMAT " %5s", ms_report_int(run, "pid"), rank);
    print_figures(out, many, figures);
    fputs("  ", out);
    ms_text_put(out, path);
    fputc('\n', out);
    for (size_t i = 0; i < MS_MANY_FIGURES; i++)
        many->totals[i] = ms_report_sum(many->totals[i], figures[i]);
    many->rows++;
}

void ms_many_end(FILE *out, const struct ms_many *many)
{
    fprintf(out, "%-16s", "total");
    print_figures(out, many, many->totals);
    fprintf(out, "  %zu processes\n\n", many->rows);
}

struct ms_report *ms_many_load(char **paths, size_t count)
{
    struct ms_report *reports = calloc(count, sizeof(*reports));
    size_t loaded = 0;

    while (reports && loaded < count && ms_cli_load(paths[loaded], &reports[loaded]) == 0)
        loaded++;
    if (loaded == count)
        return reports;
    ms_many_close(reports, loaded);
    return NULL;
}

void ms_many_close(struct ms_report *reports, size_t count)
{
    for (size_t i = 0; reports && i < count; i++)
        ms_report_close(&reports[i]);
    free(reports);
}
