/* leaks.h - the leaks of a report, chosen, added up and printed.
 *
 * Floor 5. For `memshim leaks`, and for `memshim run` where its gate does not pass. */
#ifndef MS_CLI_SCREENS_LEAKS_H
#define MS_CLI_SCREENS_LEAKS_H

#include <stdint.h>
#include <stdio.h>

#include "report/analyse/leak_class.h"
#include "report/read/read.h"

/** Leaks of one report: class by class in the order of report/analyse/leak_class.h, most bytes first, equal
 * ones by site id, so that two runs of one program can be compared. */
struct ms_leaks {
    json_t **rows; /* borrowed from the report */
    size_t count;
    struct ms_leak_sums sums;    /* of rows; of caches of whatever size */
    struct ms_leak_sum left_out; /* too small, and counted as leaked */
};

/** Those of at least `min_bytes`; ms_leaks_close() them. Returns 0, or -1 without memory. */
int ms_leaks_open(const struct ms_report *report, uint64_t min_bytes, struct ms_leaks *leaks_p);
void ms_leaks_close(struct ms_leaks *leaks);

/** ": 2.0 MiB growing, 1.0 MiB lost" behind the sum of what leaked, or ": lost"; nothing where nothing did.
 */
void ms_leaks_put_classes(FILE *out, const struct ms_leak_sums *sums);
/** "; 2.0 GiB held when it was ended", and what else was not freed and is no leak; nothing where there is
 * none. */
void ms_leaks_put_others(FILE *out, const struct ms_leak_sums *sums);
/** "3.0 MiB leaked in 3 blocks at 2 sites: lost", and what is to be known of that, each with a newline. */
void ms_leaks_print_sums(FILE *out, const struct ms_report *report, const struct ms_leaks *leaks,
                         uint64_t min_bytes);
/** Each leak with its stack, at most `top` of them and `depth` frames. */
void ms_leaks_print(FILE *out, const struct ms_report *report, const struct ms_leaks *leaks, size_t top,
                    size_t depth);

#endif
