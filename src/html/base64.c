/* base64.c - see base64.h.
 *
 * Floor 4. */
#include "html/base64.h"

#include <stdint.h>
#include <zlib.h>

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void ms_base64_put(FILE *out, const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < count ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (i + 2 < count ? bytes[i + 2] : 0);
        char four[4] = {DIGITS[three >> 18], DIGITS[three >> 12 & 63],
                        i + 1 < count ? DIGITS[three >> 6 & 63] : '=',
                        i + 2 < count ? DIGITS[three & 63] : '='};

        fwrite(four, 1, sizeof(four), out);
    }
}

int ms_base64_put_deflated(FILE *out, const unsigned char *bytes, size_t count)
{
    unsigned char piece[3 * 4096]; /* whole threes: only the last one is filled up */
    z_stream stream = {.zalloc = NULL};
    int status;

    if (deflateInit(&stream, Z_DEFAULT_COMPRESSION) != Z_OK)
        return -1;
    stream.next_out = piece;
    stream.avail_out = sizeof(piece);
    do {
        size_t taken = count < UINT32_MAX / 2 ? count : UINT32_MAX / 2;

        if (stream.avail_in == 0) {
            stream.next_in = (unsigned char *)(uintptr_t)bytes;
            stream.avail_in = (uInt)taken;
            bytes += taken;
            count -= taken;
        }
        status = deflate(&stream, count ? Z_NO_FLUSH : Z_FINISH);
        if (stream.avail_out == 0 || status == Z_STREAM_END) {
            ms_base64_put(out, piece, sizeof(piece) - stream.avail_out);
            stream.next_out = piece;
            stream.avail_out = sizeof(piece);
        }
    } while (status != Z_STREAM_END);
    deflateEnd(&stream);
    return 0;
}
