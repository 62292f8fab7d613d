/* trace.c - the lines of MEMSHIM_TRACE; see trace.h.
 *
 * Floor 2. A trace is always the beginning of the whole: where a line cannot be kept, it ends there, for a
 * block that goes without having come is of no use to a reader. Locks: `lines` (inside a block's stripe) for
 * the ring and the numbers of streams, `file` (with nothing else held) for the right to write. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/thread/cancel.h"
#include "base/libc.h"
#include "base/log.h"
#include "base/options/options.h"
#include "record/live/shards.h"
#include "record/file/path.h"
#include "record/file/trace.h"
#include "record/file/trace_file.h"

enum {
    WRITE_BYTES = MS_TRACE_RING_BYTES / 4,    /* somebody should write */
    WAIT_BYTES = MS_TRACE_RING_BYTES / 4 * 3, /* everybody waits until somebody has written */
    WAIT_MS = 1000,                           /* the longest of these waits */
    NAMES_MAX = 99,
    LINE_BYTES = 160,
    STREAMS_MAX = 1024,
    SIZES_MAX = 4096,
    TOO_SLOW = -1,
};
#define PER_THREAD_STREAM 2u /* the handle means another stream in each thread */

struct stream {
    uint64_t handle;
    uint32_t thread;
    int16_t device;
    bool used;
};

atomic_bool ms_trace_on, ms_trace_due;

static struct ms_lock lines = MS_LOCK_INIT(MS_RANK_TRACE), file = MS_LOCK_INIT(MS_RANK_TRACE_FILE);
static char path[PATH_MAX];
static uint64_t *ids;       /* of the block in each row */
static _Atomic int stopped; /* an errno, or TOO_SLOW */
static bool stop_said;
static atomic_bool finished;

static struct {
    uint64_t last_us, allocs, frees, live_bytes, peak_live_bytes, sizes, streams, pieces;
    struct stream stream[STREAMS_MAX]; /* by number; 0 is the default stream of device 0 */
    uint64_t size[SIZES_MAX];          /* + 1; open addressing */
} told;

static void stop(int reason)
{
    int none = 0;
    atomic_compare_exchange_strong(&stopped, &none, reason);
    atomic_store_explicit(&ms_trace_on, false, memory_order_relaxed);
    atomic_store_explicit(&ms_trace_due, true, memory_order_relaxed);
}

/* --- lines, under their lock --- */

static char *trace_put_number(char *at, uint64_t number)
{
    char digits[20];
    int count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while ((number /= 10) != 0);
    while (count)
        *at++ = digits[--count];
    return at;
}

static void put_text(const char *text, size_t count)
{
    struct ms_process *process = ms_process();
    uint64_t end = atomic_load_explicit(&process->trace_end, memory_order_relaxed);
    uint64_t waiting = end + count - atomic_load_explicit(&process->trace_written, memory_order_acquire);
    uint64_t place = end % MS_TRACE_RING_BYTES, first = MS_TRACE_RING_BYTES - place;
    if (waiting > MS_TRACE_RING_BYTES) {
        stop(TOO_SLOW);
        return;
    }
    memcpy(MS_ROWS(TRACE, char) + place, text, count < first ? count : first);
    if (count > first)
        memcpy(MS_ROWS(TRACE, char), text + first, count - first);
    atomic_store_explicit(&process->trace_end, end + count, memory_order_release);
    if (waiting >= WRITE_BYTES || atomic_load_explicit(&finished, memory_order_relaxed))
        atomic_store_explicit(&ms_trace_due, true, memory_order_relaxed);
}

static char *put_hex(char *at, uint64_t number)
{
    char digits[16];
    int count = 0;
    do
        digits[count++] = "0123456789abcdef"[number % 16];
    while ((number /= 16) != 0);
    *at++ = '0';
    *at++ = 'x';
    while (count)
        *at++ = digits[--count];
    return at;
}

/* Which site counts it, as the record numbers sites, and where it lies; 0x0 if it has no address. */
static char *trace_put_place(char *at, uint32_t row, const struct ms_block *block)
{
    const struct ms_site *site = ms_site_row(ms_block_row_at(row)->site);
    *at++ = ' ';
    if (site)
        at = trace_put_number(at, site->whole);
    else
        *at++ = '-';
    *at++ = ' ';
    return put_hex(at, block->space == MS_SPACE_ADDRESS || block->space == MS_SPACE_INNER ? block->key : 0);
}

