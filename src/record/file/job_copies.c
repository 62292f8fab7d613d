/* job_copies.c - see job_copies.h.
 *
 * Two processes that have no memory at the same moment both find the directory; the one that has its lock
 * (flock) makes the copies. Whose copies are older than this process were another job's of the same name.
 * What may be copied is bounded, and never more than a quarter of what is free there: others' shared memory
 * lies in /dev/shm, too. Runs on an auxiliary stack; bare system calls, no allocation. One thread at a time;
 * a second one goes on without. */
#include "record/file/job_copies.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options/options.h"
#include "base/thread/aux_stack.h"
#include "base/thread/cancel.h"
#include "record/file/stale.h"
#include "record/ipc/ipc_exports.h"

enum { COPIES_MOST = 256, PART_OF_FREE = 4, NS = 1000000000, TICK_NS = 100000000 };
#define BYTES_MOST (UINT64_C(256) << 20)
#define PREFIX     "memshim-job-"
#define PART       "part"

enum { NOTHING, OF_VENDOR, OF_PROGRAM };
static _Atomic int tried; /* for whose word, where others of the job were there */
static atomic_bool is_busy;

/* All of it is the one caller's. */
static struct copying {
    int ledgers_fd, copies_fd;
    bool is_ours; /* the copies that are there were made by this process */
    uint64_t left;
    unsigned count, made;
    const char *own;
    char names[COPIES_MOST][MS_JOURNAL_NAME_BYTES];
    char directory[MS_JOURNAL_NAME_BYTES], path[512];
    _Alignas(8) char buffer[16384];
} copying;

static uint64_t unix_ns_of(const struct stat *status)
{
    return (uint64_t)status->st_mtim.tv_sec * NS + (uint64_t)status->st_mtim.tv_nsec;
}

static bool is_dots(const char *name)
{
    return !strcmp(name, ".") || !strcmp(name, "..");
}

/* --- whose ledgers ------------------------------------------------------------------------------------- */

static int open_ledger(int directory_fd, const char *name, struct stat *status)
{
    int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && fstat(fd, status) == 0 && S_ISREG(status->st_mode) && status->st_uid == geteuid())
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Who has ended holds nothing any more. */
static bool is_of_job(const char *name)
{
    static struct ms_process process;
    struct stat status;
    int fd = open_ledger(copying.ledgers_fd, name, &status);
    bool is = fd >= 0 && ms_ledger_file_process(fd, &process) && process.job == ms_process()->job &&
              !ms_stale_has_ended(&process);
    if (fd >= 0)
        close(fd);
    return is;
}

static void look_for_ledger(void *arg, int directory_fd, const char *name)
{
    size_t length = strlen(name), end = strlen(".ledger");
    (void)arg, (void)directory_fd;
    if (length < MS_JOURNAL_NAME_BYTES && length > end && !strcmp(name + length - end, ".ledger") &&
        !strncmp(name, "memshim-", strlen("memshim-")) && strcmp(name, copying.own) != 0 &&
        copying.count < COPIES_MOST && is_of_job(name))
        strcpy(copying.names[copying.count++], name);
}

/* --- the directory ------------------------------------------------------------------------------------- */

bool ms_job_copies_is_name(const char *name)
{
    return strlen(name) < MS_JOURNAL_NAME_BYTES && !strncmp(name, PREFIX, strlen(PREFIX));
}

