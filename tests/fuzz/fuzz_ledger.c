/* Fuzz target: a ledger's file, read and reported by memshim recover. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "base/objects.h"
#include "base/options.h"
#include "ledger/journal.h"
#include "ledger/recover.h"
#include "report/report.h"
#include "stack/tree.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int nowhere = -1;
    char error[256];
    int fd = fuzz_file(data, size);

    if (nowhere < 0)
        nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (ms_ledger_load(fd, size % 2, error, sizeof error) == 0) {
        ms_ledger_alive(fd, "memshim-1-1.ledger");
        ms_report_contents(nowhere, MS_END_KILLED, -1, true, NULL);
    }
    return 0;
}

enum { NODES = 12 };

static const struct ms_api_info apis[] = {{"cudaMalloc", "cuda_runtime", 0}, {"cudaFree", "cuda_runtime", 0}};

/* Stacks of one to NODES frames, each called from the one before. */
static void record_stacks(void)
{
    if (!ms_table_reserve(MS_TABLE_NODES, NODES + 1))
        abort();
    for (ms_stack_id id = 1; id <= NODES; id++)
        *ms_node_at(id) = (struct ms_node){(uintptr_t)record_stacks + id, id - 1, 0};
    ms_table_publish(MS_TABLE_NODES, NODES + 1);
}

/* Some of everything, in a process of its own, which is not there any more when its ledger is read. */
static void record(void)
{
    struct ms_device_info device = {.name = "GPU", .total_bytes = 1 << 30, .granularity_bytes = 4096};

    ms_options_load(environ, NULL, NULL);
    ms_ledger_init(apis, MS_ARRAY_LEN(apis));
    ms_ledger_touch();
    ms_ledger_device(0, &device);
    record_stacks();
    for (uint64_t i = 1; i <= 300; i++) {
        struct ms_block block = {.key = i << 12,
                                 .bytes = i * 10,
                                 .requested = i * 9,
                                 .context = 1 + i % 2,
                                 .stack = 1 + (ms_stack_id)(i % NODES),
                                 .device = (int16_t)(i % 3),
                                 .kind = (uint8_t)(i % MS_KIND_COUNT),
                                 .space = MS_SPACE_ADDRESS};
        ms_ledger_alloc(&block);
        ms_ledger_call(0, i % 5 != 0, block.bytes);
        if (i % 3 == 0 && ms_ledger_free_begin(MS_SPACE_ADDRESS, (i / 2) << 12, &block))
            ms_ledger_free_commit(&block);
    }
    ms_ledger_oom(0, 0, 1 << 20, 1);
    ms_ledger_context_died(2);
    ms_ledger_blind_spot("a library out of sight");
    ms_diagnostic(MS_LOG_DEBUG, "test", "a line");
}

static size_t read_back(const char *path, uint8_t *data, size_t max)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, data, max);

    if (fd >= 0)
        close(fd);
    return size > 0 ? (size_t)size : 0;
}

size_t fuzz_seed(unsigned number, uint8_t *data, size_t max)
{
    static uint8_t kept[1 << 20];
    static size_t size;
    char directory[] = "/tmp/memshim-fuzz.XXXXXX", path[4096];
    int pipes[2];

    if (number > 0)
        return 0;
    if (!size && mkdtemp(directory) && pipe(pipes) == 0) {
        pid_t child = fork();
        if (child == 0) {
            setenv("MEMSHIM_DIR", directory, 1);
            record();
            if (write(pipes[1], ms_journal_path(), strlen(ms_journal_path()) + 1) < 0)
                abort();
            _exit(0);
        }
        waitpid(child, NULL, 0);
        if (read(pipes[0], path, sizeof path) > 0)
            size = read_back(path, kept, sizeof kept);
        unlink(path);
        rmdir(directory);
        close(pipes[0]);
        close(pipes[1]);
    }
    if (size > max)
        return 0;
    memcpy(data, kept, size);
    return size;
}
