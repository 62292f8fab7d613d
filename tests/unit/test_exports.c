/* test_exports.c - tokens: what is exported can be resolved by another process of this user and by nobody
 * else; what was freed, changed, moved or belongs to a process that has ended cannot, and each says why. */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/at_fork.h"
#include "base/options/options.h"
#include "record/ipc/ipc_exports.h"
#include "record/file/journal.h"
#include "tests/tap.h"

enum { MANY = 500 };
static const struct ms_ipc_export block = {.address = 0x7f0000200400,
                                           .offset = 0x400,
                                           .bytes = 5000,
                                           .segment_bytes = 1 << 21,
                                           .context = 0x1234,
                                           .device = 1,
                                           .handle = {1, 2, 3, 64}};
static char why[400];
static const char *unsaid;

static void start(const char *directory)
{
    char text[300], *environment[] = {text, NULL};

    snprintf(text, sizeof(text), "MEMSHIM_DIR=%s", directory);
    ms_options_load(environment, NULL, NULL);
    ms_at_fork_run(MS_FORK_RECORD);
    ms_store_reset();
    ms_ledger_init(NULL, 0);
    ms_ledger_touch();
}

/* Another process: 0 if it resolves the token to the block, 1 if not, 2 if to something else. What it said is
 * in `why`. */
