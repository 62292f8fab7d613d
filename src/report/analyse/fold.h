/* fold.h - which frames of a stack people want to see, and which is the program's own.
 *
 * Floor 4, command line only. By the rows of fold.def, and by where files lie. */
#ifndef MS_REPORT_ANALYSE_FOLD_H
#define MS_REPORT_ANALYSE_FOLD_H

#include <stdio.h>

#include "report/read/read.h"

/** Whose frame it is, a constant: NULL if it is to be shown, "" if it is folded away without a word, else the
 * name of which a run of such frames is told. `merged` says that the stack has frames of Python: the
 * interpreter's are then folded into the lines that it runs. */
const char *ms_fold_whose(const struct ms_report *report, const json_t *frame, bool merged);

/** True if the frame is one that the C library puts below every main and every thread. */
bool ms_fold_is_startup(const json_t *frame);

/** True if a frame is the program's own: of Python neither in the standard library nor in an installed
 * package, native in no library of the system or of a package. */
bool ms_fold_is_own(const struct ms_report *report, const json_t *frame);

/** The facts that are known of a frame once it was looked at. */
enum ms_fold {
    MS_FOLD_SEEN = 1,
    MS_FOLD_MARK = 2,
    MS_FOLD_INFERRED = 4, /* a mark that says so of what follows */
    MS_FOLD_PYTHON = 8,
    MS_FOLD_STARTUP = 16, /* ms_fold_is_startup */
    MS_FOLD_OWN = 32,     /* ms_fold_is_own */
    MS_FOLD_FOLDED = 64,  /* ms_fold_whose */
};

/** The rows in frames[] of a stack, innermost first, at most MS_REPORT_DEPTH_MAX of them, and in *any_p what
 * any of them is. Without memory none. */
size_t ms_fold_stack(const struct ms_report *report, json_int_t stack, size_t *rows, unsigned *any_p);

/** The facts about a row of frames[] that was in such a stack, bits of enum ms_fold. */
static inline unsigned ms_fold_of(const struct ms_report *report, size_t row)
{
    return report->folds[row];
}

/** True if any of these is a frame of Python. */
bool ms_fold_is_merged(json_t *const *frames, size_t count);

/** The innermost frame of a stack that is a line of the program's own, and is not folded away. Where there is
 * none the innermost that is not folded away, or NULL. *inferred_p: it is of the Python frames that were
 * inferred. */
const json_t *ms_fold_own(const struct ms_report *report, json_int_t stack, bool *inferred_p);

/** As ms_fold_own(), but of a stack whose rows ms_fold_stack() gave: its place among them, SIZE_MAX for
 * none. */
size_t ms_fold_own_of(const struct ms_report *report, const size_t *rows, size_t count, bool *inferred_p);

/** A name of C++ without template arguments (cxx.h), as ms_text_put writes it. */
void ms_fold_put_name(FILE *out, const char *name);

/** The function alone (cxx.h), likewise. */
void ms_fold_put_function(FILE *out, const char *name);

#endif
