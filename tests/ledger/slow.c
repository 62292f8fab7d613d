/* slow.c - preloaded into memshim metrics: a look at a process does not end while a file with the name in
 * SLOW_WHILE is there; one with ".on" behind its name says that it is at it. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int memfd_create(const char *name, unsigned flags)
{
    const struct timespec moment = {0, 20000000};
    const char *path = getenv("SLOW_WHILE");
    char on[PATH_MAX];

    while (path && access(path, F_OK) == 0) {
        snprintf(on, sizeof(on), "%s.on", path);
        close(open(on, O_CREAT | O_WRONLY, 0600));
        nanosleep(&moment, NULL);
    }
    return (int)syscall(SYS_memfd_create, name, flags);
}
