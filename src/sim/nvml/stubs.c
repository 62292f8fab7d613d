/*
 * What the real library exports and the simulator lacks: answers that it is not supported, as a card does that has no such thing, and is
 * counted (MEMSIM_LOG). Knows no prototypes, on purpose: a stub reads no argument.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { NOT_SUPPORTED = 3 };

int sim_nvml_ready(void);
const char *sim_nvml_log_path(void);

static int unsupported(const char *name, unsigned long long *calls)
{
    unsigned long long nth = __atomic_add_fetch(calls, 1, __ATOMIC_RELAXED);
    const char *path = sim_nvml_log_path();
    int saved_errno = errno, result = sim_nvml_ready(), length, file;
    char line[160];

    if (result)
        return result;
    if (path) {
        length = snprintf(line, sizeof line, "%d unsupported %s %llu\n", (int)getpid(), name, nth);
        file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (file >= 0) {
            if (write(file, line, (size_t)length) < 0)
                fprintf(stderr, "memsim: cannot write %s\n", path);
            close(file);
        }
    }
    errno = saved_errno;
    return NOT_SUPPORTED;
}

#define SIMULATED(name)
#define UNSUPPORTED(name)                                      \
    int name(void) __attribute__((visibility("default")));     \
    int name(void)                                             \
    {                                                          \
        static unsigned long long calls;                       \
                                                               \
        return unsupported(#name, &calls);                     \
    }
#include "sim/nvml/exports.def"
