/* test_page.c - what stands in the place of a page: links, pipes, other lengths, versions, devices and random
 * bytes are told in one line, and the process runs as it would alone. */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/options/options.h"
#include "share/page_file.h"
#include "tests/share/share.h"

static char path[PATH_MAX];

/* How a process of its own joins, and what it is told. */
static enum ms_share_joined joined(const struct ms_share_wish *wish, char *why, size_t bytes)
{
    int status, pipes[2];
    ssize_t length;
    if (pipe(pipes) != 0)
        bail("no pipe");
    pid_t child = fork();
    if (child == 0) {
        ms_at_fork_run(MS_FORK_SERVICE);
        enum ms_share_joined how = ms_share_join(wish, why, bytes);
        bool is_alone = !ms_share_of(wish->device);
        if (write(pipes[1], why, strlen(why)) < 0 || is_alone != (how == MS_SHARE_ALONE))
            _exit(99);
        _exit((int)how);
    }
    close(pipes[1]);
    length = read(pipes[0], why, bytes - 1);
    why[length > 0 ? length : 0] = '\0';
    close(pipes[0]);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return (enum ms_share_joined)98;
    return (enum ms_share_joined)WEXITSTATUS(status);
}

static void wants(enum ms_share_joined how, const char *reason, const char *what)
{
    struct ms_share_wish wish = share_wish(share_directory("page"), 0);
    char why[400];
    enum ms_share_joined is = joined(&wish, why, sizeof why);
    ok(is == how && strstr(why, reason), "%s: %s", what, *why ? why : "it joins");
    if (is != how || !strstr(why, reason))
        diag("it was %d, not %d", is, how);
}

static void put(const void *bytes, size_t count, mode_t mode)
{
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0 || write(fd, bytes, count) != (ssize_t)count || fchmod(fd, mode) != 0)
        bail("cannot write %s", path);
    close(fd);
}

static struct ms_share_page page;

static void page_begin(void)
{
    memset((void *)&page, 0, sizeof page);
    memcpy(page.head.magic, MS_SHARE_MAGIC, 8);
    page.head.version = MS_SHARE_VERSION;
    page.head.row_bytes = sizeof page.rows[0];
    for (int i = 0; i < 16; i++)
        page.head.uuid[i] = (uint8_t)(i + 1);
    page.head.total_bytes = TOTAL;
}

static void put_page(mode_t mode)
{
    put(&page, sizeof page, mode);
}

/* A process that stays on the page as long as this one lives: it holds the lock of a row. */
static void hold(int fd)
{
    int pipes[2];
    char byte;
    if (pipe(pipes) != 0)
        bail("no pipe");
    if (fork() == 0) {
        pid_t parent = getppid();
        if (!ms_page_lock(fd, 3, 1, true) || write(pipes[1], "", 1) != 1)
            _exit(1);
        while (getppid() == parent)
            usleep(10000);
        _exit(0);
    }
    if (read(pipes[0], &byte, 1) != 1)
        bail("no process holds the page");
}

static void check_kinds(void)
{
    char other[PATH_MAX + 8];
    snprintf(other, sizeof other, "%s.x", path);
    wants(MS_SHARE_JOINED, "", "there is none");
    wants(MS_SHARE_JOINED, "", "there is one already");
    unlink(path);
    if (symlink("/etc/passwd", path) != 0)
        bail("no link");
    wants(MS_SHARE_ALONE, "is a link", "a link");
    unlink(path);
    if (symlink(other, path) != 0)
        bail("no link");
    wants(MS_SHARE_ALONE, "is a link", "a link to nowhere");
    ok(access(other, F_OK) != 0, "makes nothing there");
    unlink(path);
    if (mkfifo(path, 0600) != 0)
        bail("no pipe");
    wants(MS_SHARE_ALONE, "is no regular file", "a pipe, at which nobody waits");
    unlink(path);
    if (mkdir(path, 0700) != 0)
        bail("no directory");
    wants(MS_SHARE_ALONE, "is no regular file", "a directory");
    rmdir(path);
    page_begin();
    put_page(0600);
    if (link(path, other) != 0)
        bail("no second name");
    wants(MS_SHARE_ALONE, "has another name", "a file with a second name");
    unlink(other);
    wants(MS_SHARE_JOINED, "", "and without");
}

