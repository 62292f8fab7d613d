/* reader.h - a recorded trace (docs/user/trace.md), read event by event.
 *
 * Floor 3.5, command line only: no other code takes a trace apart. What is read is not trusted. Events come
 * in the order in which they happened; a free says all that its allocation said, and a last event that is not
 * whole ends the trace. */
#ifndef MS_TRACE_READER_H
#define MS_TRACE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/devices.h"
#include "record/file/trace_format.h"

enum { MS_TRACE_STREAMS = 1024 /* more have no numbers of their own */ };
#define MS_TRACE_NO_SITE UINT32_MAX

/** Phases begin and end; a mark is a moment with a name. */
enum ms_trace_op { MS_TRACE_ALLOC, MS_TRACE_FREE, MS_TRACE_BEGIN, MS_TRACE_END, MS_TRACE_MARK };

struct ms_trace_event {
    uint64_t ns; /* since the record began; never less than in the one before */
    uint64_t id; /* of the block: counted by the allocations of its layer, from 1; of a phase that is open */
    uint64_t bytes;   /* as the program asked for them */
    uint64_t address; /* of the block; 0 if it has none, or is not known */
    uint32_t site;    /* as the record numbers call sites; MS_TRACE_NO_SITE if it is not known */
    uint32_t thread;  /* the kernel's number of who did it; 0 if it is not known */
    uint16_t stream;  /* less than MS_TRACE_STREAMS */
    uint16_t phase;   /* of BEGIN, END, MARK: ms_trace_phase() names it */
    uint8_t op;       /* enum ms_trace_op */
    uint8_t layer;    /* enum ms_layer: of a block, or of a tensor or another piece of one */
    uint8_t kind;     /* enum ms_kind of the block; MS_KIND_COUNT if it is not known */
    bool is_nested;   /* of a phase: its thread ends it; else it is one of the whole process */
    bool is_listed;   /* it was live already where the trace begins, since what came before has fallen out */
};

/** A stream that has a number; 0 has one of its own. */
struct ms_trace_stream {
    char api[33]; /* whose device: "cuda" */
    bool is_known;
    uint32_t thread; /* where the handle means another stream in each */
    int64_t device;  /* of that interface, by its index */
    uint64_t handle;
};

/** A phase, whose source is enum ms_phase_source; texts are good until the trace is closed. */
struct ms_trace_phase_name {
    const char *domain, *name;
    uint8_t source;
};

/** The first lines. */
struct ms_trace_head {
    char line[512];
    char version[64];
    char program[256];
    uint64_t run; /* as the ledger and the report say it; 0 if it is not known */
    int64_t pid;
    char summary[MS_TRACE_SUMMARY_BYTES]; /* the third, without "# " and what fills it up */
    bool is_text, is_compressed;
};

struct ms_trace_reader;

/** NULL with one line in `error`, which names the file: it cannot be read, or is no trace. */
struct ms_trace_reader *ms_trace_open(const char *path, char *error, size_t error_bytes);
/** 1 for an event, 0 behind the last, or -1 with one line in `error` of ms_trace_open(): damage, with its
 * place. */
int ms_trace_next(struct ms_trace_reader *reader, struct ms_trace_event *event_p);
void ms_trace_close(struct ms_trace_reader *reader);

const struct ms_trace_head *ms_trace_head(const struct ms_trace_reader *reader);
/** The stream of that number, as far as the trace was read. */
const struct ms_trace_stream *ms_trace_stream(const struct ms_trace_reader *reader, unsigned number);
/** How texts of the trace are put on `out`, which may be a terminal: ms_text_put() of report/text/text.h. */
typedef size_t ms_trace_put(FILE *out, const char *text);
/** Puts all that the trace has on `out` as lines; 0, or -1 as ms_trace_next(). Of a trace of which nothing
 * was read. */
int ms_trace_print(struct ms_trace_reader *reader, FILE *out, ms_trace_put *put);

/** Compresses the trace in place: it keeps its name and its permissions. Nothing happens where it is no trace
 * of this run, is compressed, or its process may be there still; `is_complete`: what a process that was
 * killed had not written has been added. Returns 0, or -1 with errno: then it is as it was. */
int ms_trace_compress(const char *path, uint64_t run, bool is_complete);

/** The name of a phase, as far as the trace was read. */
const struct ms_trace_phase_name *ms_trace_phase(const struct ms_trace_reader *reader, unsigned number);
/** How many events were before those that the file has, since it may be so large only (MEMSHIM_TRACE_MAX);
 * known with the first event. */
uint64_t ms_trace_fallen(const struct ms_trace_reader *reader);

#endif
