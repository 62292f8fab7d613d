/* trace_told.h - what the trace has told so far, and how records are made; private to trace*.c.
 *
 * Floor 2. All of it is under one lock, `lines` of trace_events.c (MS_RANK_TRACE). A record goes into the
 * ring, and is there once trace_end of the process's row is behind it: so it is whole whenever the process is
 * killed. */
#ifndef MS_RECORD_FILE_TRACE_TOLD_H
#define MS_RECORD_FILE_TRACE_TOLD_H

#include <string.h>

#include "record/file/trace.h"
#include "record/file/trace_file.h"
#include "record/file/trace_format.h"
#include "record/live/shards.h"

enum { MS_TOLD_SIZES = 4096, MS_TOLD_STREAMS = 1024, MS_TOLD_OPENS = 1024 };
#define MS_TOLD_PER_THREAD 2u /* a stream's handle: another stream in each thread */
#define MS_TOLD_NO_SITE    UINT32_MAX

struct ms_told_stream {
    uint64_t handle;
    uint32_t thread;
    int16_t device;
    bool used, is_told; /* is_told: in this part */
};

/* Allocations that differ in nothing but their address. They are found by the first three; `site` is a row,
 * or MS_TOLD_NOT_EASY where more has to be looked at than the row's. */
struct MS_CACHELINE ms_told_shape {
    uint64_t bytes, stream;
    uint32_t site;
    uint32_t word;    /* its number * 4 */
    uint64_t address; /* of the latest */
    uint32_t layer;
    uint32_t whole, thread; /* whole: the site's number; thread: of a stream that each has of its own */
    uint32_t what;          /* kind and device; 0: nothing was told of it in this part */
};
#define MS_TOLD_WHAT(kind, device) (1u << 31 | (uint32_t)(kind) << 16 | (uint8_t)(device))
#define MS_TOLD_NOT_EASY           (UINT32_MAX - 1)

struct ms_told_open {
    uint64_t id;
    const char *domain, *name;
    uint32_t phase, thread;
    uint8_t source;
    bool is_nested, is_told;
};

extern MS_HIDDEN struct ms_told {
    struct ms_process *process;
    uint64_t *row_ids;      /* of the block in each row; 0: of none that was told */
    uint64_t end, easy_end; /* of the stream of records; up to where one more needs no look at anything */
    uint64_t last_ticks;
    uint64_t ids[MS_LAYERS], frees[MS_LAYERS], live_bytes[MS_LAYERS], peak_live_bytes[MS_LAYERS];
    uint32_t thread, shapes;
    uint64_t part_end;            /* the part's; UINT64_MAX: there are none */
    uint64_t part_ids[MS_LAYERS]; /* the latest before the part */
    uint64_t sizes, streams, parts, phase_events;
    uint32_t opens;
    uint32_t rows, rows_end, open; /* of the list: the next row, of so many; the next phase */
    bool is_listing;
    struct ms_told_stream stream[MS_TOLD_STREAMS]; /* by number; 0 is the default stream of device 0 */
    uint64_t size[MS_TOLD_SIZES];                  /* + 1; open addressing */
    struct ms_told_shape shape[MS_TRACE_SHAPES];
    struct ms_told_open opened[MS_TOLD_OPENS];
    bool phase_told[MS_TRACE_PHASES];
} ms_told;

/** The trace ends here, for a reason (trace_events.h). */
void ms_told_stop(int reason);
/** Something is to be written or said. */
void ms_told_due(void);
/** From now on each event is to be written at once. */
extern MS_HIDDEN atomic_bool ms_told_finished;

static inline void ms_told_put(const unsigned char *record, size_t count)
{
    uint64_t place = ms_told.end % MS_TRACE_RING_BYTES, first = MS_TRACE_RING_BYTES - place;
    memcpy(MS_ROWS(TRACE, unsigned char) + place, record, count < first ? count : first);
    if (count > first)
        memcpy(MS_ROWS(TRACE, unsigned char), record + first, count - first);
    ms_told.end += count;
    atomic_store_explicit(&ms_told.process->trace_end, ms_told.end, memory_order_release);
}

static MS_INLINE unsigned char *ms_told_op(unsigned char *at, enum ms_trace_record op, uint64_t now_ns)
{
    uint64_t ticks = now_ns >> MS_TRACE_TICK_BITS, more = ticks - ms_told.last_ticks;
    if (MS_LIKELY(more < MS_TRACE_TIME_MORE)) {
        ms_told.last_ticks = ticks;
        *at++ = (unsigned char)(op | more << 4);
        return at;
    }
    if ((int64_t)more < 0) { /* another processor's clock */
        *at++ = (unsigned char)op;
        return at;
    }
    ms_told.last_ticks = ticks;
    *at++ = (unsigned char)(op | MS_TRACE_TIME_MORE << 4);
    return ms_trace_put_number(at, more - MS_TRACE_TIME_MORE);
}

/* trace_told.c: records that introduce what others refer to, put at `at`; they return what is behind. */
unsigned char *ms_told_thread(unsigned char *at, uint32_t thread);
unsigned char *ms_told_phase(unsigned char *at, uint32_t phase, unsigned source, const char *domain,
                             const char *name);
/** Shape of the block in a row, which is told of if it was not. */
struct ms_told_shape *ms_told_shape(const struct ms_block_row *row, unsigned kind, unsigned char **at_p);

static inline bool ms_told_has_address(const struct ms_block_row *row)
{
    unsigned space = ms_block_row_space(row);
    return space == MS_SPACE_ADDRESS || space == MS_SPACE_INNER;
}

static MS_INLINE enum ms_layer ms_told_layer(unsigned kind)
{
    return kind == MS_KIND_INNER ? MS_LAYER_INNER : MS_LAYER_OUTER;
}

static MS_INLINE struct ms_told_shape *ms_told_shape_at(uint64_t bytes, uint64_t stream, uint32_t site)
{
    uint64_t hash = (bytes + stream + site * 0x9e3779b1u) * 0x9e3779b97f4a7c15u;
    _Static_assert(MS_TRACE_SHAPES == 1 << 12, "the number of bits below");
    return &ms_told.shape[hash >> 52];
}

static MS_INLINE unsigned char *ms_told_place(unsigned char *at, struct ms_told_shape *shape,
                                              uint64_t address)
{
    uint64_t far = address - shape->address, word = shape->word;
    shape->address = address;
    if (!far)
        return ms_trace_put_number(at, word | MS_TRACE_SAME);
    if (MS_UNLIKELY((unsigned char)far)) {
        at = ms_trace_put_number(at, word | MS_TRACE_BYTES);
        return ms_trace_put_number(at, ms_trace_fold((int64_t)far));
    }
    _Static_assert(MS_TRACE_PAGE_BITS == 8, "the lowest byte above");
    at = ms_trace_put_number(at, word | MS_TRACE_PAGES);
    return ms_trace_put_number(at, ms_trace_fold((int64_t)far >> MS_TRACE_PAGE_BITS));
}

/* trace_parts.c */
/** So many bytes go into this part and the ring, or the next part begins; false if the trace ends here. */
bool ms_told_room(size_t bytes);
/** Before an event: true if it is to be recorded, and a record of it has room. A block that goes before it
 * was listed, in row `goes`, is told of right then; UINT32_MAX: none does. */
bool ms_told_on(uint32_t goes);
/** Lists some more of what is live. */
bool ms_told_list(uint32_t goes);
void ms_told_begin_open(struct ms_told_open *open, uint64_t now_ns);
void ms_told_begin_part(void);

#endif