static void introduce(unsigned number, const struct stream *stream)
{
    char line[LINE_BYTES];
    bool other = stream->device >= 0 && ms_device_maker(stream->device) != MS_MAKER_CUDA;
    int count = snprintf(line, sizeof line, "# stream %u: %s%sdevice %d, handle 0x%llx", number,
                         other ? ms_device_api(stream->device) : "", other ? " " : "",
                         ms_device_index(stream->device), (unsigned long long)stream->handle);
    if (stream->thread)
        count += snprintf(line + count, sizeof line - (size_t)count, ", thread %u", stream->thread);
    line[count++] = '\n';
    put_text(line, (size_t)count);
}

static unsigned stream_number(const struct ms_block *block)
{
    struct stream wanted = {.handle = block->stream, .device = block->device, .used = true};
    if (wanted.handle <= 1) /* the default stream has two names */
        wanted.handle = 0;
    if (wanted.handle == PER_THREAD_STREAM)
        wanted.thread = block->thread;
    if (!wanted.handle && !wanted.device) {
        if (!told.stream[0].used)
            told.streams++;
        told.stream[0].used = true;
        return 0;
    }
    unsigned number = 1;
    for (; number < STREAMS_MAX - 1 && told.stream[number].used; number++) {
        const struct stream *known = &told.stream[number];
        if (known->handle == wanted.handle && known->device == wanted.device &&
            known->thread == wanted.thread)
            return number;
    }
    if (!told.stream[number].used) { /* the last number stands for all that have none of their own */
        told.stream[number] = wanted;
        told.streams++;
        introduce(number, &wanted);
    }
    return number;
}

/* `row` of a block that appears; UINT32_MAX of one that goes. */
static void trace_put_line(char op, uint64_t id, const struct ms_block *block, uint32_t row, uint64_t now_ns)
{
    char line[LINE_BYTES], *at = line;
    unsigned stream = stream_number(block);
    if (now_ns / 1000 > told.last_us)
        told.last_us = now_ns / 1000;
    at = trace_put_number(at, told.last_us);
    *at++ = ' ';
    *at++ = op;
    *at++ = ' ';
    at = trace_put_number(at, id);
    *at++ = ' ';
    at = trace_put_number(at, block->requested);
    *at++ = ' ';
    at = trace_put_number(at, stream);
    if (row != UINT32_MAX)
        at = trace_put_place(at, row, block);
    *at++ = '\n';
    put_text(line, (size_t)(at - line));
}

static void count_size(uint64_t bytes)
{
    uint64_t place = bytes * 0x9e3779b97f4a7c15u >> 52;
    _Static_assert(SIZES_MAX == 1 << 12, "the number of bits above");
    for (unsigned i = 0; i < SIZES_MAX; i++, place = (place + 1) % SIZES_MAX) {
        if (told.size[place] == bytes + 1)
            return;
        if (!told.size[place]) {
            told.size[place] = bytes + 1;
            told.sizes++;
            return;
        }
    }
}

/* Pieces of blocks have lines and numbers of their own. */
static void put_inner(uint32_t row, const struct ms_block *block, bool is_free)
{
    struct ms_block plain = *block;
    plain.device = (int16_t)ms_device_plain(block->device);
    plain.stream = 0; /* it has its name there */
    ms_lock(&lines);
    if (atomic_load_explicit(&ms_trace_on, memory_order_relaxed) && (!is_free || ids[row])) {
        if (!is_free)
            ids[row] = ++told.pieces;
        trace_put_line(is_free ? 'F' : 'A', ids[row], &plain, is_free ? UINT32_MAX : row,
                       is_free ? block->freed_ns : block->born_ns);
        ids[row] = is_free ? 0 : ids[row];
    }
    ms_unlock(&lines);
}

void ms_trace_put_alloc(uint32_t row, const struct ms_block *block)
{
    if (block->kind == MS_KIND_INNER)
        put_inner(row, block, false);
    if (!ms_kind_is_vendors(block->kind))
        return;
    ms_lock(&lines);
    if (atomic_load_explicit(&ms_trace_on, memory_order_relaxed)) {
        ids[row] = ++told.allocs;
        count_size(block->requested);
        told.live_bytes += block->requested;
        if (told.peak_live_bytes < told.live_bytes)
            told.peak_live_bytes = told.live_bytes;
        trace_put_line('a', told.allocs, block, row, block->born_ns);
    }
    ms_unlock(&lines);
}

void ms_trace_put_free(uint32_t row, const struct ms_block *block)
{
    if (block->kind == MS_KIND_INNER)
        put_inner(row, block, true);
    if (!ms_kind_is_vendors(block->kind))
        return;
    ms_lock(&lines);
    if (atomic_load_explicit(&ms_trace_on, memory_order_relaxed) && ids[row]) {
        told.frees++;
        told.live_bytes -= block->requested;
        trace_put_line('f', ids[row], block, UINT32_MAX, block->freed_ns);
        ids[row] = 0;
    }
    ms_unlock(&lines);
}

