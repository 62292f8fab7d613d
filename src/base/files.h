/* files.h - files that memshim reads and writes where others may write too.
 *
 * Floor 0. In a directory that others can write to any name may be a link, a FIFO, a device, or a file of
 * theirs, and may become one between two calls. So what is opened is judged by its descriptor, what is made
 * is made anew (O_EXCL, no link followed) and moved to its name when it is whole, and nothing but a regular
 * file is replaced. No allocation, no lock, one caller at a time; every function keeps to bare system calls
 * and sets errno. */
#ifndef MS_BASE_FILES_H
#define MS_BASE_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

/** The part of a path behind its last slash. */
static inline const char *ms_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/** The permissions of what memshim writes, by MEMSHIM_READERS: 0600, 0640 or 0644. The umask does not
 * count. */
mode_t ms_file_mode(void);

/** Open a regular file for reading, through links too, without touching anything else: a FIFO or a device is
 * looked at and not opened (EINVAL; EISDIR for a directory). Returns a descriptor, *status_p filled in, or
 * -1. */
int ms_file_open_regular(const char *path, struct stat *status_p);

/** The path of this process's program: as /proc has it, or, where there is no /proc, the name by which it was
 * started, which is a script's for a script. "" if neither can be had. */
void ms_file_executable(char *path, size_t bytes);

/** As ms_file_open_regular(), for a file of this user's under its very name: no link (ELOOP), nobody else's
 * (EPERM). */
int ms_file_open_own(const char *path, struct stat *status_p);

/** A new, empty file beside `path`, with exactly these permissions, open for writing; its name goes to
 * `temporary`. Returns a descriptor, or -1. */
int ms_file_create_beside(const char *path, mode_t mode, char *temporary, size_t bytes);

enum ms_file_place {
    MS_FILE_REPLACE, /* a regular file that is there goes */
    MS_FILE_NEW,     /* nothing is there, or EEXIST */
    MS_FILE_NUMBERED /* under this name, or where that is taken with a number in it: ms_file_number() */
};

/** So many files of one name a run may leave. */
enum { MS_FILE_NUMBERS = 4096 };

/** Gives a file that is whole its name. `written` is the file, `temporary` the name that it has, `path` the
 * one that it gets, which may be changed by MS_FILE_NUMBERED and holds `bytes`.
 *
 * Returns 0, or -1 with errno: EEXIST, ELOOP, EISDIR for what may not be replaced, ESTALE if somebody put
 * another file in its place meanwhile. The temporary name is gone in any case. */
int ms_file_publish(const struct stat *written, const char *temporary, char *path, size_t bytes,
                    enum ms_file_place place);

/** The `number`-th file (from 2 on) of several that were to be `path`: report.json, report.2.json, ...
 * Returns 0, or -1 with ENAMETOOLONG. */
int ms_file_number(const char *path, unsigned number, char *numbered, size_t bytes);

#endif
