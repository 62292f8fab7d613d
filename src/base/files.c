/* files.c - files that memshim reads and writes where others may write too; see files.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/files.h"
#include "base/options/options.h"

enum { TRIES = 64 };

mode_t ms_file_mode(void)
{
    static const mode_t modes[] = {
        [MS_READERS_OWNER] = 0600, [MS_READERS_GROUP] = 0640, [MS_READERS_ALL] = 0644};
    int64_t readers = ms_option_int(MS_OPT_READERS);

    return readers >= 0 && readers < (int64_t)MS_ARRAY_LEN(modes) ? modes[readers] : 0600;
}

static int files_refuse(int fd, int error)
{
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

/* Without /proc, or where that is a link to itself (ELOOP: in trees that debootstrap made where it may mount
 * nothing), the file is opened by its name, and taken if it is the one that was looked at. */
static int files_open_again(int seen, const char *path, const struct stat *status)
{
    const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    char again[32];
    struct stat found;

    snprintf(again, sizeof again, "/proc/self/fd/%d", seen);
    int fd = open(again, flags);
    if (fd >= 0 || (errno != ENOENT && errno != ELOOP) || (fd = open(path, flags)) < 0)
        return fd;
    if (fstat(fd, &found) == 0 && found.st_dev == status->st_dev && found.st_ino == status->st_ino)
        return fd;
    return files_refuse(fd, ESTALE);
}

/* O_PATH says what is there without opening it: to open a device can be to command it. */
int ms_file_open_regular(const char *path, struct stat *status_p)
{
    int fd, seen = open(path, O_PATH | O_CLOEXEC);

    if (seen < 0)
        return -1;
    if (fstat(seen, status_p) != 0)
        return files_refuse(seen, errno);
    if (!S_ISREG(status_p->st_mode))
        return files_refuse(seen, S_ISDIR(status_p->st_mode) ? EISDIR : EINVAL);
    fd = files_open_again(seen, path, status_p);
    if (fd < 0)
        return files_refuse(seen, errno);
    close(seen);
    return fd;
}

void ms_file_executable(char *path, size_t bytes)
{
    ssize_t length = readlink("/proc/self/exe", path, bytes - 1);
    const char *started = length < 0 ? (const char *)getauxval(AT_EXECFN) : NULL;
    size_t base = 0;

    path[length > 0 ? length : 0] = '\0';
    if (!started || !*started)
        return;
    if (*started != '/')
        base = getcwd(path, bytes) ? strlen(path) : bytes;
    if (base >= bytes ||
        (size_t)snprintf(path + base, bytes - base, "%s%s", base ? "/" : "", started) >= bytes - base)
        path[0] = '\0';
}

int ms_file_open_own(const char *path, struct stat *status_p)
{
    int fd = -1;

    if (lstat(path, status_p) != 0)
        return -1;
    if (!S_ISREG(status_p->st_mode))
        return files_refuse(-1, S_ISLNK(status_p->st_mode) ? ELOOP : EINVAL);
    if (status_p->st_uid != geteuid())
        return files_refuse(-1, EPERM);
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    if (fstat(fd, status_p) != 0)
        return files_refuse(fd, errno);
    if (!S_ISREG(status_p->st_mode) || status_p->st_uid != geteuid())
        return files_refuse(fd, EPERM);
    return fd;
}

int ms_file_create_beside(const char *path, mode_t mode, char *temporary, size_t bytes)
{
    for (int i = 0; i < TRIES; i++) {
        if ((size_t)snprintf(temporary, bytes, "%s.%d-%d.tmp", path, (int)getpid(), i) >= bytes)
            return files_refuse(-1, ENAMETOOLONG);
        int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            return -1;
        if (fd >= 0 && fchmod(fd, mode) != 0 && errno != EPERM && errno != EOPNOTSUPP) {
            int error = errno;

            unlink(temporary);
            return files_refuse(fd, error);
        }
        if (fd >= 0)
            return fd;
    }
    return files_refuse(-1, EEXIST);
}

int ms_file_number(const char *path, unsigned number, char *numbered, size_t bytes)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    int stem = dot && dot != name ? (int)(dot - path) : (int)strlen(path);

    if ((size_t)snprintf(numbered, bytes, "%.*s.%u%s", stem, path, number, path + stem) < bytes)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

/* Gives the file its name without replacing one. If a file system knows no such renaming, the file gets a
 * second name, which replaces nothing either; if it knows no second names, as FAT, there are no links and no
 * owners to beware of. */
static int move_to_new(const char *temporary, const char *path)
{
    struct stat status;

    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (link(temporary, path) == 0) {
        unlink(temporary);
        return 0;
    }
    if (errno == EEXIST)
        return -1;
    if (lstat(path, &status) == 0) {
        errno = EEXIST;
        return -1;
    }
    return rename(temporary, path);
}

static int move_over(const char *temporary, const char *path)
{
    struct stat status;

    if (lstat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        errno = S_ISLNK(status.st_mode) ? ELOOP : S_ISDIR(status.st_mode) ? EISDIR : EEXIST;
        return -1;
    }
    return rename(temporary, path);
}

static int move_to_numbered(const char *temporary, char *path, size_t bytes)
{
    static char numbered[PATH_MAX]; /* the stack that this runs on may be small */
    int result = move_to_new(temporary, path);

    for (unsigned i = 2; result != 0 && errno == EEXIST && i <= MS_FILE_NUMBERS; i++) {
        if (ms_file_number(path, i, numbered, sizeof numbered) != 0 || strlen(numbered) >= bytes)
            return files_refuse(-1, ENAMETOOLONG);
        result = move_to_new(temporary, numbered);
        if (result == 0)
            strcpy(path, numbered);
    }
    return result;
}

static int files_move(const char *temporary, char *path, size_t bytes, enum ms_file_place place)
{
    switch (place) {
    case MS_FILE_NEW:
        return move_to_new(temporary, path);
    case MS_FILE_NUMBERED:
        return move_to_numbered(temporary, path, bytes);
    case MS_FILE_REPLACE:
        break;
    }
    return move_over(temporary, path);
}

int ms_file_publish(const struct stat *written, const char *temporary, char *path, size_t bytes,
                    enum ms_file_place place)
{
    struct stat named;

    if (files_move(temporary, path, bytes, place) != 0) {
        int error = errno;

        unlink(temporary);
        return files_refuse(-1, error);
    }
    if (lstat(path, &named) != 0)
        return -1;
    if (written->st_dev == named.st_dev && written->st_ino == named.st_ino)
        return 0;
    errno = ESTALE;
    return -1;
}
