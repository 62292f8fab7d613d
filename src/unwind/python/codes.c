/* codes.c - reading the table of Python code objects, and the texts that belong to it.
 *
 * Floor 1. No lock: both tables are only appended, and a row is whole before it is published. The file that
 * is read may be another process's and damaged: what does not lie within its table is not there. */
#include <stddef.h>
#include <string.h>

#include "unwind/python/python.h"

_Atomic uint32_t ms_python_seen, ms_python_is_read;

/* Longer names are none: a damaged file may have texts without end, and many that refer to them. */
enum { TEXT_BYTES_MAX = 16 << 10 };

const struct ms_code *ms_code_at(uint32_t row)
{
    return row < ms_table_rows(MS_TABLE_CODES) ? &MS_ROWS(CODES, struct ms_code)[row] : NULL;
}

const char *ms_code_text(uint32_t offset)
{
    uint64_t bytes = ms_table_rows(MS_TABLE_CODE_TEXT);
    if (offset == 0 || offset >= bytes)
        return "";
    const char *text = &MS_ROWS(CODE_TEXT, char)[offset];
    uint64_t room = bytes - offset;
    return memchr(text, '\0', room < TEXT_BYTES_MAX ? (size_t)room : TEXT_BYTES_MAX) ? text : "";
}

const unsigned char *ms_code_lines(const struct ms_code *code)
{
    uint64_t bytes = ms_table_rows(MS_TABLE_CODE_TEXT);
    if (code->lines > bytes || code->lines_bytes > bytes - code->lines)
        return NULL;
    return &MS_ROWS(CODE_TEXT, unsigned char)[code->lines];
}
