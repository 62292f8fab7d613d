/* merge.h - which reports are merged, and where the job report goes: memshim merge and memshim-merge-mpi.
 *
 * Floor 5. */
#ifndef MS_CLI_JOB_MERGE_H
#define MS_CLI_JOB_MERGE_H

#include <stddef.h>

#include "cli/cli.h"
#include "cli/job/job.h"

/** Paths of the command line and of a list. */
struct ms_merge_paths {
    char **rows;
    size_t count, room;
};

/** 0, or -1 without memory. */
int ms_merge_add(struct ms_merge_paths *paths, const char *path);
/** Add the lines of a file, "-" for standard input. 0, or -1 after an error line. */
int ms_merge_read_list(const char *list, struct ms_merge_paths *paths);
void ms_merge_close(struct ms_merge_paths *paths);

/** With --output the report goes there and the text to standard output. An exit status. */
int ms_merge_write(const struct ms_cli_printing *printing, const struct ms_job *job);

#endif
