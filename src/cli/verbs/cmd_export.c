/* cmd_export.c - memshim export: a report as a file that other tools open.
 *
 * Floor 5. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/load.h"
#include "export/export.h"

struct export_options {
    struct ms_cli_stacks stacks;
    const struct ms_export_format *format;
    const char *trace;
};

static const char *format_names(void)
{
    static char names[512];
    size_t used = 0;

    for (size_t i = 0; ms_export_formats[i].name && used < sizeof(names); i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "",
                                 ms_export_formats[i].name);
    return names;
}

static int take_format(struct export_options *options, const char *value)
{
    options->format = ms_export_format_find(value);
    if (options->format)
        return 0;
    ms_cli_error("--format '%s' is not allowed: one of %s", value, format_names());
    return -1;
}

static int export_take(void *arg, int id, const char *value)
{
    struct export_options *options = arg;

    switch (id) {
    case 'F':
        return take_format(options, value);
    case 't':
        options->trace = value;
        return 0;
    default:
        return ms_cli_take_stacks(&options->stacks, id, value) < 0 ? -1 : 0;
    }
}

/* Bytes that a terminal would take for commands. */
static bool is_for_terminal(const struct export_options *options)
{
    const char *output = options->stacks.printing.output;

    return !options->format->binary || (output && strcmp(output, "-") != 0) || !isatty(STDOUT_FILENO);
}

/* Figures of both, by names of their own, so that what is asked for by name is always the same. */
static bool has_both_layers(const struct ms_export_format *format)
{
    return format->write == ms_export_prometheus || format->write == ms_export_openmetrics;
}

static int export_check(const struct export_options *options, int operands)
{
    if (!options->format)
        ms_cli_error("no --format given: one of %s", format_names());
    else if (operands != 1)
        ms_cli_error("%s; usage: memshim export --format FORMAT [OPTION...] FILE",
                     operands ? "one report at a time" : "no report given");
    else if (options->trace && !options->format->takes_events)
        ms_cli_error("--trace says nothing to the format %s, which has no events", options->format->name);
    else if (!is_for_terminal(options))
        ms_cli_error("the format %s is nothing for a terminal; give -o FILE", options->format->name);
    else
        return 0;
    return -1;
}

static int write_out(const struct ms_export *job, const struct export_options *options, const char *path)
{
    FILE *out = ms_cli_open_output(options->stacks.printing.output, options->stacks.printing.force);

    if (!out)
        return MS_EXIT_USAGE;
    if (options->format->write(out, job) == 0)
        return ms_cli_close_output(out);
    ms_cli_discard_output(out);
    ms_cli_error("no memory for %s", path);
    return MS_EXIT_USAGE;
}

static int export_report(const struct ms_report *report, const struct export_options *options,
                         const char *path)
{
    struct ms_events events = {.count = 0};
    struct ms_model model;
    struct ms_export job = {
        .model = &model, .value = options->stacks.value, .events = options->trace ? &events : NULL};
    char error[4608];
    int status;

    if (options->trace && ms_events_read(options->trace, report, &events, error, sizeof(error)) < 0) {
        ms_cli_error("%s", error);
        return MS_EXIT_USAGE;
    }
    if (ms_model_open(&model, report, options->stacks.all_frames) < 0) {
        ms_cli_error("no memory for %s", path);
        status = MS_EXIT_USAGE;
    } else {
        status = write_out(&job, options, path);
        ms_model_close(&model);
    }
    ms_events_close(&events);
    return status;
}

int ms_cmd_export(int argc, char **argv)
{
    struct export_options options = {.stacks = {.value = MS_VALUE_PEAK}};
    int first = ms_cli_parse(argc, argv, false, export_take, &options), status;
    struct ms_report report;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (export_check(&options, argc - first) < 0)
        return MS_EXIT_USAGE;
    if (ms_cli_layer == MS_CLI_TENSORS_IF_ANY && has_both_layers(options.format))
        ms_cli_layer = MS_CLI_BLOCKS;
    if (ms_cli_load(argv[first], &report) < 0)
        return MS_EXIT_USAGE;
    status = export_report(&report, &options, argv[first]);
    ms_report_close(&report);
    return status;
}
