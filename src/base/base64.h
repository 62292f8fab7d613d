/* base64.h - bytes as base64 (RFC 4648), and back.
 *
 * Floor 0. Allocates nothing. */
#ifndef MS_BASE_BASE64_H
#define MS_BASE_BASE64_H

#include <stddef.h>

/** How many characters `count` bytes become. */
static inline size_t ms_base64_chars(size_t count)
{
    return (count + 2) / 3 * 4;
}

/** Write ms_base64_chars(count) characters, and no NUL. */
void ms_base64_encode(char *text, const unsigned char *bytes, size_t count);
/** Write the bytes that a text stands for, up to the first character that is none of base64's: at most three
 * for each four characters, and two more. Returns how many. */
size_t ms_base64_decode(unsigned char *bytes, const char *text);

#endif
