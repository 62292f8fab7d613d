/* report_sample.c - a process with a known history that writes its report; tests/unit/report.py reads it.
 *
 * report_sample HISTORY, with MEMSHIM_REPORT as for the shim. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/log.h"
#include "base/options/options.h"
#include "record/live/ledger.h"
#include "record/footprint/footprints.h"
#include "report/write/report.h"
#include "unwind/frame.h"
#include "unwind/python/python.h"

enum { ALLOC, FREE, PIN, REGISTER, RESERVE };
static const struct ms_api_info apis[] = {
    [ALLOC] = {"cudaMalloc", "cuda_runtime"},           [FREE] = {"cudaFree", "cuda_runtime"},
    [PIN] = {"cudaMallocHost", "cuda_runtime"},         [REGISTER] = {"cuMemHostRegister_v2", "cuda_driver"},
    [RESERVE] = {"cuMemAddressReserve", "cuda_driver"},
};

static void say(void *arg, const char *line)
{
    (void)arg;
    ms_diagnostic(MS_LOG_WARN, "options", "%s", line);
}

static MS_NOINLINE void record(unsigned api, enum ms_kind kind, uint64_t key, uint64_t bytes, int device)
{
    struct ms_block block = {.key = key,
                             .bytes = bytes,
                             .requested = bytes - bytes % 10,
                             .context = 3,
                             .stream = 0x20,
                             .thread = 77,
                             .api = (uint16_t)api,
                             .kind = (uint8_t)kind,
                             .device = (int16_t)device};
    block.stack = ms_stack_capture(__builtin_frame_address(0), __builtin_return_address(0));
    ms_ledger_alloc(&block);
    ms_ledger_call((uint16_t)api, true, false, bytes);
}

static void release(uint64_t key)
{
    struct ms_block block;
    ms_ledger_free_begin(MS_SPACE_ADDRESS, key, &block);
    ms_ledger_call(FREE, true, false, 0);
}

static MS_NOINLINE void leak(void)
{
    record(ALLOC, MS_KIND_DEVICE, 0x1000, 1001, 0);
    record(ALLOC, MS_KIND_DEVICE, 0x2000, 2002, 1);
    __asm__ volatile("" ::: "memory");
}

static void history_full(void)
{
    struct ms_device_info info = {
        .name = "Sim\xff GPU", .uuid = {0x12, 0x34}, .total_bytes = 1 << 20, .granularity_bytes = 4096};
    ms_ledger_device(0, &info);
    leak();
    record(ALLOC, MS_KIND_DEVICE, 0x3000, 5000, 0);
    record(ALLOC, MS_KIND_ASYNC, 0x4000, 300, 0);
    release(0x3000);
    record(PIN, MS_KIND_PINNED, 0x5000, 70000, MS_DEVICE_NONE);
    record(REGISTER, MS_KIND_REGISTERED, 0x6000, 9000, MS_DEVICE_NONE);
    ms_ledger_call(ALLOC, false, false, 1 << 21);
    ms_ledger_oom(ALLOC, 0, 1 << 21,
                  ms_stack_capture(__builtin_frame_address(0), __builtin_return_address(0)),
                  &(struct ms_oom_view){.cause = MS_OOM_CAPACITY});
    ms_ledger_context_died(99);
    ms_ledger_route(MS_ROUTE_DLSYM);
    ms_ledger_route(MS_ROUTE_DLSYM);
    ms_ledger_divergent();
    ms_ledger_unseen_free();
    ms_ledger_blind_spot("a library opened with RTLD_DEEPBIND");
    ms_diagnostic(MS_LOG_DEBUG, "test", "a line for diagnostics");
}

static void history_died(void)
{
    leak();
    record(ALLOC, MS_KIND_DEVICE, 0x3000, 10, 0);
    ms_ledger_context_died(3);
}

/* One process that uses the devices 0 of three vendors, and some more. */
static void history_vendors(void)
{
    const int hip = ms_device_number(MS_MAKER_HIP, 0), acl = ms_device_number(MS_MAKER_ACL, 0);
    struct ms_device_info info = {.name = "an accelerator", .total_bytes = 1 << 20};
    ms_ledger_device(hip, &info);
    record(ALLOC, MS_KIND_DEVICE, 0x1000, 1000, 0);
    record(ALLOC, MS_KIND_DEVICE, 0x2000, 200, hip);
    record(ALLOC, MS_KIND_DEVICE, 0x3000, 30, acl);
    record(ALLOC, MS_KIND_DEVICE, 0x4000, 4, ms_device_number(MS_MAKER_HIP, MS_DEVICES_HIP - 1));
    record(ALLOC, MS_KIND_DEVICE, 0x5000, 5, ms_device_number(MS_MAKER_CUDA, MS_DEVICES_CUDA));
    ms_ledger_oom(ALLOC, hip, 1 << 21, 0, &(struct ms_oom_view){.cause = MS_OOM_CAPACITY});
}

