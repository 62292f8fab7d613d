/* trace_file.c - the trace's file; see trace_file.h.
 *
 * Floor 2. Bare system calls for writing: pwrite() is a cancellation point. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files.h"
#include "base/signals.h"
#include "base/thread/aux_stack.h"
#include "record/file/trace.h"
#include "record/file/trace_file.h"

/* The place where the summary's line begins: it is the head's last. */
static uint64_t summary_offset(void)
{
    return ms_process()->trace_start - MS_TRACE_SUMMARY_BYTES;
}

int ms_trace_file_put(int fd, uint64_t offset, const char *bytes, size_t count)
{
    struct ms_signals held;
    int error = 0;
    ms_signals_hold(&held, false);
    while (count && !error) {
        long written = syscall(SYS_pwrite64, fd, bytes, count, (off_t)offset);
        if (written == 0 || (written < 0 && errno != EINTR))
            error = written == 0 ? EIO : errno;
        if (written > 0) {
            bytes += written;
            offset += (uint64_t)written;
            count -= (size_t)written;
        }
    }
    ms_signals_release(&held);
    return error;
}

/* One line of `MS_TRACE_SUMMARY_BYTES`, filled up with blanks. */
static void pad(char *line, const char *text)
{
    int used = snprintf(line, MS_TRACE_SUMMARY_BYTES, "# %s", text);
    if (used < 0 || used >= MS_TRACE_SUMMARY_BYTES)
        used = MS_TRACE_SUMMARY_BYTES - 1;
    memset(line + used, ' ', (size_t)(MS_TRACE_SUMMARY_BYTES - used));
    line[MS_TRACE_SUMMARY_BYTES - 1] = '\n';
}

/* The program's name may hold anything, a line's end as well. */
static void clean(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
    }
}

size_t ms_trace_file_head(char *head)
{
    const struct ms_process *process = ms_process();
    char name[256];
    const char *executable = ms_process_text("exe"), *slash = executable ? strrchr(executable, '/') : NULL;
    snprintf(name, sizeof name, "%s", slash ? slash + 1 : "unknown");
    clean(name);
    int used = snprintf(head, MS_TRACE_HEAD_BYTES - MS_TRACE_SUMMARY_BYTES,
                        MS_TRACE_FIRST_WORDS " %s, run %016llx: %s, process %d\n"
                                             "%s%d",
                        PACKAGE_VERSION,
                        (unsigned long long)(process->run_id ? process->run_id : process->start_unix_ns),
                        name, (int)process->pid, MS_TRACE_BINARY_WORDS, MS_TRACE_VERSION);
    if (process->trace_part_bytes)
        used += snprintf(head + used, MS_TRACE_HEAD_BYTES - MS_TRACE_SUMMARY_BYTES - used,
                         ", %d parts of %llu bytes", MS_TRACE_PARTS,
                         (unsigned long long)process->trace_part_bytes);
    head[used++] = '\n';
    pad(head + used, "unfinished");
    return (size_t)used + MS_TRACE_SUMMARY_BYTES;
}

int ms_trace_file_create(const char *path)
{
    struct ms_process *process = ms_process();
    char *head = ms_aux_stack_take();
    struct stat status;
    if (!head)
        return ENOMEM;
    size_t bytes = ms_trace_file_head(head);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int error = fd < 0 || fstat(fd, &status) != 0 ? errno : ms_trace_file_put(fd, 0, head, bytes);
    ms_aux_stack_give(head);
    if (fd < 0)
        return error;
    if (!error && fchmod(fd, ms_file_mode()) != 0 && errno != EPERM && errno != EOPNOTSUPP)
        error = errno;
    close(fd);
    if (error) {
        unlink(path);
        return error;
    }
    process->trace_device = status.st_dev;
    process->trace_inode = status.st_ino;
    process->trace_start = bytes;
    return 0;
}

/* The file that was made, or -1 with errno if another has its name by now. */
static int trace_file_open_again(const char *path)
{
    const struct ms_process *process = ms_process();
    struct stat status;
    int fd = open(path, O_RDWR | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
        (uint64_t)status.st_dev == process->trace_device && (uint64_t)status.st_ino == process->trace_inode)
        return fd;
    close(fd);
    errno = ESTALE;
    return -1;
}

static uint64_t place_in_file(uint64_t at)
{
    const struct ms_process *process = ms_process();
    uint64_t part = process->trace_part_bytes;
    return process->trace_start + (part ? at / part % MS_TRACE_PARTS * part + at % part : at);
}

/* [from, end) of the ring, which may go around its end, within one part. */
static int put_ring(int fd, uint64_t from, uint64_t end)
{
    const char *ring = MS_ROWS(TRACE, char);
    int error = 0;
    while (from < end && !error) {
        uint64_t place = from % MS_TRACE_RING_BYTES, count = end - from;
        if (count > MS_TRACE_RING_BYTES - place)
            count = MS_TRACE_RING_BYTES - place;
        error = ms_trace_file_put(fd, place_in_file(from), ring + place, count);
        from += count;
    }
    return error;
}

/* The first byte comes last, in one store: until then the file ends before it. */
int ms_trace_file_ring(int fd, uint64_t from, uint64_t end)
{
    uint64_t part = ms_process()->trace_part_bytes;
    const char nothing = MS_TRACE_R_END;
    int error = 0;
    while (from < end && !error) {
        uint64_t until = part && from - from % part + part < end ? from - from % part + part : end;
        error = ms_trace_file_put(fd, place_in_file(until), &nothing, 1);
        if (!error)
            error = put_ring(fd, from + 1, until);
        if (!error)
            error = put_ring(fd, from, from + 1);
        from = until;
    }
    return error;
}

int ms_trace_file_write(const char *path)
{
    struct ms_process *process = ms_process();
    uint64_t from = atomic_load_explicit(&process->trace_written, memory_order_relaxed);
    uint64_t end = atomic_load_explicit(&process->trace_end, memory_order_acquire);
    if (from == end)
        return 0;
    int fd = trace_file_open_again(path);
    if (fd < 0)
        return errno;
    int error = ms_trace_file_ring(fd, from, end);
    close(fd);
    if (!error)
        atomic_store_explicit(&process->trace_written, end, memory_order_release);
    return error;
}

int ms_trace_file_summary(const char *path, const char *text)
{
    char line[MS_TRACE_SUMMARY_BYTES];
    int fd = trace_file_open_again(path);
    if (fd < 0)
        return errno;
    pad(line, text);
    int error = ms_trace_file_put(fd, summary_offset(), line, sizeof line);
    close(fd);
    return error;
}
