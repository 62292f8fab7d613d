/* suppress.h - leaks that are known and accepted: MEMSHIM_SUPPRESSIONS, a file of LeakSanitizer's `leak:`
 * lines, and of two kinds of our own.
 *
 * Floor 5. "leak:TEMPLATE" suppresses every leak whose stack has a frame with a function, source file or
 * module that matches: TEMPLATE is a part of it, * stands for anything, ^ and $ are its ends. "chain:A <- B
 * <- C" suppresses those whose frames, without what is folded away (report/analyse/fold.h), are these and no
 * others, innermost first. "hash:HASH" suppresses the site with this sites[].hash. # begins a comment. */
#ifndef MS_CLI_SCREENS_SUPPRESS_H
#define MS_CLI_SCREENS_SUPPRESS_H

#include "report/read/read.h"

/** Read the file that MEMSHIM_SUPPRESSIONS names, once. Returns 0 (also where none is named), or -1 after an
 * error line that names file and line. */
int ms_suppress_load(void);

/** Give the leaks of a report whose stacks match the class "suppressed". The report must have names. Returns
 * how many. */
size_t ms_suppress_apply(struct ms_report *report);

/** One note for each template that suppressed something, as LeakSanitizer prints them. */
void ms_suppress_note_used(void);

/** Between the frames of a chain. */
#define MS_SUPPRESS_ARROW " <- "
/** The frames by which a chain knows a stack, innermost first, into `frames` of MS_REPORT_DEPTH_MAX; returns
 * how many. */
size_t ms_suppress_chain(const struct ms_report *report, json_int_t stack, const json_t **frames);

#endif
