/* trace.c - MEMSHIM_TRACE: which file it is, who writes to it and when; see trace.h.
 *
 * Floor 2. A trace is always the beginning of the whole, or with MEMSHIM_TRACE_MAX the end of that beginning:
 * where an event cannot be kept, it ends there, for a block that goes without having come is of no use to a
 * reader. Lock: `file` (with nothing else held) for the right to write. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/libc.h"
#include "base/log.h"
#include "base/options/options.h"
#include "base/thread/cancel.h"
#include "record/file/path.h"
#include "record/file/trace.h"
#include "record/file/trace_events.h"
#include "record/file/trace_file.h"

enum {
    WAIT_BYTES = MS_TRACE_RING_BYTES / 4 * 3, /* everybody waits until somebody has written */
    WAIT_MS = 1000,                           /* the longest of these waits */
    NAMES_MAX = 99,
};

static struct ms_lock file = MS_LOCK_INIT(MS_RANK_TRACE_FILE);
static char path[PATH_MAX];
static bool stop_said;
static atomic_bool ended;

/* --- the file, under its lock --- */

static void summarize(void)
{
    char text[MS_TRACE_SUMMARY_BYTES];
    if (ms_trace_events_summary(text, sizeof text))
        ms_trace_file_summary(path, text);
}

static void say_stopped(void)
{
    int reason = ms_trace_events_stopped();
    if (!reason || stop_said)
        return;
    stop_said = true;
    ms_diagnostic(MS_LOG_WARN, "trace", "%.300s ends early: %s", path,
                  reason == MS_TRACE_TOO_SLOW   ? "it is written too slowly"
                  : reason == MS_TRACE_TOO_FULL ? "a list of what is live has no room in MEMSHIM_TRACE_MAX"
                  : reason == ESTALE            ? "another file has its name"
                                                : ms_error_text(reason));
}

void ms_trace_write(void)
{
    struct ms_process *process = ms_process();
    int saved_errno = errno, cancel_state = ms_cancel_hold();
    uint64_t waiting = atomic_load_explicit(&process->trace_end, memory_order_relaxed) -
                       atomic_load_explicit(&process->trace_written, memory_order_relaxed);
    if (ms_lock_within(&file, waiting >= WAIT_BYTES ? WAIT_MS : 0)) {
        ms_slow_path_clear(MS_SLOW_PATH_TRACE);
        int error = ms_trace_file_write(path);
        if (error)
            ms_trace_events_stop(error);
        if (atomic_load_explicit(&ended, memory_order_relaxed))
            summarize();
        say_stopped();
        ms_unlock(&file);
    }
    ms_cancel_release(cancel_state);
    errno = saved_errno;
}

void ms_trace_finish(void)
{
    if (!*path)
        return;
    while (!ms_trace_events_finish())
        ms_trace_write_due();
    if (!ms_lock_within(&file, WAIT_MS))
        return;
    atomic_store(&ended, true);
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

/* Parts of pages, one less than what the head leaves. */
static void set_limit(void)
{
    uint64_t most = ms_option_size(MS_OPT_TRACE_MAX, 0);
    ms_process()->trace_part_bytes =
        most < UINT64_MAX / 2 ? (most - MS_TRACE_HEAD_BYTES) / MS_TRACE_PARTS / 4096 * 4096 : 0;
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
    set_limit();
    if (!ms_table_reserve(MS_TABLE_TRACE, MS_TRACE_RING_BYTES)) {
        trace_refuse("no memory");
        return;
    }
    int error = create(strstr(pattern, "%p") ? MS_LOG_INFO : MS_LOG_WARN);
    if (error) {
        trace_refuse(ms_error_text(error));
        return;
    }
    ms_table_publish(MS_TABLE_TRACE, MS_TRACE_RING_BYTES);
    ms_process_note("trace", path);
    if (!ms_trace_events_start())
        trace_refuse("no memory");
}

static void trace_reset(void)
{
    ms_slow_path_clear(MS_SLOW_PATH_TRACE);
    ms_trace_events_reset();
    atomic_store(&ended, false);
    stop_said = false;
    path[0] = '\0';
    ms_lock_reset(&file);
}
MS_AT_FORK(MS_FORK_RECORD, trace_reset);
