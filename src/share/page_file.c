/* page_file.c - see page_file.h.
 *
 * In a directory of several users a name may be anything: no link is followed, and nothing is mapped but a
 * regular file of the right owner, length, form and device. A page of another version in which no process is
 * any more is made anew. */
#include "share/page_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/files.h"
#include "base/libc.h"

enum { TRIES = 3 };

static bool page_refuse(char *why, size_t why_bytes, const char *path, const char *reason)
{
    snprintf(why, why_bytes, "%.300s: %s", path, reason);
    return false;
}

bool ms_page_lock(int fd, unsigned first, unsigned count, bool take)
{
    struct flock lock = {
        .l_type = take ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = count};
    int saved_errno = errno;
    bool done = fcntl(fd, F_SETLK, &lock) == 0;
    errno = saved_errno;
    return done;
}

/* --- making one --- */

/* Beyond the limit a process has set for its files the kernel sends a signal, which ends it. */
static bool is_too_long(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           limit.rlim_cur < sizeof(struct ms_share_page);
}

/* The file has room for all of it, so that no store into the map fails for want of memory. */
static bool page_fill(int fd, const struct ms_page_wish *wish)
{
    struct ms_share_head head = {.version = MS_SHARE_VERSION, .row_bytes = sizeof(struct ms_share_row)};
    int error = is_too_long() ? EFBIG : posix_fallocate(fd, 0, sizeof(struct ms_share_page));
    if (error) {
        errno = error;
        return false;
    }
    memcpy(head.magic, MS_SHARE_MAGIC, sizeof head.magic);
    memcpy(head.uuid, wish->uuid, sizeof head.uuid);
    atomic_init(&head.total_bytes, wish->total_bytes);
    errno = EIO;
    return pwrite(fd, &head, sizeof head, 0) == (ssize_t)sizeof head;
}

/* True if there is a page by this name now, of this process or another's making. */
static bool page_make(const struct ms_page_wish *wish, char *why, size_t why_bytes)
{
    static char temporary[MS_PAGE_PATH + 32], path[MS_PAGE_PATH];
    struct stat status;
    int error = 0;
    snprintf(path, sizeof path, "%s", wish->path);
    int fd = ms_file_create_beside(path, wish->is_shared ? 0660 : 0600, temporary, sizeof temporary);
    if (fd < 0)
        return page_refuse(why, why_bytes, path, ms_error_text(errno));
    if (!page_fill(fd, wish) || fstat(fd, &status) != 0) {
        error = errno;
        unlink(temporary);
    } else if (ms_file_publish(&status, temporary, path, sizeof path, MS_FILE_NEW) != 0 && errno != EEXIST) {
        error = errno;
    }
    close(fd);
    return !error || page_refuse(why, why_bytes, path, ms_error_text(error));
}

/* --- judging one --- */

bool ms_page_is_at(const char *path, const struct stat *status)
{
    struct stat now;
    return lstat(path, &now) == 0 && now.st_dev == status->st_dev && now.st_ino == status->st_ino;
}

/* Says why a file by this name is no page; NULL: it may be one. */
static const char *file_fault(const struct ms_page_wish *wish, const struct stat *status)
{
    if (!S_ISREG(status->st_mode))
        return "is no regular file";
    if (status->st_nlink != 1)
        return "has another name";
    if (!wish->is_shared && status->st_uid != geteuid())
        return "is another user's";
    if (!wish->is_shared && status->st_mode & (S_IWGRP | S_IWOTH))
        return "can be written to by others";
    return NULL;
}

/* Says the same of what is in it, by its length and its first bytes. */
static const char *page_fault(const struct ms_page_wish *wish, const struct ms_share_head *head,
                              const struct stat *status, ssize_t bytes)
{
    if (bytes < (ssize_t)sizeof *head || memcmp(head->magic, MS_SHARE_MAGIC, sizeof head->magic) != 0)
        return "is no page of a device";
    if (head->version != MS_SHARE_VERSION)
        return "is of another version of memshim's, whose processes are still in it";
    if (status->st_size != (off_t)sizeof(struct ms_share_page) ||
        head->row_bytes != sizeof(struct ms_share_row))
        return "is not as long as a page of a device";
    if (memcmp(head->uuid, wish->uuid, sizeof head->uuid) != 0)
        return "is another device's";
    return NULL;
}

/* A page of another version in which nobody is: true if it was taken out of the way. */
static bool is_left_over(int fd, const struct ms_share_head *head, ssize_t bytes, const char *path,
                         const struct stat *status)
{
    if (bytes < (ssize_t)sizeof *head || memcmp(head->magic, MS_SHARE_MAGIC, sizeof head->magic) != 0 ||
        head->version == MS_SHARE_VERSION || !ms_page_lock(fd, 0, 0, true))
        return false;
    return ms_page_is_at(path, status) && unlink(path) == 0;
}

/* Returns a descriptor, or -1; *again_p: there is none by that name, or no longer. */
static int page_judge(const struct ms_page_wish *wish, struct stat *status_p, bool *again_p, char *why,
                      size_t why_bytes)
{
    struct ms_share_head head;
    if (lstat(wish->path, status_p) == 0 && !S_ISREG(status_p->st_mode) && !S_ISLNK(status_p->st_mode)) {
        *again_p = page_refuse(why, why_bytes, wish->path, "is no regular file");
        return -1;
    }
    int fd = open(wish->path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    *again_p = fd < 0 && errno == ENOENT;
    if (fd < 0) {
        page_refuse(why, why_bytes, wish->path, errno == ELOOP ? "is a link" : ms_error_text(errno));
        return -1;
    }
    const char *fault = fstat(fd, status_p) == 0 ? file_fault(wish, status_p) : "cannot be looked at";
    if (!fault) {
        ssize_t bytes = pread(fd, &head, sizeof head, 0);
        *again_p = is_left_over(fd, &head, bytes, wish->path, status_p);
        fault = page_fault(wish, &head, status_p, bytes);
    }
    if (!fault && ms_page_is_at(wish->path, status_p))
        return fd;
    *again_p |= !fault;
    page_refuse(why, why_bytes, wish->path, fault ? fault : "has been replaced");
    close(fd);
    return -1;
}

struct ms_share_page *ms_page_open(const struct ms_page_wish *wish, int *fd_p, struct stat *status_p,
                                   char *why, size_t why_bytes)
{
    bool again = true;
    *fd_p = -1;
    for (int i = 0; i < TRIES && again && *fd_p < 0; i++) {
        *fd_p = page_judge(wish, status_p, &again, why, why_bytes);
        if (*fd_p < 0 && again && !page_make(wish, why, why_bytes))
            return NULL;
    }
    if (*fd_p < 0)
        return NULL;
    struct ms_share_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, *fd_p, 0);
    if (page != MAP_FAILED)
        return page;
    page_refuse(why, why_bytes, wish->path, ms_error_text(errno));
    close(*fd_p);
    return NULL;
}
