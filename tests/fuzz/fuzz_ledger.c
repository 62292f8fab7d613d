/* Fuzz target: a ledger's file, read and reported by memshim recover. Whatever could be read must become a
 * report that is valid.
 *
 * An input that begins with the 'M' of a ledger's magic is the file. Any other is changes to a sound one: bit
 * 0 of the first byte says that its process still writes, and each change is an area (a table, the header,
 * the list of extents, the end of the file), three bytes of where, a length, and that many bytes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "base/objects/objects.h"
#include "base/options/options.h"
#include "record/file/journal.h"
#include "record/live/inner.h"
#include "record/phases/phases.h"
#include "record/reader/recover.h"
#include "report/analyse/consistent.h"
#include "report/write/report.h"
#include "unwind/frame.h"
#include "unwind/python/python.h"
#include "unwind/tree.h"
#include "tests/fuzz/fuzz.h"

enum { AREA_HEADER = MS_TABLE_COUNT, AREA_LISTS, AREA_END, AREAS, CHANGE_BYTES = 5 };

const char fuzz_name[] = "ledger";
static uint8_t real[1 << 22], changed[1 << 22];
static size_t real_bytes;

/* The used rows of a table in the real ledger. */
static uint8_t *find_table(unsigned table, size_t *bytes_p)
{
    const struct ms_store_header *head = (const void *)real;

    for (uint32_t i = 0; i < atomic_load(&head->extent_count); i++) {
        const struct ms_store_extent *extent = &head->extents[i];
        uint64_t used = (atomic_load(&head->tables[table].rows) + 1) * head->tables[table].row_bytes;
        if (extent->table != table || extent->table_offset)
            continue;
        *bytes_p = used < extent->bytes ? used : extent->bytes;
        return changed + extent->file_offset;
    }
    *bytes_p = 0;
    return NULL;
}

static void change(unsigned area, uint32_t where, const uint8_t *bytes, size_t count, size_t *size_p)
{
    size_t room;
    uint8_t *start = changed;

    if (area < MS_TABLE_COUNT)
        start = find_table(area, &room);
    else if (area == AREA_HEADER)
        room = offsetof(struct ms_store_header, extents);
    else if (area == AREA_LISTS)
        start += offsetof(struct ms_store_header, extents), room = 32 * sizeof(struct ms_store_extent);
    else {
        *size_p = where % (real_bytes + 1);
        return;
    }
    if (!room)
        return;
    where %= room;
    memcpy(start + where, bytes, count < room - where ? count : room - where);
}

/* The real ledger with the input's changes; returns its length. */
static size_t apply(const uint8_t *data, size_t size)
{
    size_t result = real_bytes;

    memcpy(changed, real, real_bytes);
    while (size >= CHANGE_BYTES) {
        uint32_t where = data[1] | (uint32_t)data[2] << 8 | (uint32_t)data[3] << 16;
        size_t count = data[4] % 64;

        data += CHANGE_BYTES, size -= CHANGE_BYTES;
        count = count < size ? count : size;
        change(data[-CHANGE_BYTES] % AREAS, where, data, count, &result);
        data += count, size -= count;
    }
    return result;
}

static void violation(void *arg, const char *path, const char *text)
{
    (void)arg;
    fprintf(stderr, "%s %s\n", path, text);
}

static void check_report(int fd)
{
    struct ms_report report;
    char error[4608], path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (ms_report_read(path, &report, error, sizeof error) != 0) {
        violation(NULL, "report", error);
        abort();
    }
    if (ms_report_consistent(&report, violation, NULL) != 0)
        abort();
    ms_report_close(&report);
}

