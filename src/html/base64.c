/* base64.c - see base64.h.
 *
 * Floor 4. */
#include "html/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/base64.h"

void ms_base64_put(FILE *out, const unsigned char *bytes, size_t count)
{
    char text[4 * 256];

    for (size_t i = 0, taken; i < count; i += taken) {
        taken = count - i < sizeof(text) / 4 * 3 ? count - i : sizeof(text) / 4 * 3;
        ms_base64_encode(text, bytes + i, taken);
        fwrite(text, 1, ms_base64_chars(taken), out);
    }
}

struct ms_base64_deflated {
    FILE *out;
    z_stream stream;
    unsigned char piece[3 * 4096]; /* whole threes: only the last one is filled up */
};

/* A page is read by a browser once, and made again and again: level 4 takes half the time of 6 for a
 * twentieth more bytes. */
enum { LEVEL = 4 };

struct ms_base64_deflated *ms_base64_deflated_open(FILE *out)
{
    struct ms_base64_deflated *deflated = calloc(1, sizeof(*deflated));

    if (!deflated)
        return NULL;
    deflated->out = out;
    deflated->stream.next_out = deflated->piece;
    deflated->stream.avail_out = sizeof(deflated->piece);
    if (deflateInit(&deflated->stream, LEVEL) == Z_OK)
        return deflated;
    free(deflated);
    return NULL;
}

/* The bytes that are ready go out in pieces; with Z_FINISH all of them. */
static void drain(struct ms_base64_deflated *deflated, int flush)
{
    z_stream *stream = &deflated->stream;
    int status;

    do {
        status = deflate(stream, flush);
        if (stream->avail_out == 0 || status == Z_STREAM_END) {
            ms_base64_put(deflated->out, deflated->piece, sizeof(deflated->piece) - stream->avail_out);
            stream->next_out = deflated->piece;
            stream->avail_out = sizeof(deflated->piece);
        }
    } while (status == Z_OK && (stream->avail_in || flush == Z_FINISH));
}

void ms_base64_deflated_put(struct ms_base64_deflated *deflated, const void *bytes, size_t count)
{
    const unsigned char *from = bytes;

    while (count) {
        size_t taken = count < UINT32_MAX / 2 ? count : UINT32_MAX / 2;

        deflated->stream.next_in = (unsigned char *)(uintptr_t)from;
        deflated->stream.avail_in = (uInt)taken;
        drain(deflated, Z_NO_FLUSH);
        from += taken;
        count -= taken;
    }
}

void ms_base64_deflated_close(struct ms_base64_deflated *deflated)
{
    drain(deflated, Z_FINISH);
    deflateEnd(&deflated->stream);
    free(deflated);
}
