/* law.h - how what a program asks for grows with its size (a batch, a length), told from runs at some sizes.
 *
 * Floor 5. The nth allocation of a call site in one run is the nth of it in another, if both runs have as
 * many of that site: then the bytes of each allocation are a law of their own in the size, and a run at a
 * size that nobody tried is the largest run with other bytes. A site that allocates more often in one run
 * than in another follows no law: it is told, and keeps the bytes that it has. */
#ifndef MS_CLI_FIT_LAW_H
#define MS_CLI_FIT_LAW_H

#include "cli/tune/course.h"

/** bytes = constant + linear * size + quadratic * size * size. */
struct ms_law {
    double constant, linear, quadratic;
    bool is_followed; /* false: the bytes of the base, as a constant */
};

struct ms_sized_run {
    double size;
    const struct ms_course *course;
    const uint64_t *site_names; /* by the number of a site: the same in all runs, 0 if not known; or NULL */
    size_t site_count;          /* of these */
};

/** By the kind of law: bytes of a call site that were live at a moment. */
struct ms_law_share {
    uint32_t site;
    uint64_t bytes;
    uint64_t constant, linear, quadratic; /* that add up to `bytes`, but where nothing is known */
    bool is_followed;                     /* false: the site follows no law */
};

struct ms_laws {
    const struct ms_course *base; /* the largest run's */
    struct ms_law *laws;          /* by block of the base */
};

/** The runs are in any order, two at least, of different sizes. Returns 0, or -1 with one line in `error`. */
int ms_laws_find(const struct ms_sized_run *runs, size_t count, struct ms_laws *laws, char *error,
                 size_t error_bytes);
void ms_laws_close(struct ms_laws *laws);
/** The course as it would be at this size; its events and its peak are its own. Returns 0, or -1: no memory.
 */
int ms_laws_course(const struct ms_laws *laws, double size, struct ms_course *course);
void ms_laws_course_close(struct ms_course *course);
/** Bytes that are live at the peak of a course of ms_laws_course(), by site, the largest first; to be freed.
 * Returns how many rows, or -1: no memory. */
long ms_laws_shares(const struct ms_laws *laws, const struct ms_course *course, double size,
                    struct ms_law_share **shares_p);

#endif
