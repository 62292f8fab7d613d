/* files.c - the files that the tasks see: kept in memory that goes with the schedule; there are no others.
 *
 * A stretch of a file that is mapped lies where it is mapped, and is read and written there: so a file holds
 * at each moment what a process that was killed would leave in it. Put in the C library's place as world.c's
 * are. What the record asks /proc about its process is answered, always the same; every other name is
 * missing. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "engine.h"
#include "files.h"
#include "order.h"
#include "real.h"

/* The linker alone knows these names. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int __real_open(const char *path, int flags, ...);

enum { PATH = 96, FILES = 8, OPEN = 32, STRETCHES = 512, FIRST = 100000, DEVICE = 7, TMPFS = 0x01021994 };
enum { FILE_BYTES = 256 << 20 };

struct stretch {
    char *at;
    uint64_t offset, bytes;
};

struct file {
    char path[PATH], *bytes;
    uint64_t size, ino, written; /* nothing but zeroes lies behind `written` in `bytes` */
    bool is_unlinked;
    unsigned stretch_count;
    struct stretch stretch[STRETCHES];
};

static struct file files[FILES];
static struct {
    struct file *file;
    uint64_t offset;
} opened[OPEN];

void (*files_changed)(void);
void (*files_mapped)(void *at, size_t bytes);

/* Where the file's byte lies, and how many lie there behind it. */
static char *place_of(struct file *file, uint64_t offset, uint64_t *room_p)
{
    uint64_t next = FILE_BYTES;
    for (unsigned i = 0; i < file->stretch_count; i++) {
        struct stretch *s = &file->stretch[i];
        if (offset >= s->offset && offset - s->offset < s->bytes) {
            *room_p = s->bytes - (offset - s->offset);
            return s->at + (offset - s->offset);
        }
        if (s->offset > offset && s->offset < next)
            next = s->offset;
    }
    *room_p = next - offset;
    return file->bytes + offset;
}

/* Copies [offset, offset + bytes) of the file out, or in. */
static void copy(struct file *file, uint64_t offset, char *out, const char *in, uint64_t bytes)
{
    while (bytes) {
        uint64_t part;
        char *place = place_of(file, offset, &part);
        part = part < bytes ? part : bytes;
        order_access(place, part, in != NULL);
        if (in) {
            file->written = offset + part > file->written ? offset + part : file->written;
            memcpy(place, in, part);
            in += part;
        } else {
            memcpy(out, place, part);
            out += part;
        }
        offset += part;
        bytes -= part;
    }
}

/* Into memory that was never written to: where the file has zeroes alone, nothing is touched. */
static void copy_to_fresh(struct file *file, uint64_t offset, char *out, uint64_t bytes)
{
    while (bytes) {
        uint64_t part;
        char *place = place_of(file, offset, &part);
        part = part < bytes ? part : bytes;
        if (place != file->bytes + offset || offset < file->written) {
            order_access(out, part, true);
            memcpy(out, place, part);
        }
        out += part;
        offset += part;
        bytes -= part;
    }
}

static void changed(void)
{
    if (files_changed)
        files_changed();
}

static struct file *file_of(int fd)
{
    order_world();
    return fd >= FIRST && fd < FIRST + OPEN ? opened[fd - FIRST].file : NULL;
}

static struct file *find(const char *path)
{
    order_world();
    for (struct file *file = files; file < files + FILES; file++) {
        if (file->bytes && !file->is_unlinked && strcmp(file->path, path) == 0)
            return file;
    }
    return NULL;
}

static struct file *make(const char *path)
{
    for (struct file *file = files; file < files + FILES; file++) {
        if (file->bytes)
            continue;
        file->bytes = freeze_alloc(FILE_BYTES, 4096);
        file->ino = (uint64_t)(file - files) + 100;
        snprintf(file->path, sizeof file->path, "%s", path);
        return file;
    }
    return NULL;
}

static int fail(int error)
{
    errno = error;
    return -1;
}

/* The process has one start and one parent, whichever runs. */
static struct file *answer(const char *path)
{
    static const char stat[] = "1234 (program) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 5678 0\n";
    struct file *file = fnmatch("/proc/self/task/*/stat", path, 0) == 0 ? make(path) : NULL;
    if (file) {
        memcpy(file->bytes, stat, sizeof stat - 1);
        file->size = sizeof stat - 1;
    }
    return file;
}

/* The one directory, whose name may end in a slash. */
static bool is_the_directory(const char *path)
{
    size_t length = strlen(FILES_DIRECTORY);
    return strncmp(path, FILES_DIRECTORY, length) == 0 && !path[length + (path[length] == '/')];
}

static int open_file(const char *path, int flags)
{
    bool is_directory = flags & (O_DIRECTORY | O_PATH);
    struct file *file = find(is_directory && is_the_directory(path) ? FILES_DIRECTORY : path);
    int fd = 0;
    while (fd < OPEN && opened[fd].file)
        fd++;
    if (fd == OPEN)
        return fail(EMFILE);
    if (file && flags & O_EXCL)
        return fail(EEXIST);
    if (is_directory && !is_the_directory(path))
        return fail(ENOENT);
    if (!file && is_directory)
        file = make(FILES_DIRECTORY);
    if (!file)
        file = flags & O_CREAT ? make(path) : answer(path);
    if (!file)
        return fail(ENOENT);
    opened[fd].file = file;
    opened[fd].offset = 0;
    return FIRST + fd;
}

int __wrap_open(const char *path, int flags, ...)
{
    engine_point(__builtin_return_address(0));
    order_world();
    return open_file(path, flags);
}

/* The path of a name in a directory that is open; NULL if there is none. */
static const char *path_in(int directory, const char *name, char path[PATH])
{
    struct file *file = file_of(directory);
    return file && (size_t)snprintf(path, PATH, "%s/%s", file->path, name) < PATH ? path : NULL;
}

