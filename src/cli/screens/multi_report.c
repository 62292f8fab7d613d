/* multi_report.c - several reports in one page; see multi_report.h.
 *
 * Floor 5. */
#include "cli/screens/multi_report.h"

#include <stdlib.h>
#include <string.h>

#include "cli/load.h"
#include "cli/screens/suppress.h"
#include "report/analyse/contexts_others.h"
#include "report/text/text.h"

static void print_figures(FILE *out, const struct ms_many *many, const json_int_t *figures)
{
    char number[32];

    for (size_t i = 0; i < MS_MANY_FIGURES && many->columns[i].heading; i++) {
        snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT, figures[i]);
        fprintf(out, " %11s",
                many->columns[i].figure == MS_FIGURE_COUNT ? number : ms_text_size(figures[i]).text);
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
    for (size_t i = 0; i < MS_MANY_FIGURES; i++) {
        if (many->columns[i].figure == MS_FIGURE_PEAK)
            many->totals[i] = figures[i] > many->totals[i] ? figures[i] : many->totals[i];
        else
            many->totals[i] = ms_report_sum(many->totals[i], figures[i]);
    }
    many->rows++;
}

void ms_many_end(FILE *out, const struct ms_many *many)
{
    fprintf(out, "%-16s", "total");
    print_figures(out, many, many->totals);
    fprintf(out, "  %zu processes\n\n", many->rows);
}

/* Contexts take the same on cards of one model: the least that any report shows holds for all of them. */
static void tell_all(char **paths, struct ms_report *reports, size_t count)
{
    json_t *least = json_object();

    for (size_t i = 0; i < count; i++)
        ms_contexts_least(least, &reports[i]);
    for (size_t i = 0; i < count; i++)
        ms_cli_tell(paths[i], &reports[i], least);
    json_decref(least);
}

struct ms_report *ms_many_load(char **paths, size_t count)
{
    struct ms_report *reports = calloc(count, sizeof(*reports));
    size_t loaded = 0;

    while (reports && ms_suppress_load() == 0 && loaded < count &&
           ms_cli_read(paths[loaded], &reports[loaded]) == 0)
        loaded++;
    if (loaded == count) {
        tell_all(paths, reports, count);
        return reports;
    }
    ms_many_close(reports, loaded);
    return NULL;
}

void ms_many_close(struct ms_report *reports, size_t count)
{
    for (size_t i = 0; reports && i < count; i++)
        ms_report_close(&reports[i]);
    free(reports);
}

static const void *view_at(const struct ms_many_verb *verb, const void *views, size_t i)
{
    return (const char *)views + i * verb->view_bytes;
}

static void show_json(FILE *out, char **paths, const struct ms_report *reports, size_t count,
                      const struct ms_many_verb *verb, const void *views, const void *options)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(rows, verb->json(paths[i], &reports[i], view_at(verb, views, i), options));
    ms_cli_print_json(out, json_incref(count == 1 ? json_array_get(rows, 0) : rows));
    json_decref(rows);
}

static void show_table(FILE *out, char **paths, const struct ms_report *reports, size_t count,
                       const struct ms_many_verb *verb, const void *views)
{
    struct ms_many many = {.rows = 0};

    memcpy(many.columns, verb->columns, sizeof(many.columns));
    ms_many_begin(out, &many);
    for (size_t i = 0; i < count; i++) {
        json_int_t figures[MS_MANY_FIGURES] = {0};

        verb->figures(view_at(verb, views, i), figures);
        ms_many_row(out, &many, paths[i], &reports[i], figures);
    }
    ms_many_end(out, &many);
}

static void show_text(FILE *out, char **paths, const struct ms_report *reports, size_t count,
                      const struct ms_many_verb *verb, const void *views, const void *options)
{
    if (count > 1)
        show_table(out, paths, reports, count, verb, views);
    for (size_t i = 0; i < count; i++) {
        if (count > 1) {
            fputs(i ? "\n" : "", out);
            ms_text_put(out, paths[i]);
            fputs(verb->after_path, out);
        }
        verb->text(out, &reports[i], view_at(verb, views, i), options);
    }
}

static int show(char **paths, size_t count, const struct ms_cli_printing *printing,
                const struct ms_many_verb *verb, const void *options)
{
    struct ms_report *reports = ms_many_load(paths, count);
    char *views = calloc(count, verb->view_bytes);
    int status = MS_EXIT_USAGE;
    int result = -1;
    size_t opened = 0;
    FILE *out = NULL;

    while (reports && views && opened < count &&
           (result = verb->open(&reports[opened], options, views + opened * verb->view_bytes)) == 0)
        opened++;
    if (reports && opened < count && result != -2)
        ms_cli_error("no memory for %s", paths[opened]);
    if (reports && opened == count)
        out = ms_cli_open_output(printing->output, printing->force);
    if (out && printing->json)
        show_json(out, paths, reports, count, verb, views, options);
    else if (out)
        show_text(out, paths, reports, count, verb, views, options);
    if (out)
        status = ms_cli_close_output(out);
    while (opened-- > 0)
        verb->close(views + opened * verb->view_bytes);
    free(views);
    ms_many_close(reports, count);
    return status;
}

int ms_many_run(int argc, char **argv, ms_flag_func_t take, const struct ms_cli_printing *printing,
                const struct ms_many_verb *verb, void *options)
{
    int first = ms_cli_parse(argc, argv, false, take, options);

    if (first < 0)
        return ms_cli_parse_status(first);
    if (first == argc) {
        ms_cli_error("no report given; usage: memshim %s [OPTION...] FILE...", argv[0]);
        return MS_EXIT_USAGE;
    }
    if (verb->check && verb->check(options, (size_t)(argc - first)) < 0)
        return MS_EXIT_USAGE;
    return show(argv + first, (size_t)(argc - first), printing, verb, options);
}
