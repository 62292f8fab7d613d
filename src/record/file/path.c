/* path.c - the placeholders of MEMSHIM_REPORT and MEMSHIM_TRACE, from what the process wrote down of itself.
 *
 * Floor 2. No allocation. */
#include <stdio.h>
#include <string.h>

#include "record/file/process.h"
#include "record/file/path.h"

static const char *path_text_of(const char *key)
{
    const char *text = ms_process_text(key);
    return text ? text : "";
}

/* The text that `letter` stands for, written into `text` where it has to be made; NULL if it stands for
 * nothing. */
static const char *placeholder(char letter, char *text, size_t bytes)
{
    const char *executable = path_text_of("exe"), *slash = strrchr(executable, '/');
    text[0] = '\0';
    switch (letter) {
    case '%':
        return "%";
    case 'h':
        return *path_text_of("host") ? path_text_of("host") : "localhost";
    case 'p':
        snprintf(text, bytes, "%d", (int)ms_process()->pid);
        return text;
    case 'r':
        return *path_text_of("rank") ? path_text_of("rank") : "0";
    case 'R':
        if (*path_text_of("rank"))
            snprintf(text, bytes, ".%s", path_text_of("rank"));
        return text;
    case 'e':
        return *executable ? (slash ? slash + 1 : executable) : "unknown";
    default:
        return NULL;
    }
}

static int path_append(char *path, size_t bytes, size_t *used_p, const char *text, size_t count)
{
    if (count >= bytes - *used_p)
        return -1;
    memcpy(path + *used_p, text, count);
    *used_p += count;
    path[*used_p] = '\0';
    return 0;
}

int ms_path_expand(const char *pattern, const char *directory, char *path, size_t bytes)
{
    char made[256];
    size_t used = 0;
    if (*pattern != '/' && *directory) {
        if (path_append(path, bytes, &used, directory, strlen(directory)) != 0 ||
            path_append(path, bytes, &used, "/", 1) != 0)
            return -1;
    }
    while (*pattern) {
        const char *text = *pattern == '%' ? placeholder(pattern[1], made, sizeof made) : NULL;
        size_t count = text ? strlen(text) : 1;
        if (path_append(path, bytes, &used, text ? text : pattern, count) != 0)
            return -1;
        pattern += text ? 2 : 1;
    }
    return 0;
}
