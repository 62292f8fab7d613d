/* run_reports.h - the reports that a run left behind.
 *
 * Floor 5. */
#ifndef MS_CLI_RUN_RUN_REPORTS_H
#define MS_CLI_RUN_RUN_REPORTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/options/options.h"
#include "base/run_list.h"
#include "report/read/read.h"

/** One run of a program. */
struct ms_program_run {
    /* of its own, in MEMSHIM_RUN; every process of the run puts it into what it writes */
    uint64_t id;
    int64_t since_unix_ns; /* when it began: what is older is not looked into */
    /* the file in which its processes say where their reports are; "" for none */
    char list[MS_RUN_LIST_BYTES];
};

/** A report that was written while a program ran. */
struct ms_run_report {
    char *path;
    char *title; /* how lines call it where the file is nobody's to look at; else NULL */
    mode_t mode; /* of its file */
    struct ms_report report;
};

struct ms_reports {
    struct ms_run_report *found; /* the program's own first, if it wrote one */
    size_t count;
    bool own; /* whether found[0] is of the process that was started */
};

/** The pattern of the names of reports or traces: MEMSHIM_REPORT or MEMSHIM_TRACE as options have it, made
 * absolute (the program may change its directory). NULL if it is "none"; malloc's. */
char *ms_reports_pattern(enum ms_option_id id);
/** The pattern as a file name if it holds no placeholder that differs between processes; NULL if it does.
 * malloc's. */
char *ms_reports_fixed_path(const char *pattern);

/** Compress the traces that processes of the run wrote under names that `pattern` can have become.
 * `is_complete`: those of processes that were killed have been completed. */
void ms_reports_compress_traces(const char *pattern, const struct ms_program_run *run, bool is_complete);

/** Begin a run: draws its number and sets MEMSHIM_RUN. Returns 0, or -1 after an error line. */
int ms_reports_begin(struct ms_program_run *run_p);
/** The run is over: its list goes. */
void ms_reports_end(const struct ms_program_run *run);
/** True if a file was left by something that ended before this time. */
bool ms_reports_is_older(const struct stat *st, int64_t unix_ns);

/** Read the reports that processes of the run wrote: regular files of this user's, under names that `pattern`
 * can have become or that stand in the run's list, which say that they are of this run. `pid` is the program
 * itself. */
void ms_reports_find(const char *pattern, const struct ms_program_run *run, pid_t pid,
                     struct ms_reports *outcome_p);
/** Make way for a run under a fixed name: remove the reports of the earlier run that are there, the file
 * itself and the numbered ones of the same run. Returns 0, or -1 with errno. */
int ms_reports_remove(const char *path);
/** Resolve the names of every report found, mark the leaks that are suppressed, and write it back in
 * place. */
void ms_reports_symbolize(struct ms_reports *outcome);
void ms_reports_free(struct ms_reports *outcome);
/** How lines call a report. */
static inline const char *ms_reports_title(const struct ms_run_report *found)
{
    return found->title ? found->title : found->path;
}

/** Print a report as the recorder lays it out: one row a line. 0, or -1 with errno. */
int ms_reports_dump(FILE *out, const struct ms_report *report);
/** As ms_reports_dump(), but without the brace at the end: members may follow. */
int ms_reports_dump_members(FILE *out, const struct ms_report *report);
/** Write `report` to `path` through a file beside it that gets the permissions `mode`, in place of the
 * regular file that is there. 0, or -1 after an error line. */
int ms_reports_store(const char *path, mode_t mode, const struct ms_report *report);

#endif