static void check_forms(void)
{
    static unsigned char noise[sizeof(struct ms_share_page)];
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (unsigned char)random();
    put("", 0, 0600);
    wants(MS_SHARE_ALONE, "is no page", "an empty file");
    put(noise, sizeof noise, 0600);
    wants(MS_SHARE_ALONE, "is no page", "random bytes");
    page_begin();
    put(&page, sizeof page - 1, 0600);
    wants(MS_SHARE_ALONE, "not as long", "a page that was cut");
    put(&page, 100, 0600);
    wants(MS_SHARE_ALONE, "is no page", "its first bytes");
    page.head.row_bytes++;
    put_page(0600);
    wants(MS_SHARE_ALONE, "not as long", "rows of another length");
    page_begin();
    page.head.uuid[0]++;
    put_page(0600);
    wants(MS_SHARE_ALONE, "another device's", "another device's");
    page_begin();
    page.head.version = 7;
    put(&page, sizeof page.head, 0600);
    int fd = open(path, O_RDWR);
    hold(fd);
    wants(MS_SHARE_ALONE, "of another version", "a page of another version, with a process in it");
    page.head.version = 8;
    put(&page, sizeof page.head, 0600);
    wants(MS_SHARE_JOINED, "", "one of another version that was left");
    close(fd);
}

/* Rows of random bytes change what a process is told, and never crash or hold it: no number in them is an
 * index. */
static void check_noise(void)
{
    unsigned char *rows = (unsigned char *)(void *)page.rows;
    unsigned sound = 0;
    for (int turn = 0; turn < 20; turn++) {
        page_begin();
        for (size_t i = 0; i < sizeof page.rows; i++)
            rows[i] = (unsigned char)random();
        page.head.rows_taken = turn % 2 ? (uint64_t)random() << 32 : 127;
        page.head.others_bytes = (uint64_t)random() << (turn % 40);
        put_page(0600);
        struct ms_share_wish wish = share_wish(share_directory("page"), 100);
        char why[400];
        enum ms_share_joined how = joined(&wish, why, sizeof why);
        sound += how <= MS_SHARE_ALONE;
    }
    ok(sound == 20, "rows of random bytes: %u of 20 processes are answered", sound);
    unlink(path);
}

static void check_places(void)
{
    char why[400], missing[PATH_MAX + 8];
    struct ms_share_wish wish = share_wish(missing, 0);
    snprintf(missing, sizeof missing, "%s/none", share_directory("page"));
    ok(joined(&wish, why, sizeof why) == MS_SHARE_ALONE && strstr(why, "No such file"), "no directory: %s",
       why);
    wish.directory = share_directory("page");
    chmod(wish.directory, 0777);
    ok(joined(&wish, why, sizeof why) == MS_SHARE_ALONE && strstr(why, "nobody but its group"),
       "a directory of everybody's: %s", why);
    chmod(wish.directory, 0500);
    if (geteuid() == 0)
        skip(1, "root may write everywhere");
    else
        ok(joined(&wish, why, sizeof why) == MS_SHARE_ALONE && strstr(why, "ermission"),
           "a directory to read: %s", why);
    chmod(wish.directory, 0700);
    snprintf(missing, sizeof missing, "MEMSHIM_DIR=%s", wish.directory);
    char *environment[] = {missing, NULL};
    ms_options_load(environment, NULL, NULL);
    wish.directory = NULL;
    ok(joined(&wish, why, sizeof why) == MS_SHARE_JOINED, "without a group it lies where the ledgers lie: %s",
       why);
}

