/* cmd_tune.c - memshim tune: which settings would have served a program best.
 *
 * Floor 5. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/load.h"
#include "cli/tune/tune.h"

struct tune_options {
    struct ms_cli_printing printing;
    struct ms_search search;
    struct ms_tune_program program;
    const char *apply;
    bool check;
};

static int take_goal(struct tune_options *options, const char *value)
{
    if (!strcmp(value, "both"))
        options->search.goal = MS_GOAL_BOTH;
    else if (!strcmp(value, "memory"))
        options->search.goal = MS_GOAL_MEMORY;
    else if (!strcmp(value, "time"))
        options->search.goal = MS_GOAL_TIME;
    else {
        ms_cli_error("--goal '%s' is not allowed: memory, time or both", value);
        return -1;
    }
    return 0;
}

static int take_device(struct tune_options *options, const char *value)
{
    if (ms_cli_size("--device", value, &options->search.device_bytes) < 0)
        return -1;
    if (options->search.device_bytes >= 2u << 20 && options->search.device_bytes < UINT64_C(1) << 50)
        return 0;
    ms_cli_error("--device '%s' is not allowed: a device has from 2M to 1024T", value);
    return -1;
}

static int tune_take(void *arg, int id, const char *value)
{
    struct tune_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    switch (id) {
    case 'g':
        return take_goal(options, value);
    case 'd':
        return take_device(options, value);
    case 'P':
        options->apply = value;
        return 0;
    case 'c':
        options->check = true;
        return 0;
    default:
        options->program.sim = true;
        return 0;
    }
}

/* A program and its arguments stand behind "--". Returns how many words come before. */
static int split(int argc, char **argv, struct tune_options *options)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--")) {
            options->program.argv = argv[i + 1] ? argv + i + 1 : NULL;
            return i;
        }
    return argc;
}

static int tune_refuse(const struct tune_options *options, int operands)
{
    if (!operands && !options->program.argv)
        ms_cli_error("give traces (memshim run --trace FILE), or -- PROGRAM to record one first");
    else if (options->check && !options->program.argv)
        ms_cli_error("--check runs the program again: give it behind --");
    else if (options->program.sim && !options->program.argv)
        ms_cli_error("--sim is about a program that is run: give it behind --");
    else
        return 0;
    return -1;
}

/* The chosen settings, where the user said or for the check alone. */
static int apply(const struct tune_options *options, const char *path, bool force)
{
    FILE *out = ms_cli_open_output(path, force);

    if (!out)
        return MS_EXIT_USAGE;
    ms_tune_write(out, &options->search);
    return ms_cli_close_output(out);
}

static int check(struct tune_options *options, struct ms_tune_seen *seen)
{
    char *config = NULL;
    int status = MS_EXIT_FAILED;

    if (options->apply)
        return ms_tune_check(&options->program, &options->search, options->apply, seen);
    if (ms_tune_begin(&options->program) == 0 &&
        asprintf(&config, "%s/settings", options->program.directory) > 0)
        status = apply(options, config, true);
    if (!status)
        status = ms_tune_check(&options->program, &options->search, config, seen);
    free(config);
    return status;
}

static int print(struct tune_options *options)
{
    const struct ms_search *search = &options->search;
    bool checks = options->check && ms_search_best(search);
    struct ms_tune_seen seen;
    FILE *out;
    int status = 0;

    if (options->apply && ms_search_best(search))
        status = apply(options, options->apply, options->printing.force);
    if (!status && checks)
        status = check(options, &seen);
    if (status)
        return status;
    out = ms_cli_open_output(options->printing.output, options->printing.force);
    if (!out)
        return MS_EXIT_USAGE;
    if (options->printing.json) {
        ms_cli_print_json(out, ms_tune_json(search, &options->program, checks ? &seen : NULL));
    } else {
        ms_tune_print(out, search, &options->program);
        if (checks)
            ms_tune_print_seen(out, &seen);
    }
    status = ms_cli_close_output(out);
    return status ? status : ms_search_best(search) ? MS_EXIT_OK : MS_EXIT_CONDITION;
}

static int tune(struct tune_options *options, char **paths, size_t count)
{
    int status = 0;

    if (!count) {
        status = ms_tune_record(&options->program);
        paths = options->program.traces;
        count = options->program.trace_count;
        options->search.replay_device = options->program.device_bytes;
    }
    if (status)
        return status;
    if (ms_search_open(&options->search, paths, count) < 0)
        return MS_EXIT_USAGE;
    if (ms_search_run(&options->search) < 0 || ms_search_torch(&options->search) < 0)
        return MS_EXIT_FAILED;
    status = ms_tune_compare(&options->program, &options->search);
    return status ? status : print(options);
}

int ms_cmd_tune(int argc, char **argv)
{
    struct tune_options options = {.check = false};
    int words = split(argc, argv, &options), first = ms_cli_parse(words, argv, false, tune_take, &options),
        status;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (tune_refuse(&options, words - first) < 0)
        return MS_EXIT_USAGE;
    status = tune(&options, argv + first, (size_t)(words - first));
    ms_search_close(&options.search);
    ms_tune_end(&options.program);
    return status;
}
