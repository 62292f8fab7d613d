/* report.c - the report's file: where it goes, and that it is whole or not there at all.
 *
 * Floor 4. Runs once at the end of a process, on whatever thread ends it; statics instead of a stack of
 * unknown size. No malloc: the heap may be damaged, or its lock held. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "base/libc.h"
#include "base/log.h"
#include "base/objects/objects.h"
#include "base/options/options.h"
#include "base/run_list.h"
#include "base/signals.h"
#include "record/file/journal.h"
#include "report/write/report.h"

#ifndef MS_HAVE_JANSSON

int ms_report_write(enum ms_end_reason reason, int code)
{
    (void)reason;
    (void)code;
    ms_log(MS_LOG_ERROR, "report", "built without a static jansson: no report is written");
    return -1;
}

void ms_report_late_frees(uint64_t count)
{
    (void)count;
}

#else

#include "report/write/json.h"

/* The report that was written, so that it can be found again. */
static struct {
    char path[PATH_MAX];
    dev_t device;
    ino_t inode;
    uint64_t late_frees_at; /* 0 for none */
} written;

/* Whole under its name, or not there. Several processes of one run may have been given one name: then each
 * but the first puts a number in it. */
static int write_beside(char *path, size_t bytes, enum ms_end_reason reason, int code)
{
    static char temporary[PATH_MAX + 32];
    int fd = ms_file_create_beside(path, ms_file_mode(), temporary, sizeof temporary);
    if (fd < 0)
        return -1;
    struct stat status = {.st_ino = 0};
    int result = ms_report_contents(fd, reason, code, true, &written.late_frees_at);
    int saved_errno = errno;
    fstat(fd, &status);
    written.device = status.st_dev;
    written.inode = status.st_ino;
    if (close(fd) != 0 && result == 0) {
        saved_errno = errno;
        result = -1;
    }
    if (result != 0)
        unlink(temporary);
    else if (ms_file_publish(&status, temporary, path, bytes,
                             ms_process()->run_id ? MS_FILE_NUMBERED : MS_FILE_REPLACE) != 0) {
        saved_errno = errno;
        result = -1;
    }
    errno = saved_errno;
    return result;
}

/* Makes a file or replaces one; writes into a device such as /dev/null; anything else there is left alone. */
static int write_to(char *path, size_t bytes, enum ms_end_reason reason, int code)
{
    struct stat status;
    if (lstat(path, &status) != 0 || S_ISREG(status.st_mode))
        return write_beside(path, bytes, reason, code);
    if (!S_ISCHR(status.st_mode)) {
        errno = S_ISLNK(status.st_mode) ? ELOOP : S_ISDIR(status.st_mode) ? EISDIR : EEXIST;
        return -1;
    }
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -1;
    int result = -1;
    if (fstat(fd, &status) == 0 && S_ISCHR(status.st_mode))
        result = ms_report_contents(fd, reason, code, true, NULL);
    else
        errno = EEXIST;
    int saved_errno = errno;
    close(fd);
    errno = saved_errno;
    return result;
}

static int report_write_report(enum ms_end_reason reason, int code)
{
    char *path = written.path;
    const char *pattern = ms_option_text(MS_OPT_REPORT);
    struct ms_signals held;
    if (strcmp(pattern, "none") == 0 || getauxval(AT_SECURE)) {
        ms_journal_remove();
        return 0;
    }
    ms_process_describe();
    ms_objects_refresh();
    bool is_printed = strcmp(pattern, "-") == 0; /* to standard output */
    if (is_printed) {
        strcpy(path, "standard output");
    } else if (ms_path_expand(pattern, ms_process_directory(), path, sizeof written.path) != 0) {
        ms_log(MS_LOG_ERROR, "report", "MEMSHIM_REPORT: \"%.200s\" makes too long a path", pattern);
        return -1;
    }
    ms_signals_hold(&held, false);
    int result = is_printed ? ms_report_contents(STDOUT_FILENO, reason, code, true, NULL)
                            : write_to(path, sizeof written.path, reason, code);
    int error = errno;
    if (result == 0 && !is_printed && ms_process()->run_id)
        ms_run_list_add(ms_process()->run_id, path);
    ms_signals_release(&held);
    if (result == 0) {
        ms_log(MS_LOG_INFO, "report", "written to %s", path);
        ms_journal_remove();
    } else {
        ms_log(MS_LOG_ERROR, "report", "cannot write %s: %s", path, ms_error_text(error));
    }
    return result;
}

void ms_report_late_frees(uint64_t count)
{
    struct ms_signals held;
    struct stat status;
    char text[32];
    int saved_errno = errno;
    ms_signals_hold(&held, false);
    int fd = written.late_frees_at
                 ? open(written.path, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
                 : -1;
    int bytes = snprintf(text, sizeof text, MS_REPORT_LATE_FREES, (unsigned long long)count);
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == written.device &&
        status.st_ino == written.inode &&
        pwrite(fd, text, (size_t)bytes, (off_t)written.late_frees_at) != bytes)
        ms_log(MS_LOG_INFO, "report", "cannot count a late free in %s", written.path);
    if (fd >= 0)
        close(fd);
    ms_signals_release(&held);
    errno = saved_errno;
}

int ms_report_write(enum ms_end_reason reason, int code)
{
    static atomic_flag writing = ATOMIC_FLAG_INIT;
    int saved_errno = errno;
    if (atomic_flag_test_and_set(&writing)) {
        ms_log(MS_LOG_ERROR, "report", "already being written by another thread");
        return -1;
    }
    int result = report_write_report(reason, code);
    atomic_flag_clear(&writing);
    errno = saved_errno;
    return result;
}

#endif
