/* job_ledgers.c - see job_ledgers.h.
 *
 * Floor 5. Of several `memshim run` of one job the first that ends makes the report: it has the directory's
 * lock, and leaves a file behind that says so. */
#include "cli/live/job_ledgers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/live/live_ledgers.h"
#include "cli/live/stale_text.h"
#include "cli/load.h"
#include "cli/screens/suppress.h"
#include "record/file/job_copies.h"

/* --- processes that go on ------------------------------------------------------------------------------- */

/* One that is loaded. */
static int take_ledger(struct ms_job *job, const struct ms_cli_ledger *ledger)
{
    struct ms_report report;
    int status;

    if (ms_living_report(ledger, &report) < 0)
        return -1;
    ms_cli_tell(ledger->path, &report, NULL);
    status = ms_job_take(job, &report);
    ms_report_close(&report);
    return status;
}

struct living {
    struct ms_job *job;
    uint64_t number;
};

static int take_living(void *arg, const struct ms_cli_ledger *ledger)
{
    const struct living *living = arg;

    return ms_process()->job == living->number ? take_ledger(living->job, ledger) : 0;
}

int ms_job_ledgers_living(struct ms_job *job, uint64_t number)
{
    struct living living = {job, number};
    struct ms_living seen = {0};

    if (ms_suppress_load() < 0)
        return -1;
    ms_living_each(0, take_living, &living, &seen);
    if (seen.left_out)
        ms_cli_note("%zu processes are left out: there are too many, or they cannot be read just now",
                    seen.left_out);
    if (job->rank_count)
        return 0;
    ms_cli_error("the processes have ended");
    return -1;
}

/* --- copies --------------------------------------------------------------------------------------------- */

/* A directory with copies, which is open and locked. */
struct copies {
    const struct ms_program_run *run;
    const char *pattern;
    bool quiet;
    int fd;
    char path[PATH_MAX];
    struct ms_job job;
};

static bool job_ledgers_is_copy(const char *name)
{
    size_t length = strlen(name), end = strlen(MS_JOB_COPY);

    return length > end && !strcmp(name + length - end, MS_JOB_COPY);
}

