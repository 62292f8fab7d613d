/* host.h - the processes of a run merged into one job report: memshim run --merge-node.
 *
 * Floor 5. Unless the user said where reports go, they lie in a directory of our own below TMPDIR and go once
 * they are merged: of a node only one file reaches a file system that others share. */
#ifndef MS_CLI_RUN_HOST_H
#define MS_CLI_RUN_HOST_H

#include <stdbool.h>

#include "cli/run/run_reports.h"

struct ms_host {
    char *path;      /* of the job report; NULL: none is wanted */
    char *directory; /* of our own, or NULL */
    char *pattern;   /* where reports go then; NULL: where the user said */
};

/** `to` may have the placeholders that do not differ between processes. `own`: the user did not say where
 * reports go. An exit status, after an error line if not 0. */
int ms_host_begin(struct ms_host *node, const char *to, bool own);
/** After the run: reports that will be gone are called by their processes. */
void ms_host_name(const struct ms_host *node, struct ms_reports *outcome);
/** Then merge and write; `force` replaces a file that is there. Returns 0, or -1 after an error
 * line, and then the reports stay. */
int ms_host_merge(const struct ms_host *node, const struct ms_reports *outcome, bool force, bool quiet);
/** Let go of it; the directory goes if it is empty. */
void ms_host_end(struct ms_host *node);

#endif