/* --- the file, under its lock --- */

static void summarize(void)
{
    char text[MS_TRACE_SUMMARY_BYTES];
    ms_lock(&lines);
    snprintf(text, sizeof text,
             "allocs %llu frees %llu distinct_sizes %llu streams %llu peak_live_bytes %llu%s",
             (unsigned long long)told.allocs, (unsigned long long)told.frees, (unsigned long long)told.sizes,
             (unsigned long long)told.streams, (unsigned long long)told.peak_live_bytes,
             atomic_load(&stopped) ? " cut short" : "");
    ms_unlock(&lines);
    ms_trace_file_summary(path, text);
}

static void say_stopped(void)
{
    int reason = atomic_load(&stopped);
    if (!reason || stop_said)
        return;
    stop_said = true;
    ms_diagnostic(MS_LOG_WARN, "trace", "%.300s ends early: %s", path,
                  reason == TOO_SLOW ? "it is written too slowly"
                  : reason == ESTALE ? "another file has its name"
                                     : ms_error_text(reason));
}

void ms_trace_write(void)
{
    struct ms_process *process = ms_process();
    int saved_errno = errno, cancel_state = ms_cancel_hold();
    uint64_t waiting = atomic_load_explicit(&process->trace_end, memory_order_relaxed) -
                       atomic_load_explicit(&process->trace_written, memory_order_relaxed);
    if (ms_lock_within(&file, waiting >= WAIT_BYTES ? WAIT_MS : 0)) {
        atomic_store_explicit(&ms_trace_due, false, memory_order_relaxed);
        int error = ms_trace_file_write(path);
        if (error)
            stop(error);
        if (atomic_load_explicit(&finished, memory_order_relaxed))
            summarize();
        say_stopped();
        ms_unlock(&file);
    }
    ms_cancel_release(cancel_state);
    errno = saved_errno;
}

void ms_trace_finish(void)
{
    if (!*path || !ms_lock_within(&file, WAIT_MS))
        return;
    atomic_store(&finished, true);
    ms_unlock(&file);
    ms_trace_write();
}

/* Nothing is overwritten: the name may be that of this process before an exec, of its parent's trace, or of
 * an earlier run's. Then it gets a number. */
static int create(enum ms_log_level level)
{
    size_t bytes = strlen(path);
    int error = ms_trace_file_create(path);
    for (int number = 2; error == EEXIST && number <= NAMES_MAX && bytes + 5 < sizeof path; number++) {
        snprintf(path + bytes, sizeof path - bytes, ".%d", number);
        error = ms_trace_file_create(path);
        if (!error)
            ms_log(level, "trace", "%.*s exists; this one is %s", (int)bytes, path, path);
    }
    return error;
}

static void trace_refuse(const char *why)
{
    ms_diagnostic(MS_LOG_WARN, "trace", "no trace: %.300s: %s", *path ? path : "MEMSHIM_TRACE", why);
    path[0] = '\0';
}

void ms_trace_start(void)
{
    const char *pattern = ms_option_text(MS_OPT_TRACE);
    if (!*pattern || strcmp(pattern, "none") == 0)
        return;
    if (ms_path_expand(pattern, ms_process_directory(), path, sizeof path) != 0) {
        path[0] = '\0';
        trace_refuse("too long a path");
        return;
    }
    size_t bytes = (size_t)MS_TABLE_BLOCKS_ROWS * sizeof *ids;
    void *memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || !ms_table_reserve(MS_TABLE_TRACE, MS_TRACE_RING_BYTES)) {
        trace_refuse("no memory");
        return;
    }
    ids = memory;
    int error = create(strstr(pattern, "%p") ? MS_LOG_INFO : MS_LOG_WARN);
    if (error) {
        trace_refuse(ms_error_text(error));
        return;
    }
    ms_table_publish(MS_TABLE_TRACE, MS_TRACE_RING_BYTES);
    ms_process_note("trace", path);
    atomic_store(&ms_trace_on, true);
    ms_slow_path_set(MS_SLOW_PATH_TRACE);
}

static void trace_reset(void)
{
    atomic_store(&ms_trace_on, false);
    atomic_store(&ms_trace_due, false);
    ms_slow_path_clear(MS_SLOW_PATH_TRACE);
    atomic_store(&stopped, 0);
    atomic_store(&finished, false);
    stop_said = false;
    path[0] = '\0';
    if (ids)
        munmap(ids, (size_t)MS_TABLE_BLOCKS_ROWS * sizeof *ids);
    ids = NULL;
    memset(&told, 0, sizeof told);
    ms_lock_reset(&lines);
    ms_lock_reset(&file);
}
MS_AT_FORK(MS_FORK_RECORD, trace_reset);
