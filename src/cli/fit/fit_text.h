/* fit_text.h - what memshim fit prints.
 *
 * Floor 5. */
#ifndef MS_CLI_FIT_TEXT_H
#define MS_CLI_FIT_TEXT_H

#include <stdio.h>

#include <jansson.h>

#include "cli/fit/fit.h"

#define MS_FIT_ANY_SIZE 1e9 /* a size beyond which nothing is tried */

enum { MS_FIT_DEVICES_MOST = 8, MS_FIT_RUNS_MOST = 16 };

/* A way with what was found. */
struct ms_fit_row {
    struct ms_fit_way way;
    uint64_t reserved;          /* at its peak, where there is room to spare */
    uint64_t least, least_most; /* the least device, and the most that it takes in another order of threads */
    double largest[MS_FIT_DEVICES_MOST]; /* MS_FIT_ANY_SIZE: memory does not grow; size that fits each device;
                                            0: none; INFINITY: as large as any */
};

struct ms_fit_table {
    struct ms_fit_run runs[MS_FIT_RUNS_MOST]; /* the last is the one that is shown: of the largest size */
    size_t run_count;
    struct ms_fit_row rows[MS_FIT_WAYS_MOST];
    size_t row_count;
    uint64_t devices[MS_FIT_DEVICES_MOST];
    size_t device_count;
    bool reordered;              /* least_most is of several orders of threads */
    bool is_sized;               /* the runs have sizes, and laws were found */
    struct ms_laws laws;         /* of what the first way is tried on */
    struct ms_law_share *shares; /* at the peak of the run that is shown */
    long share_count;
    double held_out,
        told_off; /* a run that was told from the others, and by how much that was wrong; 0: none */
    long top;
};

/** The run that is shown: that of the largest size. */
static inline const struct ms_fit_run *ms_fit_shown(const struct ms_fit_table *table)
{
    return &table->runs[table->run_count - 1];
}

void ms_fit_print(FILE *out, const struct ms_fit_table *table);
json_t *ms_fit_json(const struct ms_fit_table *table);

#endif