static void history_many(void)
{
    for (uint64_t i = 0; i < 25000; i++)
        record(ALLOC, MS_KIND_DEVICE, 0x100000 + i * 512, 1 + i % 500, 0);
}

/* Four contexts more than there is room for. */
static void history_contexts(void)
{
    for (uint64_t i = 1; i <= 4096 + 4; i++)
        ms_ledger_footprint_grew(
            &(struct ms_footprint_event){.kind = MS_FOOTPRINT_CONTEXT, .context = i, .bytes = 1 << 20});
}

static uint32_t put_text(const void *text, size_t bytes)
{
    uint64_t at = ms_table_rows(MS_TABLE_CODE_TEXT);
    at = at ? at : 1;
    ms_table_reserve(MS_TABLE_CODE_TEXT, at + bytes);
    memcpy(&MS_ROWS(CODE_TEXT, char)[at], text, bytes);
    ms_table_publish(MS_TABLE_CODE_TEXT, at + bytes);
    return (uint32_t)at;
}

static uint32_t put_code(const char *file, const char *name, const unsigned char *lines, size_t bytes)
{
    uint64_t row = ms_table_rows(MS_TABLE_CODES);
    ms_table_reserve(MS_TABLE_CODES, row + 1);
    MS_ROWS(CODES, struct ms_code)
    [row] = (struct ms_code){.file = put_text(file, strlen(file) + 1),
                             .name = put_text(name, strlen(name) + 1),
                             .lines = put_text(lines, bytes),
                             .lines_bytes = (uint32_t)bytes,
                             .first_line = 40,
                             .version = 0x30c};
    ms_table_publish(MS_TABLE_CODES, row + 1);
    return (uint32_t)row;
}

static void record_frames(uint64_t key, const uintptr_t *frames, unsigned count)
{
    struct ms_block block = {.key = key, .bytes = 100, .requested = 100, .context = 3, .api = ALLOC};
    block.stack = ms_stack_intern(frames, count);
    ms_ledger_alloc(&block);
    ms_ledger_call(ALLOC, true, false, 100);
}

/* Stacks as the merge makes them: in their places, apart, inferred, and not believed. SEED moves the lines of
 * the functions, as another run would the addresses. */
static void history_python(void)
{
    static const unsigned char table[] = {0x80 | 13 << 3 | 7, 4, 0x80 | 15 << 3, 0x80 | 12 << 3, 1, 2};
    const unsigned extra = getenv("SEED") ? 2 : 0;
    uint32_t unused = put_code("unused.py", "unused", table, 0);
    uint32_t inner = put_code("/app/caf\xff.py", "Model.step", table, sizeof table);
    uint32_t outer = put_code("/app/train.py", "main", table, 0);
    uintptr_t native = (uintptr_t)__builtin_return_address(0);
    uintptr_t thread = ms_frame_pseudo(MS_PSEUDO_THREAD, put_text("pt_autograd_0", 14));
    (void)unused;
    record_frames(0x1000,
                  (uintptr_t[]){native, ms_frame_python(inner, extra), native, ms_frame_python(outer, 4)}, 4);
    record_frames(0x2000, (uintptr_t[]){native, ms_frame_python(inner, 18)}, 2);
    record_frames(0x3000,
                  (uintptr_t[]){native, ms_frame_pseudo(MS_PSEUDO_APART, 0), ms_frame_python(inner, 16)}, 3);
    record_frames(0x4000,
                  (uintptr_t[]){native, thread, ms_frame_pseudo(MS_PSEUDO_INFERRED, 0),
                                ms_frame_python(extra ? outer : inner, 0)},
                  4);
    record_frames(0x5000, (uintptr_t[]){native, ms_frame_pseudo(MS_PSEUDO_UNSURE, 0)}, 2);
}

int main(int argc, char **argv)
{
    const char *history = argc > 1 ? argv[1] : "full";
    ms_process_note_directory();
    ms_options_load(environ, say, NULL);
    ms_log_set_level((enum ms_log_level)ms_option_int(MS_OPT_LOG));
    ms_stack_configure(MS_WALK_UNWIND, 64);
    ms_ledger_init(apis, MS_ARRAY_LEN(apis));
    if (strcmp(history, "full") == 0)
        history_full();
    else if (strcmp(history, "died") == 0)
        history_died();
    else if (strcmp(history, "vendors") == 0)
        history_vendors();
    else if (strcmp(history, "many") == 0)
        history_many();
    else if (strcmp(history, "contexts") == 0)
        history_contexts();
    else if (strcmp(history, "python") == 0)
        history_python();
    if (strcmp(history, "limit") == 0) {
        struct rlimit limit = {100, 100};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (chdir("/") != 0)
        return 1;
    return ms_report_write(MS_END_EXIT, 0) == 0 ? 0 : 3;
}
