/* cmd_snapshot.c - memshim snapshot: the report of a process that goes on, or of all of its job.
 *
 * Floor 5. All of it comes out of the process's ledger, which is only read: the process gets no signal, is
 * not stopped, and notices nothing. Its ledger and its trace stay as they are. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options/options.h"
#include "cli/cli.h"
#include "cli/job/merge.h"
#include "cli/live/job_ledgers.h"
#include "cli/live/ledgers.h"

struct snapshot_options {
    struct ms_cli_printing printing;
    bool is_job;
    char *path; /* of the ledger */
    size_t count;
};

static int snapshot_take(void *arg, int id, const char *value)
{
    struct snapshot_options *options = arg;

    options->is_job = options->is_job || id == 'J';
    return id == 'J' || ms_cli_take_printing(&options->printing, id, value) ? 0 : -1;
}

static void snapshot_note(void *arg, const char *path)
{
    struct snapshot_options *options = arg;

    options->count++;
    if (!options->path)
        options->path = strdup(path);
}

/* One process is looked at again and again, to compare what came out: the name is one that is not there. */
static void name_snapshot(char *name, size_t size, const char *of, bool force)
{
    snprintf(name, size, "memshim.%s.snapshot.json", of);
    for (unsigned number = 2; !force && access(name, F_OK) == 0; number++)
        snprintf(name, size, "memshim.%s.snapshot-%u.json", of, number);
}

static int snapshot_write_report(const struct snapshot_options *options, const struct ms_cli_ledger *ledger,
                                 long pid)
{
    char usual[64], of[24];
    const char *output = options->printing.output;
    FILE *out;
    int status;

    if (!output) {
        snprintf(of, sizeof(of), "%ld", pid);
        name_snapshot(usual, sizeof(usual), of, options->printing.force);
        output = usual;
    }
    out = ms_cli_open_output(output, options->printing.force);
    status = out ? ms_ledgers_write(ledger, out, output) : MS_EXIT_USAGE;
    if (status == MS_EXIT_OK && strcmp(output, "-") != 0)
        ms_cli_note("process %ld goes on; next: memshim summary %s", pid, output);
    return status;
}

/* Its process has been found and goes on; the ledger that is loaded says which job it is of. */
static int snapshot_job(const struct snapshot_options *options, long pid)
{
    struct ms_cli_printing printing = options->printing;
    uint64_t number = ms_process()->job;
    struct ms_job job = {.shown = NULL};
    char usual[64];
    int status = MS_EXIT_USAGE;

    if (!number) {
        ms_cli_error(
            "process %ld is of no job that memshim knows: its environment has none of a scheduler's or "
            "a launcher's variables, nor was it started by memshim run",
            pid);
        return status;
    }
    if (!printing.output) {
        name_snapshot(usual, sizeof(usual), "job", printing.force);
        printing.output = usual;
    }
    if (ms_job_ledgers_living(&job, number) == 0 && ms_job_finish(&job) == 0)
        status = ms_merge_write(&printing, &job);
    if (status == MS_EXIT_OK && strcmp(printing.output, "-") != 0)
        ms_cli_note("%zu processes go on; next: memshim summary %s", job.rank_count, printing.output);
    ms_job_close(&job);
    return status;
}

static int take_snapshot(const struct snapshot_options *options, long pid)
{
    struct ms_cli_ledger ledger;
    int status;

    if (ms_ledgers_open(options->path, &ledger) < 0)
        return MS_EXIT_USAGE;
    if (!ledger.own) { /* another may have been put there */
        ms_cli_error("%s is not this user's", options->path);
        status = MS_EXIT_USAGE;
    } else if (ledger.alive == MS_ALIVE_NO) {
        ms_cli_error("process %ld has ended; memshim recover %s writes its report", pid, options->path);
        status = MS_EXIT_USAGE;
    } else if (options->is_job) {
        status = snapshot_job(options, pid);
    } else {
        status = snapshot_write_report(options, &ledger, pid);
    }
    ms_ledgers_close(&ledger);
    return status;
}

int ms_cmd_snapshot(int argc, char **argv)
{
    struct snapshot_options options = {.path = NULL};
    int first = ms_cli_parse(argc, argv, false, snapshot_take, &options), status = MS_EXIT_USAGE;
    long pid;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (argc - first != 1) {
        ms_cli_error("takes one process, got %d; usage: memshim snapshot [OPTION...] PID", argc - first);
        return MS_EXIT_USAGE;
    }
    if (ms_cli_number("process", argv[first], 1, INT_MAX, &pid) < 0)
        return MS_EXIT_USAGE;
    ms_options_load(environ, NULL, NULL);
    ms_ledgers_anywhere((pid_t)pid, snapshot_note, &options);
    if (options.count > 1)
        ms_cli_error("process %ld has %zu ledgers; memshim recover takes one of them by its name", pid,
                     options.count);
    else if (!options.path)
        ms_cli_error("process %ld has no ledger of yours in %s%s", pid, ms_ledgers_places(),
                     ms_ledgers_others());
    else
        status = take_snapshot(&options, pid);
    free(options.path);
    return status;
}
