/* output.c - where a verb prints: standard output, or a file that appears whole or not at all.
 *
 * Floor 5. One output at a time. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

static struct {
    char *path; /* NULL: standard output, or something that is no regular file */
    char *temporary;
    bool force;
} output;

/* A regular file is written beside its name and moved there; anything else (a pipe, a terminal) is written as
 * it goes. */
static FILE *open_temporary(const char *path, bool force)
{
    FILE *file;
    int fd;

    if (asprintf(&output.temporary, "%s.XXXXXX", path) < 0)
        return NULL;
    fd = mkstemp(output.temporary);
    if (fd < 0)
        return NULL;
    output.path = strdup(path);
    output.force = force;
    file = fdopen(fd, "w");
    if (!file)
        close(fd);
    return file;
}

bool ms_cli_take_printing(struct ms_cli_printing *printing, int id, const char *value)
{
    switch (id) {
    case 'j':
        printing->json = true;
        return true;
    case 'f':
        printing->force = true;
        return true;
    case 'o':
        printing->output = value;
        return true;
    default:
        return false;
    }
}

FILE *ms_cli_open_output(const char *path, bool force)
{
    struct stat st;
    FILE *file;

    if (!path || !strcmp(path, "-"))
        return stdout;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        file = fopen(path, "w");
    } else if (lstat(path, &st) == 0 && !force) {
        ms_cli_error("%s exists; give -f to replace it", path);
        return NULL;
    } else {
        file = open_temporary(path, force);
    }
    if (!file)
        ms_cli_error("cannot write %s: %s", path, strerror(errno));
    return file;
}

static int publish(void)
{
    unsigned flags = output.force ? 0 : RENAME_NOREPLACE;
    mode_t mask = umask(0);
    int result;

    umask(mask);
    chmod(output.temporary, 0666 & ~mask);
    result = renameat2(AT_FDCWD, output.temporary, AT_FDCWD, output.path, flags);
    if (result < 0 && errno == EINVAL && flags) /* a file system without the flag */
        result = rename(output.temporary, output.path);
    if (result < 0) {
        ms_cli_error("cannot write %s: %s", output.path, strerror(errno));
        unlink(output.temporary);
    }
    return result;
}

static void forget(void)
{
    free(output.path);
    free(output.temporary);
    output.path = output.temporary = NULL;
}

void ms_cli_discard_output(FILE *out)
{
    if (out != stdout)
        fclose(out);
    if (output.temporary)
        unlink(output.temporary);
    forget();
}

int ms_cli_close_output(FILE *out)
{
    bool failed = ferror(out) || fflush(out) != 0;
    int error = errno;

    if (out != stdout)
        failed = fclose(out) != 0 || failed;
    if (failed) {
        ms_cli_error("cannot write %s: %s", output.path ? output.path : "the output", strerror(error));
        if (output.temporary)
            unlink(output.temporary);
    } else if (output.path) {
        failed = publish() < 0;
    }
    forget();
    return failed ? MS_EXIT_USAGE : MS_EXIT_OK;
}
