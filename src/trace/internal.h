/* internal.h - what the files of src/trace know of each other. */
#ifndef MS_TRACE_INTERNAL_H
#define MS_TRACE_INTERNAL_H

#include "trace/input.h"
#include "trace/live.h"
#include "trace/reader.h"

struct ms_trace_binary;
struct ms_trace_reader {
    const char *path;
    char *error;
    size_t error_bytes;
    struct ms_trace_input input;
    struct ms_trace_head head;
    struct ms_trace_stream streams[MS_TRACE_STREAMS];
    struct ms_trace_live live[MS_LAYERS];
    struct ms_trace_phase_name phases[MS_TRACE_PHASES];
    struct ms_trace_live open; /* the phases that have begun and not ended, by their numbers */
    uint64_t last_ns, fallen;
    uint32_t thread;                /* of the text form */
    struct ms_trace_binary *binary; /* NULL: lines */
    size_t line;                    /* of the text form: the latest that was read */
};

/** Puts "PATH: WHERE WHAT" into the error; -1. */
int ms_trace_fail(struct ms_trace_reader *reader, const char *where, const char *what);

/** The words for a file in which a second trace begins. */
extern const char ms_trace_another[];

/** The third line. */
void ms_trace_read_summary(struct ms_trace_reader *reader, const char *text, size_t count);

/* text.c */
/** The words of the text form for kinds of blocks and sources of phases. */
extern const char *const ms_trace_kinds[], *const ms_trace_sources[];
/** The next line: its first byte and its length without the end. False behind the last whole one. */
bool ms_trace_line(struct ms_trace_reader *reader, const char **text_p, size_t *count_p);
/** As ms_trace_next(), but for what the reader adds to events. */
int ms_trace_text_next(struct ms_trace_reader *reader, struct ms_trace_event *event_p);

/* binary.c */
struct ms_trace_cursor {
    const unsigned char *at, *end;
};
/** A number (trace_format.h); false if it is none, or is cut. */
bool ms_trace_take(struct ms_trace_cursor *cursor, uint64_t *number_p);
bool ms_trace_binary_open(struct ms_trace_reader *reader);
void ms_trace_binary_close(struct ms_trace_binary *binary);
int ms_trace_binary_next(struct ms_trace_reader *reader, struct ms_trace_event *event_p);

/* phases.c */
/** False for what cannot be, or without memory. */
bool ms_trace_name_phase(struct ms_trace_reader *reader, uint64_t number, uint64_t source, const char *domain,
                         size_t domain_bytes, const char *name, size_t name_bytes);
/** A phase begins; `is_new_p`: it has a number, of which none was open. False without memory. */
bool ms_trace_phase_begins(struct ms_trace_reader *reader, const struct ms_trace_event *event,
                           bool *is_new_p);
/** The phase of the event's number ends, which the event names then; false if none was open. */
bool ms_trace_phase_ends(struct ms_trace_reader *reader, struct ms_trace_event *event);
void ms_trace_phases_close(struct ms_trace_reader *reader);

#endif
