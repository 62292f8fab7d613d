/* ledgers.h - the ledgers of processes that ended without a report, or still run.
 *
 * Floor 5. One ledger is loaded at a time (record/reader/recover.h). */
#ifndef MS_CLI_LIVE_LEDGERS_H
#define MS_CLI_LIVE_LEDGERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "cli/run/child.h"
#include "cli/run/run_reports.h"
#include "record/reader/recover.h"

/** A ledger that is loaded. */
struct ms_cli_ledger {
    const char *path;
    int fd;
    enum ms_alive alive;
    enum ms_end_reason reason;
    int code;     /* the exit code, or the signal's number; -1: not known */
    bool own;     /* this user's: only then is anything changed for its sake */
    bool is_copy; /* made when there was no memory, while its process ran (record/file/job_copies.h) */
};

/** Load a ledger and find out how its process ended. Returns 0, or -1 after an error line. */
int ms_ledgers_open(const char *path, struct ms_cli_ledger *ledger_p);
/** As ms_ledgers_open(), but without a word, and of a file of this user's under its very name alone. */
int ms_ledgers_open_own(const char *path, struct ms_cli_ledger *ledger_p);
void ms_ledgers_close(struct ms_cli_ledger *ledger);

/** Write the report of a loaded ledger into `out`, an output of the command's, and close it; `name` is what
 * errors call it. Returns an exit status. */
int ms_ledgers_write(const struct ms_cli_ledger *ledger, FILE *out, const char *name);
/** Give a dead process's trace what it had not written yet; a note says if that cannot be done. False if the
 * ledger is needed still, since only room is missing. */
bool ms_ledgers_complete_trace(const struct ms_cli_ledger *ledger);
/** Remove a ledger whose report is whole; not if it is another file by now, or another user's. */
void ms_ledgers_remove(const struct ms_cli_ledger *ledger);

/** Called with the path of each ledger of this user's. What others left in a place where all may write is
 * neither opened nor told of here: any of it may say anything. */
typedef void (*ms_ledgers_visit_t)(void *arg, const char *path);
/** Visit the ledgers in one directory. Returns how many. */
size_t ms_ledgers_in(const char *directory, ms_ledgers_visit_t visit, void *arg);
/** Visit those in the places where ledgers lie (MEMSHIM_DIR, or /dev/shm, $XDG_RUNTIME_DIR and /tmp), of one
 * process if `pid` is not 0. Returns how many; without `visit` that is all. */
size_t ms_ledgers_anywhere(pid_t pid, ms_ledgers_visit_t visit, void *arg);
/** The end of an error line if ledgers of other users were left out of what was visited so far, or "". Told
 * once. */
const char *ms_ledgers_others(void);
/** Says the text of ms_ledgers_others() as a line of its own. */
void ms_ledgers_say_others(void);

/** If a file is there and another user's, then for root this process becomes that user for good, so that
 * nothing in the file can make it do what its owner may not; anybody else reads it as it is. Returns 0, or -1
 * after an error line. */
int ms_ledgers_step_down(const char *path);

/** Those places, for an error line. */
const char *ms_ledgers_places(void);

/** The numbers of processes of a run that left a ledger, by what became of them. */
struct ms_ledgers_left {
    size_t failed;  /* ended, and their report could not be written */
    size_t running; /* run still */
};

/** After a run: write the reports that processes of it could not write, since they
 * were killed or left without the normal end, under the names that their own MEMSHIM_REPORT gives them.
 * `child` is the program itself. */
void ms_ledgers_complete(const struct ms_program_run *run, const struct ms_child *child,
                         struct ms_ledgers_left *left_p);

#endif
