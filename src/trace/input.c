/* input.c - see input.h.
 *
 * Floor 3.5. A file of zstd's frames is told by its first four bytes. */
#include "config.h"

#include "trace/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef MS_HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/files.h"

enum { ROOM = 1 << 18 };
static const unsigned char magic[] = {0x28, 0xb5, 0x2f, 0xfd};

/* --- compressed --- */

#ifdef MS_HAVE_ZSTD
struct ms_trace_packed {
    ZSTD_DStream *stream;
    ZSTD_inBuffer from;
    bool is_over;   /* no more in the file */
    bool has_ended; /* the frame */
    unsigned char bytes[1 << 16];
};

static int unpack_open(struct ms_trace_input *input)
{
    struct ms_trace_packed *packed = input->packed = calloc(1, sizeof(*packed));

    if (packed)
        packed->stream = ZSTD_createDStream();
    if (!packed || !packed->stream)
        return ENOMEM;
    packed->from.src = packed->bytes;
    return 0;
}

static void unpack_close(struct ms_trace_packed *packed)
{
    if (packed)
        ZSTD_freeDStream(packed->stream);
    free(packed);
}

/* A trace is compressed when it is complete, into one frame. So one that does not end was cut off later, and
 * what comes behind the end is another file's. */
static long unpack(struct ms_trace_input *input, unsigned char *bytes, size_t count)
{
    struct ms_trace_packed *packed = input->packed;
    ZSTD_outBuffer into = {bytes, count, 0};

    while (!into.pos) {
        if (packed->from.pos == packed->from.size && !packed->is_over) {
            ssize_t got = read(input->fd, packed->bytes, sizeof(packed->bytes));

            if (got < 0)
                return -1;
            packed->from.size = (size_t)got;
            packed->from.pos = 0;
            packed->is_over = got == 0;
        }
        if (packed->has_ended && packed->is_over)
            return 0;
        size_t left = packed->has_ended ? 1 : ZSTD_decompressStream(packed->stream, &into, &packed->from);

        if (packed->has_ended || ZSTD_isError(left) || (packed->is_over && left && !into.pos)) {
            errno = packed->has_ended ? EEXIST : ZSTD_isError(left) ? EBADMSG : ENODATA;
            return -1;
        }
        packed->has_ended = left == 0;
    }
    return (long)into.pos;
}
#else
struct ms_trace_packed {
    char unused;
};

static int unpack_open(struct ms_trace_input *input)
{
    (void)input;
    return ENOTSUP;
}

static void unpack_close(struct ms_trace_packed *packed)
{
    (void)packed;
}

static long unpack(struct ms_trace_input *input, unsigned char *bytes, size_t count)
{
    (void)input, (void)bytes, (void)count;
    return 0;
}
#endif

/* --- any --- */

int ms_trace_input_open(struct ms_trace_input *input, const char *path)
{
    unsigned char first[sizeof(magic)];
    struct stat st;

    *input = (struct ms_trace_input){.fd = ms_file_open_regular(path, &st)};
    if (input->fd < 0)
        return errno;
    if (pread(input->fd, first, sizeof(first), 0) == (ssize_t)sizeof(first) &&
        memcmp(first, magic, sizeof(magic)) == 0)
        return unpack_open(input);
    return 0;
}

void ms_trace_input_close(struct ms_trace_input *input)
{
    unpack_close(input->packed);
    free(input->bytes);
    if (input->fd >= 0)
        close(input->fd);
}

static bool make_room(struct ms_trace_input *input, size_t count)
{
    size_t room = input->room ? input->room : ROOM;
    unsigned char *bytes;

    if (input->begin && input->end > input->begin)
        memmove(input->bytes, input->bytes + input->begin, input->end - input->begin);
    input->end -= input->begin;
    input->begin = 0;
    while (room < count)
        room *= 2;
    if (room == input->room)
        return true;
    bytes = realloc(input->bytes, room);
    if (!bytes) {
        input->error = ENOMEM;
        return false;
    }
    input->bytes = bytes;
    input->room = room;
    return true;
}

static void fill(struct ms_trace_input *input)
{
    unsigned char *at = input->bytes + input->end;
    size_t room = input->room - input->end;
    long got = input->packed  ? unpack(input, at, room)
               : input->parts ? ms_trace_input_of_parts(input, at, room)
                              : read(input->fd, at, room);

    if (got > 0)
        input->end += (size_t)got;
    else if (got == 0 || errno != EINTR)
        input->is_over = true;
    if (got < 0 && errno != EINTR)
        input->error = errno;
}

size_t ms_trace_input_want(struct ms_trace_input *input, size_t count)
{
    if (input->end - input->begin < count && !input->is_over && make_room(input, count)) {
        while (input->end < count && !input->is_over)
            fill(input);
    }
    return input->end - input->begin;
}
