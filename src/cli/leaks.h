/* leaks.h - the leaks of a report, chosen, added up and printed.
 *
 * Floor 5. For `memshim leaks`, and for `memshim run` where its gate does not pass. */
#ifndef MS_CLI_LEAKS_H
#define MS_CLI_LEAKS_H

#include <stdint.h>
#include <stdio.h>

#include "report/read.h"

struct ms_leak_sum {
    json_int_t bytes, blocks;
    size_t sites;
};

/** Leaks of one report: most bytes first, equal ones by site id, so that two runs of one program can be
 * compared; what frameworks keep comes last. */
struct ms_leaks {
    json_t **rows; /* borrowed from the report */
    size_t count;
    struct ms_leak_sum counted, suppressed; /* of rows */
    struct ms_leak_sum cached;              /* kept by frameworks, of whatever size */
    struct ms_leak_sum left_out;            /* too small, and not suppressed */
};

/** Those of at least `min_bytes`; ms_leaks_close() them. Returns 0, or -1 without memory. */
int ms_leaks_open(const struct ms_report *report, uint64_t min_bytes, struct ms_leaks *leaks_p);
void ms_leaks_close(struct ms_leaks *leaks);

/** "3.0 MiB leaked in 3 blocks at 2 sites", and what is to be known of that, each with a newline. */
void ms_leaks_print_sums(FILE *out, const struct ms_report *report, const struct ms_leaks *leaks,
                         uint64_t min_bytes);
/** Each leak with its stack, at most `top` of them and `depth` frames. */
void ms_leaks_print(FILE *out, const struct ms_report *report, const struct ms_leaks *leaks, size_t top,
                    size_t depth);

#endif
