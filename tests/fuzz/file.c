/* A file in memory for those readers that want one. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int fd = -1;

int fuzz_file(const uint8_t *data, size_t size)
{
    if (fd < 0 && (fd = memfd_create("fuzz", MFD_CLOEXEC)) < 0)
        abort();
    if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
        abort();
    return fd;
}

const char *fuzz_path(void)
{
    static char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}
