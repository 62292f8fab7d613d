/* log.h - one line at a time to standard error, without malloc and without stdio.
 *
 * Floor 0. ms_log is safe in any thread, in a constructor and in a signal handler; errno is preserved. Each
 * line is one write(): "memshim[pid]: warn hooks: text\n". Nothing is ever written to standard output. A
 * standard error that nobody reads any more, or a file at its limit, does not bring a signal upon the host.
 */
#ifndef MS_BASE_LOG_H
#define MS_BASE_LOG_H

#include "base/compiler.h"

enum ms_log_level { MS_LOG_NONE, MS_LOG_ERROR, MS_LOG_WARN, MS_LOG_INFO, MS_LOG_DEBUG };

/** Lines above this level are dropped; MS_LOG_WARN until set. */
void ms_log_set_level(enum ms_log_level level);

/** `area` is the room's name. Formatting is vsnprintf into a fixed buffer of 1 KiB; what is longer is cut. */
void ms_log(enum ms_log_level level, const char *area, const char *format, ...) MS_PRINTF(3, 4);

/** As ms_log, and kept (the first 64 distinct lines, whatever the level) for the report's diagnostics[].
 *
 * A line that was kept before is not written again. Takes a lock: not from signal handlers. */
void ms_diagnostic(enum ms_log_level level, const char *area, const char *format, ...) MS_PRINTF(3, 4);

/** The i-th kept line, or NULL past the last. Stable once returned. */
const char *ms_diagnostic_line(unsigned i);

/** In a fork child, where nobody holds the lock; the kept lines go with the store. */
void ms_log_reset(void);

#endif
