/* log.c - one line, one write.
 *
 * Floor 0. Lines are put together on an auxiliary stack (aux_stack.h), and lie in one; the write is the bare
 * system call, because write() is a cancellation point, and happens on the thread's own, since it may take
 * long. The kept diagnostics are a table of the record. */
#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/thread/cancel.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/thread/aux_stack.h"
#include "base/store/store.h"

enum { LINE_BYTES = 1024, KEPT_BYTES = MS_TABLE_DIAGNOSTICS_ROW_BYTES };

typedef char kept_line[KEPT_BYTES];

/* A message: as it was given, as it is kept, as it is written. */
struct wording {
    enum ms_log_level level;
    const char *area, *format;
    va_list args;
    char text[LINE_BYTES], line[LINE_BYTES];
    kept_line kept;
    size_t bytes;
};
_Static_assert(sizeof(struct wording) <= MS_AUX_STACK_BUFFER_BYTES, "it lies in a buffer");

static const char *const level_names[] = {"none", "error", "warn", "info", "debug"};

static _Atomic int threshold = MS_LOG_WARN;

static struct ms_lock kept_lock = MS_LOCK_INIT(MS_RANK_LOG);

void ms_log_set_level(enum ms_log_level level)
{
    atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

static void write_line(const char *line, size_t bytes)
{
    struct ms_signals held;
    int cancel_state = ms_cancel_hold();
    ms_signals_hold(&held, false);
    syscall(SYS_write, STDERR_FILENO, line, bytes);
    ms_signals_release(&held);
    ms_cancel_release(cancel_state);
}

/* How many bytes at `text` turn the direction of text, have no width, or are of C1. */
static unsigned hidden_bytes(const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;
    if (byte[0] == 0xc2 && byte[1] >= 0x80 && byte[1] < 0xa0)
        return 2;
    if (byte[0] == 0xd8 && byte[1] == 0x9c)
        return 2;
    if (byte[0] == 0xe2 && byte[1] == 0x80 &&
        ((byte[2] >= 0x8b && byte[2] <= 0x8f) || (byte[2] >= 0xa8 && byte[2] <= 0xae)))
        return 3;
    if (byte[0] == 0xe2 && byte[1] == 0x81 && byte[2] >= 0xa0 && byte[2] <= 0xaf)
        return 3;
    return byte[0] == 0xef && byte[1] == 0xbb && byte[2] == 0xbf ? 3 : 0;
}

/* A line stays a line, and what it seems to be, whatever a path or a variable contained. */
static void replace_controls(char *text)
{
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
        for (unsigned left = hidden_bytes(text); left; left--, text += left != 0)
            *text = '?';
    }
}

static bool enabled(enum ms_log_level level)
{
    return level > MS_LOG_NONE && (int)level <= atomic_load_explicit(&threshold, memory_order_relaxed);
}

static void put_together(void *arg)
{
    struct wording *said = arg;
    vsnprintf(said->text, sizeof said->text, said->format, said->args);
    replace_controls(said->text);
    snprintf(said->kept, sizeof said->kept, "%s: %.*s", said->area, KEPT_BYTES - 32, said->text);
    int bytes = snprintf(said->line, sizeof said->line - 1, "memshim[%d]: %s %s: %s", (int)getpid(),
                         level_names[said->level], said->area, said->text);
    said->bytes = bytes < 0                               ? 0
                  : (size_t)bytes > sizeof said->line - 2 ? sizeof said->line - 2
                                                          : (size_t)bytes;
    said->line[said->bytes++] = '\n';
}

/* NULL, and nothing is said, where there is no memory to say it with. */
static struct wording *word(enum ms_log_level level, const char *area, const char *format, va_list args)
{
    struct wording *said = ms_aux_stack_take();
    if (!said)
        return NULL;
    said->level = level;
    said->area = area;
    said->format = format;
    va_copy(said->args, args);
    ms_aux_stack_call_anyway(put_together, said);
    va_end(said->args);
    return said;
}

void ms_log(enum ms_log_level level, const char *area, const char *format, ...)
{
    if (!enabled(level))
        return;
    int saved_errno = errno;
    va_list args;
    va_start(args, format);
    struct wording *said = word(level, area, format, args);
    va_end(args);
    if (said)
        write_line(said->line, said->bytes);
    ms_aux_stack_give(said);
    errno = saved_errno;
}

/* True if the line is new, or there is no room to tell. */
static bool log_keep(const char *line)
{
    bool fresh = true;
    ms_lock(&kept_lock);
    unsigned count = (unsigned)ms_table_rows(MS_TABLE_DIAGNOSTICS);
    for (unsigned i = 0; i < count && fresh; i++)
        fresh = strcmp(MS_ROWS(DIAGNOSTICS, kept_line)[i], line) != 0;
    if (fresh && ms_table_reserve(MS_TABLE_DIAGNOSTICS, count + 1)) {
        ms_store_hold();
        memcpy(MS_ROWS(DIAGNOSTICS, kept_line)[count], line, KEPT_BYTES);
        ms_table_publish(MS_TABLE_DIAGNOSTICS, count + 1);
        ms_store_release();
    }
    ms_unlock(&kept_lock);
    return fresh;
}

void ms_diagnostic(enum ms_log_level level, const char *area, const char *format, ...)
{
    int saved_errno = errno;
    va_list args;
    va_start(args, format);
    struct wording *said = word(level, area, format, args);
    va_end(args);
    if (said && log_keep(said->kept) && enabled(level))
        write_line(said->line, said->bytes);
    ms_aux_stack_give(said);
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
MS_AT_FORK(MS_FORK_BASE, ms_log_reset);
