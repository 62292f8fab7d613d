/* symbols.h - names for the frames of a report.
 *
 * Floor 4, command line only. */
#ifndef MS_REPORT_SYMBOLS_SYMBOLS_H
#define MS_REPORT_SYMBOLS_SYMBOLS_H

#include "report/symbols/pyframes.h"
#include "report/read/read.h"
#include "report/symbols/resolver.h"

struct ms_symbols_result {
    size_t frames;   /* native and Python frames that had no name */
    size_t resolved; /* of these, how many got one */
    size_t lines;    /* of these, how many also got a file and line */
    struct ms_pyframes_dangling astray;
};

/** Called with one complete line (no newline) for each module that could not be used, and why. */
typedef void (*ms_symbols_complaint_func_t)(void *arg, const char *line);

/** Put function, file and line into the frames that have none, and set run.symbolized. Python frames are
 * read from what the report has of their code (pyframes.h).
 *
 * An address inside inlined functions becomes several frames: the frame that was there names the innermost
 * function, those it was inlined into are appended to frames[], and stacks[] is rewritten with a node for
 * each; whatever speaks of a stack is renumbered. A recorded address is the one the call returns to, so the
 * byte before it is looked up. */
void ms_symbols_resolve(struct ms_report *report, const struct ms_symbol_places *places,
                        ms_symbols_complaint_func_t complain, void *arg, struct ms_symbols_result *result_p);

#endif
