/* page_file.h - the file of a page; page_file.c.
 *
 * Floor 2. One caller at a time. */
#ifndef MS_SHARE_PAGE_FILE_H
#define MS_SHARE_PAGE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "share/page.h"

enum { MS_PAGE_PATH = 512 };

struct ms_page_wish {
    const char *path; /* less than MS_PAGE_PATH long */
    bool is_shared;   /* with other users, whose group the directory says */
    uint8_t uuid[16];
    uint64_t total_bytes;
};

/** Opens the page, or makes it. Returns its map, with *fd_p and *status_p for the locks on it; or NULL with
 * one line in `why`. The map stays for ever. */
struct ms_share_page *ms_page_open(const struct ms_page_wish *wish, int *fd_p, struct stat *status_p,
                                   char *why, size_t why_bytes);
/** True if the file by that name is still the one that `status` is of. */
bool ms_page_is_at(const char *path, const struct stat *status);
/** Takes or leaves the kernel's locks on so many bytes of the page's file. Never waits: true if that was
 * done. They are this process's, all its threads', and end with it. errno stays as it is. */
bool ms_page_lock(int fd, unsigned first, unsigned count, bool take);

#endif
