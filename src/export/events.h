/* events.h - the events of a recorded trace (src/trace), by the rows of a report.
 *
 * Floor 4, command line only. What is read is not trusted. */
#ifndef MS_EXPORT_EVENTS_H
#define MS_EXPORT_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/read/read.h"
#include "trace/reader.h"

enum { MS_EVENT_STREAMS = MS_TRACE_STREAMS };

struct ms_event {
    int64_t ns;       /* since the record began; never less than the one before */
    uint64_t id;      /* of the block */
    uint64_t bytes;   /* as the program asked for it */
    uint32_t stream;  /* less than MS_EVENT_STREAMS */
    bool free;        /* the block went; else it appeared */
    size_t site;      /* row of sites[]; SIZE_MAX if not known */
    uint64_t address; /* 0 if not known */
};

struct ms_events {
    struct ms_event *rows; /* of the layer that the report shows (report/read/layer.h) */
    size_t count;
    struct ms_event *blocks; /* of the blocks, where the tensors in them are shown; without sites */
    size_t block_count;
    size_t device[MS_EVENT_STREAMS]; /* row of devices[], SIZE_MAX for none; by stream */
};

/** Read the trace of the process that the report is of. A last line that is not whole ends it. Returns 0, or
 * -1 with one line in `error`: unreadable, no trace, a line that is none, of another process. */
int ms_events_read(const char *path, const struct ms_report *report, struct ms_events *events, char *error,
                   size_t error_bytes);
void ms_events_close(struct ms_events *events);

#endif
