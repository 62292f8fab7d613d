/* cache_directory.c - see cache_directory.h.
 *
 * Floor 4. */
#include "report/symbols/cache_directory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Makes a directory if need be. It has to be this user's: under sudo the home may be somebody else's. */
static bool make_directory(const char *path)
{
    struct stat st;

    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return false;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

bool ms_cache_directory(const char *below, char *path, size_t bytes)
{
    const char *const parts[] = {"", "/memshim", below};
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    size_t i;

    if (cache && *cache == '/')
        snprintf(path, bytes, "%s", cache);
    else if (home && *home == '/')
        snprintf(path, bytes, "%s/.cache", home);
    else
        return false;
    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        size_t length = strlen(path);

        if ((size_t)snprintf(path + length, bytes - length, "%s", parts[i]) >= bytes - length ||
            !make_directory(path))
            return false;
    }
    return true;
}
