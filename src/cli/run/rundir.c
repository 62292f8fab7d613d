/* rundir.c - a directory of one run's, and those that were left; see rundir.h.
 *
 * Floor 5. A directory counts as left only if it is this user's, with the permissions of mkdtemp(), if nobody
 * holds its lock, and if no process was started with it in its environment: programs outlive a memshim that
 * was killed. Where either cannot be known, it stays. */
#include "cli/run/rundir.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* TRIES: another run may take a new directory for one that was left, between its making and its lock. */
enum { TRIES = 8 };

static const char prefix[] = "memshim-sim.";
static int held = -1; /* the directory's descriptor, with the lock */

/* Removes the files of an open directory, which has no directories in it. */
static void empty(int fd)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);
    struct dirent *entry;

    if (!entries && again >= 0)
        close(again);
    while (entries && (entry = readdir(entries)))
        unlinkat(fd, entry->d_name, 0);
    if (entries)
        closedir(entries);
}

/* True if the environment that a process was started with has this line. */
static bool has_line(const char *pid, const char *line)
{
    char path[64], *read = NULL;
    size_t bytes = 0;
    bool found = false;
    FILE *file;

    if (snprintf(path, sizeof(path), "/proc/%s/environ", pid) >= (int)sizeof(path) ||
        !(file = fopen(path, "re")))
        return false;
    while (!found && getdelim(&read, &bytes, '\0', file) > 0)
        found = !strcmp(read, line);
    free(read);
    fclose(file);
    return found;
}

/* True if a process has this directory, or if that cannot be known. */
static bool is_used(const char *path)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    bool found = false;
    char *line;

    if (!processes || asprintf(&line, "%s=%s", MS_RUNDIR_VARIABLE, path) < 0) {
        if (processes)
            closedir(processes);
        return true;
    }
    while (!found && (entry = readdir(processes)))
        found = isdigit((unsigned char)entry->d_name[0]) && has_line(entry->d_name, line);
    closedir(processes);
    free(line);
    return found;
}

/* Removes `name` in `place`, if it was left. */
static void remove_left(const char *place, int place_fd, const char *name)
{
    int fd = openat(place_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat status;
    char *path = NULL;

    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & 07777) == 0700 &&
        flock(fd, LOCK_EX | LOCK_NB) == 0 && asprintf(&path, "%s/%s", place, name) >= 0 && !is_used(path)) {
        empty(fd);
        unlinkat(place_fd, name, AT_REMOVEDIR);
    }
    free(path);
    close(fd);
}

static void remove_all_left(const char *place)
{
    DIR *entries = opendir(place);
    struct dirent *entry;

    while (entries && (entry = readdir(entries)))
        if (!strncmp(entry->d_name, prefix, sizeof(prefix) - 1))
            remove_left(place, dirfd(entries), entry->d_name);
    if (entries)
        closedir(entries);
}

/* Locks what was made; false, if somebody else has it, or removed it. A file system without locks will do:
 * there it is never taken for left. */
static bool rundir_hold(const char *path)
{
    struct stat ours, there;

    held = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (held < 0)
        return false;
    if ((flock(held, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && fstat(held, &ours) == 0 &&
        lstat(path, &there) == 0 && ours.st_ino == there.st_ino && ours.st_dev == there.st_dev)
        return true;
    close(held);
    held = -1;
    return false;
}

char *ms_rundir_make(void)
{
    const char *given = getenv("TMPDIR"), *place = given && *given == '/' ? given : "/tmp";
    unsigned tries;
    char *path;

    remove_all_left(place);
    for (tries = 0; tries < TRIES; tries++) {
        if (asprintf(&path, "%s/%sXXXXXX", place, prefix) < 0)
            return NULL;
        if (mkdtemp(path) && rundir_hold(path))
            return path;
        free(path);
    }
    return NULL;
}

void ms_rundir_remove(char *path)
{
    if (!path)
        return;
    empty(held);
    rmdir(path);
    close(held);
    held = -1;
    free(path);
}
