/* log.c - one line, one write.
 *
 * Floor 0. Fixed buffers on the stack; the write is the bare system call, because write() is a cancellation
 * point. The kept diagnostics are a table of the record. */
#include "config.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/cancel.h"
#include "base/log.h"
#include "base/store.h"

enum { LINE_BYTES = 1024, KEPT_BYTES = MS_TABLE_DIAGNOSTICS_ROW_BYTES };

typedef char kept_line[KEPT_BYTES];

static const char *const level_names[] = {"none", "error", "warn", "info", "debug"};

static _Atomic int threshold = MS_LOG_WARN;

static struct ms_lock kept_lock = MS_LOCK_INIT(MS_RANK_LOG);

void ms_log_set_level(enum ms_log_level level)
{
    atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

/* Writing to a pipe without a reader raises SIGPIPE in the writing thread: hold it back, and take it away
 * again unless one was pending already. */
static void write_line(const char *line, size_t bytes)
{
    sigset_t pipe_set, old_set, pending;
    int cancel_state = ms_cancel_hold();
    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigemptyset(&pending);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_set, &old_set);
    long written = syscall(SYS_write, STDERR_FILENO, line, bytes);
    if (written < 0 && errno == EPIPE && !sigismember(&pending, SIGPIPE)) {
        const struct timespec at_once = {0, 0};
        sigtimedwait(&pipe_set, NULL, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &old_set, NULL);
    ms_cancel_release(cancel_state);
}

/* A line stays a line, whatever a path or a variable contained. */
static void replace_controls(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
    }
}

static void emit(enum ms_log_level level, const char *area, const char *text)
{
    char line[LINE_BYTES];
    int bytes = snprintf(line, sizeof line - 1, "memshim[%d]: %s %s: %s", (int)getpid(), level_names[level],
                         area, text);
    if (bytes < 0)
        return;
    if ((size_t)bytes > sizeof line - 2)
        bytes = sizeof line - 2;
    line[bytes++] = '\n';
    write_line(line, (size_t)bytes);
}

static bool enabled(enum ms_log_level level)
{
    return level > MS_LOG_NONE && (int)level <= atomic_load_explicit(&threshold, memory_order_relaxed);
}

void ms_log(enum ms_log_level level, const char *area, const char *format, ...)
{
    if (!enabled(level))
        return;
    int saved_errno = errno;
    char text[LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    replace_controls(text);
    emit(level, area, text);
    errno = saved_errno;
}

/* Whether the line is new, or there is no room to tell. */
static bool keep(const char *area, const char *text)
{
    char line[KEPT_BYTES];
    snprintf(line, sizeof line, "%s: %.*s", area, KEPT_BYTES - 32, text);
    bool fresh = true;
    ms_lock(&kept_lock);
    unsigned count = (unsigned)ms_table_rows(MS_TABLE_DIAGNOSTICS);
    for (unsigned i = 0; i < count && fresh; i++)
        fresh = strcmp(MS_ROWS(DIAGNOSTICS, kept_line)[i], line) != 0;
    if (fresh && ms_table_reserve(MS_TABLE_DIAGNOSTICS, count + 1)) {
        ms_store_hold();
        memcpy(MS_ROWS(DIAGNOSTICS, kept_line)[count], line, sizeof line);
        ms_table_publish(MS_TABLE_DIAGNOSTICS, count + 1);
        ms_store_release();
    }
    ms_unlock(&kept_lock);
    return fresh;
}

void ms_diagnostic(enum ms_log_level level, const char *area, const char *format, ...)
{
    int saved_errno = errno;
    char text[LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    replace_controls(text);
    if (keep(area, text) && enabled(level))
        emit(level, area, text);
    errno = saved_errno;
}

const char *ms_diagnostic_line(unsigned i)
{
    return i < ms_table_rows(MS_TABLE_DIAGNOSTICS) ? MS_ROWS(DIAGNOSTICS, kept_line)[i] : NULL;
}

void ms_log_reset(void)
{
    ms_lock_reset(&kept_lock);
}
