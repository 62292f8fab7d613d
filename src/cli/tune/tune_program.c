/* tune_program.c - a program run by memshim tune, for its traces and to see what comes true; see tune.h.
 *
 * Floor 5. It is run by `memshim run` of this command, with files in a directory that only the user may
 * read. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/files.h"
#include "cli/cli.h"
#include "cli/run/child.h"
#include "cli/tune/tune.h"
#include "report/read/read.h"

enum { OPTIONS_MOST = 16 };

int ms_tune_begin(struct ms_tune_program *program)
{
    const char *base = getenv("TMPDIR");

    if (program->directory)
        return 0;
    if (asprintf(&program->directory, "%s/memshim-tune-XXXXXX", base && *base == '/' ? base : "/tmp") < 0)
        program->directory = NULL;
    if (program->directory && mkdtemp(program->directory))
        return 0;
    ms_cli_error("no directory for the program's traces: %s", strerror(errno));
    free(program->directory);
    program->directory = NULL;
    return -1;
}

/* memshim run, and the program behind its options. Returns an exit status. */
static int run(const struct ms_tune_program *program, char *const *options, size_t count)
{
    struct ms_child child = {.stdout_to_stderr = true};
    char own[PATH_MAX];
    size_t words = 0, length = 0;
    char **argv;
    int status;

    while (program->argv[words])
        words++;
    argv = calloc(words + count + 4, sizeof(*argv));
    if (!argv)
        return MS_EXIT_FAILED;
    ms_file_executable(own, sizeof(own));
    argv[length++] = (char *)"memshim";
    argv[length++] = (char *)"run";
    for (size_t i = 0; i < count; i++)
        argv[length++] = options[i];
    argv[length++] = (char *)"--";
    memcpy(argv + length, program->argv, words * sizeof(*argv));
    status = ms_child_run(own, argv, &child);
    free(argv);
    if (!status && child.status)
        ms_cli_note("the program ended with status %d", child.status);
    return status;
}

static bool begins(const char *name, const char *with)
{
    return !strncmp(name, with, strlen(with));
}

