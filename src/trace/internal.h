/* internal.h - what the files of src/trace know of each other. */
#ifndef MS_TRACE_INTERNAL_H
#define MS_TRACE_INTERNAL_H

#include "trace/input.h"
#include "trace/live.h"
#include "trace/reader.h"

struct ms_trace_reader {
    const char *path;
    char *error;
    size_t error_bytes;
    struct ms_trace_input input;
    struct ms_trace_head head;
    struct ms_trace_stream streams[MS_TRACE_STREAMS];
    struct ms_trace_live live[MS_LAYERS];
    uint64_t last_ns;
    size_t line; /* of the text form: the latest that was read */
};

/** Puts "PATH: WHERE WHAT" into the error; -1. */
int ms_trace_fail(struct ms_trace_reader *reader, const char *where, const char *what);

/* text.c */
/** The next line: its first byte and its length without the end. False behind the last whole one. */
bool ms_trace_line(struct ms_trace_reader *reader, const char **text_p, size_t *count_p);
/** As ms_trace_next(), but for what the reader adds to events. */
int ms_trace_text_next(struct ms_trace_reader *reader, struct ms_trace_event *event_p);

#endif
