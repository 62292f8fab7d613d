/* trace_complete.c - the last events of a dead process's trace, out of its ledger; see trace.h.
 *
 * Floor 2, command line only. A ledger says of itself where its trace lies, and a file of this user's may
 * have been made by others: so nothing is written into a file that is there. The trace must be this user's,
 * the very file that the process made, and begin with the lines that this record's trace begins with; then a
 * new file with what it has and what is missing takes its name, in the directory that was looked into. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/libc.h"
#include "record/file/trace.h"
#include "record/file/trace_file.h"

enum { COPY_BYTES = 256 * 1024, TRIES = 64 };

/* The directory, the trace, the file that takes its place. */
enum { AT, FROM, INTO };

/* One that is being completed. */
struct completing {
    char directory[PATH_MAX], temporary[NAME_MAX + 1];
    const char *name;
    int fds[3];
    struct stat was;
};

static int open_directory(struct completing *trace, const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash || strlen(path) >= sizeof trace->directory)
        return EINVAL;
    snprintf(trace->directory, sizeof trace->directory, "%.*s/", (int)(slash - path), path);
    trace->name = slash + 1;
    trace->fds[AT] = open(trace->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return trace->fds[AT] < 0 ? errno : 0;
}

/* The version may be another's: the one that was killed may have been updated since. */
static bool begins_as_ours(int fd)
{
    static char ours[MS_TRACE_HEAD_BYTES], there[MS_TRACE_HEAD_BYTES];
    size_t bytes = ms_trace_file_head(ours) - MS_TRACE_SUMMARY_BYTES;
    if (ms_process()->trace_start > sizeof there || ms_process()->trace_start < MS_TRACE_SUMMARY_BYTES)
        return false;
    size_t has = ms_process()->trace_start - MS_TRACE_SUMMARY_BYTES;
    if (pread(fd, there, has, 0) != (ssize_t)has)
        return false;
    const char *mine = memchr(ours, ',', bytes), *its = memchr(there, ',', has);
    return mine && its && strncmp(there, MS_TRACE_FIRST_WORDS, sizeof MS_TRACE_FIRST_WORDS - 1) == 0 &&
           bytes - (size_t)(mine - ours) == has - (size_t)(its - there) &&
           memcmp(mine, its, bytes - (size_t)(mine - ours)) == 0;
}

/* So long is the file, at least. */
static uint64_t written_bytes(void)
{
    const struct ms_process *process = ms_process();
    uint64_t written = atomic_load(&process->trace_written),
             most = process->trace_part_bytes * MS_TRACE_PARTS;
    return process->trace_start + (most && written > most ? most : written);
}

static int open_trace(struct completing *trace)
{
    const struct ms_process *process = ms_process();
    const struct stat *was = &trace->was;
    trace->fds[FROM] =
        openat(trace->fds[AT], trace->name, O_RDONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (trace->fds[FROM] < 0 || fstat(trace->fds[FROM], &trace->was) != 0)
        return errno;
    if (was->st_uid != geteuid())
        return EPERM;
    return S_ISREG(was->st_mode) && (uint64_t)was->st_dev == process->trace_device &&
                   (uint64_t)was->st_ino == process->trace_inode &&
                   (uint64_t)was->st_size >= written_bytes() && begins_as_ours(trace->fds[FROM])
               ? 0
               : ESTALE;
}

static int create(struct completing *trace)
{
    for (int i = 0; i < TRIES; i++) {
        if ((size_t)snprintf(trace->temporary, sizeof trace->temporary, "%s.%d-%d.tmp", trace->name,
                             (int)getpid(), i) >= sizeof trace->temporary)
            return ENAMETOOLONG;
        trace->fds[INTO] = openat(trace->fds[AT], trace->temporary,
                                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (trace->fds[INTO] >= 0)
            return 0;
        if (errno != EEXIST)
            return errno;
    }
    return EEXIST;
}

static int copy(const struct completing *trace, uint64_t bytes)
{
    char *buffer = malloc(COPY_BYTES);
    int error = buffer ? 0 : ENOMEM;
    for (uint64_t at = 0; at < bytes && !error;) {
        size_t part = bytes - at < COPY_BYTES ? (size_t)(bytes - at) : COPY_BYTES;
        ssize_t got = pread(trace->fds[FROM], buffer, part, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        error = got < 0    ? errno
                : got == 0 ? ESTALE
                           : ms_trace_file_put(trace->fds[INTO], at, buffer, (size_t)got);
        at += got > 0 ? (uint64_t)got : 0;
    }
    free(buffer);
    return error;
}

/* All of it, and its name: that must still be the name of what was copied. */
static int trace_complete_fill(const struct completing *trace)
{
    const struct ms_process *process = ms_process();
    uint64_t written = atomic_load(&process->trace_written), end = atomic_load(&process->trace_end);
    struct stat now;
    int error = copy(trace, written_bytes());
    if (!error)
        error = ms_trace_file_ring(trace->fds[INTO], written, end);
    if (!error && fchmod(trace->fds[INTO], trace->was.st_mode & 0777) != 0 && errno != EPERM &&
        errno != EOPNOTSUPP)
        error = errno;
    if (!error && (fstatat(trace->fds[AT], trace->name, &now, AT_SYMLINK_NOFOLLOW) != 0 ||
                   now.st_dev != trace->was.st_dev || now.st_ino != trace->was.st_ino))
        error = ESTALE;
    if (!error && renameat(trace->fds[AT], trace->temporary, trace->fds[AT], trace->name) != 0)
        error = errno;
    return error;
}

static int complete(const char *path)
{
    static struct completing trace;
    trace.fds[AT] = trace.fds[FROM] = trace.fds[INTO] = -1;
    int error = open_directory(&trace, path);
    if (!error)
        error = open_trace(&trace);
    if (!error)
        error = create(&trace);
    if (!error) {
        error = trace_complete_fill(&trace);
        if (error)
            unlinkat(trace.fds[AT], trace.temporary, 0);
    }
    for (unsigned i = 0; i < MS_ARRAY_LEN(trace.fds); i++) {
        if (trace.fds[i] >= 0)
            close(trace.fds[i]);
    }
    return error;
}

int ms_trace_complete(char *error, size_t error_bytes)
{
    const char *path = ms_process_text("trace");
    const struct ms_process *process = ms_process();
    uint64_t written = atomic_load(&process->trace_written), end = atomic_load(&process->trace_end);
    if (!path || written == end)
        return 0;
    if (end < written || end - written > MS_TRACE_RING_BYTES ||
        ms_table_rows(MS_TABLE_TRACE) < MS_TRACE_RING_BYTES || end > INT64_MAX / 2 ||
        process->trace_start > MS_TRACE_HEAD_BYTES || process->trace_part_bytes > INT64_MAX / 16) {
        snprintf(error, error_bytes, "the trace's last events are damaged");
        return -1;
    }
    int code = complete(path);
    if (!code)
        atomic_store(&ms_process()->trace_written, end);
    if (code)
        snprintf(error, error_bytes, "the trace's last events cannot be added to %.300s: %s", path,
                 code == ESTALE  ? "it is another file"
                 : code == EPERM ? "it is another user's"
                                 : ms_error_text(code));
    return code == ENOSPC || code == EDQUOT || code == EFBIG ? 1 : code ? -1 : 0;
}