/* A descriptor of a directory that is this user's alone, or -1. */
static int open_own(int directory_fd, const char *name)
{
    struct stat status;
    int fd = openat(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid() && !(status.st_mode & 077))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void look_for_fresh(void *arg, int directory_fd, const char *name)
{
    struct stat status;
    if (!is_dots(name) && fstatat(directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        unix_ns_of(&status) + TICK_NS > ms_process()->start_unix_ns)
        *(bool *)arg = true;
}

static void remove_entry(void *arg, int directory_fd, const char *name)
{
    (void)arg;
    if (!is_dots(name))
        unlinkat(directory_fd, name, 0);
}

/* True with the directory open and locked, and nothing in it. */
static bool claim(void)
{
    bool is_fresh = false, is_told;
    snprintf(copying.directory, sizeof copying.directory, PREFIX "%u-%016llx", (unsigned)geteuid(),
             (unsigned long long)ms_process()->job);
    if (mkdirat(copying.ledgers_fd, copying.directory, 0700) != 0 && errno != EEXIST)
        return false;
    copying.copies_fd = open_own(copying.ledgers_fd, copying.directory);
    if (copying.copies_fd < 0 || flock(copying.copies_fd, LOCK_EX | LOCK_NB) != 0)
        return false;
    ms_stale_names(copying.copies_fd, copying.buffer, sizeof copying.buffer, look_for_fresh, &is_fresh);
    is_told = faccessat(copying.copies_fd, MS_JOB_COPIES_TOLD, F_OK, 0) == 0;
    if (is_fresh && (is_told || !copying.is_ours))
        return false;
    ms_stale_names(copying.copies_fd, copying.buffer, sizeof copying.buffer, remove_entry, NULL);
    return true;
}

/* --- copies -------------------------------------------------------------------------------------------- */

/* Beyond the limit that a process has set for its files the kernel sends a signal, which ends it. */
static bool may_be_written(uint64_t bytes)
{
    struct rlimit limit;
    return bytes <= copying.left && (getrlimit(RLIMIT_FSIZE, &limit) != 0 ||
                                     limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur);
}

static bool copy_all(int from, int into, uint64_t bytes)
{
    off_t at = 0;
    ssize_t part = 1;
    while ((uint64_t)at < bytes && part > 0)
        part = sendfile(into, from, &at, bytes - (uint64_t)at);
    return (uint64_t)at == bytes;
}

/* It appears under its name when it is whole. */
static void copy_ledger(const char *name)
{
    char into[MS_JOURNAL_NAME_BYTES];
    struct stat status;
    int from = open_ledger(copying.ledgers_fd, name, &status), fd = -1;
    if (from >= 0 && may_be_written((uint64_t)status.st_size))
        fd = openat(copying.copies_fd, PART, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && copy_all(from, fd, (uint64_t)status.st_size)) {
        snprintf(into, sizeof into, "%.*s" MS_JOB_COPY, (int)(strlen(name) - strlen(".ledger")), name);
        if (renameat(copying.copies_fd, PART, copying.copies_fd, into) == 0)
            copying.made++;
        copying.left -= (uint64_t)status.st_size;
    }
    if (fd >= 0) {
        unlinkat(copying.copies_fd, PART, 0);
        close(fd);
    }
    if (from >= 0)
        close(from);
}

static void copy_ledgers(void)
{
    struct statvfs system;
    uint64_t part = 0;
    if (fstatvfs(copying.copies_fd, &system) == 0)
        part = (uint64_t)system.f_bavail * system.f_frsize / PART_OF_FREE;
    copying.left = part < BYTES_MOST ? part : BYTES_MOST;
    copy_ledger(copying.own);
    for (unsigned i = 0; i < copying.count; i++)
        copy_ledger(copying.names[i]);
    copying.is_ours = true;
}

/* The directory that the process's own ledger lies in, where those of its job lie, too. */
static bool open_ledgers(void)
{
    const char *path = ms_journal_path(), *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) >= sizeof copying.path)
        return false;
    memcpy(copying.path, path, (size_t)(slash - path));
    copying.path[slash - path] = '\0';
    copying.own = slash + 1;
    copying.ledgers_fd = open(*copying.path ? copying.path : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return copying.ledgers_fd >= 0;
}

static void keep(void *arg)
{
    copying.count = copying.made = 0;
    copying.ledgers_fd = copying.copies_fd = -1;
    if (open_ledgers())
        ms_stale_names(copying.ledgers_fd, copying.buffer, sizeof copying.buffer, look_for_ledger, NULL);
    if (copying.count) {
        atomic_store_explicit(&tried, *(const int *)arg, memory_order_relaxed);
        if (claim())
            copy_ledgers();
    }
    if (copying.copies_fd >= 0) {
        flock(copying.copies_fd, LOCK_UN); /* a child that is being made may have the descriptor as well */
        close(copying.copies_fd);
    }
    if (copying.ledgers_fd >= 0)
        close(copying.ledgers_fd);
}

void ms_job_copies_keep(bool is_inner)
{
    int wanted = is_inner ? OF_PROGRAM : OF_VENDOR, saved_errno = errno, cancel_state;
    if (!ms_process()->job || atomic_load_explicit(&tried, memory_order_relaxed) >= wanted ||
        !strcmp(ms_option_text(MS_OPT_REPORT), "none") || atomic_exchange(&is_busy, true))
        return;
    cancel_state = ms_cancel_hold();
    ms_aux_stack_call_anyway(keep, &wanted);
    if (copying.made && !ms_process()->run_id) /* else `memshim run` makes a report of them, and says so */
        ms_diagnostic(MS_LOG_WARN, "job",
                      "no memory: what %u processes of this job held is in %s/%s; memshim merge -o FILE "
                      "%s/%s/*" MS_JOB_COPY,
                      copying.made, copying.path, copying.directory, copying.path, copying.directory);
    ms_cancel_release(cancel_state);
    errno = saved_errno;
    atomic_store(&is_busy, false);
}

static void job_copies_reset(void)
{
    atomic_store_explicit(&tried, NOTHING, memory_order_relaxed);
    copying.is_ours = false;
    atomic_store_explicit(&is_busy, false, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_RECORD, job_copies_reset);

/* --- what is left of them ------------------------------------------------------------------------------- */

static void add_copy(void *arg, int directory_fd, const char *name)
{
    static struct ms_process process;
    struct ms_job_copies_sum *sum = arg;
    struct stat status;
    int fd = is_dots(name) ? -1 : open_ledger(directory_fd, name, &status);
    if (fd < 0)
        return;
    sum->bytes += (uint64_t)status.st_blocks * 512;
    if (!sum->run_id && ms_ledger_file_process(fd, &process))
        sum->run_id = process.run_id;
    close(fd);
}

bool ms_job_copies_sum(int directory_fd, const char *name, struct ms_job_copies_sum *sum_p)
{
    struct stat status;
    int fd = open_own(directory_fd, name);
    if (fd < 0)
        return false;
    *sum_p = (struct ms_job_copies_sum){.unix_ns = fstat(fd, &status) == 0 ? unix_ns_of(&status) : 0};
    ms_stale_names(fd, copying.buffer, sizeof copying.buffer, add_copy, sum_p);
    close(fd);
    return true;
}

void ms_job_copies_remove(int directory_fd, const char *name)
{
    int fd = open_own(directory_fd, name);
    if (fd < 0)
        return;
    ms_stale_names(fd, copying.buffer, sizeof copying.buffer, remove_entry, NULL);
    close(fd);
    unlinkat(directory_fd, name, AT_REMOVEDIR);
}
