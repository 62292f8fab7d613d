/* displaced.c - which files of a program's own the simulated libraries stood in for; see displaced.h.
 *
 * Floor 5. The directory has links under the names that were asked for, and the file `displaced`: lines
 * "FILE<tab>SIMULATED". What a process writes there is not to be trusted: it is printed with control
 * characters escaped, and read up to a bound. */
#include "cli/run/displaced.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/run/rundir.h"
#include "report/text/text.h"

enum { SHOWN = 8, BYTES_MAX = 1 << 20 };

char *ms_displaced_begin(void)
{
    const char *inherited = getenv("LD_LIBRARY_PATH");
    char *directory = ms_rundir_make(), *path = NULL;

    if (!directory)
        return NULL;
    if (strpbrk(directory, ":;") ||
        asprintf(&path, "%s%s%s", directory, inherited ? ":" : "", inherited ? inherited : "") < 0 ||
        setenv("LD_LIBRARY_PATH", path, 1) < 0 || setenv(MS_RUNDIR_VARIABLE, directory, 1) < 0) {
        ms_rundir_remove(directory);
        directory = NULL;
    }
    free(path);
    return directory;
}

void ms_displaced_end(char *directory)
{
    ms_rundir_remove(directory);
}

/* All of it, malloc's; NULL if there is nothing. */
static char *read_all(const char *directory)
{
    char path[PATH_MAX], *text = NULL;
    ssize_t got = 0;
    struct stat st;
    int fd;

    if (!directory || snprintf(path, sizeof(path), "%s/displaced", directory) >= (int)sizeof(path))
        return NULL;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (text = malloc(BYTES_MAX + 1)))
        got = pread(fd, text, BYTES_MAX, 0);
    close(fd);
    if (text)
        text[got > 0 ? got : 0] = '\0';
    return text;
}

static void print_one(const char *file, const char *simulated)
{
    const char *slash = strrchr(simulated, '/');

    fputs("memshim: the simulated ", stderr);
    ms_text_put(stderr, slash ? slash + 1 : simulated);
    fputs(" stands in for ", stderr);
    ms_text_put(stderr, file);
    fputc('\n', stderr);
}

/* True if the file is one of the first `count`. */
static int is_among(char *const *files, size_t count, const char *file)
{
    size_t i;

    for (i = 0; i < count; i++)
        if (!strcmp(files[i], file))
            return 1;
    return 0;
}

void ms_displaced_print(const char *directory)
{
    char *text = read_all(directory), *rest = text, *line, *files[SHOWN];
    size_t count = 0;

    while (rest && (line = strsep(&rest, "\n"))) {
        char *simulated = line, *file = strsep(&simulated, "\t");

        if (!simulated || is_among(files, count, file))
            continue;
        if (count == SHOWN) {
            ms_cli_note("and for others of the program's libraries");
            break;
        }
        files[count++] = file;
        print_one(file, simulated);
    }
    free(text);
}
