/* input.h - the bytes of a trace's file, in order; for src/trace alone. */
#ifndef MS_TRACE_INPUT_H
#define MS_TRACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/file/trace_format.h"

struct ms_trace_packed;

struct ms_trace_input {
    int fd;
    /* An errno that ended it. Of what is compressed, EBADMSG: it is damaged; ENODATA: it is cut off; EEXIST:
     * more comes behind its end; ENOTSUP: no libzstd. */
    int error;
    bool is_over;
    unsigned char *bytes; /* [begin, end) of them are to be read yet */
    size_t begin, end, room;
    uint64_t offset;                /* of the first of them, in what the file has, in order */
    struct ms_trace_packed *packed; /* NULL: the file is not compressed */
    /* The places of the parts, in order, where the file has them in turns: parts.c */
    unsigned parts, part;
    uint64_t part_bytes, parts_begin, part_left;
    uint64_t places[MS_TRACE_PARTS];
};

/** 0, or an errno: EINVAL for what is no regular file. */
int ms_trace_input_open(struct ms_trace_input *input, const char *path);
void ms_trace_input_close(struct ms_trace_input *input);
/** So many bytes are at hand, fewer only at the end: returns how many. */
size_t ms_trace_input_want(struct ms_trace_input *input, size_t count);
static inline const unsigned char *ms_trace_input_at(const struct ms_trace_input *input)
{
    return input->bytes + input->begin;
}
static inline void ms_trace_input_skip(struct ms_trace_input *input, size_t count)
{
    input->begin += count;
    input->offset += count;
}

/** parts.c: from here on the file has parts of this size in turns, which are read in order; a compressed one
 * has them in order. False if there is none. */
bool ms_trace_input_order(struct ms_trace_input *input, uint64_t part_bytes);
/** Goes to the next part's first byte: false if there is none. */
bool ms_trace_input_next_part(struct ms_trace_input *input);
/** Some bytes of the part, as read(): 0 at the end of all. */
long ms_trace_input_of_parts(struct ms_trace_input *input, unsigned char *bytes, size_t count);

#endif
