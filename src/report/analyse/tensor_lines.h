/* tensor_lines.h - lines of a program by which findings of tensors are told: who called a model, and who
 * began a backward pass.
 *
 * Floor 4, command line only. Told by the frames of PyTorch, as what a tensor is for (categories.h). */
#ifndef MS_REPORT_ANALYSE_TENSOR_LINES_H
#define MS_REPORT_ANALYSE_TENSOR_LINES_H

#include "report/read/read.h"

/** The program's own frame that called the outermost module of a stack, or its own line where no module is in
 * it; NULL for none. */
const json_t *ms_tensor_caller(const struct ms_report *report, json_int_t stack);
/** "f (file.py:12)", to be freed; "the program" for NULL. NULL without memory. */
char *ms_tensor_frame(const struct ms_report *report, const json_t *frame);
bool ms_tensor_is_same_function(const json_t *a, const json_t *b);

/** The program's own lines at which backward passes were begun, each function once: of the stacks that make
 * gradients. */
struct ms_tensor_passes {
    const json_t **lines; /* to be freed; NULL without memory */
    size_t count;
    bool unknown; /* gradients were made, and it is not known who began that */
};
struct ms_tensor_passes ms_tensor_passes(const struct ms_report *report);
/** True if one was begun in the function of `frame`, which may be NULL. */
bool ms_tensor_passes_has(const struct ms_tensor_passes *passes, const json_t *frame);

/** The program's functions below which a forward pass may be one that a backward pass came for: of each stack
 * that makes gradients all from the innermost up to the first that calls a model, of which the pass is then.
 * To be given back; NULL without memory. */
json_t *ms_tensor_starters(const struct ms_report *report);
/** True if one of these functions is in a stack. */
bool ms_tensor_functions_have(const struct ms_report *report, const json_t *functions, json_int_t stack);

#endif
