/* trace_format.h - the binary form of a trace, for who writes it (trace_events.c) and who reads it
 * (src/trace/binary.c). docs/user/trace.md has the table of records.
 *
 * Floor 2. Pure. Numbers are in base 128, the lowest digits first, with the high bit set in all bytes but the
 * last. Signed ones are folded: 0, -1, 1, -2 are 0, 1, 2, 3. */
#ifndef MS_RECORD_FILE_TRACE_FORMAT_H
#define MS_RECORD_FILE_TRACE_FORMAT_H

#include <stdint.h>

#include "base/compiler.h"

#define MS_TRACE_FIRST_WORDS  "# memshim"
#define MS_TRACE_BINARY_WORDS "# binary "
#define MS_TRACE_VERSION      1

/** The lower four bits of a record's first byte. Those that happen at a time of their own have it in the
 * upper four. */
enum ms_trace_record {
    MS_TRACE_R_END,        /* nothing more in this part */
    MS_TRACE_R_ALLOC,      /* time, shape * 4 + how, address */
    MS_TRACE_R_FREE,       /* time, how many blocks ago */
    MS_TRACE_R_FREE_INNER, /* likewise, of tensors and other pieces */
    MS_TRACE_R_SHAPE,      /* shape, bytes, stream, site + 1 or 0, kind */
    MS_TRACE_R_THREAD,     /* thread */
    MS_TRACE_R_STREAM,     /* stream, maker, device's index (signed), handle, thread */
    MS_TRACE_R_PHASE,      /* phase, source, domain, name: each a length and its bytes */
    MS_TRACE_R_BEGIN,      /* time, phase, 1 for one that its thread ends, 0 for one of the process; number */
    MS_TRACE_R_FINISH,     /* time, number */
    MS_TRACE_R_MARK,       /* time, phase */
    MS_TRACE_R_PART,       /* part, ticks, blocks, pieces, events before it */
    MS_TRACE_R_LIVE,       /* how many before the part's first, shape * 4 + how, address */
    MS_TRACE_R_LISTED,     /* all that was live as the part began has been told */
    MS_TRACE_R_COUNT
};

enum {
    MS_TRACE_PARTS = 4,
    MS_TRACE_SUMMARY_BYTES = 160, /* of the third line */
    MS_TRACE_SHAPES = 4096,
    MS_TRACE_PHASES = 1 << 13,
    MS_TRACE_TICK_BITS = 10, /* times are in ticks of 1,024 nanoseconds */
    MS_TRACE_TIME_MORE = 15, /* in the upper four bits: that many ticks, and a number of more */
    MS_TRACE_NUMBER_BYTES = 10,
    MS_TRACE_EVENT_BYTES = 160,  /* an event with all that introduces it */
    MS_TRACE_TEXT_BYTES = 256,   /* the most of a domain, or of a name */
    MS_TRACE_RECORD_BYTES = 1024 /* more than any record has */
};

/** How an allocation says its address: as its shape's latest; by the difference to that, in 256 bytes; by the
 * difference. */
enum ms_trace_how { MS_TRACE_SAME, MS_TRACE_PAGES, MS_TRACE_BYTES };
#define MS_TRACE_PAGE_BITS 8

static MS_INLINE unsigned char *ms_trace_put_number(unsigned char *at, uint64_t number)
{
    while (MS_UNLIKELY(number >= 128)) {
        *at++ = (unsigned char)(number | 128);
        number >>= 7;
    }
    *at++ = (unsigned char)number;
    return at;
}

static inline uint64_t ms_trace_fold(int64_t number)
{
    return (uint64_t)number << 1 ^ (number < 0 ? UINT64_MAX : 0);
}
static inline int64_t ms_trace_unfold(uint64_t number)
{
    return (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
}

#endif
