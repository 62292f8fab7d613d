/* test_lines.c - line tables of Python, as the formats have them, and such as no compiler makes. */
#include "report/symbols/pylines.h"

#include "tests/tap.h"

enum { RANDOM_TABLES = 20000, RANDOM_BYTES = 64, LONG_BYTES = 1 << 20 };

static int64_t line_of(unsigned version, const void *table, size_t count, int64_t first, uint64_t offset)
{
    struct ms_pylines lines;

    ms_pylines_begin(&lines, version, table, count, first);
    return ms_pylines_at(&lines, offset);
}

static void check_formats(void)
{
    static const unsigned char lnotab[] = {0, 1, 6, 1, 44, 5, 255, 0, 10, 0xfe};
    static const unsigned char pairs[] = {4, 0, 6, 2, 2, 0x80, 8, 0xff};
    static const unsigned char far[] = {0x80 | 13 << 3 | 1, 0x48, 0x06, 0x80 | 14 << 3, 3, 0, 1, 1};
    static const unsigned char mixed[] = {0x80 | 0 << 3 | 1, 0x12, 0x80 | 15 << 3, 0x80 | 12 << 3, 4, 9};

    is_int(line_of(0x309, lnotab, sizeof lnotab, 10, 0), 11, "3.9: the first line may be the second");
    is_int(line_of(0x309, lnotab, sizeof lnotab, 10, 6), 12, "3.9: a pair begins at its offset");
    is_int(line_of(0x309, lnotab, sizeof lnotab, 10, 300), 17, "3.9: far offsets take several pairs");
    is_int(line_of(0x309, lnotab, sizeof lnotab, 10, 5000), 15,
           "3.9: what follows the last pair is of its line");
    is_int(line_of(0x309, NULL, 0, 10, 4), 10, "3.9: without pairs all is of the first line");
    is_int(line_of(0x30a, pairs, sizeof pairs, 10, 2), 10, "3.10: a range of the first line");
    is_int(line_of(0x30a, pairs, sizeof pairs, 10, 4), 12, "3.10: the next range");
    is_int(line_of(0x30a, pairs, sizeof pairs, 10, 10), 0, "3.10: a range of no line");
    is_int(line_of(0x30a, pairs, sizeof pairs, 10, 12), 11, "3.10: and back");
    is_int(line_of(0x30a, pairs, sizeof pairs, 10, 20), 0, "3.10: nothing behind the table");
    is_int(line_of(0x30c, far, sizeof far, 10, 3), 10 + 196, "3.12: a number of several bytes");
    is_int(line_of(0x30c, far, sizeof far, 10, 4), 10 + 196 - 1, "3.12: a negative one");
    is_int(line_of(0x30f, mixed, sizeof mixed, 10, 0), 10, "3.15: a short form");
    is_int(line_of(0x30f, mixed, sizeof mixed, 10, 4), 0, "3.15: no location");
    is_int(line_of(0x30f, mixed, sizeof mixed, 10, 6), 12, "3.15: a form of one line");
    is_int(line_of(0x30f, mixed, sizeof mixed, 10, 8), 0, "3.15: nothing behind the table");
    is_int(line_of(0x308, mixed, sizeof mixed, 10, 0), 0, "the table of an older version is not read");
    is_int(line_of(0x310, mixed, sizeof mixed, 10, 0), 0, "nor that of a later one");
}

/* Every range begins where the one before ended, no line is none that can be, and there is an end. */
static bool is_sane(unsigned version, const unsigned char *table, size_t count, int64_t first)
{
    struct ms_pylines lines;
    uint64_t end = 0;
    size_t ranges = 0;

    ms_pylines_begin(&lines, version, table, count, first);
    while (ms_pylines_next(&lines)) {
        if (lines.start != end || lines.end < lines.start || lines.line < 0 || lines.line > INT32_MAX ||
            ++ranges > count + 1)
            return false;
        end = lines.end;
    }
    return true;
}

static void check_random(void)
{
    unsigned char *table = malloc(RANDOM_BYTES);
    uint32_t state = 1;
    bool sane = true;

    for (unsigned i = 0; i < RANDOM_TABLES && sane; i++) {
        size_t count = i % RANDOM_BYTES;
        /* At the end of the memory, where a sanitizer sees a byte too much. */
        unsigned char *start = table + RANDOM_BYTES - count;

        for (size_t k = 0; k < count; k++)
            start[k] = (unsigned char)((state = state * 1103515245 + 12345) >> 16);
        for (unsigned version = 0x308; version <= 0x310; version++)
            sane = sane && is_sane(version, start, count, i % 7 ? (int64_t)i : INT32_MAX);
    }
    free(table);
    ok(sane, "random tables end, with ranges beside each other and lines that can be");
}

static void check_long(void)
{
    unsigned char *table = malloc(LONG_BYTES);

    memset(table, 0x80 | 14 << 3, LONG_BYTES);
    ok(is_sane(0x30d, table, LONG_BYTES, 1), "a table of entries without their rest");
    memset(table, 0x7f, LONG_BYTES);
    table[0] = 0x80 | 13 << 3;
    ok(is_sane(0x30d, table, LONG_BYTES, 1), "a number without end");
    memset(table, 0, LONG_BYTES);
    is_int(line_of(0x30a, table, LONG_BYTES, 7, 1), 0, "ranges of no length lead nowhere");
    memset(table, 0x7f, LONG_BYTES);
    is_int(line_of(0x30a, table, LONG_BYTES, INT32_MAX, 1), 0, "lines beyond all files are none");
    free(table);
}

int main(void)
{
    plan(0);
    check_formats();
    check_random();
    check_long();
    return done();
}
