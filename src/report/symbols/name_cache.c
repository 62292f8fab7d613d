/* name_cache.c - names of addresses that were looked up before, kept by build id; see name_cache.h.
 *
 * Floor 4, command line only. A file is
 * {"memshim":1,"state":S,"addresses":{"1f40":[[function,file,line,inlined],...]}}. */
#include "report/symbols/name_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "report/symbols/cache_directory.h"

enum {
    FORMAT = 1,
    ADDRESSES_MAX = 1 << 16,      /* a report that is made up must not fill the disk */
    FILE_BYTES_MAX = 64 * 1048576 /* no file of ours is as large */
};

struct ms_name_cache {
    json_t *root, *addresses; /* the second one is borrowed from the first */
    bool changed;
    char path[PATH_MAX];
};

static json_t *name_cache_read_file(const char *path, const char *state)
{
    struct stat st;
    int fd = ms_file_open_own(path, &st);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL; /* json_loadfd reads each byte by itself */
    json_t *root = file && st.st_size <= FILE_BYTES_MAX ? json_loadf(file, 0, NULL) : NULL;
    const char *kept = json_string_value(json_object_get(root, "state"));

    if (file)
        fclose(file);
    else if (fd >= 0)
        close(fd);
    if (kept && !strcmp(kept, state) && json_integer_value(json_object_get(root, "memshim")) == FORMAT &&
        json_is_object(json_object_get(root, "addresses")))
        return root;
    json_decref(root);
    return NULL;
}

/* A build id in hex, and nothing that could be a path. */
static bool is_name(const char *build_id)
{
    size_t length = strlen(build_id);

    return length >= 16 && length <= 128 && strspn(build_id, "0123456789abcdef") == length;
}

struct ms_name_cache *ms_name_cache_open(const char *build_id, const char *state)
{
    struct ms_name_cache *names = is_name(build_id) && *state ? calloc(1, sizeof(*names)) : NULL;
    size_t length;

    if (!names)
        return NULL;
    if (!ms_cache_directory("/names", names->path, sizeof(names->path))) {
        free(names);
        return NULL;
    }
    length = strlen(names->path);
    if ((size_t)snprintf(names->path + length, sizeof(names->path) - length, "/%s", build_id) <
        sizeof(names->path) - length)
        names->root = name_cache_read_file(names->path, state);
    if (!names->root)
        names->root = json_pack("{s:i, s:s, s:{}}", "memshim", FORMAT, "state", state, "addresses");
    names->addresses = json_object_get(names->root, "addresses");
    return names;
}

/* Longer than any number of 64 bits in hex. */
#define KEY_BYTES 20

bool ms_name_cache_find(const struct ms_name_cache *names, uint64_t pc, struct ms_location *locations,
                        size_t max, size_t *count_p)
{
    char key[KEY_BYTES];
    const json_t *rows;
    size_t i;

    snprintf(key, sizeof(key), "%" PRIx64, pc);
    rows = names ? json_object_get(names->addresses, key) : NULL;
    if (!json_is_array(rows) || json_array_size(rows) > max)
        return false;
    for (i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);

        locations[i] = (struct ms_location){
            .function = json_string_value(json_array_get(row, 0)),
            .file = json_string_value(json_array_get(row, 1)),
            .line = (int)json_integer_value(json_array_get(row, 2)),
            .inlined = json_is_true(json_array_get(row, 3)),
        };
    }
    *count_p = json_array_size(rows);
    return true;
}

void ms_name_cache_add(struct ms_name_cache *names, uint64_t pc, const struct ms_location *locations,
                       size_t count)
{
    char key[KEY_BYTES];
    json_t *rows = names && json_object_size(names->addresses) < ADDRESSES_MAX ? json_array() : NULL;
    size_t i;

    snprintf(key, sizeof(key), "%" PRIx64, pc);
    for (i = 0; rows && i < count; i++) {
        /* Names that are no UTF-8 are looked up each time. */
        if (json_array_append_new(rows, json_pack("[s?, s?, i, b]", locations[i].function, locations[i].file,
                                                  locations[i].line, (int)locations[i].inlined)) < 0) {
            json_decref(rows);
            return;
        }
    }
    if (rows && json_object_set_new(names->addresses, key, rows) == 0)
        names->changed = true;
}

/* Names that cannot be written are looked up again. */
static void write_file(const struct ms_name_cache *names)
{
    char temporary[PATH_MAX + 32], path[PATH_MAX];
    int fd = ms_file_create_beside(names->path, 0600, temporary, sizeof(temporary));
    struct stat written = {.st_ino = 0};

    if (fd < 0)
        return;
    snprintf(path, sizeof(path), "%s", names->path);
    if (json_dumpfd(names->root, fd, JSON_COMPACT) == 0 && fstat(fd, &written) == 0)
        ms_file_publish(&written, temporary, path, sizeof(path), MS_FILE_REPLACE);
    else
        unlink(temporary);
    close(fd);
}

void ms_name_cache_close(struct ms_name_cache *names)
{
    if (!names)
        return;
    if (names->changed)
        write_file(names);
    json_decref(names->root);
    free(names);
}
