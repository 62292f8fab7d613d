/* frag.h - how the memory that the pool holds is used, worked out from a report: per device its parts, its
 * segments and who holds them.
 *
 * Floor 5. frag.c works it out, trace_replay.c for an earlier moment, frag_text.c draws it, cmd_frag.c is the
 * verb. */
#ifndef MS_CLI_SCREENS_FRAG_H
#define MS_CLI_SCREENS_FRAG_H

#include <stdio.h>

#include "export/events.h"
#include "report/read/read.h"

enum ms_frag_use {
    MS_FRAG_LIVE,
    MS_FRAG_ROUNDING,
    MS_FRAG_PENDING,
    MS_FRAG_PINNED,
    MS_FRAG_FREE,
    MS_FRAG_UNKNOWN,
    MS_FRAG_USES
};

struct ms_frag_segment {
    const json_t *json;
    json_int_t address, bytes;
    json_int_t uses[MS_FRAG_USES]; /* bytes of each */
    json_int_t blocks;             /* live ones */
    json_int_t hidden_bytes;       /* of pieces that the report leaves out, and what may be theirs */
    json_int_t largest_gap;        /* of FREE or UNKNOWN, in one piece */
};

/* The bytes that a call site's blocks keep from being given back. */
struct ms_frag_holder {
    json_int_t site, stranded, live;
    size_t segments;
};

struct ms_frag_device {
    const json_t *json;
    json_int_t index;
    struct ms_frag_segment *segments; /* most stranded bytes first */
    size_t segment_count;
    struct ms_frag_holder *holders; /* likewise */
    size_t holder_count;
    json_int_t free_bytes, largest_free; /* free: in segments, in one piece or many */
    json_int_t left_out;                 /* live pieces that the report leaves out */
    /* recovered: what is free and what is pending cannot be told apart */
    bool unknown;
};

/* An earlier moment, by a recorded trace. */
enum ms_frag_at { MS_FRAG_AT_END, MS_FRAG_AT_PEAK, MS_FRAG_AT_OOM, MS_FRAG_AT_TIME };

struct ms_frag_moment {
    enum ms_frag_at kind; /* PEAK: of each device its own; OOM: the last one of each */
    json_int_t ns;        /* of TIME: since the record began */
};

/* The figures that a trace has of a device at that moment: bytes are those that the program asked for. */
struct ms_frag_then {
    bool known;                  /* there was such a moment */
    json_int_t ns, live, placed; /* placed: in the segments that are shown */
    size_t count, placed_count;  /* blocks */
};

struct ms_frag {
    struct ms_frag_device *devices;
    size_t device_count;
    struct ms_frag_moment moment;
    struct ms_frag_then *then; /* of each device; NULL at the end */
    json_t *segments;          /* of then, owned; NULL at the end */
};

/** Work it out; ms_frag_close() it. `events` may be NULL if the moment is the end. -1 without memory. */
int ms_frag_open(const struct ms_report *report, const struct ms_frag_moment *moment,
                 const struct ms_events *events, struct ms_frag *frag);
void ms_frag_close(struct ms_frag *frag);

/** Rows as those of segments[], with what lay in them then, for the caller to give back; NULL without memory.
 * `then` is as long as devices[] and all 0. */
json_t *ms_frag_segments_then(const struct ms_report *report, const struct ms_events *events,
                              const struct ms_frag_moment *moment, struct ms_frag_then *then);

/** Free bytes inside a segment that holds a live block. */
json_int_t ms_frag_fragmented(const struct ms_frag_segment *segment);

/** In thousandths: how much of what is free is not in the largest piece. 0 if nothing is free. */
json_int_t ms_frag_index(const struct ms_frag_device *device);

/** At most `top` segments and holders of each device. */
void ms_frag_print(FILE *out, const struct ms_report *report, const struct ms_frag *frag, size_t top);

#endif