/* A file system without room, as /dev/shm of a container may be. */
static void check_full(void)
{
    char where[PATH_MAX + 16], why[400], filler[PATH_MAX + 32];
    struct ms_share_wish wish = share_wish(where, 0);
    snprintf(where, sizeof where, "%s/full", share_directory("page"));
    if (mkdir(where, 0700) != 0 || mount("none", where, "tmpfs", 0, "size=64k,mode=0700") != 0) {
        skip(2, "no file system may be mounted here");
        return;
    }
    snprintf(filler, sizeof filler, "%s/x", where);
    int fd = open(filler, O_WRONLY | O_CREAT, 0600);
    ok(fd >= 0 && posix_fallocate(fd, 0, 60000) == 0, "a file system of 64 KiB is nearly full");
    ok(joined(&wish, why, sizeof why) == MS_SHARE_ALONE && strstr(why, "No space"),
       "there is no room for a page: %s", why);
    close(fd);
    umount(where);
}

/* No signal comes of a limit for files. */
static void check_limited(void)
{
    struct ms_share_wish wish = share_wish(share_directory("page"), 0);
    struct rlimit before, least = {0};
    char why[400];
    unlink(path);
    getrlimit(RLIMIT_FSIZE, &before);
    least.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_FSIZE, &least);
    enum ms_share_joined how = joined(&wish, why, sizeof why);
    setrlimit(RLIMIT_FSIZE, &before);
    ok(how == MS_SHARE_ALONE && strstr(why, "too large"), "files of no bytes at all: %s", why);
    ok(joined(&wish, why, sizeof why) == MS_SHARE_JOINED, "and without that limit a page is made");
    setrlimit(RLIMIT_FSIZE, &least);
    how = joined(&wish, why, sizeof why);
    setrlimit(RLIMIT_FSIZE, &before);
    ok(how == MS_SHARE_JOINED, "which may be used under it");
}

static void check_many(void)
{
    struct ms_share_wish wish = share_wish(share_directory("page"), 0);
    char why[400];
    int fd;
    struct stat status;
    struct ms_page_wish page_wish = {.path = path, .is_shared = true, .total_bytes = TOTAL};
    memcpy(page_wish.uuid, wish.uuid, 16);
    ok(ms_page_open(&page_wish, &fd, &status, why, sizeof why) != NULL, "a page is made");
    ok(ms_page_lock(fd, 0, MS_SHARE_ROWS - 1, true), "and all rows but one taken");
    ok(joined(&wish, why, sizeof why) == MS_SHARE_JOINED, "one more process joins");
    ok(ms_page_lock(fd, MS_SHARE_ROWS - 1, 1, true), "it ends, and its row is taken too");
    ok(joined(&wish, why, sizeof why) == MS_SHARE_ALONE && strstr(why, "127 processes"),
       "the next one is alone: %s", why);
}

/* The sum of guarantees is no more than there is. */
static void check_guarantees(void)
{
    char why[400];
    struct ms_share_wish wish = share_wish(share_directory("page"), 600);
    unlink(path);
    ok(ms_share_join(&wish, why, sizeof why) == MS_SHARE_JOINED, "one has a guarantee");
    wish.guarantee_bytes = 400;
    ok(joined(&wish, why, sizeof why) == MS_SHARE_JOINED, "what is left is another's");
    wish.guarantee_bytes = 401;
    ok(joined(&wish, why, sizeof why) == MS_SHARE_UNGUARANTEED && strstr(why, "1 bytes more"),
       "one more is not: %s", why);
}

int main(void)
{
    plan(0);
    srandom(1);
    share_path(path, sizeof path, share_directory("page"));
    check_kinds();
    check_forms();
    check_noise();
    check_places();
    check_full();
    check_limited();
    check_many();
    check_guarantees();
    return done();
}
