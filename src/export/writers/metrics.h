/* metrics.h - figures of several processes in one text for Prometheus.
 *
 * Floor 4, command line only. One report at a time: what is kept of it is text. */
#ifndef MS_EXPORT_WRITERS_METRICS_H
#define MS_EXPORT_WRITERS_METRICS_H

#include <stdbool.h>
#include <stdio.h>

#include "report/read/read.h"

struct ms_metrics;

/** NULL without memory. */
struct ms_metrics *ms_metrics_open(void);
void ms_metrics_close(struct ms_metrics *metrics);

/** Add what is told of a process that goes on: its devices, out of memory, its owners, which were told
 * (report/analyse/owners.h). Returns 0, or -1: no memory, or one with the same labels is there, which would
 * make all of the text invalid. */
int ms_metrics_add(struct ms_metrics *metrics, const struct ms_report *report);
/** A gauge of the machine, not of a process. 0, or -1 without memory. */
int ms_metrics_add_host(struct ms_metrics *metrics, const char *host, const char *name, const char *help,
                        json_int_t value);

/** A gauge of a device, with so many labels, in bytes (its name ends so). 0, or -1 without memory. */
int ms_metrics_add_gauge(struct ms_metrics *metrics, const char *name, const char *help,
                         const char *const labels[], const char *const texts[], size_t count,
                         json_int_t value);

/** All of it, as OpenMetrics 1.0 if `open`, else in the text format 0.0.4; as often as wanted. */
int ms_metrics_write(struct ms_metrics *metrics, FILE *out, bool open);

#endif
