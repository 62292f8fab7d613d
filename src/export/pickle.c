/* pickle.c - see pickle.h.
 *
 * Floor 4. */
#include "export/pickle.h"

#include <string.h>

/* MemoryViz.js hands a batch to a function as its arguments, of which there may not be too many. */
enum { BATCH = 1000 };

static void put_little(FILE *out, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        fputc((int)(value >> 8 * i & 0xff), out);
}

void ms_pickle_begin(FILE *out)
{
    fputs("\x80\x02", out);
}

void ms_pickle_end(FILE *out)
{
    fputc('.', out);
}

void ms_pickle_number(FILE *out, int64_t value)
{
    if (value >= 0 && value < 0x100) {
        fputc('K', out);
        put_little(out, (uint64_t)value, 1);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        fputc('J', out);
        put_little(out, (uint64_t)value, 4);
    } else {
        fputs("\x8a\x08", out);
        put_little(out, (uint64_t)value, 8);
    }
}

void ms_pickle_flag(FILE *out, bool value)
{
    fputc(value ? 0x88 : 0x89, out);
}

void ms_pickle_text(FILE *out, const char *text)
{
    fputc('X', out);
    put_little(out, strlen(text), 4);
    fputs(text, out);
}

void ms_pickle_keep(FILE *out, uint32_t number)
{
    fputc('r', out);
    put_little(out, number, 4);
}

void ms_pickle_again(FILE *out, uint32_t number)
{
    fputc('j', out);
    put_little(out, number, 4);
}

void ms_pickle_dict(FILE *out)
{
    fputs("}(", out);
}

void ms_pickle_dict_end(FILE *out)
{
    fputc('u', out);
}

struct ms_pickle_list ms_pickle_list(FILE *out)
{
    fputs("](", out);
    return (struct ms_pickle_list){0};
}

void ms_pickle_next(FILE *out, struct ms_pickle_list *list)
{
    if (list->batch++ < BATCH)
        return;
    fputs("e(", out);
    list->batch = 1;
}

void ms_pickle_list_end(FILE *out)
{
    fputc('e', out);
}

void ms_pickle_pair(FILE *out)
{
    ms_pickle_number(out, 0);
    ms_pickle_number(out, 0);
    fputc(0x86, out);
}
