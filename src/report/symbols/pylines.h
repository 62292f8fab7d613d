/* pylines.h - which line of a Python function an instruction belongs to.
 *
 * Floor 4, command line only. The process copies a code object's line table as it lies there; what it says is
 * read here, when a report is read. A table that is damaged, or made to be, costs no more than its length. */
#ifndef MS_REPORT_SYMBOLS_PYLINES_H
#define MS_REPORT_SYMBOLS_PYLINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place in a line table: the instructions from `start` up to `end`, in bytes of byte code, are of `line`.
 */
struct ms_pylines {
    const unsigned char *bytes;
    size_t count, next; /* next: where in the table the range behind this one is told */
    unsigned version;   /* major << 8 | minor */
    uint64_t start, end;
    int64_t line, latest; /* 0: of no line; the latest line that there was */
};

/** The line tables of this version can be read: 3.9 to 3.15. */
bool ms_pylines_known(unsigned version);
/** Before the first range. `bytes` stays the caller's. */
void ms_pylines_begin(struct ms_pylines *lines, unsigned version, const unsigned char *bytes, size_t count,
                      int64_t first_line);
/** To the next range; false at the end of the table. */
bool ms_pylines_next(struct ms_pylines *lines);
/** Goes on to the range of the instruction at `offset`, which must not be less than the one before. Its line,
 * or 0 if it has none. */
int64_t ms_pylines_at(struct ms_pylines *lines, uint64_t offset);

#endif
