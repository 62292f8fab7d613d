/* check.h - limits on what a report says, and whether it keeps them: for `memshim check` and for the gates of
 * `memshim run`.
 *
 * Floor 5. A report is *measured*: one row for each figure of each device, owner, phase, or of the process
 * (check_measure.c); of a job report one for each of these of each process (check_job.c). Limits are held
 * against these rows, and so are the rows of an earlier report that was kept as a baseline (check_hold.c,
 * check_baseline.c). Results are written as text and JSON
 * (check_text.c), JUnit (check_junit.c) and SARIF (check_sarif.c). */
#ifndef MS_CLI_CHECK_CHECK_H
#define MS_CLI_CHECK_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "export/names.h"
#include "report/read/read.h"
#include "report/text/text.h"

enum ms_check_figure {
    MS_CHECK_PEAK,
    MS_CHECK_LEAK,
    MS_CHECK_GROWTH,
    MS_CHECK_FRAG,
    MS_CHECK_RESERVED,
    MS_CHECK_DEVICE_FIGURES, /* so many does a job report have of each device of a process */
    MS_CHECK_OOM = MS_CHECK_DEVICE_FIGURES,
    MS_CHECK_FIGURES
};

/** The things that a figure can be of. Classes are those of leaks (report/analyse/leak_class.h), and stand in
 * no baseline. */
enum ms_check_of {
    MS_CHECK_PROCESS,
    MS_CHECK_DEVICE,
    MS_CHECK_OWNER,
    MS_CHECK_PHASE,
    MS_CHECK_CLASS,
    MS_CHECK_KINDS
};

struct ms_check_figure_info {
    const char *name;  /* "peak": as options, rules and baselines spell it */
    const char *title; /* "peak", "leaked": before "of device 0" */
    const char *text;  /* what is wrong if the limit is not kept, one sentence */
    enum ms_check_of usual;
    unsigned kinds;    /* 1 << of: what it is measured of */
    unsigned tensors;  /* the same of tensors; 0: it is of blocks alone */
    const char *share; /* "5%": what a baseline lets it grow by if nothing is said */
    bool count;        /* a number of times, and no bytes */
};
extern const struct ms_check_figure_info ms_check_figures[MS_CHECK_FIGURES];
extern const char *const ms_check_kinds[MS_CHECK_KINDS];

/** Bytes, or hundredths of something. */
struct ms_check_amount {
    uint64_t bytes;
    bool percent;
};
/** "1.0 GiB", or of what is counted "3". */
struct ms_text_number ms_check_amount_text(enum ms_check_figure figure, json_int_t amount);
/** "512M" or "70%"; -1 after an error line that names `what`. */
int ms_check_amount_read(const char *what, const char *text, struct ms_check_amount *amount_p);

/** One row of what a report says. */
struct ms_check_measure {
    enum ms_check_figure figure;
    enum ms_check_of of;
    bool tensors;     /* of the inner layer; its site is a place in inner_sites[] then */
    const char *name; /* of the device ("0", "hip 1"), owner or phase; "" of the process */
    json_int_t bytes;
    json_int_t whole; /* what a share is of; 0: nothing */
    json_int_t site;  /* whose line is to be looked at; -1: nobody's */
    json_int_t site_bytes;
    json_int_t process;   /* of a job report: row of ranks[]; else -1 */
    json_int_t processes; /* of so many it is the most */
    json_int_t job_site;  /* of a job report: row of job.sites, whose stack may be in no row of sites[]; -1 */
};

struct ms_check_measures {
    struct ms_check_measure *rows;
    size_t count, room;
    struct ms_names names; /* of rows */
};
/** All rows of a report that has its names, or of a job report. 0, or -1 without memory. */
int ms_check_measure(const struct ms_report *report, struct ms_check_measures *measures_p);
/** A row more, NULL without memory. */
struct ms_check_measure *ms_check_measure_add(struct ms_check_measures *measures, enum ms_check_figure figure,
                                              enum ms_check_of of, const char *name, json_int_t bytes);
void ms_check_measures_free(struct ms_check_measures *measures);
/** True if two rows are of the same figure of the same thing. */
bool ms_check_is_same(const struct ms_check_measure *a, const struct ms_check_measure *b);

