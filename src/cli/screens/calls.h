/* calls.h - the calls to the vendor that the pool saved, or that its policy cost, and which settings made
 * it so; for `summary` and `diff`.
 *
 * Floor 5. */
#ifndef MS_CLI_SCREENS_CALLS_H
#define MS_CLI_SCREENS_CALLS_H

#include <stdio.h>

#include "report/read/read.h"

/** Allocations and frees, over all devices. `asked`: of the program; -1 where the report does not say. */
struct ms_calls {
    json_int_t asked, made, saved;
    json_int_t saved_ns; /* by the mean time of the vendor's allocations in this run; 0 if it is not known */
};

struct ms_calls ms_calls_of(const struct ms_report *report);
/** "Calls 12 to the vendor for 9,000 of the program's: ...", a line; nothing where nothing was served. */
void ms_calls_print(FILE *out, const struct ms_report *report);
/** Two reports' calls beside each other, and the settings of the pool that differ. */
void ms_calls_compare(FILE *out, const struct ms_report *before, const struct ms_report *after);
json_t *ms_calls_json(const struct ms_report *report);

#endif
