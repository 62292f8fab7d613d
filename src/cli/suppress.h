/* suppress.h - leaks that are known and accepted: MEMSHIM_SUPPRESSIONS, a file of LeakSanitizer's `leak:`
 * lines.
 *
 * Floor 5. A line "leak:TEMPLATE" suppresses every leak whose stack has a frame with a function, source file
 * or module that matches: TEMPLATE is a part of it, * stands for anything, ^ and $ are its ends. # begins a
 * comment. */
#ifndef MS_CLI_SUPPRESS_H
#define MS_CLI_SUPPRESS_H

#include "report/read.h"

/** Read the file that MEMSHIM_SUPPRESSIONS names, once. Returns 0 (also where none is named), or -1 after an
 * error line that names file and line. */
int ms_suppress_load(void);

/** Give the leaks of a report whose stacks match the class "suppressed". The report must have names. Returns
 * how many. */
size_t ms_suppress_apply(struct ms_report *report);

/** One note for each template that suppressed something, as LeakSanitizer prints them. */
void ms_suppress_note_used(void);

#endif
