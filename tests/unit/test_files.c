/* test_files.c - files in a directory where others may write: what is planted is not opened, followed or
 * replaced, also where it is planted between two calls. */
#include "base/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/options/options.h"
#include "tests/tap.h"

static char directory[] = "/tmp/memshim-files-XXXXXX";

static const char *in(const char *name)
{
    static char paths[4][PATH_MAX];
    static unsigned next;
    char *path = paths[next++ % 4];

    snprintf(path, PATH_MAX, "%s/%s", directory, name);
    return path;
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        bail("cannot write %s", path);
    close(fd);
}

static bool holds(const char *path, const char *text)
{
    char read_text[64] = "";
    int fd = open(path, O_RDONLY);

    if (fd < 0 || read(fd, read_text, sizeof read_text - 1) < 0)
        return false;
    close(fd);
    return strcmp(read_text, text) == 0;
}

/* What opening says, the descriptor closed again: 0 or errno. */
static int opened(int (*open_func)(const char *, struct stat *), const char *name)
{
    struct stat status;
    int fd = open_func(in(name), &status);

    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static void test_opening(void)
{
    write_file(in("plain"), "text");
    if (symlink("plain", in("link")) || symlink("/dev/zero", in("device")) || mkfifo(in("pipe"), 0600) ||
        mkdir(in("directory"), 0700))
        bail("cannot plant in %s", directory);
    is_int(opened(ms_file_open_regular, "plain"), 0, "a regular file is opened");
    is_int(opened(ms_file_open_regular, "link"), 0, "through a link as well");
    is_int(opened(ms_file_open_regular, "pipe"), EINVAL, "a pipe is not");
    is_int(opened(ms_file_open_regular, "device"), EINVAL, "nor a device");
    is_int(opened(ms_file_open_regular, "directory"), EISDIR, "nor a directory");
    is_int(opened(ms_file_open_regular, "missing"), ENOENT, "nor what is not there");
    is_int(opened(ms_file_open_own, "plain"), 0, "this user's file is");
    is_int(opened(ms_file_open_own, "link"), ELOOP, "a link to it is not");
    is_int(opened(ms_file_open_own, "pipe"), EINVAL, "nor a pipe");
    if (geteuid() != 0) {
        skip(1, "only root can give a file away");
        return;
    }
    if (chown(in("plain"), 65534, 65534) != 0)
        bail("cannot give a file away");
    is_int(opened(ms_file_open_own, "plain"), EPERM, "nor another user's file");
}

/* Makes a file and gives it its name, as a writer does. Returns 0 or errno; the name is in `path`. */
static int publish(char *path, enum ms_file_place place)
{
    char temporary[PATH_MAX + 32];
    struct stat status;
    int fd = ms_file_create_beside(path, 0640, temporary, sizeof temporary);

    if (fd < 0)
        return errno;
    if (write(fd, "report", 6) != 6 || fstat(fd, &status) != 0)
        bail("cannot write %s", temporary);
    close(fd);
    return ms_file_publish(&status, temporary, path, PATH_MAX, place) == 0 ? 0 : errno;
}

static int publish_as(const char *name, enum ms_file_place place, const char *expected)
{
    char path[PATH_MAX];
    int error;

    snprintf(path, sizeof path, "%s", in(name));
    error = publish(path, place);
    if (!error && expected)
        is_str(path, in(expected), "%s became %s", name, expected);
    return error;
}

static void test_publishing(void)
{
    struct stat status;
    mode_t mask = umask(077);

    is_int(publish_as("new.json", MS_FILE_NEW, "new.json"), 0, "a new file");
    umask(mask);
    ok(stat(in("new.json"), &status) == 0 && (status.st_mode & 07777) == 0640,
       "has the permissions that it was to have");
    is_int(publish_as("new.json", MS_FILE_NEW, NULL), EEXIST, "is not replaced where that was not said");
    is_int(publish_as("new.json", MS_FILE_NUMBERED, "new.2.json"), 0,
           "the second under one name has a number");
    is_int(publish_as("new.json", MS_FILE_NUMBERED, "new.3.json"), 0, "and the third the next one");
    is_int(publish_as("plainest", MS_FILE_NUMBERED, "plainest"), 0, "a name without an extension");
    is_int(publish_as("plainest", MS_FILE_NUMBERED, "plainest.2"), 0, "has it at the end");
    is_int(publish_as("new.json", MS_FILE_REPLACE, "new.json"), 0, "is replaced where that was said");
    write_file(in("victim"), "precious");
    if (symlink("victim", in("trap")) != 0)
        bail("cannot make a link");
    is_int(publish_as("trap", MS_FILE_REPLACE, NULL), ELOOP, "a link is not");
    is_int(publish_as("trap", MS_FILE_NEW, NULL), EEXIST, "nor taken for nothing");
    is_int(publish_as("trap", MS_FILE_NUMBERED, "trap.2"), 0, "and a number goes round it");
    is_int(publish_as("pipe", MS_FILE_REPLACE, NULL), EEXIST, "a pipe is not replaced");
    is_int(publish_as("directory", MS_FILE_REPLACE, NULL), EISDIR, "nor a directory");
    ok(holds(in("victim"), "precious"), "what a link leads to is untouched");
}

static atomic_bool stop;

/* Puts a link under the name again and again, for as long as somebody tries to write there. */
static void *plant(void *arg)
{
    char spare[PATH_MAX];

    snprintf(spare, sizeof spare, "%s/spare", directory);
    while (!atomic_load(&stop)) {
        if (symlink("victim", spare) == 0)
            rename(spare, arg);
        unlink(arg);
    }
    return NULL;
}

static void test_race(void)
{
    enum { TRIES = 300 };
    char path[PATH_MAX];
    pthread_t planter;
    int wrong = 0;

    snprintf(path, sizeof path, "%s", in("raced"));
    if (pthread_create(&planter, NULL, plant, path) != 0)
        bail("cannot start a thread");
    for (int i = 0; i < TRIES; i++) {
        static const enum ms_file_place places[] = {MS_FILE_REPLACE, MS_FILE_NEW};
        int error = publish(path, places[i % 2]);

        wrong += error && error != ELOOP && error != EEXIST && error != ESTALE && error != ENOENT;
    }
    atomic_store(&stop, true);
    pthread_join(planter, NULL);
    is_int(wrong, 0, "a name that others keep changing: written, or an error that says why not");
    ok(holds(in("victim"), "precious"), "and what they point it to is untouched");
}

int main(void)
{
    char command[PATH_MAX];

    plan(0);
    ms_options_load((char *[]){NULL}, NULL, NULL);
    if (!mkdtemp(directory))
        bail("cannot make %s", directory);
    test_opening();
    test_publishing();
    test_race();
    is_int((int)ms_file_mode(), 0600, "files are their owner's alone");
    ms_options_load((char *[]){(char *)"MEMSHIM_READERS=group", NULL}, NULL, NULL);
    is_int((int)ms_file_mode(), 0640, "unless that is said");
    snprintf(command, sizeof command, "rm -rf %s", directory);
    if (system(command) != 0)
        diag("%s stays", directory);
    return done();
}
