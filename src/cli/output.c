/* output.c - where a verb prints: standard output, or a file that appears whole or not at all.
 *
 * Floor 5. One output at a time. A directory may be shared with people who plant links and pipes under the
 * names that are to come: a file is made anew beside its name (base/files.h) and moved there. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "base/options/options.h"
#include "cli/cli.h"
#include "cli/wrap.h"
#include "report/text/text.h"

static struct {
    char path[PATH_MAX]; /* "": standard output, or a device */
    char temporary[PATH_MAX + 32];
    enum ms_file_place place;
} output;

bool ms_cli_take_printing(struct ms_cli_printing *printing, int id, const char *value)
{
    switch (id) {
    case 'j':
        printing->json = true;
        return true;
    case 'f':
        printing->force = true;
        return true;
    case 'a':
        ms_text_show_all_frames();
        return true;
    case 'o':
        printing->output = value;
        return true;
    default:
        return false;
    }
}

/* A device that the user named, such as /dev/null. Nobody but root can make one where others may write. */
static int open_device(const char *path)
{
    struct stat st;
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode) || fcntl(fd, F_SETFL, 0) < 0)) {
        close(fd);
        errno = EEXIST;
        return -1;
    }
    return fd;
}

static const char *output_kind_of(mode_t mode)
{
    return S_ISLNK(mode)    ? "a link"
           : S_ISDIR(mode)  ? "a directory"
           : S_ISFIFO(mode) ? "a pipe"
                            : "no regular file";
}

static FILE *open_new(const char *path, mode_t mode, enum ms_file_place place)
{
    FILE *file;
    int fd;

    if ((size_t)snprintf(output.path, sizeof(output.path), "%s", path) >= sizeof(output.path)) {
        errno = ENAMETOOLONG;
        fd = -1;
    } else {
        fd = ms_file_create_beside(path, mode, output.temporary, sizeof(output.temporary));
    }
    output.place = place;
    file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file) {
        ms_cli_error("cannot write %s: %s", path, strerror(errno));
        if (fd >= 0) {
            unlink(output.temporary);
            close(fd);
        }
        output.path[0] = '\0';
    }
    return file;
}

FILE *ms_cli_open_placed(const char *path, mode_t mode, enum ms_file_place place)
{
    struct stat st;

    if (lstat(path, &st) == 0) {
        if (!S_ISREG(st.st_mode)) {
            ms_cli_error("%s exists and is %s; it is not written to, nor replaced", path,
                         output_kind_of(st.st_mode));
            return NULL;
        }
        if (place == MS_FILE_NEW) {
            ms_cli_error("%s exists; give -f to replace it", path);
            return NULL;
        }
    }
    return open_new(path, mode, place);
}

FILE *ms_cli_open_output(const char *path, bool force)
{
    struct stat st;
    FILE *file;
    int fd;

    if (!path || !strcmp(path, "-"))
        return stdout;
    if (lstat(path, &st) < 0 || !S_ISCHR(st.st_mode)) {
        ms_options_load(environ, NULL, NULL);
        return ms_cli_open_placed(path, ms_file_mode(), force ? MS_FILE_REPLACE : MS_FILE_NEW);
    }
    fd = open_device(path);
    file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file)
        ms_cli_error("cannot write %s: %s", path, strerror(errno));
    return file;
}

static int output_publish(const struct stat *written)
{
    int result = ms_file_publish(written, output.temporary, output.path, sizeof(output.path), output.place);

    if (result < 0)
        ms_cli_error("cannot write %s: %s", output.path,
                     errno == ESTALE ? "somebody put another file there" : strerror(errno));
    return result;
}

void ms_cli_discard_output(FILE *out)
{
    if (out != stdout)
        fclose(out);
    if (*output.path)
        unlink(output.temporary);
    output.path[0] = '\0';
}

int ms_cli_close_output(FILE *out)
{
    struct stat written = {.st_ino = 0};
    bool failed = ferror(out) || fflush(out) != 0 || fstat(ms_text_fd(out), &written) < 0;
    int error = errno;

    if (out == stdout)
        ms_wrap_end();
    else
        failed = fclose(out) != 0 || failed;
    if (failed) {
        ms_cli_error("cannot write %s: %s", *output.path ? output.path : "the output", strerror(error));
        if (*output.path)
            unlink(output.temporary);
    } else if (*output.path) {
        failed = output_publish(&written) < 0;
    }
    output.path[0] = '\0';
    return failed ? MS_EXIT_USAGE : MS_EXIT_OK;
}