/** True if this is a job report (check_job.c). */
bool ms_check_is_job(const struct ms_report *report);
struct ms_check_rules;
/** Returns 0 if the report has what these rules need of each process, or -1 after an error line. */
int ms_check_job_usable(const char *path, const struct ms_report *report, const struct ms_check_rules *rules);
int ms_check_measure_job(const struct ms_report *report, struct ms_check_measures *measures);
/** " of rank 37 on node0004", to be freed; "" of no process of a job. NULL without memory. */
char *ms_check_process(const struct ms_report *report, const struct ms_check_measure *measure);

/** A limit, as it was given: [[tensors:]KIND[:NAME]=]AMOUNT, or tensors=AMOUNT. */
struct ms_check_limit {
    enum ms_check_figure figure;
    enum ms_check_of of;
    bool tensors;
    char *name; /* NULL: each of its kind */
    struct ms_check_amount amount;
    char *text; /* "--max-peak owner:NCCL=1G" */
    bool met;   /* something was measured that it is about */
    bool seen;  /* something was measured of its layer */
};

/** A row of a baseline. */
struct ms_check_base {
    enum ms_check_figure figure;
    enum ms_check_of of;
    bool tensors;
    char *name;
    json_int_t bytes;
};

struct ms_check_rules {
    struct ms_check_limit *limits;
    size_t limit_count;
    const char *baseline; /* the path; NULL: none */
    struct ms_check_base *base;
    size_t base_count;
    struct ms_check_amount tolerance[MS_CHECK_FIGURES];
    bool tolerance_given[MS_CHECK_FIGURES];
};

/** Add the limit that an option such as --max-peak gave. 0, or -1 after an error line. */
int ms_check_take_limit(struct ms_check_rules *rules, enum ms_check_figure figure, const char *option,
                        const char *text);
/** Take an argument of --tolerance: [FIGURE=]AMOUNT. */
int ms_check_take_tolerance(struct ms_check_rules *rules, const char *text);
void ms_check_rules_free(struct ms_check_rules *rules);

/** True if there is anything to check. */
bool ms_check_has_rules(const struct ms_check_rules *rules);

/** One limit, or row of a baseline, held against one row of one report. */
struct ms_check_result {
    const struct ms_report *report;
    const char *path;
    struct ms_check_measure measure;
    json_int_t allowed;
    char *rule; /* "--max-peak 1G", "baseline 900.0 MiB + 5%" */
    bool held;
    size_t more; /* processes that do not keep it either, and have no row */
};

struct ms_check_results {
    struct ms_check_result *rows;
    size_t count, room, failed;
    size_t fresh; /* rows that the baseline does not have */
    struct ms_names names;
};

/** Hold a report against the rules; results are added. Of a job's processes the one with most, if all keep
 * it, else those that do not. 0, or -1 without memory. */
int ms_check_report(struct ms_check_rules *rules, const char *path, const struct ms_report *report,
                    struct ms_check_results *results);
/** After the last report: a limit about a phase that is in no report cannot be checked, which gets an error
 * line and -1; of an owner or a device it gets a note, as that holds nothing. */
int ms_check_all_met(const struct ms_check_rules *rules);
void ms_check_results_free(struct ms_check_results *results);

/** "peak of device 0: 2.0 GiB, allowed 1.0 GiB (--max-peak 1G)", to be freed; NULL without memory. */
char *ms_check_message(const struct ms_check_result *result);
/** "peak of device 0", "peak of device 0 of rank 37 on node0004", to be freed; NULL without memory. */
char *ms_check_title(const struct ms_check_result *result);
/** "f at file.c:12", the program's own line that holds most of it, to be freed; NULL for none. */
char *ms_check_line(const struct ms_check_result *result);

/** The call site that is blamed for a result; NULL for none. */
const json_t *ms_check_site(const struct ms_check_result *result);
/** The object that has the `file` and `line` of a result; NULL for none. */
const json_t *ms_check_place(const struct ms_check_result *result);

/** Read a baseline into the rules; 0, or -1 after an error line. */
int ms_check_baseline_read(const char *path, struct ms_check_rules *rules);
/** Write one of what was measured, in place of the file that is there. An exit status. */
int ms_check_baseline_write(const char *path, const struct ms_check_rules *rules,
                            const struct ms_report *reports, size_t count);

void ms_check_put_text(FILE *out, const struct ms_check_results *results);
json_t *ms_check_json(const struct ms_check_results *results);
void ms_check_put_junit(FILE *out, const struct ms_check_results *results);
/** Files are told relative to the directory `root`. */
void ms_check_put_sarif(FILE *out, const struct ms_check_results *results, const char *root);

#endif
