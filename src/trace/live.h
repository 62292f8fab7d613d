/* live.h - the blocks of one layer that are live while a trace is read, or the phases that are open, by their
 * numbers; for src/trace alone. */
#ifndef MS_TRACE_LIVE_H
#define MS_TRACE_LIVE_H

#include "trace/reader.h"

struct ms_trace_live {
    struct ms_trace_event *places; /* a hash table; id 0: none */
    size_t count, room;            /* room: a power of two, or 0 */
    uint64_t bytes;                /* of all of them */
};

/** The one with this number, which is not 0; NULL if none is live. */
const struct ms_trace_event *ms_trace_live_find(const struct ms_trace_live *live, uint64_t id);
/** False without memory. */
bool ms_trace_live_add(struct ms_trace_live *live, const struct ms_trace_event *event);
/** It is not live any more; nothing happens if it was not. */
void ms_trace_live_remove(struct ms_trace_live *live, uint64_t id);

#endif
