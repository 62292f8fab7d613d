/* cmd_check.c - memshim check: whether reports keep limits, for pipelines.
 *
 * Floor 5. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/check/check.h"
#include "cli/cli.h"
#include "cli/load.h"
#include "cli/screens/multi_report.h"

struct check_options {
    struct ms_cli_printing printing;
    struct ms_check_rules rules;
    const char *baseline, *junit, *sarif, *root;
    bool update, incomplete;
};

static int take_other(struct check_options *options, int id, const char *value)
{
    switch (id) {
    case 'B':
        options->baseline = value;
        return 0;
    case 'U':
        options->update = true;
        return 0;
    case 'I':
        options->incomplete = true;
        return 0;
    case 'T':
        return ms_check_take_tolerance(&options->rules, value);
    case 'J':
        options->junit = value;
        return 0;
    case 'S':
        options->sarif = value;
        return 0;
    default:
        options->root = value;
        return 0;
    }
}

static int check_take(void *arg, int id, const char *value)
{
    static const struct {
        int id;
        enum ms_check_figure figure;
        const char *option;
    } limits[] = {{'p', MS_CHECK_PEAK, "--max-peak"},         {'l', MS_CHECK_LEAK, "--max-leak"},
                  {'g', MS_CHECK_GROWTH, "--max-growth"},     {'F', MS_CHECK_FRAG, "--max-frag"},
                  {'r', MS_CHECK_RESERVED, "--max-reserved"}, {'m', MS_CHECK_OOM, "--max-oom"}};
    struct check_options *options = arg;

    for (size_t i = 0; i < MS_ARRAY_LEN(limits); i++)
        if (limits[i].id == id)
            return ms_check_take_limit(&options->rules, limits[i].figure, limits[i].option, value);
    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    return take_other(options, id, value);
}

static int write_junit(const struct check_options *options, const struct ms_check_results *results)
{
    FILE *out = ms_cli_open_output(options->junit, options->printing.force);

    if (!out)
        return MS_EXIT_USAGE;
    ms_check_put_junit(out, results);
    return ms_cli_close_output(out);
}

static int write_sarif(const struct check_options *options, const struct ms_check_results *results)
{
    char *root = realpath(options->root ? options->root : ".", NULL);
    FILE *out = NULL;

    if (!root)
        ms_cli_error("--source-root %s is no directory that can be read",
                     options->root ? options->root : ".");
    else
        out = ms_cli_open_output(options->sarif, options->printing.force);
    if (out)
        ms_check_put_sarif(out, results, root);
    free(root);
    return out ? ms_cli_close_output(out) : MS_EXIT_USAGE;
}

static int write_all(const struct check_options *options, const struct ms_check_results *results)
{
    int status = options->junit ? write_junit(options, results) : MS_EXIT_OK;
    FILE *out;

    if (!status && options->sarif)
        status = write_sarif(options, results);
    if (status)
        return status;
    out = ms_cli_open_output(options->printing.output, options->printing.force);
    if (!out)
        return MS_EXIT_USAGE;
    if (options->printing.json)
        ms_cli_print_json(out, ms_check_json(results));
    else
        ms_check_put_text(out, results);
    return ms_cli_close_output(out);
}

static int check_reports(struct check_options *options, char **paths, size_t count,
                         const struct ms_report *reports)
{
    struct ms_check_results results = {.rows = NULL};
    int status = MS_EXIT_OK;
    size_t i = 0;

    while (i < count && ms_check_report(&options->rules, paths[i], &reports[i], &results) == 0)
        i++;
    if (i < count) {
        ms_cli_error("no memory for %s", paths[i]);
        status = MS_EXIT_USAGE;
    } else if (ms_check_all_met(&options->rules) < 0) {
        status = MS_EXIT_USAGE;
    }
    if (!status)
        status = write_all(options, &results);
    if (!status && results.failed)
        status = MS_EXIT_CONDITION;
    ms_check_results_free(&results);
    return status;
}

/* The memory that a process held in the middle of its run is no measure of it: nothing could be freed any
 * more. An exit status. */
static int refuse_incomplete(char **paths, const struct ms_report *reports, size_t count)
{
    static const char *const ends[] = {"killed", "signal", "oom", "running"};

    for (size_t i = 0; i < count; i++) {
        const json_t *run = json_object_get(reports[i].root, "run");
        const char *reason = ms_report_text(run, "end_reason");

        if (json_is_false(json_object_get(run, "complete")) && strcmp(reason, "running") != 0) {
            ms_cli_error(
                "%s: the record could not be read whole; --incomplete holds it against the limits all "
                "the same",
                paths[i]);
            return MS_EXIT_USAGE;
        }

        for (size_t k = 0; k < MS_ARRAY_LEN(ends); k++)
            if (!strcmp(reason, ends[k]) && !ms_check_is_job(&reports[i])) {
                ms_cli_error("%s: the process %s, so this is no whole run; --incomplete holds it against the "
                             "limits all the same",
                             paths[i],
                             !strcmp(reason, "running") ? "still ran" : "was killed, or ended by a signal");
                return MS_EXIT_USAGE;
            }
    }
    return MS_EXIT_OK;
}

static int check_or_update(struct check_options *options, char **paths, size_t count)
{
    struct ms_report *reports;
    int status;

    if (options->update && !options->baseline) {
        ms_cli_error("--update-baseline needs --baseline FILE");
        return MS_EXIT_USAGE;
    }
    /* An update keeps the tolerances of the file that is there. */
    if (options->baseline && (!options->update || access(options->baseline, F_OK) == 0) &&
        ms_check_baseline_read(options->baseline, &options->rules) < 0)
        return MS_EXIT_USAGE;
    if (!options->update && !ms_check_has_rules(&options->rules)) {
        ms_cli_error("nothing to check; give --max-peak, --max-leak, --max-growth, --max-frag, "
                     "--max-reserved, --max-oom or --baseline");
        return MS_EXIT_USAGE;
    }
    reports = ms_many_load(paths, count);
    if (!reports)
        return MS_EXIT_USAGE;
    for (size_t i = 0; i < count; i++)
        if (ms_check_job_usable(paths[i], &reports[i], &options->rules) < 0) {
            ms_many_close(reports, count);
            return MS_EXIT_USAGE;
        }
    status = options->incomplete ? MS_EXIT_OK : refuse_incomplete(paths, reports, count);
    if (status) {
        ms_many_close(reports, count);
        return status;
    }
    status = options->update ? ms_check_baseline_write(options->baseline, &options->rules, reports, count)
                             : check_reports(options, paths, count, reports);
    ms_many_close(reports, count);
    return status;
}

int ms_cmd_check(int argc, char **argv)
{
    struct check_options options = {.update = false};
    int first = ms_cli_parse(argc, argv, false, check_take, &options), status;

    if (first >= 0 && first == argc) {
        ms_cli_error("no report given; usage: memshim check LIMIT... REPORT...");
        status = MS_EXIT_USAGE;
    } else {
        status = first < 0 ? ms_cli_parse_status(first)
                           : check_or_update(&options, argv + first, (size_t)(argc - first));
    }
    ms_check_rules_free(&options.rules);
    return status;
}
