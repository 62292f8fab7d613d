/* base64.c - see base64.h.
 *
 * Floor 0. */
#include "base/base64.h"

#include <stdint.h>
#include <string.h>

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void ms_base64_encode(char *text, const unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i += 3) {
        size_t left = count - i;
        uint32_t three = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                         (left > 2 ? bytes[i + 2] : 0);

        *text++ = DIGITS[three >> 18];
        *text++ = DIGITS[three >> 12 & 63];
        *text++ = left > 1 ? DIGITS[three >> 6 & 63] : '=';
        *text++ = left > 2 ? DIGITS[three & 63] : '=';
    }
}

size_t ms_base64_decode(unsigned char *bytes, const char *text)
{
    uint32_t bits = 0;
    unsigned have = 0;
    size_t count = 0;
    const char *digit;

    for (; *text && (digit = strchr(DIGITS, *text)); text++) {
        bits = (bits << 6 | (uint32_t)(digit - DIGITS)) & 0xffff;
        have += 6;
        if (have >= 8) {
            have -= 8;
            bytes[count++] = (unsigned char)(bits >> have);
        }
    }
    return count;
}
