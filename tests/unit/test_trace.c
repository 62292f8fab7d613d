/* test_trace.c - the events of the trace: what they say, that none is lost with many threads, and that a dead
 * process's last ones are found in its ledger. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/at_fork.h"
#include "base/options/options.h"
#include "record/file/journal.h"
#include "record/reader/recover.h"
#include "record/file/trace.h"
#include "record/file/trace_told.h"
#include "trace/reader.h"
#include "tests/tap.h"

enum { THREADS = 8, TURNS = 20000, LINES_MAX = 2 * THREADS * TURNS + 64 };

static const struct ms_api_info apis[] = {{"alloc", "test"}};
static char path[4096], line[256];

static void begin(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", getenv("TEST_TMP"), name);
    setenv("MEMSHIM_TRACE", path, 1);
    ms_options_load(environ, NULL, NULL);
    ms_ledger_init(apis, 1);
    ms_ledger_touch();
}

static void take(uint64_t key, uint64_t bytes, enum ms_kind kind, int device, uint64_t stream)
{
    struct ms_block block = {.key = key,
                             .bytes = bytes + 100,
                             .requested = bytes,
                             .context = 1,
                             .device = (int16_t)device,
                             .stream = stream,
                             .kind = (uint8_t)kind,
                             .thread = 7};
    ms_ledger_alloc(&block);
}

static void give(uint64_t key, bool refused)
{
    struct ms_block block;
    if (ms_ledger_free_begin(MS_SPACE_ADDRESS, key, &block) && refused)
        ms_ledger_free_abort(&block);
}

static size_t put_plain(FILE *out, const char *text)
{
    fputs(text, out);
    return strlen(text);
}

/* The trace as lines. */
static FILE *lines_of(const char *name)
{
    char error[512] = "";
    struct ms_trace_reader *trace = ms_trace_open(name, error, sizeof error);
    FILE *file = tmpfile();
    if (!trace || !file || ms_trace_print(trace, file, put_plain) != 0)
        bail("no trace: %s", error);
    ms_trace_close(trace);
    rewind(file);
    return file;
}

/* The next line, without its time and its end, and without remarks of who goes on; NULL after the last. */
static const char *next(FILE *file)
{
    char *end;
    do
        end = fgets(line, sizeof line, file) ? strchr(line, '\n') : NULL;
    while (end && strncmp(line, "# thread ", 9) == 0);
    if (!end)
        return NULL;
    *end = '\0';
    return *line == '#' ? line : strchr(line, ' ') + 1;
}

static void test_lines(void)
{
    static const char *const wanted[] = {"a 1 1000 0 0 0x1000 device",
                                         "a 2 2000 0 1 0x2000 managed",
                                         "# stream 1: device 0, handle 0x77",
                                         "a 3 3000 1 2 0x3000 async",
                                         "# stream 2: device 1, handle 0x0",
                                         "a 4 4000 2 3 0x4000 device",
                                         "# stream 3: device 0, handle 0x2, thread 7",
                                         "a 5 5000 3 2 0x5000 async",
                                         "f 2 2000 0",
                                         "f 1 1000 0",
                                         "a 6 1000 0 0 0x1000 device", /* refused: it lives on */
                                         "f 3 3000 1",
                                         "f 6 1000 0",
                                         NULL};
    begin("lines");
    take(0x1000, 1000, MS_KIND_DEVICE, 0, 0);
    take(0x2000, 2000, MS_KIND_MANAGED, 0, 1); /* the default stream by its other name */
    take(0x3000, 3000, MS_KIND_ASYNC, 0, 0x77);
    take(0x4000, 4000, MS_KIND_DEVICE, 1, 0);
    take(0x5000, 5000, MS_KIND_ASYNC, 0, 2);
    take(0x6000, 6000, MS_KIND_PINNED, MS_DEVICE_NONE, 0);
    give(0x2000, false);
    give(0x6000, false);
    give(0x1000, true);
    give(0x3000, false);
    ms_trace_finish();
    give(0x1000, false); /* after the end */
    FILE *file = lines_of(path);
    ok(strncmp(next(file), "# memshim ", 10) == 0, "the first line says what it is");
    is_str(next(file), "# columns: microseconds op(a|f|A|F) id bytes stream, and of a|A: site address kind",
           "the second names the columns");
    is_str(next(file), "# allocs 6 frees 4 distinct_sizes 5 streams 4 peak_live_bytes 15000",
           "the third sums it up");
    for (unsigned i = 0; wanted[i]; i++)
        is_str(next(file), wanted[i], "line %u", i + 1);
    ok(!next(file), "nothing else");
    fclose(file);
    ms_store_reset();
    ms_at_fork_run(MS_FORK_RECORD);
}

static void *churn(void *arg)
{
    uint64_t base = (uintptr_t)arg << 32;
    for (uint64_t i = 0; i < TURNS; i++) {
        take(base + (i + 1) * 512, 1 + i % 5000, MS_KIND_DEVICE, 0, 0);
        if (i % 16 != 0)
            give(base + (i + 1) * 512, false);
    }
    return NULL;
}