/* Who copies has the lock for milliseconds, unless it was stopped there. */
static bool lock_copies(int fd)
{
    enum { TRIES = 50 };
    const struct timespec nap = {0, 20000000};

    for (int i = 0; i < TRIES; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

/* Calls `visit` with the path of each copy, until one call returns other than 0. */
static int each_copy(struct copies *copies, int (*visit)(struct copies *copies, const char *path))
{
    DIR *directory = opendir(copies->path);
    char path[PATH_MAX + NAME_MAX + 2];
    const struct dirent *entry;
    int status = 0;

    while (directory && status == 0 && (entry = readdir(directory)) != NULL) {
        if (!job_ledgers_is_copy(entry->d_name))
            continue;
        snprintf(path, sizeof(path), "%s/%s", copies->path, entry->d_name);
        status = visit(copies, path);
    }
    if (directory)
        closedir(directory);
    return status;
}

/* 1: it is of the run. */
static int look_for_run(struct copies *copies, const char *path)
{
    struct ms_cli_ledger ledger;
    int is = 0;

    if (ms_ledgers_open_own(path, &ledger) < 0)
        return 0;
    is = ms_process()->run_id == copies->run->id;
    ms_ledgers_close(&ledger);
    return is;
}

static int take_copy(struct copies *copies, const char *path)
{
    struct ms_cli_ledger ledger;
    int status;

    if (ms_ledgers_open_own(path, &ledger) < 0)
        return 0;
    status = take_ledger(&copies->job, &ledger);
    ms_ledgers_close(&ledger);
    return status;
}

static int remove_copy(struct copies *copies, const char *path)
{
    (void)copies;
    unlink(path);
    return 0;
}

/* A name in the directory of reports that is not there. */
static void name_report(const char *pattern, char *name, size_t bytes)
{
    const char *slash = strrchr(pattern, '/');
    char *directory = slash ? strndup(pattern, (size_t)(slash - pattern) + 1) : NULL;
    char *path = directory ? ms_reports_fixed_path(directory) : NULL;

    snprintf(name, bytes, "%smemshim.job.oom.json", path ? path : "");
    for (unsigned number = 2; access(name, F_OK) == 0; number++)
        snprintf(name, bytes, "%smemshim.job.oom-%u.json", path ? path : "", number);
    free(path);
    free(directory);
}

static int write_job(const char *name, const struct ms_job *job)
{
    FILE *out = ms_cli_open_placed(name, ms_file_mode(), MS_FILE_NEW);

    if (!out)
        return -1;
    if (ms_job_write(out, job) < 0) {
        ms_cli_error("cannot write %s: %s", name, strerror(errno));
        ms_cli_discard_output(out);
        return -1;
    }
    return ms_cli_close_output(out) == MS_EXIT_OK ? 0 : -1;
}

/* "rank 3 had no memory: what 4 processes of its job held then is in FILE; next: memshim summary FILE" */
static void say_written(const struct ms_job *job, const char *name)
{
    const struct ms_job_rank *failed = &job->ranks[0];

    for (size_t i = job->rank_count; i-- > 0;)
        failed = job->ranks[i].ooms ? &job->ranks[i] : failed;
    ms_cli_note("%s %" JSON_INTEGER_FORMAT
                " had no memory: what each of %zu processes of its job held then is "
                "in %s; next: memshim summary %s",
                failed->rank >= 0 ? "rank" : "process", failed->rank >= 0 ? failed->rank : failed->pid,
                job->rank_count, name, name);
}

static void count_living(void *arg, const char *path)
{
    struct ms_cli_ledger ledger;
    struct living *living = arg;

    if (ms_ledgers_open_own(path, &ledger) < 0)
        return;
    if (ledger.alive != MS_ALIVE_NO && ms_process()->job == living->number)
        living->number = 0;
    ms_ledgers_close(&ledger);
}

/* While others of the job run, the directory says that there was a report. */
static void remove_copies(struct copies *copies, uint64_t number, const char *place, const char *name)
{
    struct living living = {NULL, number};
    int told, directory_fd;

    each_copy(copies, remove_copy);
    told = openat(copies->fd, MS_JOB_COPIES_TOLD, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (told >= 0)
        close(told);
    ms_ledgers_anywhere(0, count_living, &living);
    directory_fd = living.number ? open(place, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (directory_fd < 0)
        return;
    ms_job_copies_remove(directory_fd, name);
    close(directory_fd);
}

static void tell_copies(struct copies *copies, const char *place, const char *name)
{
    char report[PATH_MAX];
    uint64_t number = 0;

    if (each_copy(copies, look_for_run) != 1)
        return;
    number = ms_process()->job;
    if (each_copy(copies, take_copy) == 0 && ms_job_finish(&copies->job) == 0) {
        name_report(copies->pattern, report, sizeof(report));
        if (write_job(report, &copies->job) == 0) {
            if (!copies->quiet)
                say_written(&copies->job, report);
            remove_copies(copies, number, place, name);
        }
    }
    ms_job_close(&copies->job);
}

static void look_in_place(void *arg, const char *place)
{
    struct copies *copies = arg;
    DIR *directory = opendir(place);
    const struct dirent *entry;

    while (directory && (entry = readdir(directory)) != NULL) {
        if (!ms_job_copies_is_name(entry->d_name))
            continue;
        snprintf(copies->path, sizeof(copies->path), "%s/%s", place, entry->d_name);
        copies->fd = open(copies->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        memset(&copies->job, 0, sizeof(copies->job));
        if (copies->fd >= 0 && lock_copies(copies->fd))
            tell_copies(copies, place, entry->d_name);
        if (copies->fd >= 0)
            close(copies->fd);
    }
    if (directory)
        closedir(directory);
}

void ms_job_ledgers_tell(const struct ms_program_run *run, const char *pattern, bool quiet)
{
    struct copies *copies = calloc(1, sizeof(*copies));

    if (!copies)
        return;
    copies->run = run;
    copies->pattern = pattern;
    copies->quiet = quiet;
    ms_stale_places(look_in_place, copies);
    free(copies);
}
