/* share.h - what the tests of this room have in common: a device of a made-up length, in a directory of the
 * test's. */
#ifndef MS_TESTS_SHARE_H
#define MS_TESTS_SHARE_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <errno.h>

#include "share/asks.h"
#include "share/member.h"
#include "tests/tap.h"

#define TOTAL UINT64_C(1000)

__attribute__((unused)) static struct ms_share_wish share_wish(const char *directory, uint64_t guarantee)
{
    return (struct ms_share_wish){.device = 0,
                                  .uuid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
                                  .total_bytes = TOTAL,
                                  .free_bytes = UINT64_MAX,
                                  .guarantee_bytes = guarantee,
                                  .most_bytes = UINT64_MAX,
                                  .directory = directory};
}

__attribute__((unused)) static void share_path(char *path, size_t bytes, const char *directory)
{
    snprintf(path, bytes, "%s/memshim-share-0102030405060708090a0b0c0d0e0f10", directory);
}

/* A directory of its own, which is nobody else's. */
__attribute__((unused)) static const char *share_directory(const char *name)
{
    static char path[PATH_MAX];
    const char *top = getenv("TEST_TMP");
    if (*path)
        return path;
    snprintf(path, sizeof path, "%s/%s.%d", top ? top : "/tmp", name, (int)getpid());
    if (mkdir(path, 0700) != 0)
        bail("cannot make %s", path);
    return path;
}

#endif
