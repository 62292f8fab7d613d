/* trace_events.h - the records of MEMSHIM_TRACE, made under one lock; private to trace*.c.
 *
 * Floor 2. Whoever records an event holds the lock of the shard of its block, or of the phases, and so events
 * are in the order in which they happened. The encoder's state is this process's own: a reader gets it out of
 * the records. */
#ifndef MS_RECORD_FILE_TRACE_EVENTS_H
#define MS_RECORD_FILE_TRACE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MS_TRACE_TOO_SLOW = -1, MS_TRACE_TOO_FULL = -2 };

/** From now on events are recorded. False without memory. */
bool ms_trace_events_start(void);
/** The trace ends here, for a reason that is kept: an errno, MS_TRACE_TOO_SLOW (the file cannot keep up) or
 * MS_TRACE_TOO_FULL (what is live has no room in a part). With nothing locked. */
void ms_trace_events_stop(int reason);
/** 0 while it goes on. */
int ms_trace_events_stopped(void);
/** Lists what is live to the end, if it was being listed: false if there is more to do. From now on each
 * event is to be written at once. */
bool ms_trace_events_finish(void);
/** Text of the head's summary; false if it cannot be told, as somebody ended inside. */
bool ms_trace_events_summary(char *text, size_t bytes);
void ms_trace_events_reset(void);

#endif