static int elsewhere(const unsigned char *token, const char *directory)
{
    int pipes[2], status = -1;
    ssize_t length;

    if (pipe(pipes))
        bail("pipe");
    pid_t child = fork();
    if (child == 0) {
        struct ms_ipc_export found;
        memset(&found, 0xee, sizeof(found));
        ms_store_reset();
        start(directory);
        bool good = ms_ipc_export_resolve(token, &found, why, sizeof(why));
        if (!good && write(pipes[1], why, strlen(why)) < 0)
            _exit(3);
        _exit(!good ? 1 : memcmp(&found, &block, sizeof(block)) ? 2 : 0);
    }
    close(pipes[1]);
    length = read(pipes[0], why, sizeof(why) - 1);
    why[length > 0 ? length : 0] = '\0';
    close(pipes[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_round_trip(const char *directory)
{
    unsigned char token[MS_TOKEN_BYTES], again[MS_TOKEN_BYTES], old[MS_TOKEN_BYTES];
    struct ms_ipc_export found;
    uint32_t row, other;

    ok(ms_ipc_export_publish(&block, token, &row, &unsaid), "a block is exported");
    ok(ms_token_is(token), "by a token");
    ok(ms_ipc_export_resolve(token, &found, why, sizeof(why)) && memcmp(&found, &block, sizeof(block)) == 0,
       "this process resolves it");
    is_int(elsewhere(token, directory), 0, "so does another");
    ms_ipc_export_token(row, again);
    ok(memcmp(token, again, sizeof(token)) == 0, "asked again it is the same token");
    ok(ms_ipc_export_publish(&block, old, &other, &unsaid) && other != row &&
           memcmp(token, old, sizeof(old)) != 0,
       "another export has another row and another token");
    ms_ipc_export_revoke(row);
    ok(!ms_ipc_export_resolve(token, &found, why, sizeof(why)) && strstr(why, "was freed"),
       "a freed one is void: %s", why);
    is_int(elsewhere(token, directory), 1, "elsewhere too");
    is_int(elsewhere(old, directory), 0, "the other one lives");
    ok(ms_ipc_export_publish(&block, again, &other, &unsaid) && other == row, "its row is used again");
    ok(!ms_ipc_export_resolve(token, &found, why, sizeof(why)), "which does not bring the old token back");
    is_int(elsewhere(again, directory), 0, "the new one is good");
    ms_ipc_export_revoke(row);
    ms_ipc_export_revoke(row);
    ok(ms_ipc_export_publish(&block, again, &other, &unsaid) && other == row &&
           ms_ipc_export_publish(&block, again, &other, &unsaid) && other != row,
       "a row given back twice is given out once");
}

static void test_changed(void)
{
    unsigned char token[MS_TOKEN_BYTES];
    struct ms_ipc_export found;
    unsigned taken = 0, decoded = 0;
    struct ms_token inner;
    uint32_t row;

    ok(ms_ipc_export_publish(&block, token, &row, &unsaid), "one more");
    for (unsigned bit = 0; bit < MS_TOKEN_BYTES * 8; bit++) {
        token[bit / 8] ^= (unsigned char)(1u << bit % 8);
        decoded += ms_token_decode(token, &inner);
        taken += ms_ipc_export_resolve(token, &found, why, sizeof(why));
        token[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    is_u64(decoded + taken, 0, "no token with one bit changed is taken for one");
    srand(1);
    for (unsigned i = 0; i < 2000; i++) {
        unsigned char other[MS_TOKEN_BYTES];
        memcpy(other, token, sizeof(other));
        for (unsigned k = rand() % 8 + 2; k; k--)
            other[rand() % MS_TOKEN_BYTES] = (unsigned char)rand();
        taken += memcmp(other, token, sizeof(other)) != 0 &&
                 ms_ipc_export_resolve(other, &found, why, sizeof(why));
    }
    is_u64(taken, 0, "nor with several bytes changed");
    ok(ms_ipc_export_resolve(token, &found, why, sizeof(why)), "the sound one is");

    /* Made by somebody who knows the form: the row is right and the nonce is not, and so on. */
    ms_token_decode(token, &inner);
    inner.nonce[0]++;
    ms_token_encode(&inner, token);
    ok(!ms_ipc_export_resolve(token, &found, why, sizeof(why)) && strstr(why, "was freed"),
       "another nonce: %s", why);
    inner.nonce[0]--;
    inner.row = MS_TABLE_EXPORTS_ROWS - 1;
    ms_token_encode(&inner, token);
    ok(!ms_ipc_export_resolve(token, &found, why, sizeof(why)), "a row that does not exist: %s", why);
    inner.row = UINT32_MAX;
    ms_token_encode(&inner, token);
    ok(!ms_ipc_export_resolve(token, &found, why, sizeof(why)), "nor could: %s", why);
    inner.row = row;
    inner.start_ticks++;
    ms_token_encode(&inner, token);
    ok(!ms_ipc_export_resolve(token, &found, why, sizeof(why)) && strstr(why, "has ended"),
       "a number that is another process's now: %s", why);
    inner.start_ticks--;
    inner.user++;
    ms_token_encode(&inner, token);
    ok(!ms_ipc_export_resolve(token, &found, why, sizeof(why)) && strstr(why, "another user"),
       "another user: %s", why);
    inner.user--;
    inner.pid_space++;
    ms_token_encode(&inner, token);
    ok(!ms_ipc_export_resolve(token, &found, why, sizeof(why)) && strstr(why, "namespace"),
       "another namespace: %s", why);
    inner.pid_space--;
    inner.version++;
    ms_token_encode(&inner, token);
    ok(!ms_ipc_export_resolve(token, &found, why, sizeof(why)) && strstr(why, "another version"),
       "another version: %s", why);
}

static void test_file(const char *directory)
{
    char moved[300], path[300], nowhere[300];
    unsigned char token[MS_TOKEN_BYTES];
    struct ms_ipc_export found;
    uint32_t row;

    ms_ipc_export_publish(&block, token, &row, &unsaid);
    snprintf(nowhere, sizeof(nowhere), "%s/elsewhere", directory);
    mkdir(nowhere, 0700);
    is_int(elsewhere(token, nowhere), 1, "with another MEMSHIM_DIR it is not found");
    ok(strstr(why, "MEMSHIM_DIR") && !strchr(why, '\n'), "and one line says so: %s", why);
    snprintf(path, sizeof(path), "%s", ms_journal_path());
    chmod(path, 0644);
    is_int(elsewhere(token, directory), 1, "a file that others can read is not believed");
    chmod(path, 0600);
    is_int(elsewhere(token, directory), 0, "one that they cannot is");
    snprintf(moved, sizeof(moved), "%s/moved", directory);
    ok(rename(path, moved) == 0 && symlink(moved, path) == 0 && elsewhere(token, directory) == 1,
       "no link is followed");
    unlink(path);
    ok(mkfifo(path, 0600) == 0 && elsewhere(token, directory) == 1,
       "a pipe is no ledger, and nobody waits for it");
    unlink(path);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    ok(fd >= 0 && elsewhere(token, directory) == 1, "nor is an empty file");
    ok(ftruncate(fd, 1 << 20) == 0 && elsewhere(token, directory) == 1, "nor one of zeros");
    close(fd);
    ok(rename(moved, path) == 0 && elsewhere(token, directory) == 0, "back in its place it is");
    struct rlimit limit, none;
    getrlimit(RLIMIT_NOFILE, &limit);
    none = limit;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    bool good = ms_ipc_export_resolve(token, &found, why, sizeof(why));
    setrlimit(RLIMIT_NOFILE, &limit);
    ok(!good, "without a descriptor to spare: %s", why);
}

/* A process exports and ends in one way or another. Returns what a third one then finds. */
static int after_end(const char *directory, int signal, bool reaped)
{
    int pipes[2], status;
    unsigned char token[MS_TOKEN_BYTES];
    siginfo_t info;

    if (pipe(pipes))
        bail("pipe");
    pid_t child = fork();
    if (child == 0) {
        uint32_t row;
        ms_store_reset();
        start(directory);
        if (!ms_ipc_export_publish(&block, token, &row, &unsaid) ||
            write(pipes[1], token, sizeof(token)) != sizeof(token))
            _exit(3);
        if (signal)
            raise(signal);
        _exit(0);
    }
    close(pipes[1]);
    if (read(pipes[0], token, sizeof(token)) != sizeof(token))
        bail("no token");
    close(pipes[0]);
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    if (reaped)
        waitpid(child, &status, 0);
    int result = elsewhere(token, directory);
    if (!reaped)
        waitpid(child, &status, 0);
    return result;
}

static void test_ends(const char *directory)
{
    is_int(after_end(directory, 0, true), 1, "an exporter that has ended: %s", why);
    is_int(after_end(directory, SIGKILL, true), 1, "one that was killed, and whose ledger is still there: %s",
           why);
    ok(strstr(why, "has ended"), "is said to have ended");
    is_int(after_end(directory, SIGKILL, false), 1, "one that its parent has not waited for: %s", why);
}

static void test_no_room(const char *directory)
{
    unsigned char token[MS_TOKEN_BYTES];
    struct ms_ipc_export found;
    struct rlimit limit, small;
    struct stat status;
    unsigned exported = 0;
    uint32_t row;

    is_int(stat(ms_journal_path(), &status), 0, "the ledger is there");
    getrlimit(RLIMIT_FSIZE, &limit);
    small = limit;
    small.rlim_cur = (rlim_t)status.st_size;
    setrlimit(RLIMIT_FSIZE, &small);
    while (exported < MANY && ms_ipc_export_publish(&block, token, &row, &unsaid) &&
           ms_ipc_export_resolve(token, &found, why, sizeof(why)))
        exported++;
    setrlimit(RLIMIT_FSIZE, &limit);
    ok(exported < MANY && strstr(unsaid, "cannot grow"),
       "where the ledger cannot grow nothing is exported that nobody could read: %s", unsaid);

    char nowhere[300];
    snprintf(nowhere, sizeof(nowhere), "%s/does-not-exist", directory);
    start(nowhere);
    ok(!ms_ipc_export_publish(&block, token, &row, &unsaid) && strstr(unsaid, "no file"),
       "nor where there is no ledger: %s", unsaid);
}

int main(void)
{
    const char *directory = getenv("MEMSHIM_DIR") ? getenv("MEMSHIM_DIR") : "/tmp";

    plan(0);
    start(directory);
    test_round_trip(directory);
    test_changed();
    test_file(directory);
    test_ends(directory);
    test_no_room(directory);
    return done();
}
