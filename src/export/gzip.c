/* gzip.c - see gzip.h.
 *
 * Floor 4. */
#include "export/gzip.h"

#include <string.h>
#include <zlib.h>

enum { GZIP = 16, PIECE = 1 << 30 };

/* One call's worth of input, and all that comes out of it. */
static void deflate_piece(z_stream *stream, FILE *out, int flush)
{
    unsigned char room[1 << 14];

    do {
        stream->next_out = room;
        stream->avail_out = sizeof(room);
        deflate(stream, flush);
        fwrite(room, 1, sizeof(room) - stream->avail_out, out);
    } while (stream->avail_out == 0);
}

int ms_gzip_write(FILE *out, const unsigned char *bytes, size_t count)
{
    z_stream stream;

    memset(&stream, 0, sizeof(stream));
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return -1;
    do {
        size_t piece = count < PIECE ? count : PIECE;

        stream.next_in = (unsigned char *)bytes;
        stream.avail_in = (uInt)piece;
        bytes += piece;
        count -= piece;
        deflate_piece(&stream, out, count ? Z_NO_FLUSH : Z_FINISH);
    } while (count);
    deflateEnd(&stream);
    return 0;
}
