/* trial.h - policies tried on parts of traces, or on the whole of them.
 *
 * Floor 5. */
#ifndef MS_CLI_TUNE_TRIAL_H
#define MS_CLI_TUNE_TRIAL_H

#include "cli/tune/kept.h"
#include "cli/tune/search.h"

enum ms_part { MS_PART_WHOLE, MS_PART_BEGINNING, MS_PART_PEAK };

struct ms_trial_part {
    size_t trace;
    enum ms_part part;
};

struct ms_trial {
    struct ms_search *search;
    struct ms_kept *kept;
    struct ms_trial_part *parts;
    size_t count;
    bool whole;  /* the parts are whole traces */
    bool steady; /* and some of them have steps that repeat */
};

/** Two trials, of parts and of the whole; they are the same where traces are short. 0, or -1 after an error
 * line. */
int ms_trial_open(struct ms_trial *parts, struct ms_trial *whole, struct ms_search *search);
/** Fills in the figures of the rows. */
int ms_trial_run(struct ms_trial *trial, struct ms_search_row *rows, size_t count);
/** Fills in `least`: of all rows where that does not take long, else of the first two. */
int ms_trial_least(struct ms_trial *trial, struct ms_search_row *rows, size_t count);
/** `over`: what was kept of the search goes. */
void ms_trial_close(struct ms_trial *parts, struct ms_trial *whole, bool over);

#endif
