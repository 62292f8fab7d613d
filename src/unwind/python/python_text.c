/* python_text.c - the forms that a str has in memory, and UTF-8 of each.
 *
 * Floor 1. No lock, no allocation. A str is compact: its characters follow its head, in one, two or four
 * bytes each, of which ASCII has the shorter head. */
#include "unwind/python/python_text.h"

enum {
    KIND_SHIFT = 2,
    KIND_MASK = 7,
    IS_COMPACT = 1 << 5,
    IS_ASCII = 1 << 6,
    CHUNK = 64,
    REPLACEMENT = 0xfffd
};

struct text {
    uintptr_t at;    /* of the first character */
    uint64_t length; /* in characters */
    unsigned width;  /* bytes of each */
};

static bool open_text(const struct ms_python_interpreter *interpreter, struct ms_python_reader *reader,
                      uintptr_t at, struct text *text)
{
    const struct ms_python_layout *layout = &interpreter->layout;
    uint64_t head[5]; /* reference count, type, length, hash, state */
    if (at % sizeof *head != 0 || !ms_python_read_slowly(reader, at, head, sizeof head) ||
        head[MS_PYTHON_TYPE / 8] != interpreter->symbols.str_type)
        return false;
    uint32_t state = (uint32_t)head[MS_PYTHON_TEXT_STATE / 8];
    text->length = head[MS_PYTHON_LENGTH / 8];
    text->width = state >> KIND_SHIFT & KIND_MASK;
    text->at = at + (state & IS_ASCII ? layout->text_ascii : layout->text_compact);
    return (state & IS_COMPACT) && text->length <= UINT32_MAX &&
           (text->width == 1 || text->width == 2 || text->width == 4);
}

/* Returns how many bytes. */
static unsigned encode(uint32_t c, unsigned char *into)
{
    if (c == 0 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
        c = REPLACEMENT;
    if (c < 0x80) {
        into[0] = (unsigned char)c;
        return 1;
    }
    if (c < 0x800) {
        into[0] = (unsigned char)(0xc0 | c >> 6);
        into[1] = (unsigned char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        into[0] = (unsigned char)(0xe0 | c >> 12);
        into[1] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
        into[2] = (unsigned char)(0x80 | (c & 0x3f));
        return 3;
    }
    into[0] = (unsigned char)(0xf0 | c >> 18);
    into[1] = (unsigned char)(0x80 | (c >> 12 & 0x3f));
    into[2] = (unsigned char)(0x80 | (c >> 6 & 0x3f));
    into[3] = (unsigned char)(0x80 | (c & 0x3f));
    return 4;
}

static uint32_t character(const unsigned char *chunk, unsigned i, unsigned width)
{
    const unsigned char *at = chunk + (size_t)i * width;
    if (width == 1)
        return at[0];
    if (width == 2)
        return *(const uint16_t *)(const void *)at;
    return *(const uint32_t *)(const void *)at;
}

bool ms_python_text(const struct ms_python_interpreter *interpreter, struct ms_python_reader *reader,
                    uintptr_t at, char *into, size_t bytes)
{
    struct text text;
    _Alignas(8) unsigned char chunk[CHUNK * 4];
    unsigned char encoded[4];
    size_t used = 0;
    if (!open_text(interpreter, reader, at, &text))
        return false;
    for (uint64_t done = 0; done < text.length; done += CHUNK) {
        unsigned count = text.length - done < CHUNK ? (unsigned)(text.length - done) : CHUNK;
        if (!ms_python_read_slowly(reader, text.at + done * text.width, chunk, (size_t)count * text.width))
            return false;
        for (unsigned i = 0; i < count; i++) {
            unsigned more = encode(character(chunk, i, text.width), encoded);
            if (used + more >= bytes) {
                into[used] = '\0';
                return true;
            }
            for (unsigned j = 0; j < more; j++)
                into[used++] = (char)encoded[j];
        }
    }
    into[used] = '\0';
    return true;
}
