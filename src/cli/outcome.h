/* outcome.h - the reports that a run left behind.
 *
 * Floor 5. */
#ifndef MS_CLI_OUTCOME_H
#define MS_CLI_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/options.h"
#include "report/read.h"

/** A report that was written while a program ran. */
struct ms_found {
    char *path;
    struct ms_report report;
};

struct ms_outcome {
    struct ms_found *found; /* the program's own first, if it wrote one */
    size_t count;
    bool own; /* whether found[0] is of the process that was started */
};

/** Where reports or traces go: MEMSHIM_REPORT or MEMSHIM_TRACE as options have it, made absolute (the program
 * may change its directory). NULL if it is "none"; malloc's. */
char *ms_outcome_pattern(enum ms_option_id id);
/** The pattern as a file name if it holds no placeholder that differs between processes; NULL if it does.
 * malloc's. */
char *ms_outcome_fixed_path(const char *pattern);

/** Read the reports that `pattern` can have become on this host and that were begun at `since_unix_ns` or
 * later. */
void ms_outcome_find(const char *pattern, pid_t pid, int64_t since_unix_ns, struct ms_outcome *outcome_p);
/** Resolve the names of every report found, mark the leaks that are suppressed, and write it back in place. */
void ms_outcome_symbolize(struct ms_outcome *outcome);
void ms_outcome_free(struct ms_outcome *outcome);

/** Print a report as the recorder lays it out: one row a line. 0, or -1 with errno. */
int ms_outcome_dump(FILE *out, const struct ms_report *report);
/** Write `report` to `path` through a file beside it, keeping the mode of what is there. 0, or -1 after an
 * error line. */
int ms_outcome_store(const char *path, const struct ms_report *report);

#endif
