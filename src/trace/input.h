/* input.h - the bytes of a trace's file, in order; for src/trace alone. */
#ifndef MS_TRACE_INPUT_H
#define MS_TRACE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ms_trace_input {
    int fd;
    int error; /* an errno that ended it */
    bool is_over;
    unsigned char *bytes; /* [begin, end) of them are to be read yet */
    size_t begin, end, room;
    uint64_t offset; /* in the file, of the first of them */
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

#endif
