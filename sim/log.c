/*
 * See log.h. Opens the file for each line, with O_APPEND, so that processes and libraries may share it. Locks
 * nothing, allocates nothing.
 */
#include "sim/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void sim_log_line(const char *path, const char *name, unsigned long long nth)
{
    int saved_errno = errno, length, file;
    char line[160];

    if (!path || !*path)
        return;
    length = snprintf(line, sizeof line, "%d unsupported %s %llu\n", (int)getpid(), name, nth);
    file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) {
        if (write(file, line, (size_t)length) < 0)
            fprintf(stderr, "memsim: cannot write %s\n", path);
        close(file);
    }
    errno = saved_errno;
}

void sim_log_call(const char *name, unsigned long long *calls)
{
    sim_log_line(secure_getenv("MEMSIM_LOG"), name, __atomic_add_fetch(calls, 1, __ATOMIC_RELAXED));
}
