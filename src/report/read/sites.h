/* sites.h - what the rows of sites[] say, as numbers.
 *
 * Floor 4, command line only. There may be 100,000 rows, of which whoever tells something about a report
 * goes through all; to look up a member of each costs more than what is then done with it
 * (docs/internals/bench.md). */
#ifndef MS_REPORT_READ_SITES_H
#define MS_REPORT_READ_SITES_H

#include "report/read/read.h"

/** The members that are taken, in the order in which a report has them. */
#define MS_SITE_NUMBERS(X)                                                                                   \
    X(id)                                                                                                    \
    X(stack)                                                                                                 \
    X(device)                                                                                                \
    X(total_bytes)                                                                                           \
    X(total_count)                                                                                           \
    X(live_bytes)                                                                                            \
    X(live_count)                                                                                            \
    X(at_peak_bytes)                                                                                         \
    X(max_bytes)                                                                                             \
    X(lifetime_ns_sum)                                                                                       \
    X(rounding_bytes)                                                                                        \
    X(freed_count)                                                                                           \
    X(first_ns)                                                                                              \
    X(last_ns)                                                                                               \
    X(requested_bytes)                                                                                       \
    X(grew_bytes)
#define MS_SITE_TEXTS(X) X(api) X(kind) X(device_api) X(owner)

/** One row. What it lacks, or has in another type, is 0 or "". */
struct ms_site_row {
    json_t *json;
#define MS_SITE_MEMBER(name) json_int_t name;
    MS_SITE_NUMBERS(MS_SITE_MEMBER)
#undef MS_SITE_MEMBER
#define MS_SITE_MEMBER(name) const char *name;
    MS_SITE_TEXTS(MS_SITE_MEMBER)
#undef MS_SITE_MEMBER
    size_t device_row; /* of devices[], as ms_report_device_of has it */
    bool has_device;   /* `device` is a number */
    bool counts;       /* towards its device: ms_report_is_device_memory() */
};

/** All rows, as long as report->sites and in its order; NULL without memory. They are good until
 * ms_report_changed(): whoever changes such a member calls that. */
const struct ms_site_row *ms_report_sites(const struct ms_report *report);
/** The owner of a row, which is in its JSON as well. */
void ms_report_site_owned(const struct ms_report *report, size_t row, json_t *owner);

#endif
