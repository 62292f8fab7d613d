/* pylines.c - line tables of CPython; see pylines.h.
 *
 * Floor 4, command line only. Facts from CPython's Objects/lnotab_notes.txt (3.9, 3.10) and
 * InternalDocs/code_objects.md (3.11 and later). */
#include "report/symbols/pylines.h"

enum { PYTHON_3_9 = 0x309, PYTHON_3_10 = 0x30a, PYTHON_3_11 = 0x30b, PYTHON_3_15 = 0x30f };

/* No file has more lines, and sums of so many cannot overflow. */
#define LINE_MAX_KNOWN INT32_MAX

bool ms_pylines_known(unsigned version)
{
    return version >= PYTHON_3_9 && version <= PYTHON_3_15;
}

void ms_pylines_begin(struct ms_pylines *lines, unsigned version, const unsigned char *bytes, size_t count,
                      int64_t first_line)
{
    *lines = (struct ms_pylines){.bytes = bytes, .count = count, .version = version, .latest = first_line};
}

static void take_line(struct ms_pylines *lines, bool has_line)
{
    bool is_sane = lines->latest > 0 && lines->latest <= LINE_MAX_KNOWN;

    lines->line = has_line && is_sane ? lines->latest : 0;
}

/* co_lnotab, 3.9: pairs of how many bytes further, and then how many lines (signed). What follows the last
 * pair is of the latest line. */
static bool next_lnotab(struct ms_pylines *lines)
{
    if (lines->next > lines->count)
        return false;
    lines->start = lines->end;
    take_line(lines, true);
    if (lines->count - lines->next < 2) {
        lines->end = UINT64_MAX;
        lines->next = lines->count + 1;
        return true;
    }
    lines->end += lines->bytes[lines->next];
    lines->latest += (signed char)lines->bytes[lines->next + 1];
    lines->next += 2;
    return true;
}

/* co_linetable, 3.10: pairs of how many bytes the range has and how many lines (signed) further it is; -128
 * is of no line. */
static bool next_pair(struct ms_pylines *lines)
{
    int delta;

    if (lines->count - lines->next < 2)
        return false;
    delta = (signed char)lines->bytes[lines->next + 1];
    lines->start = lines->end;
    lines->end += lines->bytes[lines->next];
    if (delta != -128)
        lines->latest += delta;
    take_line(lines, delta != -128);
    lines->next += 2;
    return true;
}

/* Six bits in a byte, the lowest first; bit 6 says that more follow. Bit 0 of the whole is the sign. No line
 * is so far away that it takes more than 36 bits. */
static int64_t read_signed(const struct ms_pylines *lines, size_t at)
{
    uint64_t value = 0;

    for (unsigned shift = 0; at < lines->count && shift < 36; shift += 6) {
        unsigned char byte = lines->bytes[at++];

        value |= (uint64_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

/* co_linetable, from 3.11 on: entries that begin with a byte that has bit 7, and others that have not; a kind
 * in bits 3 to 6, and the length in instructions of two bytes, less one. */
static bool next_location(struct ms_pylines *lines)
{
    enum { ONE_LINE_0 = 10, NO_COLUMNS = 13, LONG_FORM = 14, NO_LOCATION = 15 };
    unsigned char first;
    unsigned kind;

    if (lines->next >= lines->count || !(lines->bytes[lines->next] & 128))
        return false;
    first = lines->bytes[lines->next++];
    kind = first >> 3 & 15;
    lines->start = lines->end;
    lines->end += ((uint64_t)(first & 7) + 1) * 2;
    if (kind == NO_COLUMNS || kind == LONG_FORM)
        lines->latest += read_signed(lines, lines->next);
    else if (kind >= ONE_LINE_0 && kind < NO_COLUMNS)
        lines->latest += kind - ONE_LINE_0;
    if (lines->latest > LINE_MAX_KNOWN || lines->latest < -LINE_MAX_KNOWN)
        lines->latest = -LINE_MAX_KNOWN;
    take_line(lines, kind != NO_LOCATION);
    while (lines->next < lines->count && !(lines->bytes[lines->next] & 128))
        lines->next++;
    return true;
}

bool ms_pylines_next(struct ms_pylines *lines)
{
    if (!ms_pylines_known(lines->version))
        return false;
    if (lines->version == PYTHON_3_9)
        return next_lnotab(lines);
    return lines->version == PYTHON_3_10 ? next_pair(lines) : next_location(lines);
}

int64_t ms_pylines_at(struct ms_pylines *lines, uint64_t offset)
{
    while (lines->end <= offset) {
        if (!ms_pylines_next(lines))
            return 0;
    }
    return lines->line;
}
