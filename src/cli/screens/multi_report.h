/* multi_report.h - several reports in one page: a line per process, and what they add up to.
 *
 * Floor 5. */
#ifndef MS_CLI_SCREENS_MULTI_REPORT_H
#define MS_CLI_SCREENS_MULTI_REPORT_H

#include <stdio.h>

#include "cli/cli.h"
#include "report/read/read.h"

enum { MS_MANY_FIGURES = 5 };

enum ms_many_figure {
    MS_FIGURE_BYTES,
    MS_FIGURE_COUNT,
    MS_FIGURE_PEAK, /* bytes; of processes together the most, since each had them at a time of its own */
};

/** One figure of each process. */
struct ms_many_column {
    const char *heading;
    enum ms_many_figure figure;
};

struct ms_many {
    struct ms_many_column columns[MS_MANY_FIGURES]; /* to the first without a heading */
    json_int_t totals[MS_MANY_FIGURES];
    size_t rows;
};

/** The headings; columns without a heading are left out. */
void ms_many_begin(FILE *out, const struct ms_many *many);
/** A process's line, and its part of the totals. */
void ms_many_row(FILE *out, struct ms_many *many, const char *path, const struct ms_report *report,
                 const json_int_t figures[MS_MANY_FIGURES]);
/** The line of totals, and an empty one. */
void ms_many_end(FILE *out, const struct ms_many *many);

/** All reports, or none after an error line: one bad file leaves no half output. An array of malloc's. */
struct ms_report *ms_many_load(char **paths, size_t count);
void ms_many_close(struct ms_report *reports, size_t count);

/** The view that a verb makes of each report, and how it shows that. A view is `view_bytes` long; `options`
 * are the verb's own. */
struct ms_many_verb {
    size_t view_bytes;
    /** Returns 0 if the options fit together and to so many reports, or -1 after an error line. May be
     * NULL. */
    int (*check)(void *options, size_t reports);
    /** 0, -1 without memory, or -2 after an error line. */
    int (*open)(const struct ms_report *report, const void *options, void *view_p);
    void (*close)(void *view);
    struct ms_many_column columns[MS_MANY_FIGURES];
    void (*figures)(const void *view, json_int_t figures[MS_MANY_FIGURES]);
    json_t *(*json)(const char *path, const struct ms_report *report, const void *view, const void *options);
    const char *after_path; /* between the path of one of several and its text */
    void (*text)(FILE *out, const struct ms_report *report, const void *view, const void *options);
};

/** All of a verb: its options by `take`, which gets `options`, of which `printing` is a part; then its
 * reports. Several begin with the table; one JSON value stands for itself, several in an array. Returns an
 * exit status. */
int ms_many_run(int argc, char **argv, ms_flag_func_t take, const struct ms_cli_printing *printing,
                const struct ms_many_verb *verb, void *options);

#endif
