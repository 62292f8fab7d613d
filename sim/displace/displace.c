/* displace.c - what a program opens under any other name, or by a path of its own, becomes the simulated
 * library.
 *
 * Preloaded by `memshim run --sim`. A wheel may carry the vendor's runtime under a name like
 * libcudart-53d54daa.so.12.6.68 and find it by DT_RPATH, to which a search path loses, or open it by an
 * absolute path. Such names are known when something is opened: dlopen stands here before the C library's. A
 * path to one of the libraries below becomes the simulated library's, if that has the version. Of any other
 * file it is read what it needs, and what that finds beside itself needs: for each of the libraries below
 * the simulated one is loaded first, and has the name added that is asked for, by which the versions of
 * symbols are looked up. The loader adds a name where a search for it ends at a file that is loaded already:
 * so there is a link of that name in a directory of the run's, which is in LD_LIBRARY_PATH.
 *
 * MEMSIM_DISPLACE names that directory. The file `displaced` in it gets a line of two paths for each file
 * that was displaced. No lock: two threads that do it at once do the same. What is missing stays missing,
 * and what cannot be done leaves the program's own library in place. */
#include "sim/displace/displace.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HASH_MIN  6 /* digits of the hash that a wheel's tool puts into a name; eight of them are usual */
#define DEPTH_MAX 6 /* libraries that need libraries */

#define EXPORTED __attribute__((visibility("default")))

typedef void *open_fn(const char *file, int flags);
void *dlopen(const char *file, int flags);

static const char *const stems[] = {"libcuda",     "libcudart",    "libnccl",     "libcublas",
                                    "libcublasLt", "libnvidia-ml", "libamdhip64", "libascendcl"};

static char directory[PATH_MAX]; /* of the simulated libraries, which is our own; "" if it is not known */
static open_fn *next_dlopen;

static void __attribute__((constructor)) begin(void)
{
    Dl_info own;
    char *slash;

    if (dladdr((void *)stems, &own) && own.dli_fname && realpath(own.dli_fname, directory)) {
        slash = strrchr(directory, '/');
        if (slash)
            *slash = '\0';
    }
    __atomic_store_n(&next_dlopen, (open_fn *)dlsym(RTLD_NEXT, "dlopen"), __ATOMIC_RELEASE);
}

/* The end of the stem of `base`, which is followed by a hash or by ".so"; NULL if it is none of ours. */
static const char *stem_end(const char *base)
{
    size_t i;

    for (i = 0; i < sizeof(stems) / sizeof(*stems); i++) {
        size_t length = strlen(stems[i]);

        if (!strncmp(base, stems[i], length) && (base[length] == '-' || !strncmp(base + length, ".so", 3)))
            return base + length;
    }
    return NULL;
}

/* Past "-53d54daa", if it is there. */
static const char *skip_hash(const char *at)
{
    size_t digits = 0;

    while (*at == '-' && isxdigit((unsigned char)at[1 + digits]))
        digits++;
    return digits < HASH_MIN ? at : at + 1 + digits;
}

/* The simulated library for a file of this name, into `path`: of the same first number behind ".so", or of
 * none. */
static bool simulated(const char *base, char path[PATH_MAX])
{
    const char *end = stem_end(base), *suffix = end ? skip_hash(end) : NULL;
    size_t length;

    if (!*directory || !suffix || strncmp(suffix, ".so", 3) || (suffix[3] && suffix[3] != '.'))
        return false;
    length = suffix[3] ? 4 + strcspn(suffix + 4, ".") : 3;
    return snprintf(path, PATH_MAX, "%s/%.*s%.*s", directory, (int)(end - base), base, (int)length, suffix) <
               PATH_MAX &&
           access(path, R_OK) == 0;
}

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* As simulated(), for a file that is there; one without a version in its name is a link to one that has
 * it. */
static bool simulated_file(const char *file, char path[PATH_MAX])
{
    char real[PATH_MAX];

    if (!stem_end(base_of(file)) || !realpath(file, real))
        return false;
    return simulated(base_of(file), path) || simulated(base_of(real), path);
}