int __wrap_openat(int directory, const char *name, int flags, ...)
{
    char path[PATH];
    engine_point(__builtin_return_address(0));
    order_world();
    return path_in(directory, name, path) ? open_file(path, flags) : fail(EBADF);
}

int __wrap_close(int fd)
{
    if (!file_of(fd))
        engine_fail("a descriptor is closed that is not open");
    else
        opened[fd - FIRST].file = NULL;
    return 0;
}

static int status_of(const struct file *file, struct stat *status)
{
    *status = (struct stat){.st_dev = DEVICE,
                            .st_ino = file->ino,
                            .st_mode = S_IFREG | 0600,
                            .st_uid = geteuid(),
                            .st_size = (off_t)file->size};
    return 0;
}

int __wrap_fstat(int fd, struct stat *status)
{
    struct file *file = file_of(fd);
    return file ? status_of(file, status) : fail(EBADF);
}

int __wrap_fstatat(int directory, const char *name, struct stat *status, int flags)
{
    char path[PATH];
    struct file *file = path_in(directory, name, path) ? find(path) : NULL;
    (void)flags;
    return file ? status_of(file, status) : fail(ENOENT);
}

int __wrap_stat(const char *path, struct stat *status)
{
    if (strcmp(path, "/proc/self/ns/pid") != 0)
        return fail(ENOENT);
    *status = (struct stat){.st_dev = DEVICE, .st_ino = 1};
    return 0;
}

int __wrap_fstatfs(int fd, struct statfs *status)
{
    *status = (struct statfs){.f_type = TMPFS};
    return file_of(fd) ? 0 : fail(EBADF);
}

int __wrap_fchmod(int fd, mode_t mode)
{
    (void)mode;
    return file_of(fd) ? 0 : fail(EBADF);
}

int __wrap_unlink(const char *path)
{
    struct file *file = find(path);
    if (!file)
        return fail(ENOENT);
    file->is_unlinked = true;
    return 0;
}

int __wrap_unlinkat(int directory, const char *name, int flags)
{
    char path[PATH];
    (void)flags;
    return path_in(directory, name, path) ? __wrap_unlink(path) : fail(EBADF);
}

int __wrap_renameat(int directory, const char *name, int new_directory, const char *new_name)
{
    char path[PATH], new_path[PATH];
    struct file *file = path_in(directory, name, path) ? find(path) : NULL;
    if (!file || !path_in(new_directory, new_name, new_path))
        return fail(ENOENT);
    __wrap_unlink(new_path);
    snprintf(file->path, sizeof file->path, "%s", new_path);
    return 0;
}

int __wrap_posix_fallocate(int fd, off_t offset, off_t bytes)
{
    struct file *file = file_of(fd);
    engine_point(__builtin_return_address(0));
    order_world();
    if (!file || offset + bytes > FILE_BYTES)
        return file ? ENOSPC : EBADF;
    if (file->size < (uint64_t)(offset + bytes))
        file->size = (uint64_t)(offset + bytes);
    changed();
    return 0;
}

ssize_t __wrap_pread(int fd, void *into, size_t bytes, off_t offset)
{
    struct file *file = file_of(fd);
    engine_point(__builtin_return_address(0));
    order_world();
    if (!file)
        return fail(EBADF);
    if ((uint64_t)offset >= file->size)
        return 0;
    if (bytes > file->size - (uint64_t)offset)
        bytes = file->size - (uint64_t)offset;
    copy(file, (uint64_t)offset, into, NULL, bytes);
    return (ssize_t)bytes;
}

ssize_t __wrap_read(int fd, void *into, size_t bytes)
{
    if (!file_of(fd))
        return fail(EBADF);
    ssize_t done = __wrap_pread(fd, into, bytes, (off_t)opened[fd - FIRST].offset);
    opened[fd - FIRST].offset += done > 0 ? (uint64_t)done : 0;
    return done;
}

ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t offset)
{
    struct file *file = file_of(fd);
    engine_point(__builtin_return_address(0));
    order_world();
    if (!file || (uint64_t)offset + bytes > FILE_BYTES)
        return fail(file ? ENOSPC : EBADF);
    copy(file, (uint64_t)offset, NULL, from, bytes);
    if (file->size < (uint64_t)offset + bytes)
        file->size = (uint64_t)offset + bytes;
    changed();
    return (ssize_t)bytes;
}

int __wrap_ftruncate(int fd, off_t bytes)
{
    struct file *file = file_of(fd);
    if (!file)
        return fail(EBADF);
    file->size = (uint64_t)bytes;
    return 0;
}

bool files_map(void *at, size_t bytes, int fd, uint64_t offset)
{
    struct file *file = file_of(fd);
    if (!file || file->stretch_count == STRETCHES)
        return false;
    copy_to_fresh(file, offset, at, bytes);
    file->stretch[file->stretch_count++] = (struct stretch){at, offset, bytes};
    if (files_mapped)
        files_mapped(at, bytes);
    return true;
}

void files_each_mapped(void (*visit)(void *at, size_t bytes))
{
    for (struct file *file = files; file < files + FILES; file++) {
        for (unsigned i = 0; i < file->stretch_count; i++)
            visit(file->stretch[i].at, file->stretch[i].bytes);
    }
}

void files_keep(const char *path, const char *real_path)
{
    struct file *file = find(path);
    int fd = file ? __real_open(real_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    for (uint64_t done = 0; fd >= 0 && done < file->size;) {
        uint64_t part;
        const char *place = place_of(file, done, &part);
        part = part < file->size - done ? part : file->size - done;
        real_write(fd, place, part, done);
        done += part;
    }
    if (fd >= 0)
        real_close(fd);
}
