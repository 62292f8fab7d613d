/* leak_class.h - in which way memory was not freed.
 *
 * Floor 4, command line only. What was never freed is not all of a kind: what grows is a mistake, what was
 * lost again and again is one too, what was allocated early or once and held to the end is what most programs
 * do. docs/user/report.md has the rules; leaks[].pattern says which it was. */
#ifndef MS_REPORT_ANALYSE_LEAK_CLASS_H
#define MS_REPORT_ANALYSE_LEAK_CLASS_H

#include "report/read/read.h"

/** In the order in which they are shown; the first three are leaks. */
enum ms_leak_class {
    MS_LEAK_GROWING,     /* more and more over the run, or with each phase */
    MS_LEAK_LOST,        /* allocated again and again, and not all of it freed */
    MS_LEAK_HELD,        /* allocated early or once, and held to the end */
    MS_LEAK_INTERRUPTED, /* held when the program ended otherwise than it should */
    MS_LEAK_CONTEXT,     /* gone with its context */
    MS_LEAK_LIVE,        /* of a process that runs: not freed so far */
    MS_LEAK_CACHE,       /* kept by a framework's allocator */
    MS_LEAK_SUPPRESSED,
    MS_LEAK_CLASSES
};

/** Says of each row of leaks[] which it is. After names, views (report/analyse/view.h) and before findings;
 * may be done again. */
void ms_leak_classes_annotate(struct ms_report *report);

/** The class of a row; of one that was not told, what its class was when it was written. */
enum ms_leak_class ms_leak_class_of(const json_t *leak);
/** "growing", as options and JSON spell it. */
const char *ms_leak_class_word(enum ms_leak_class class);
/** "held to the end", as people read it behind a size. */
const char *ms_leak_class_text(enum ms_leak_class class);
/** The class that is spelled so in the first `length` characters; MS_LEAK_CLASSES for none. */
enum ms_leak_class ms_leak_class_find(const char *word, size_t length);
/** The bytes that a row's class is about: all but those that went with its context, unless that is all. */
json_int_t ms_leak_bytes(const json_t *leak);

/** Bytes, blocks and sites of each class. */
struct ms_leak_sums {
    struct ms_leak_sum {
        json_int_t bytes, blocks;
        size_t sites;
    } of[MS_LEAK_CLASSES];
};
/** Adds a row to the sums, and what of it went with its context to that class. */
void ms_leak_sums_add(struct ms_leak_sums *sums, const json_t *leak);
void ms_leak_sums_of(const struct ms_report *report, struct ms_leak_sums *sums_p);
/** The first three together: what counts as leaked. */
struct ms_leak_sum ms_leak_sums_leaked(const struct ms_leak_sums *sums);

/** True if a row counts as leaked: one of the first three classes. */
bool ms_report_is_leak(const json_t *leak);
/** Bytes leaked: those rows of leaks[], without what went with a context. What lies on each row of devices[]
 * is added to `by_device` (NULL, or as long as devices[]). */
json_int_t ms_report_leaked(const struct ms_report *report, json_int_t *by_device);
/** Bytes that caches of frameworks still held. */
json_int_t ms_report_cached(const struct ms_report *report);

#endif
