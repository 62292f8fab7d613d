/* balance_text.h - balances[] on a screen.
 *
 * Floor 5. */
#ifndef MS_CLI_SCREENS_BALANCE_TEXT_H
#define MS_CLI_SCREENS_BALANCE_TEXT_H

#include <stdio.h>

#include "report/read/read.h"

/** Rows of balances[], each with the terms that are not 0; at most `most` of them. Nothing if there are none.
 */
void ms_cli_print_balances(FILE *out, const struct ms_report *report, size_t most);

#endif
