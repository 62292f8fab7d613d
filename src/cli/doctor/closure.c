/* closure.c - the libraries that a program will be loaded with; see closure.h.
 *
 * Floor 5. The loader's cache is read in its current form, "glibc-ld.so.cache1.1": a header of 48 bytes,
 * entries of 24, and offsets of strings from the start of the file. */
#include "cli/doctor/closure.h"

#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

#define ROWS_MAX                                                                                             \
    4096 /* more objects than any program has; a guard against libraries that name each other in a ring of   \
            links */

struct cache_header {
    char magic[20];
    uint32_t count;
    uint32_t string_bytes;
    uint8_t flags, padding[3];
    uint32_t extension;
    uint32_t unused[3];
};

struct cache_entry {
    int32_t flags;
    uint32_t name, path;
    uint32_t os_version;
    uint64_t hardware;
};

static const char *cache_text(const char *cache, size_t bytes, uint32_t offset)
{
    return offset < bytes && memchr(cache + offset, '\0', bytes - offset) ? cache + offset : NULL;
}

/* A file that the loader would take: an ELF file for this machine, of this size of word. */
static bool is_usable(const char *path)
{
    unsigned char start[20];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd < 0 ? -1 : pread(fd, start, sizeof(start), 0);

    if (fd >= 0)
        close(fd);
    return got == sizeof(start) && !memcmp(start, ELFMAG, SELFMAG) && start[EI_CLASS] == ELFCLASS64 &&
           (start[18] | start[19] << 8) == ms_elf_own_machine();
}

static char *search_cache(const char *cache, size_t bytes, const char *name)
{
    const struct cache_header *header = (const void *)cache;
    const struct cache_entry *entries = (const void *)(header + 1);
    size_t i;

    if (bytes < sizeof(*header) || memcmp(header->magic, "glibc-ld.so.cache1.1", 20) ||
        header->count > (bytes - sizeof(*header)) / sizeof(*entries))
        return NULL;
    for (i = 0; i < header->count; i++) {
        const char *own = cache_text(cache, bytes, entries[i].name);
        const char *path = cache_text(cache, bytes, entries[i].path);

        if (own && path && !strcmp(own, name) && is_usable(path))
            return strdup(path);
    }
    return NULL;
}

static char *find_in_cache(const char *name)
{
    int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC);
    struct stat st;
    char *found = NULL;
    void *cache;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        cache = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (cache != MAP_FAILED) {
            found = search_cache(cache, (size_t)st.st_size, name);
            munmap(cache, (size_t)st.st_size);
        }
    }
    close(fd);
    return found;
}

/* A directory of a search path with $ORIGIN put in; `origin` is the file whose path it is, NULL for
 * LD_LIBRARY_PATH. */
static char *expand(const char *directory, size_t length, const char *origin)
{
    static const char *const tokens[] = {"$ORIGIN", "${ORIGIN}"};
    const char *slash = origin ? strrchr(origin, '/') : NULL;
    char *text, *at;
    size_t i;

    if (!length)
        return strdup(".");
    text = strndup(directory, length);
    for (i = 0; text && i < MS_ARRAY_LEN(tokens); i++) {
        char *joined;

        at = strstr(text, tokens[i]);
        if (!at)
            continue;
        if (asprintf(&joined, "%.*s%.*s%s", (int)(at - text), text, slash ? (int)(slash - origin) : 1,
                     slash ? origin : ".", at + strlen(tokens[i])) < 0)
            joined = NULL;
        free(text);
        text = joined;
    }
    return text;
}

static char *search_path(const char *path, const char *origin, const char *name)
{
    char *directory, *candidate;
    size_t length;

    while (path) {
        length = strcspn(path, ":");
        directory = expand(path, length, origin);
        candidate = NULL;
        if (directory && asprintf(&candidate, "%s/%s", directory, name) < 0)
            candidate = NULL;
        free(directory);
        if (candidate && is_usable(candidate))
            return candidate;
        free(candidate);
        path = path[length] ? path + length + 1 : NULL;
    }
    return NULL;
}

char *ms_closure_find(const char *name)
{
    char *found = search_path(getenv("LD_LIBRARY_PATH"), NULL, name);

    if (!found)
        found = find_in_cache(name);
    return found ? found : search_path("/lib64:/usr/lib64:/lib:/usr/lib", NULL, name);
}

/* DT_RPATH counts for the object that has it and for what it brings in, but not for one that has a
 * DT_RUNPATH. */
static char *search_rpaths(const struct ms_closure *closure, size_t user, const char *name)
{
    const struct ms_loaded *row = &closure->rows[user];
    char *found = NULL;

    if (row->elf.runpath)
        return NULL;
    for (;; row = &closure->rows[row->parent]) {
        if (row->elf.rpath && !row->elf.runpath)
            found = search_path(row->elf.rpath, row->elf.path, name);
        if (found || row == closure->rows)
            return found;
    }
}

static char *resolve(const struct ms_closure *closure, size_t user, const char *name)
{
    const struct ms_elf_program *elf = &closure->rows[user].elf;
    char *found;

    if (strchr(name, '/'))
        return is_usable(name) ? strdup(name) : NULL;
    found = search_rpaths(closure, user, name);
    if (!found)
        found = search_path(getenv("LD_LIBRARY_PATH"), NULL, name);
    if (!found && elf->runpath)
        found = search_path(elf->runpath, elf->path, name);
    return found ? found : ms_closure_find(name);
}

static bool closure_has(const struct ms_closure *closure, const char *name)
{
    size_t i;

    for (i = 0; i < closure->count; i++)
        if (!strcmp(closure->rows[i].name, name) ||
            (closure->rows[i].elf.soname && !strcmp(closure->rows[i].elf.soname, name)))
            return true;
    return false;
}

static void closure_add(struct ms_closure *closure, size_t user, const char *name, const char *path)
{
    struct ms_loaded *grown = realloc(closure->rows, (closure->count + 1) * sizeof(*grown));
    struct ms_loaded *row;

    if (!grown)
        return;
    closure->rows = grown;
    row = &grown[closure->count];
    *row = (struct ms_loaded){.name = strdup(name), .parent = user, .found = path != NULL};
    if (!row->name)
        return;
    if (path)
        ms_elf_read(path, &row->elf);
    closure->count++;
}

void ms_closure_read(const char *path, struct ms_closure *closure_p)
{
    size_t user, i;

    *closure_p = (struct ms_closure){NULL, 0};
    closure_add(closure_p, 0, path, path);
    for (user = 0; user < closure_p->count; user++) {
        for (i = 0; i < closure_p->rows[user].elf.needed_count && closure_p->count < ROWS_MAX; i++) {
            const char *name = closure_p->rows[user].elf.needed[i];
            char *found;

            if (closure_has(closure_p, name))
                continue;
            found = resolve(closure_p, user, name);
            closure_add(closure_p, user, name, found);
            free(found);
        }
    }
}

void ms_closure_free(struct ms_closure *closure)
{
    size_t i;

    for (i = 0; i < closure->count; i++) {
        free(closure->rows[i].name);
        ms_elf_free(&closure->rows[i].elf);
    }
    free(closure->rows);
}
