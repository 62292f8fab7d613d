/* see_through.h - variables that make known frameworks ask the vendor for each tensor.
 *
 * Floor 5. */
#ifndef MS_CLI_RUN_SEE_THROUGH_H
#define MS_CLI_RUN_SEE_THROUGH_H

#include <stdbool.h>

/** Set each of these variables that the user has not set, also to nothing. Unless `quiet`, says in
 * one line what was set, and in one more for each that the user has set to something else, that it stays.
 * Returns 0, or -1 after an error line. */
int ms_see_through_set(bool quiet);

#endif
