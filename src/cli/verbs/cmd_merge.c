/* cmd_merge.c - memshim merge: the reports of a job's processes as one.
 *
 * Floor 5. */
#include <unistd.h>

#include "cli/job/merge.h"

struct merge_options {
    struct ms_cli_printing printing;
    const char *list;
    long processes;
};

static int merge_take(void *arg, int id, const char *value)
{
    struct merge_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    if (id == 'L') {
        options->list = value;
        return 0;
    }
    return ms_cli_number("--processes", value, 1, 1024, &options->processes);
}

static int merge_reports(const struct merge_options *options, const struct ms_merge_paths *paths)
{
    struct ms_job job = {.shown = NULL};
    int status = MS_EXIT_USAGE;

    if (ms_merge_tree(&job, paths->rows, paths->count, options->processes) == 0 && ms_job_finish(&job) == 0)
        status = ms_merge_write(&options->printing, &job);
    ms_job_close(&job);
    return status;
}

int ms_cmd_merge(int argc, char **argv)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    struct merge_options options = {.processes = online < 1 ? 1 : online > 16 ? 16 : online};
    int first = ms_cli_parse(argc, argv, false, merge_take, &options), status = MS_EXIT_USAGE;
    struct ms_merge_paths paths = {NULL, 0, 0};

    if (first < 0)
        return ms_cli_parse_status(first);
    for (int i = first; i < argc; i++)
        if (ms_merge_add(&paths, argv[i]) < 0)
            return MS_EXIT_USAGE;
    if (!options.list || ms_merge_read_list(options.list, &paths) == 0) {
        if (paths.count)
            status = merge_reports(&options, &paths);
        else
            ms_cli_error("no report given; usage: memshim merge [OPTION...] [-o FILE] FILE...");
    }
    ms_merge_close(&paths);
    return status;
}
