/* json_text.c - see json_text.h.
 *
 * Floor 4. */
#include "export/json_text.h"

#include "report/text/utf8.h"

/* DEL, C1 and what turns text are allowed in JSON, and commands to a terminal all the same. */
static void put_spelled(FILE *out, uint32_t character)
{
    if (character < 0x10000)
        fprintf(out, "\\u%04x", (unsigned)character);
    else
        fprintf(out, "\\u%04x\\u%04x", 0xd800 + (unsigned)((character - 0x10000) >> 10),
                0xdc00 + (unsigned)((character - 0x10000) & 0x3ff));
}

void ms_json_put(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text) {
        size_t length = ms_utf8_bytes(text);
        uint32_t character = length ? ms_utf8_character(text, length) : 0xfffd;

        if (!length || ms_utf8_is_control(character))
            put_spelled(out, character);
        else if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else
            fwrite(text, 1, length, out);
        text += length ? length : 1;
    }
    fputc('"', out);
}

void ms_json_put_member(FILE *out, const char *before, const char *key, const char *text)
{
    fprintf(out, "%s\"%s\":", before, key);
    ms_json_put(out, text);
}