/* A line in the run's file. Files of the simulator itself are none that anything stood in for. */
static void tell(const char *file, const char *path)
{
    const char *place = getenv("MEMSIM_DISPLACE");
    char line[2 * PATH_MAX + 2], real[PATH_MAX], list[PATH_MAX];
    size_t length = strlen(directory);
    int fd;

    if (!place || !realpath(file, real) || strpbrk(real, "\n\t") ||
        (!strncmp(real, directory, length) && real[length] == '/') ||
        snprintf(list, sizeof(list), "%s/displaced", place) >= (int)sizeof(list))
        return;
    fd = open(list, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    length = (size_t)snprintf(line, sizeof(line), "%s\t%s\n", real, path);
    while (write(fd, line, length) < 0 && errno == EINTR)
        ;
    close(fd);
}

/* Has the simulated library loaded, under `name` too. */
static void load(const char *name, const char *path)
{
    const char *place = getenv("MEMSIM_DISPLACE");
    char link[PATH_MAX];

    if (!next_dlopen(path, RTLD_LAZY) || !strcmp(name, base_of(path)))
        return;
    if (place && snprintf(link, sizeof(link), "%s/%s", place, name) < (int)sizeof(link) &&
        (symlink(path, link) == 0 || errno == EEXIST))
        next_dlopen(name, RTLD_LAZY);
}

/* Prepares the libraries that `file` needs, and what those of them need that it finds by a path of its
 * own. */
static void prepare(const char *file, unsigned depth)
{
    char path[PATH_MAX], found[PATH_MAX];
    struct needs needs;
    size_t i;

    needs_read(file, &needs);
    for (i = 0; i < needs.count; i++) {
        bool there = !strchr(needs.names[i], '/') && needs_find(needs.path, file, needs.names[i], found);

        if (there && simulated(needs.names[i], path)) {
            load(needs.names[i], path);
            tell(found, path);
        } else if (there && depth < DEPTH_MAX) {
            void *loaded = next_dlopen(found, RTLD_LAZY | RTLD_NOLOAD);

            if (loaded)
                dlclose(loaded);
            else
                prepare(found, depth + 1);
        }
    }
    needs_free(&needs);
}

/* The path for as long as the process lives: there are few. NULL if there is no memory. */
static const char *keep(const char *path)
{
    static char *kept[16];
    char *mine = strdup(path), *other;
    size_t i;

    for (i = 0; mine && i < sizeof(kept) / sizeof(*kept); i++) {
        other = NULL;
        if (__atomic_compare_exchange_n(&kept[i], &other, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            return mine;
        if (!strcmp(other, mine)) {
            free(mine);
            return other;
        }
    }
    free(mine);
    return NULL;
}

/* A name that the search path has: it stays the name. */
static void prepare_name(const char *name)
{
    char path[PATH_MAX], found[PATH_MAX];

    if (!simulated(name, path) || !needs_find(getenv("LD_LIBRARY_PATH"), "", name, found))
        return;
    load(name, path);
    tell(found, path);
}

/* The file that is to be opened in the place of `file`, which may be NULL. Kept out of dlopen, whose frame
 * has to be gone when it leaves. */
static __attribute__((noinline)) const char *chosen(const char *file)
{
    const char *instead;
    char path[PATH_MAX];

    if (!file || !*directory)
        return file;
    if (!strchr(file, '/')) {
        prepare_name(file);
        return file;
    }
    if (access(file, R_OK) < 0)
        return file;
    if (!simulated_file(file, path)) {
        prepare(file, 0);
        return file;
    }
    instead = keep(path);
    if (!instead)
        return file;
    tell(file, path);
    return instead;
}

#if defined(__has_attribute) && __has_attribute(musttail)
#define JUMP __attribute__((musttail)) return
#define JUMPS
#else
#define JUMP  return
#define JUMPS __attribute__((optimize("O2")))
#endif

/** The C library's is next. It is left by a jump, so that it sees who called, whose path is searched. */
EXPORTED JUMPS void *dlopen(const char *file, int flags)
{
    int saved = errno;

    if (!__atomic_load_n(&next_dlopen, __ATOMIC_ACQUIRE))
        begin();
    file = chosen(file);
    errno = saved;
    JUMP next_dlopen(file, flags);
}
