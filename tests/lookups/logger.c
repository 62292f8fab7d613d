/*
 * logger.c - a preload of the kind that a user may have beside memshim: it overrides dlsym, wraps the
 * driver's cuGetProcAddress and writes down what the asker receives.
 *
 * Test tool; it belongs first in LD_PRELOAD, so that it stands between the program and memshim. Every answer
 * is logged with the object that owns the pointer.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *(*lookup_fn)(void *, const char *);
typedef int (*proc_fn)(const char *, void **, int, unsigned long long, int *);
typedef int (*proc_v1_fn)(const char *, void **, int, unsigned long long);

static lookup_fn next_dlsym;
static proc_fn next_proc;
static proc_v1_fn next_proc_v1;

static void note(const char *name, int version, unsigned long long flags, int status, void *answer)
{
    const char *path = getenv("LOOKUP_ANSWERS");
    const char *owner = "-", *base;
    char line[512];
    Dl_info info;
    int fd, length;

    if (answer)
        owner = dladdr(answer, &info) && info.dli_fname ? info.dli_fname : "?";
    base = strrchr(owner, '/');
    length = snprintf(line, sizeof(line), "%s %d %llu %d %s\n", name[0] ? name : "(empty)", version, flags,
                      status, base ? base + 1 : owner);
    fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (fd >= 0) {
        if (write(fd, line, length) != length)
            abort();
        close(fd);
    }
}

static int logged_proc(const char *name, void **out, int version, unsigned long long flags, int *status);

static int logged_proc_v1(const char *name, void **out, int version, unsigned long long flags)
{
    int result = next_proc_v1(name, out, version, flags);

    note(name, version, flags, result, out ? *out : NULL);
    return result;
}

/* The answer to a question about the question itself is noted first and replaced after. */
static int logged_proc(const char *name, void **out, int version, unsigned long long flags, int *status)
{
    int result = next_proc(name, out, version, flags, status);

    note(name, version, flags, result, out ? *out : NULL);
    if (result == 0 && out && *out && strcmp(name, "cuGetProcAddress") == 0) {
        if (version >= 12000) {
            next_proc = (proc_fn)*out;
            *out = (void *)logged_proc;
        } else {
            next_proc_v1 = (proc_v1_fn)*out;
            *out = (void *)logged_proc_v1;
        }
    }
    return result;
}

__attribute__((constructor(101))) static void begin(void)
{
    lookup_fn libc_dlsym = (lookup_fn)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");

    if (!libc_dlsym)
        libc_dlsym = (lookup_fn)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!libc_dlsym)
        libc_dlsym = (lookup_fn)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
    next_dlsym = (lookup_fn)libc_dlsym(RTLD_NEXT, "dlsym");
}

__attribute__((visibility("default"))) void *dlsym(void *restrict handle, const char *restrict name)
{
    if (!next_dlsym)
        begin();
    if (handle != RTLD_NEXT && handle != RTLD_DEFAULT && strcmp(name, "cuGetProcAddress_v2") == 0) {
        next_proc = (proc_fn)next_dlsym(handle, name);
        note(name, -1, 0, 0, (void *)next_proc);
        return (void *)(next_proc ? logged_proc : NULL);
    }
    return next_dlsym(handle, name);
}
