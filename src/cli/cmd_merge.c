/* cmd_merge.c - memshim merge: the reports of a job's processes as one.
 *
 * Floor 5. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/job.h"

struct merge_options {
    struct ms_cli_printing printing;
    const char *list;
    long processes;
};

/* Paths of the command line and of a list. */
struct paths {
    char **rows;
    size_t count, room;
};

static int take(void *arg, int id, const char *value)
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

static int add(struct paths *paths, const char *path)
{
    if (paths->count == paths->room) {
        size_t room = paths->room ? 2 * paths->room : 256;
        char **rows = realloc(paths->rows, room * sizeof(*rows));

        if (!rows)
            return -1;
        paths->rows = rows;
        paths->room = room;
    }
    paths->rows[paths->count] = strdup(path);
    return paths->rows[paths->count++] ? 0 : -1;
}

static int read_list(const char *list, struct paths *paths)
{
    FILE *file = strcmp(list, "-") ? fopen(list, "re") : stdin;
    char *line = NULL;
    size_t bytes = 0;
    int status = 0;

    if (!file) {
        ms_cli_error("cannot read %s: %s", list, strerror(errno));
        return -1;
    }
    while (status == 0 && getline(&line, &bytes, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        if (*line)
            status = add(paths, line);
    }
    if (status < 0)
        ms_cli_error("no memory for %s", list);
    free(line);
    if (file != stdin)
        fclose(file);
    return status;
}

/* With --output the report goes there and the text to standard output. */
static int write_all(const struct merge_options *options, const struct ms_job *job)
{
    bool json = options->printing.output != NULL;
    FILE *out = ms_cli_open_output(options->printing.output, options->printing.force);
    int status;

    if (!out)
        return MS_EXIT_USAGE;
    if (json && ms_job_write(out, job) < 0) {
        ms_cli_error("cannot write %s: %s", options->printing.output, strerror(errno));
        ms_cli_discard_output(out);
        return MS_EXIT_USAGE;
    }
    if (!json)
        ms_job_put_text(out, job);
    status = ms_cli_close_output(out);
    if (!status && json && strcmp(options->printing.output, "-") != 0) {
        ms_job_put_text(stdout, job);
        status = ms_cli_close_output(stdout);
    }
    return status;
}

static int merge(const struct merge_options *options, const struct paths *paths)
{
    struct ms_job job = {.shown = NULL};
    int status = MS_EXIT_USAGE;

    if (ms_merge_tree(&job, paths->rows, paths->count, options->processes) == 0 && ms_job_finish(&job) == 0)
        status = write_all(options, &job);
    ms_job_close(&job);
    return status;
}

int ms_cmd_merge(int argc, char **argv)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    struct merge_options options = {.processes = online < 1 ? 1 : online > 16 ? 16 : online};
    int first = ms_cli_parse(argc, argv, false, take, &options), status = MS_EXIT_USAGE;
    struct paths paths = {NULL, 0, 0};

    if (first < 0)
        return ms_cli_parse_status(first);
    for (int i = first; i < argc; i++)
        if (add(&paths, argv[i]) < 0)
            return MS_EXIT_USAGE;
    if (!options.list || read_list(options.list, &paths) == 0) {
        if (paths.count)
            status = merge(&options, &paths);
        else
            ms_cli_error("no report given; usage: memshim merge [OPTION...] [-o FILE] FILE...");
    }
    for (size_t i = 0; i < paths.count; i++)
        free(paths.rows[i]);
    free(paths.rows);
    return status;
}
