/* run_list.c - see run_list.h. */
#include "base/run_list.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACES = 3 };

/* The list's name in the i-th place; -1 if that is none. */
static int name_in(unsigned i, uint64_t id, char *path)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const char *places[PLACES] = {"/dev/shm", runtime, "/tmp"};
    if (!places[i] || *places[i] != '/')
        return -1;
    int length = snprintf(path, MS_RUN_LIST_BYTES, "%s/memshim-run-%016llx.reports", places[i],
                          (unsigned long long)id);
    return length < MS_RUN_LIST_BYTES ? 0 : -1;
}

int ms_run_list_make(uint64_t id, char *path)
{
    for (unsigned i = 0; i < PLACES; i++) {
        int fd = name_in(i, id, path) == 0
                     ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)
                     : -1;
        if (fd >= 0) {
            close(fd);
            return 0;
        }
    }
    *path = '\0';
    return -1;
}

bool ms_run_list_is_there(uint64_t id)
{
    char path[MS_RUN_LIST_BYTES];
    for (unsigned i = 0; i < PLACES; i++) {
        if (name_in(i, id, path) == 0 && faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            return true;
    }
    return false;
}

void ms_run_list_add(uint64_t id, const char *report)
{
    char path[MS_RUN_LIST_BYTES];
    struct stat status;
    int fd = -1;
    for (unsigned i = 0; i < PLACES && fd < 0; i++) {
        if (name_in(i, id, path) == 0)
            fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    }
    if (fd < 0)
        return;
    /* One call, so that lines of several processes do not mix. Without room for it the report is not
     * found. */
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
        write(fd, report, strlen(report) + 1) < 0)
        status.st_size = 0;
    close(fd);
}
