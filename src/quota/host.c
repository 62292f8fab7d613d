/* host.c - see host.h. */
#include "quota/host.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 512, CHUNK_BYTES = 256, GROUP_BYTES = 320 };
/* A limit of version 1 that is none: the largest multiple of a page that its counter holds. */
#define NO_LIMIT (UINT64_C(1) << 62)

/* One caller at a time has them: they would be too much of a thread's stack. */
static char path[PATH_BYTES], line[GROUP_BYTES], group[GROUP_BYTES];

/* --- one number of a file --- */

enum place { AT_KEY, AT_NUMBER, AT_REST };

/* A line is the key, spaces and digits. */
struct scan {
    const char *key;
    size_t matched;
    enum place place;
    bool has_digits;
    uint64_t number;
};

/* True when the number is whole. */
static bool scan_step(struct scan *scan, char c)
{
    if (scan->place == AT_KEY && !scan->key[scan->matched])
        scan->place = AT_NUMBER;
    if (scan->place == AT_NUMBER && c >= '0' && c <= '9') {
        scan->number = scan->number * 10 + (uint64_t)(c - '0');
        scan->has_digits = true;
    } else if (scan->has_digits) {
        return true;
    } else if (c == '\n') {
        scan->place = AT_KEY;
        scan->matched = 0;
    } else if (scan->place == AT_KEY && c == scan->key[scan->matched]) {
        scan->matched++;
    } else if (scan->place == AT_KEY || c != ' ') {
        scan->place = AT_REST;
    }
    return false;
}

/* The number behind `key` at the beginning of a line. */
static bool file_number(const char *key, uint64_t *number_p)
{
    struct scan scan = {.key = key};
    char chunk[CHUNK_BYTES];
    bool whole = false;
    ssize_t got;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    while (!whole && (got = read(fd, chunk, sizeof chunk)) > 0) {
        for (ssize_t i = 0; i < got && !whole; i++)
            whole = scan_step(&scan, chunk[i]);
    }
    close(fd);
    *number_p = scan.number;
    return scan.has_digits;
}

/* --- control groups --- */

/* The two versions differ in where groups lie and how their files are called. */
struct version {
    const char *mount, *limit, *used, *droppable; /* the last a key of memory.stat */
};
static const struct version versions[2] = {
    {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
};

/* A line of /proc/self/cgroup: "0::/group" in version 2, "4:cpu,memory:/group" in version 1. */
static const struct version *version_of(void)
{
    const char *names = strchr(line, ':');
    if (names && names[1] == ':' && line[0] == '0')
        return &versions[0];
    return names && strstr(names, "memory:/") ? &versions[1] : NULL;
}

static uint64_t left_in(const char *root, const struct version *version)
{
    uint64_t limit, used, droppable = 0;
    snprintf(path, sizeof path, "%.64s%s%s/%s", root, version->mount, group, version->limit);
    if (!file_number("", &limit) || limit >= NO_LIMIT)
        return UINT64_MAX;
    snprintf(path, sizeof path, "%.64s%s%s/%s", root, version->mount, group, version->used);
    if (!file_number("", &used))
        return UINT64_MAX;
    snprintf(path, sizeof path, "%.64s%s%s/memory.stat", root, version->mount, group);
    file_number(version->droppable, &droppable);
    used -= droppable < used ? droppable : used;
    return limit > used ? limit - used : 0;
}

/* The group that the line names and all that it lies in. In a container the path may be the host's, and only
 * the last of them is there: the container's own. */
static uint64_t left_along(const char *root)
{
    const struct version *version = version_of();
    uint64_t least = UINT64_MAX;
    char *slash;
    if (!version)
        return UINT64_MAX;
    snprintf(group, sizeof group, "%s", strchr(strchr(line, ':') + 1, ':') + 1);
    do {
        slash = strrchr(group, '/');
        if (slash && !slash[1])
            *slash = '\0'; /* the topmost is "/" */
        uint64_t left = left_in(root, version);
        least = left < least ? left : least;
        slash = strrchr(group, '/');
        if (slash)
            *slash = '\0';
    } while (slash);
    return least;
}

static uint64_t left_in_groups(const char *root)
{
    uint64_t least = UINT64_MAX;
    char chunk[CHUNK_BYTES];
    size_t length = 0;
    ssize_t got;
    snprintf(path, sizeof path, "%.64s/proc/self/cgroup", root);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return least;
    while ((got = read(fd, chunk, sizeof chunk)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (chunk[i] != '\n') {
                line[length] = chunk[i];
                length += length < sizeof line - 1;
                continue;
            }
            line[length] = '\0';
            length = 0;
            uint64_t left = left_along(root);
            least = left < least ? left : least;
        }
    }
    close(fd);
    return least;
}

bool ms_host_read(const char *root, struct ms_host *host_p)
{
    snprintf(path, sizeof path, "%.64s/proc/meminfo", root);
    if (!file_number("MemTotal:", &host_p->total_bytes) ||
        !file_number("MemAvailable:", &host_p->available_bytes))
        return false;
    host_p->total_bytes <<= 10;
    host_p->available_bytes <<= 10;
    host_p->group_bytes = left_in_groups(root);
    return true;
}
