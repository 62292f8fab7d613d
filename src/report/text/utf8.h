/* utf8.h - where a character of UTF-8 ends.
 *
 * Floor 4. Pure. */
#ifndef MS_REPORT_TEXT_UTF8_H
#define MS_REPORT_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of the sequence at `text`, which ends in a NUL; 0 if it is none: cut off, longer than it need be, a
 * surrogate, or beyond U+10FFFF. */
static inline size_t ms_utf8_bytes(const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;
    size_t length = byte[0] < 0x80   ? 1
                    : byte[0] < 0xc2 ? 0
                    : byte[0] < 0xe0 ? 2
                    : byte[0] < 0xf0 ? 3
                    : byte[0] < 0xf5 ? 4
                                     : 0;
    for (size_t i = 1; i < length; i++) {
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
    }
    if ((byte[0] == 0xe0 && byte[1] < 0xa0) || (byte[0] == 0xed && byte[1] > 0x9f) ||
        (byte[0] == 0xf0 && byte[1] < 0x90) || (byte[0] == 0xf4 && byte[1] > 0x8f))
        return 0;
    return length;
}

/** The character of a sequence of so many bytes, which ms_utf8_bytes said. */
static inline uint32_t ms_utf8_character(const char *text, size_t bytes)
{
    const unsigned char *byte = (const unsigned char *)text;
    uint32_t character = bytes == 1 ? byte[0] : byte[0] & (0xffu >> (bytes + 1));

    for (size_t i = 1; i < bytes; i++)
        character = character << 6 | (byte[i] & 0x3f);
    return character;
}

/** True if a terminal takes the character for a command, or shows nothing of it where it changes how other
 * characters are shown: C0 and C1, those that turn the direction of text (a name ends in another way than it
 * seems to), those that have no width, and tags. */
static inline bool ms_utf8_is_control(uint32_t character)
{
    static const struct {
        uint32_t first, last;
    } controls[] = {{0, 0x1f},         {0x7f, 0x9f},     {0xad, 0xad},     {0x34f, 0x34f},
                    {0x61c, 0x61c},    {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f},
                    {0x200b, 0x200f},  {0x2028, 0x202e}, {0x2060, 0x206f}, {0x3164, 0x3164},
                    {0xfeff, 0xfeff},  {0xffa0, 0xffa0}, {0xfff9, 0xfffb}, {0x1d173, 0x1d17a},
                    {0xe0000, 0xe0fff}};

    for (size_t i = 0; i < sizeof(controls) / sizeof(controls[0]); i++)
        if (character >= controls[i].first && character <= controls[i].last)
            return true;
    return false;
}

#endif
