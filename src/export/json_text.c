/* json_text.c - see json_text.h.
 *
 * Floor 4. */
#include "export/json_text.h"

#include "report/utf8.h"

/* DEL and C1 are allowed in JSON, and commands to a terminal all the same. */
static unsigned control_of(const unsigned char *byte, size_t length)
{
    if (length == 1 && (byte[0] < 0x20 || byte[0] == 0x7f))
        return byte[0] ? byte[0] : 0xfffd;
    return length == 2 && byte[0] == 0xc2 && byte[1] < 0xa0 ? byte[1] : 0;
}

void ms_json_put(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text) {
        size_t length = ms_utf8_bytes(text);
        unsigned control = control_of((const unsigned char *)text, length);

        if (!length || control)
            fprintf(out, "\\u%04x", control ? control : 0xfffd);
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
