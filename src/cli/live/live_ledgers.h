/* live_ledgers.h - the user's own processes on this machine that go on, each by its ledger.
 *
 * Floor 5. Ledgers are only read, one at a time: no process notices anything. Other users' are not opened,
 * nor links. */
#ifndef MS_CLI_LIVE_LIVE_LEDGERS_H
#define MS_CLI_LIVE_LIVE_LEDGERS_H

#include "cli/live/ledgers.h"
#include "report/read/read.h"

/** A machine has no more ranks than this; what else leaves ledgers behind must not make a look at all of them
 * grow. */
enum { MS_LIVING_MAX = 256 };

/** Called with each that goes on, while its ledger is loaded. 0, or -1: it could not be read. */
typedef int (*ms_living_visit_t)(void *arg, const struct ms_cli_ledger *ledger);

struct ms_living {
    size_t shown, left_out; /* left_out: too many, or not readable just now */
};
/** Visit those, MS_LIVING_MAX at most; of one process if `pid` is not 0. Adds to what *living_p says. */
void ms_living_each(pid_t pid, ms_living_visit_t visit, void *arg, struct ms_living *living_p);

/** The report of the one that is loaded, made in memory, without names of functions. 0, or -1. */
int ms_living_report(const struct ms_cli_ledger *ledger, struct ms_report *report_p);

#endif
