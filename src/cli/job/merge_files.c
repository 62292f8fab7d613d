/* merge_files.c - which reports are merged, and where the job report goes; see merge.h.
 *
 * Floor 5. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/job/merge.h"
#include "cli/array.h"

int ms_merge_add(struct ms_merge_paths *paths, const char *path)
{
    char **rows = ms_array_grow(paths->rows, sizeof(*rows), paths->count, &paths->room, 256);

    if (!rows)
        return -1;
    paths->rows = rows;
    paths->rows[paths->count] = strdup(path);
    return paths->rows[paths->count++] ? 0 : -1;
}

int ms_merge_read_list(const char *list, struct ms_merge_paths *paths)
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
            status = ms_merge_add(paths, line);
    }
    if (status < 0)
        ms_cli_error("no memory for %s", list);
    free(line);
    if (file != stdin)
        fclose(file);
    return status;
}

void ms_merge_close(struct ms_merge_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->rows[i]);
    free(paths->rows);
}

int ms_merge_write(const struct ms_cli_printing *printing, const struct ms_job *job)
{
    bool json = printing->output != NULL;
    FILE *out = ms_cli_open_output(printing->output, printing->force);
    int status;

    if (!out)
        return MS_EXIT_USAGE;
    if (json && ms_job_write(out, job) < 0) {
        ms_cli_error("cannot write %s: %s", printing->output, strerror(errno));
        ms_cli_discard_output(out);
        return MS_EXIT_USAGE;
    }
    if (!json)
        ms_job_put_text(out, job);
    status = ms_cli_close_output(out);
    if (!status && json && strcmp(printing->output, "-") != 0) {
        ms_job_put_text(stdout, job);
        status = ms_cli_close_output(stdout);
    }
    return status;
}
