/* tune.h - what memshim tune prints and writes.
 *
 * Floor 5. */
#ifndef MS_CLI_TUNE_TUNE_H
#define MS_CLI_TUNE_TUNE_H

#include <stdio.h>

#include <jansson.h>

#include "cli/tune/search.h"

/* Figures of reports: the peak of the process that had most, calls of all. Of stream-ordered memory a report
 * counts what was taken of the driver's pool, and the table what that took of the device. */
struct ms_tune_figures {
    uint64_t peak, calls;
};

/* A program that is run, for its traces or to see what comes true. */
struct ms_tune_program {
    char **argv; /* NULL: none */
    bool sim;
    char *directory; /* of our own, in which its traces and reports lie */
    char **traces;   /* paths in it */
    size_t trace_count;
    uint64_t device_bytes;                     /* of the device that it was recorded on */
    bool compares;                             /* it was recorded with the defaults; then */
    struct ms_tune_figures recorded, replayed; /* of that run, and of a replay of it */
};

/* A run under the chosen settings, and what reports of replays said that it would show; where the recorded
 * run is known, by as much more as that had than its own replay. */
struct ms_tune_seen {
    struct ms_tune_figures told, seen;
};

/** The table, the chosen line, and what a trace cannot know. */
void ms_tune_print(FILE *out, const struct ms_search *search, const struct ms_tune_program *program);
/** All of that as JSON; `seen` may be NULL. */
json_t *ms_tune_json(const struct ms_search *search, const struct ms_tune_program *program,
                     const struct ms_tune_seen *seen);
/** How much of the best row came true. */
void ms_tune_print_seen(FILE *out, const struct ms_tune_seen *seen);
/** The best row's settings as a file for MEMSHIM_CONFIG, with the reasons as comments. */
void ms_tune_write(FILE *out, const struct ms_search *search);

/** Makes the directory, if there is none yet. 0, or -1 after an error line. */
int ms_tune_begin(struct ms_tune_program *program);
/** Runs the program once, with a trace of each process. 0, or an exit status after an error line. */
int ms_tune_record(struct ms_tune_program *program);
/** Replays the recorded run, as it was with the defaults, for what its reports say of it. 0, or an exit
 * status after an error line. */
int ms_tune_compare(struct ms_tune_program *program, const struct ms_search *search);
/** Runs it again under the settings in the file `config` and reads its reports, and those of replays of the
 * best row. */
int ms_tune_check(struct ms_tune_program *program, const struct ms_search *search, const char *config,
                  struct ms_tune_seen *seen);
/** Removes what lies in the directory, and the directory. */
void ms_tune_end(struct ms_tune_program *program);

#endif