static void test_threads(void)
{
    static bool live[LINES_MAX];
    pthread_t threads[THREADS];
    unsigned long events = 0, wrong = 0, id, last = 0;
    const char *text;
    char op;
    begin("threads");
    for (unsigned i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)(i + 1));
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ms_trace_finish();
    FILE *file = lines_of(path);
    while ((text = next(file))) {
        if (*text == '#' || sscanf(text, "%c %lu", &op, &id) != 2 || id >= LINES_MAX)
            continue;
        events++;
        wrong += op == 'a' ? id != ++last : !live[id];
        live[id] = op == 'a';
    }
    fclose(file);
    is_u64(events, THREADS * (TURNS * 2 - TURNS / 16), "every event has a line");
    is_u64(wrong, 0, "each free comes after its allocation, and ids are counted up");
    ms_store_reset();
    ms_at_fork_run(MS_FORK_RECORD);
}

/* A child that is killed in the middle leaves what it had not written in its ledger. */
static void test_killed(void)
{
    char error[256] = "", ledger[4096];
    unsigned long lines = 0;
    const char *text;
    int pipes[2];
    if (pipe(pipes) != 0)
        bail("pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0) {
        begin("killed");
        for (uint64_t i = 1; i <= 1000; i++)
            take(i << 16, i, MS_KIND_DEVICE, 0, 0);
        if (write(pipes[1], ms_journal_path(), strlen(ms_journal_path())) < 0)
            _exit(1);
        raise(SIGKILL);
    }
    waitpid(child, NULL, 0);
    ssize_t length = read(pipes[0], ledger, sizeof ledger - 1);
    ledger[length > 0 ? length : 0] = '\0';
    snprintf(path, sizeof path, "%s/killed", getenv("TEST_TMP"));
    int fd = open(ledger, O_RDONLY);
    is_int(ms_ledger_load(fd, false, error, sizeof error), 0, "the ledger is read %s", error);
    for (unsigned turn = 0; turn < 2; turn++)
        is_int(ms_trace_complete(error, sizeof error), 0, "the trace is completed %s", turn ? "once" : error);
    close(fd);
    FILE *file = lines_of(path);
    while ((text = next(file)))
        lines += *text != '#';
    is_u64(lines, 1000, "no event is missing");
    fclose(file);
}

static void end_in_handler(int signal)
{
    (void)signal;
    ms_trace_finish();
    _exit(0);
}

/* The process ends in a signal handler, above a recorder that has the lock: what it touches inside cannot be
 * written. The end waits for that lock, but not for ever, and what was recorded before is in the file. */
static void test_handler(void)
{
    const unsigned before = 500;
    unsigned long lines = 0;
    const char *text;
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        begin("handler");
        for (unsigned i = 1; i <= before; i++)
            take((uint64_t)i << 16, i, MS_KIND_DEVICE, 0, 0);
        signal(SIGSEGV, end_in_handler);
        alarm(60);
        mprotect(ms_told.row_ids, (size_t)MS_TABLE_BLOCKS_ROWS * sizeof *ms_told.row_ids, PROT_NONE);
        take(UINT64_C(1) << 40, 1, MS_KIND_DEVICE, 0, 0);
        _exit(1);
    }
    waitpid(child, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a handler above a recorder ends the process");
    snprintf(path, sizeof path, "%s/handler", getenv("TEST_TMP"));
    FILE *file = lines_of(path);
    while ((text = next(file)))
        lines += *text != '#';
    is_u64(lines, before, "and what came before is in the trace");
    fclose(file);
}

/* The file's name belongs to another file by now: one that is no trace, or that is no file at all. */
static void test_not_ours(void)
{
    char error[256], before[16] = "";
    struct ms_process *process = ms_process();
    struct stat status;
    atomic_store(&process->trace_written, 0);
    FILE *file = fopen(path, "w");
    fputs("mine\n", file);
    fclose(file);
    ok(ms_trace_complete(error, sizeof error) < 0 && strstr(error, "another file"),
       "a file without a trace's head is refused");
    unlink(path);
    ok(ms_trace_complete(error, sizeof error) < 0, "so is no file");
    file = fopen(path, "w");
    fputs("mine\n", file);
    fclose(file);
    if (stat(path, &status) != 0)
        bail("stat: %s", strerror(errno));
    process->trace_device = status.st_dev;
    process->trace_inode = status.st_ino;
    ok(ms_trace_complete(error, sizeof error) < 0, "so is a file that a damaged ledger claims");
    process->trace_start = UINT64_MAX;
    ok(ms_trace_complete(error, sizeof error) < 0 && strstr(error, "damaged"),
       "so are figures that cannot be");
    file = fopen(path, "r");
    ok(file && fgets(before, sizeof before, file) && strcmp(before, "mine\n") == 0, "and it is as it was");
    fclose(file);
}

int main(void)
{
    plan(0);
    test_lines();
    test_threads();
    test_killed();
    test_not_ours();
    test_handler();
    return done();
}