static void report(bool live)
{
    static int fd = -1;

    if (fd < 0)
        fd = memfd_create("report", MFD_CLOEXEC);
    if (ftruncate(fd, 0) != 0 || lseek(fd, 0, SEEK_SET) != 0)
        abort();
    if (ms_report_contents(fd, live ? MS_END_RUNNING : MS_END_KILLED, -1, !live, NULL) != 0)
        abort();
    check_report(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[256] = "";
    bool live = false;
    int fd;

    if (!size)
        return 0;
    if (data[0] == MS_STORE_MAGIC[0]) {
        fd = fuzz_file(data, size);
    } else {
        if (!real_bytes)
            real_bytes = fuzz_seed(0, real, sizeof real);
        if (real_bytes == sizeof real)
            abort(); /* it may have been cut: more room is wanted */
        live = data[0] & 1;
        size = apply(data + 1, size - 1);
        fd = fuzz_file(changed, size);
    }
    if (ms_ledger_load(fd, live, error, sizeof error) == 0) {
        ms_ledger_alive(fd, "memshim-1-1.ledger");
        report(live);
    } else if (!*error || strchr(error, '\n')) {
        abort();
    }
    return 0;
}

enum { NODES = 12, CODES = 3 };

static const struct ms_api_info apis[] = {{"cudaMalloc", "cuda_runtime"}, {"cudaFree", "cuda_runtime"}};

/* Two functions of Python with names and line tables. */
static void record_codes(void)
{
    static const char text[] = "\0/a.py\0f\0worker_0\0\xe8\x04\xf8\xe0\x01\x02";

    if (!ms_table_reserve(MS_TABLE_CODES, CODES) || !ms_table_reserve(MS_TABLE_CODE_TEXT, sizeof text))
        abort();
    memcpy(MS_ROWS(CODE_TEXT, char), text, sizeof text);
    ms_table_publish(MS_TABLE_CODE_TEXT, sizeof text);
    for (unsigned row = 0; row < CODES; row++)
        MS_ROWS(CODES, struct ms_code)
    [row] = (struct ms_code){.file = 1,
                             .name = 7,
                             .lines = 18,
                             .lines_bytes = 6,
                             .first_line = 1 + row,
                             .version = (uint16_t)(0x309 + row)};
    ms_table_publish(MS_TABLE_CODES, CODES);
}

/* Every kind of frame there is. */
static uintptr_t frame_of(ms_stack_id id)
{
    if (id % 3 == 0)
        return (uintptr_t)ms_frame_pseudo((enum ms_pseudo_frame)(id / 3), 9);
    return id % 3 == 1 ? (uintptr_t)record_codes + id : (uintptr_t)ms_frame_python(id % CODES, 2 * id);
}

/* Stacks of one to NODES frames, each called from the one before. */
static void record_stacks(void)
{
    record_codes();
    if (!ms_table_reserve(MS_TABLE_NODES, NODES + 1))
        abort();
    for (ms_stack_id id = 1; id <= NODES; id++)
        *ms_stack_node_at(id) = (struct ms_stack_node){frame_of(id), id - 1, 0};
    ms_table_publish(MS_TABLE_NODES, NODES + 1);
}

/* A stream of a pool, and what is left of other pools. */
static void record_flows(void)
{
    struct ms_stream_figures flow = {
        .pool = 1, .stream = 2, .hits = {3, 4, 5}, .misses = 6, .limbo_waits = 7, .waited = 8};

    ms_ledger_stream_arena(0, &flow);
    flow.pool = (uint64_t)1 << 48;
    flow.former = true;
    ms_ledger_stream_arena(1, &flow);
}

/* Segments of the pool's on two devices, one that is gone, and blocks that were served from them. */
static void record_pool(void)
{
    struct ms_pool_figures pool = {
        .reserved_bytes = 6 << 20, .peak_reserved_bytes = 8 << 20, .misses = 3, .served_allocs = 9};

    pool.parts = (struct ms_parts){.requested = 1 << 20, .pending = 1 << 20, .stranded = 4 << 20};
    pool.peak_parts = (struct ms_parts){.requested = 2 << 20, .rounding = 1 << 20, .cached = 5 << 20};
    for (uint64_t i = 1; i <= 5; i++)
        ms_ledger_segment_added(&(struct ms_segment_record){.address = i << 32,
                                                            .bytes = 2 << 20,
                                                            .context = 1,
                                                            .device = (int16_t)(i % 2),
                                                            .tier = (uint8_t)(i % MS_TIER_COUNT),
                                                            .pinned = i == 2,
                                                            .vmm = i == 3});
    ms_ledger_segment_removed((uint64_t)5 << 32);
    ms_ledger_pool(0, &pool);
    for (uint64_t i = 0; i < 30; i++) {
        struct ms_block block = {.key = (1 + i % 4) << 32 | i << 12,
                                 .bytes = 4000,
                                 .requested = 1 + i * 100,
                                 .context = 1,
                                 .stack = 1 + (ms_stack_id)(i % NODES),
                                 .device = (int16_t)((1 + i) % 2)};
        uint32_t record_id = ms_ledger_serve(&block);
        if (i % 3 == 0)
            ms_ledger_unserve(record_id, block.key, NULL);
    }
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
    record_flows();
    record_pool();
    for (uint64_t i = 1; i <= 60; i++) {
        struct ms_block block = {.key = i << 12,
                                 .bytes = i * 10,
                                 .requested = i * 9,
                                 .context = 1 + i % 2,
                                 .stack = 1 + (ms_stack_id)(i % NODES),
                                 .device = (int16_t)(i % 3),
                                 .kind = (uint8_t)(i % MS_KIND_COUNT),
                                 .space = MS_SPACE_ADDRESS};
        if (block.kind == MS_KIND_INNER) {
            block.context = ms_heap_open("a heap", block.device, 0);
            block.device = (int16_t)ms_device_inner(block.device);
            block.space = MS_SPACE_INNER;
            block.outlives_context = true;
            ms_heap_reserved((uint32_t)block.context, 1 << 21);
        }
        if (i % 6 == 1)
            ms_phase_push(MS_PHASE_NVTX, ms_phase_text("domain"), ms_phase_text(i % 4 ? "step" : "layer"));
        if (i % 10 == 0)
            ms_phase_pop(MS_PHASE_NVTX, ms_phase_text("domain"));
        ms_ledger_alloc(&block);
        ms_ledger_call(0, i % 5 != 0, i % 3 == 0, block.bytes);
        if (i % 3 == 0)
            ms_ledger_free_begin(MS_SPACE_ADDRESS, (i / 2) << 12, &block);
    }
    ms_ledger_oom(0, 0, 1 << 20, 1,
                  &(struct ms_oom_view){.cause = MS_OOM_PENDING, .reserved = 1 << 21, .pending = 1 << 20});
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

/* Each a change of one number; most of them once led to a report that was not valid. */
static size_t damaged_seed(unsigned number, uint8_t *data, size_t max)
{
    static const struct {
        unsigned table, at;
        uint64_t value;
    } damages[] = {
        {MS_TABLE_PROCESS, offsetof(struct ms_process, pid), 0xe02c00de00000001},
        {MS_TABLE_COUNTS, offsetof(struct ms_counts, calls), INT64_MAX},
        {MS_TABLE_TEXT, 0, 0x3d3d3d3d3d3d3d3d},
        {MS_TABLE_SITES, offsetof(struct ms_site, at_peak_bytes), 0},
        {MS_TABLE_ACCOUNTS, offsetof(struct ms_account, peaks), 12345},
        {MS_TABLE_BLOCKS, offsetof(struct ms_block_row, bytes), INT64_MAX / 2},
        {MS_TABLE_BLOCKS, offsetof(struct ms_block_row, requested), 1 << 20},
        {MS_TABLE_POOLS, offsetof(struct ms_pool_row, record.reserved_bytes), UINT64_MAX},
        {MS_TABLE_POOLS, offsetof(struct ms_pool_row, record.peak_reserved_bytes), 1},
        {MS_TABLE_POOLS, offsetof(struct ms_pool_row, latest_ns), 0},
        {MS_TABLE_SEGMENTS, offsetof(struct ms_segment_row, record.bytes), INT64_MAX},
        {MS_TABLE_SEGMENTS, offsetof(struct ms_segment_row, record.address), (uint64_t)2 << 32},
        {MS_TABLE_SITES, offsetof(struct ms_site, size_hist), UINT64_MAX},
        {MS_TABLE_SEGMENTS, offsetof(struct ms_segment_row, record.context), UINT64_MAX},
        {MS_TABLE_SITES, offsetof(struct ms_site, whole), 1},
        {MS_TABLE_STREAM_ARENAS, offsetof(struct ms_stream_arena_row, record.waited), UINT64_MAX},
        {MS_TABLE_STREAM_ARENAS, offsetof(struct ms_stream_arena_row, record.limbo_waits), UINT64_MAX},
        {MS_TABLE_STREAM_ARENAS, offsetof(struct ms_stream_arena_row, record.pool), UINT64_MAX},
        {MS_TABLE_PHASES, offsetof(struct ms_phase, name), UINT64_MAX},
        {MS_TABLE_PHASE_FIGURES, offsetof(struct ms_phase_figures, count), UINT64_MAX},
        {MS_TABLE_PHASE_FIGURES, offsetof(struct ms_phase_figures, peak_bytes_max), 0},
        {MS_TABLE_PHASE_FIGURES, offsetof(struct ms_phase_figures, series), UINT64_MAX},
        {MS_TABLE_PHASE_FIGURES, offsetof(struct ms_phase_figures, top_sites), UINT64_MAX},
        {MS_TABLE_PHASE_OPENS, offsetof(struct ms_phase_open, devices[0].total_bytes), UINT64_MAX},
        {MS_TABLE_PHASE_OPENS, offsetof(struct ms_phase_open, phase), UINT64_MAX},
        {MS_TABLE_ACCOUNTS, offsetof(struct ms_account, device_peaks), 12345},
        {MS_TABLE_ACCOUNTS, offsetof(struct ms_account, interval_peak_bytes), INT64_MAX},
    };
    size_t size = 1 + CHANGE_BYTES + sizeof damages->value;

    if (number >= MS_ARRAY_LEN(damages) || max < size)
        return 0;
    memset(data, 0, size);
    data[1] = (uint8_t)damages[number].table;
    memcpy(data + 2, &damages[number].at, 3);
    data[5] = sizeof damages->value;
    memcpy(data + 1 + CHANGE_BYTES, &damages[number].value, sizeof damages->value);
    return size;
}

size_t fuzz_seed(unsigned number, uint8_t *data, size_t max)
{
    static uint8_t kept[1 << 20];
    static size_t size;
    char directory[] = "/tmp/memshim-fuzz.XXXXXX", path[4096];
    int pipes[2];

    if (number > 0)
        return damaged_seed(number - 1, data, max);
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
