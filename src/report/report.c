/* report.c - the report's file: where it goes, and that it is whole or not there at all.
 *
 * Floor 4. Runs once at the end of a process, on whatever thread ends it; statics instead of a stack of
 * unknown size. No malloc: the heap may be damaged, or its lock held. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/objects.h"
#include "base/options.h"
#include "ledger/journal.h"
#include "report/report.h"

#ifndef MS_HAVE_JANSSON

int ms_report_write(enum ms_end_reason reason, int exit_code)
{
    (void)reason;
    (void)exit_code;
    ms_log(MS_LOG_ERROR, "report", "built without a static jansson: no report is written");
    return -1;
}

#else

#include "report/json.h"

enum { BLOCKS_MAX = 10000, TRIES = 16 };

static struct ms_snapshot snapshot;
static struct ms_report_stacks stacks;
static struct ms_out out;

/* Signals that writing can raise: at a file size limit, and at a pipe without a reader. */
struct held_signals {
    sigset_t ours, before, pending;
};

static void hold_signals(struct held_signals *held)
{
    sigemptyset(&held->ours);
    sigaddset(&held->ours, SIGXFSZ);
    sigaddset(&held->ours, SIGPIPE);
    sigemptyset(&held->pending);
    sigpending(&held->pending);
    pthread_sigmask(SIG_BLOCK, &held->ours, &held->before);
}

/* Takes away what our writing raised, and nothing that was pending before it. */
static void release_signals(struct held_signals *held)
{
    const struct timespec at_once = {0, 0};
    sigset_t raised;
    sigemptyset(&raised);
    if (!sigismember(&held->pending, SIGXFSZ))
        sigaddset(&raised, SIGXFSZ);
    if (!sigismember(&held->pending, SIGPIPE))
        sigaddset(&raised, SIGPIPE);
    while (sigtimedwait(&raised, NULL, &at_once) > 0)
        ;
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
}

static void mention_stacks(void)
{
    struct ms_oom oom;
    uint64_t lost;
    if (ms_report_stacks_open(&stacks) != 0)
        return;
    for (uint32_t i = 0; i < snapshot.site_count; i++)
        ms_report_stacks_mention(&stacks, snapshot.sites[i].site.stack);
    for (unsigned i = 0; ms_events_oom(i, &oom, &lost); i++)
        ms_report_stacks_mention(&stacks, oom.stack);
    ms_report_stacks_number(&stacks);
}

/* Returns 0, or -1 with errno. */
static int write_contents(int fd, enum ms_end_reason reason, int exit_code)
{
    struct ms_report_input input = {
        .snapshot = &snapshot,
        .stacks = &stacks,
        .reason = reason,
        .exit_code = exit_code,
        .began_ns = ms_ledger_now(),
    };
    int result = -1;
    if (ms_snapshot_take(&snapshot, BLOCKS_MAX) == 0) {
        mention_stacks();
        if (ms_out_open(&out, fd) == 0) {
            ms_json_write(&out, &input);
            result = ms_out_close(&out);
        }
    }
    int saved_errno = errno;
    ms_report_stacks_close(&stacks);
    ms_snapshot_release(&snapshot);
    errno = saved_errno;
    return result;
}

/* A new file beside `path`, so that renaming it stays within one file system. */
static int open_temporary(const char *path, char *temporary, size_t bytes)
{
    for (int i = 0; i < TRIES; i++) {
        if ((size_t)snprintf(temporary, bytes, "%s.%d-%d.tmp", path, (int)getpid(), i) >= bytes) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static int write_beside(const char *path, enum ms_end_reason reason, int exit_code)
{
    static char temporary[PATH_MAX + 32];
    int fd = open_temporary(path, temporary, sizeof temporary);
    if (fd < 0)
        return -1;
    int result = write_contents(fd, reason, exit_code);
    int saved_errno = errno;
    if (close(fd) != 0 && result == 0) {
        saved_errno = errno;
        result = -1;
    }
    if (result == 0 && rename(temporary, path) != 0) {
        saved_errno = errno;
        result = -1;
    }
    if (result != 0)
        unlink(temporary);
    errno = saved_errno;
    return result;
}

/* Replaces a file or makes one; writes into a device such as /dev/null; anything else there is left alone. */
static int write_to(const char *path, enum ms_end_reason reason, int exit_code)
{
    struct stat status;
    if (lstat(path, &status) != 0 || S_ISREG(status.st_mode))
        return write_beside(path, reason, exit_code);
    if (!S_ISCHR(status.st_mode)) {
        errno = S_ISLNK(status.st_mode) ? ELOOP : S_ISDIR(status.st_mode) ? EISDIR : EEXIST;
        return -1;
    }
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int result = write_contents(fd, reason, exit_code);
    int saved_errno = errno;
    close(fd);
    errno = saved_errno;
    return result;
}

static int write_report(enum ms_end_reason reason, int exit_code)
{
    static char path[PATH_MAX];
    const char *pattern = ms_option_text(MS_OPT_REPORT);
    struct held_signals held;
    if (strcmp(pattern, "none") == 0 || getauxval(AT_SECURE)) {
        ms_journal_remove();
        return 0;
    }
    ms_process_describe();
    ms_objects_refresh();
    if (ms_report_expand(pattern, ms_process_directory(), path, sizeof path) != 0) {
        ms_log(MS_LOG_ERROR, "report", "MEMSHIM_REPORT: \"%.200s\" makes too long a path", pattern);
        return -1;
    }
    hold_signals(&held);
    int result = write_to(path, reason, exit_code);
    int error = errno;
    release_signals(&held);
    if (result == 0) {
        ms_log(MS_LOG_INFO, "report", "written to %s", path);
        ms_journal_remove();
    } else {
        ms_log(MS_LOG_ERROR, "report", "cannot write %s: %s", path, strerrordesc_np(error));
    }
    return result;
}

int ms_report_write(enum ms_end_reason reason, int exit_code)
{
    static atomic_flag writing = ATOMIC_FLAG_INIT;
    int saved_errno = errno;
    if (atomic_flag_test_and_set(&writing)) {
        ms_log(MS_LOG_ERROR, "report", "already being written by another thread");
        return -1;
    }
    int result = write_report(reason, exit_code);
    atomic_flag_clear(&writing);
    errno = saved_errno;
    return result;
}

#endif
