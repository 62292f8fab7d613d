/* libc.c - what C libraries have only lately; see libc.h. */
#include <errno.h>
#include <stddef.h>

#include "base/libc.h"

/* Of what the system calls answer that memshim makes. */
#define MS_ERRORS(ROW)                                                                                       \
    ROW(EPERM, "Operation not permitted")                                                                    \
    ROW(ENOENT, "No such file or directory")                                                                 \
    ROW(EINTR, "Interrupted system call")                                                                    \
    ROW(EIO, "Input/output error")                                                                           \
    ROW(ENXIO, "No such device or address")                                                                  \
    ROW(E2BIG, "Argument list too long")                                                                     \
    ROW(ENOEXEC, "Exec format error")                                                                        \
    ROW(EBADF, "Bad file descriptor")                                                                        \
    ROW(EAGAIN, "Resource temporarily unavailable")                                                          \
    ROW(ENOMEM, "Cannot allocate memory")                                                                    \
    ROW(EACCES, "Permission denied")                                                                         \
    ROW(EFAULT, "Bad address")                                                                               \
    ROW(EBUSY, "Device or resource busy")                                                                    \
    ROW(EEXIST, "File exists")                                                                               \
    ROW(EXDEV, "Invalid cross-device link")                                                                  \
    ROW(ENODEV, "No such device")                                                                            \
    ROW(ENOTDIR, "Not a directory")                                                                          \
    ROW(EISDIR, "Is a directory")                                                                            \
    ROW(EINVAL, "Invalid argument")                                                                          \
    ROW(ENFILE, "Too many open files in system")                                                             \
    ROW(EMFILE, "Too many open files")                                                                       \
    ROW(ENOTTY, "Inappropriate ioctl for device")                                                            \
    ROW(ETXTBSY, "Text file busy")                                                                           \
    ROW(EFBIG, "File too large")                                                                             \
    ROW(ENOSPC, "No space left on device")                                                                   \
    ROW(ESPIPE, "Illegal seek")                                                                              \
    ROW(EROFS, "Read-only file system")                                                                      \
    ROW(EMLINK, "Too many links")                                                                            \
    ROW(EPIPE, "Broken pipe")                                                                                \
    ROW(ERANGE, "Numerical result out of range")                                                             \
    ROW(EDEADLK, "Resource deadlock avoided")                                                                \
    ROW(ENAMETOOLONG, "File name too long")                                                                  \
    ROW(ENOLCK, "No locks available")                                                                        \
    ROW(ENOSYS, "Function not implemented")                                                                  \
    ROW(ENOTEMPTY, "Directory not empty")                                                                    \
    ROW(ELOOP, "Too many levels of symbolic links")                                                          \
    ROW(EOVERFLOW, "Value too large for defined data type")                                                  \
    ROW(EOPNOTSUPP, "Operation not supported")                                                               \
    ROW(ETIMEDOUT, "Connection timed out")                                                                   \
    ROW(ESTALE, "Stale file handle")                                                                         \
    ROW(EREMOTEIO, "Remote I/O error")                                                                       \
    ROW(EDQUOT, "Disk quota exceeded")                                                                       \
    ROW(ENOTCONN, "Transport endpoint is not connected")                                                     \
    ROW(EHOSTDOWN, "Host is down")

const char *ms_error_text(int error)
{
    switch (error) {
#define ROW(number, text)                                                                                    \
    case number:                                                                                             \
        return text;
        MS_ERRORS(ROW)
#undef ROW
    default:
        return "Unknown error";
    }
}

/* As <dlfcn.h> of glibc 2.35 has struct dl_find_object on x86-64 and aarch64. */
struct found {
    unsigned long long flags;
    void *start, *end;
    struct link_map *map;
    void *unwind;
    unsigned long long reserved[7];
};

int ms_dl_find_object(void *address, struct found *found_p) __asm__("_dl_find_object") __attribute__((weak));

bool ms_libc_finds_objects(void)
{
    return ms_dl_find_object != NULL;
}

bool ms_libc_find_object(uintptr_t address, struct ms_libc_object *object_p)
{
    struct found found;

    if (!ms_dl_find_object || ms_dl_find_object((void *)address, &found) != 0)
        return false;
    *object_p = (struct ms_libc_object){(uintptr_t)found.start, (uintptr_t)found.end, (uintptr_t)found.unwind,
                                        found.map};
    return true;
}
