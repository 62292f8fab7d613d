/* findings.h - what to think of a report: the rules of findings.def that take names, and the order of all of
 * them.
 *
 * Floor 4, command line only. What the record alone proves is in findings[] already, written by the process;
 * the command adds what takes names of functions and owners, says of each whose line it is, and ranks
 * them. */
#ifndef MS_REPORT_FINDINGS_FINDINGS_H
#define MS_REPORT_FINDINGS_FINDINGS_H

#include "report/read/read.h"

/** Once a report has its names, its view, its owners and its suppressions: findings[] has the findings of all
 * rules, errors first, then by bytes. May be done again. */
void ms_findings_annotate(struct ms_report *report);

/** One more of a report that has its findings, at its place among them. Takes `row`. */
void ms_findings_put(struct ms_report *report, json_t *row);

/** The deed of the call that a finding has an `api` of: "freed", "used", "asked for", "registered" or
 * "called". */
const char *ms_finding_deed(const json_t *row);

/* --- for the rules alone (findings_rules.c, findings_contexts.c) -------------------------------------- */

/* Of one rule at most so many rows; another one has the sum of the others. */
enum { MS_FINDINGS_OF_RULE_MAX = 20 };

/* Rules that may speak of each site. */
enum ms_finding_many {
    MS_MANY_LEAK,
    MS_MANY_GROWTH,
    MS_MANY_TEMPORARY,
    MS_MANY_IMPORTS,
    MS_MANY_REGISTRATIONS,
    MS_MANY_COUNT
};

/* A row that such a rule found: told later, if it is among the largest, as most are not shown and texts take
 * time. */
struct ms_finder;
struct ms_finding_rows {
    enum ms_finding_many rule;
    json_int_t bytes;
    void (*tell)(struct ms_finder *finder, const struct ms_finding_rows *found);
    const json_t *row, *of; /* for `tell` */
};

struct ms_finder {
    struct ms_report *report;
    json_t *rows; /* findings[] to be */
    struct ms_finding_rows *found;
    size_t found_count, found_room;
    struct {
        size_t count;
        json_int_t bytes;
    } untold[MS_MANY_COUNT];
};

/** Notes it; what there is no memory for is not told. */
void ms_finding_note(struct ms_finder *finder, struct ms_finding_rows found);
/** Tells all that was noted, but for what is less than what a rule shows; and forgets it. */
void ms_finding_tell_noted(struct ms_finder *finder);

/** "f at file.c:12", the program's own line in the stack of a row of sites[] or contexts[]; `without` where
 * there is none. To be free()d; NULL without memory. */
char *ms_finding_line(const struct ms_report *report, const json_t *row, const char *without);
/** A finding of this rule; takes `message` and `advice`, which are free()d. `site` may be NULL. Returns the
 * row, borrowed; NULL without memory. */
json_t *ms_finding_add(struct ms_finder *finder, const char *rule, json_int_t bytes, const json_t *site,
                       char *message, char *advice);
/** As asprintf, NULL without memory. */
char *ms_finding_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** All of them. */
void ms_findings_look(struct ms_finder *finder);
/** Those of oom[]. findings_oom.c */
void ms_findings_look_at_ooms(struct ms_finder *finder);
/** Those of uses. findings_uses.c */
void ms_findings_look_at_uses(struct ms_finder *finder);
/** Those of what is no memory of the program's own and was never given back. findings_left.c */
void ms_findings_look_at_left(struct ms_finder *finder);
/** Those of tensors, of a view of the inner layer. Returns which rows of devices[] have tensors that pile up,
 * to be freed; NULL without memory. findings_tensors.c */
bool *ms_findings_look_at_tensors(struct ms_finder *finder);
/** Likewise, of those that pile up alone. findings_piles.c */
bool *ms_findings_look_at_piles(struct ms_finder *finder);
/** Of a program that has tensors, pinned host memory that piles up. findings_piles.c */
void ms_findings_look_at_host(struct ms_finder *finder);
/** Those of contexts[]. findings_contexts.c */
void ms_findings_look_at_contexts(struct ms_finder *finder);

#endif