/* Called for each file of the directory whose name begins so, with its path. Returns 0, or -1. */
static int each_file(const char *directory, const char *with, int (*take)(void *arg, const char *path),
                     void *arg)
{
    DIR *dir = opendir(directory);
    struct dirent *entry;
    char path[PATH_MAX];
    int status = dir ? 0 : -1;

    while (status == 0 && (entry = readdir(dir))) {
        if (!begins(entry->d_name, with) || !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
        status = take(arg, path);
    }
    if (dir)
        closedir(dir);
    return status;
}

static int take_trace(void *arg, const char *path)
{
    struct ms_tune_program *program = arg;
    char **traces = reallocarray(program->traces, program->trace_count + 1, sizeof(*traces));

    if (!traces)
        return -1;
    program->traces = traces;
    traces[program->trace_count] = strdup(path);
    return traces[program->trace_count++] ? 0 : -1;
}

static int take_report(void *arg, const char *path)
{
    struct ms_tune_figures *figures = arg;
    struct ms_report report;
    char error[4608];
    json_t *device;
    size_t i;

    if (ms_report_read(path, &report, error, sizeof(error)) < 0) {
        ms_cli_error("%s", error);
        return -1;
    }
    json_array_foreach (ms_report_array(report.root, "devices"), i, device) {
        uint64_t peak = (uint64_t)ms_report_int(device, "peak_held_bytes");

        figures->peak = peak > figures->peak ? peak : figures->peak;
        figures->calls += (uint64_t)ms_report_int(device, "vendor_calls");
    }
    ms_report_close(&report);
    return 0;
}

/* The largest of its devices is that which it is replayed on. */
static int take_device(void *arg, const char *path)
{
    struct ms_tune_program *program = arg;
    struct ms_report report;
    char error[4608];
    json_t *device;
    size_t i;

    if (ms_report_read(path, &report, error, sizeof(error)) < 0)
        return 0;
    json_array_foreach (ms_report_array(report.root, "devices"), i, device)
        if ((uint64_t)ms_report_int(device, "total_bytes") > program->device_bytes)
            program->device_bytes = (uint64_t)ms_report_int(device, "total_bytes");
    ms_report_close(&report);
    return 0;
}

int ms_tune_record(struct ms_tune_program *program)
{
    char *options[OPTIONS_MOST], *trace = NULL, *report = NULL;
    size_t count = 0;
    int status;

    if (ms_tune_begin(program) < 0)
        return MS_EXIT_FAILED;
    if (asprintf(&trace, "%s/trace.%%p", program->directory) < 0 ||
        asprintf(&report, "%s/recorded.%%p", program->directory) < 0)
        return MS_EXIT_FAILED;
    options[count++] = (char *)"-q";
    if (program->sim)
        options[count++] = (char *)"--sim";
    options[count++] = (char *)"--output";
    options[count++] = report;
    options[count++] = (char *)"--trace";
    options[count++] = trace;
    status = run(program, options, count);
    free(trace);
    free(report);
    if (!status &&
        (each_file(program->directory, "trace.", take_trace, program) < 0 || !program->trace_count)) {
        ms_cli_error("%s allocated no memory of a device that memshim could see", program->argv[0]);
        status = MS_EXIT_USAGE;
    }
    if (!status)
        each_file(program->directory, "recorded.", take_device, program);
    return status;
}

/* Replays once more under a row's settings, with reports, whose names begin so. */
static int tell(const struct ms_tune_program *program, const struct ms_search *search,
                const struct ms_search_row *row, const char *name, struct ms_tune_figures *told)
{
    char line[512], *settings = NULL;
    int status = 0;

    ms_policy_write(&row->policy, &search->facts, line, sizeof(line));
    if (asprintf(&settings, "%s MEMSHIM_REPORT=%s/%s%%p", line, program->directory, name) < 0)
        return MS_EXIT_FAILED;
    for (size_t i = 0; i < search->trace_count && !status; i++) {
        const struct ms_search_trace *trace = ms_search_way(&search->traces[i], &row->policy);
        struct ms_replay_order order = {&trace->replay,      settings, search->replay_device, 0,
                                        trace->course.count, SIZE_MAX};
        struct ms_replay_result result;

        status = ms_replay_all(&order, &result, 1, NULL, NULL) < 0 ? MS_EXIT_FAILED : 0;
    }
    free(settings);
    return status ? status : each_file(program->directory, name, take_report, told) < 0 ? MS_EXIT_FAILED : 0;
}

/* True if nothing is set that is tuned. */
static bool has_defaults(void)
{
    for (unsigned i = 0; i < MS_SETTINGS; i++)
        if (getenv(ms_policy_name(i)))
            return false;
    return !getenv("MEMSHIM_CONFIG");
}

int ms_tune_compare(struct ms_tune_program *program, const struct ms_search *search)
{
    if (!program->trace_count || !has_defaults() || !search->rows[0].completed)
        return 0;
    program->compares = true;
    if (each_file(program->directory, "recorded.", take_report, &program->recorded) < 0)
        return MS_EXIT_FAILED;
    return tell(program, search, &search->rows[0], "replayed.", &program->replayed);
}

int ms_tune_check(struct ms_tune_program *program, const struct ms_search *search, const char *config,
                  struct ms_tune_seen *seen)
{
    char *options[OPTIONS_MOST], *report = NULL;
    size_t count = 0;
    int status;

    *seen = (struct ms_tune_seen){.told = {0, 0}};
    if (ms_tune_begin(program) < 0 || asprintf(&report, "%s/checked.%%p", program->directory) < 0)
        return MS_EXIT_FAILED;
    options[count++] = (char *)"-q";
    if (program->sim)
        options[count++] = (char *)"--sim";
    options[count++] = (char *)"--output";
    options[count++] = report;
    if (ms_policy_uncached(&ms_search_best(search)->policy))
        options[count++] = (char *)"--see-through";
    options[count++] = (char *)"--config";
    options[count++] = (char *)config;
    status = run(program, options, count);
    free(report);
    if (!status && each_file(program->directory, "checked.", take_report, &seen->seen) < 0)
        status = MS_EXIT_FAILED;
    if (!status)
        status = tell(program, search, ms_search_best(search), "told.", &seen->told);
    if (!status && program->compares) {
        seen->told.peak += program->recorded.peak - program->replayed.peak;
        seen->told.calls += program->recorded.calls - program->replayed.calls;
    }
    return status;
}

static int remove_file(void *arg, const char *path)
{
    (void)arg;
    unlink(path);
    return 0;
}

void ms_tune_end(struct ms_tune_program *program)
{
    if (program->directory) {
        each_file(program->directory, "", remove_file, NULL);
        rmdir(program->directory);
    }
    for (size_t i = 0; i < program->trace_count; i++)
        free(program->traces[i]);
    free(program->traces);
    free(program->directory);
}
