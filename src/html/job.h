/* job.h - what the page's overview shows of a job report.
 *
 * Floor 4, command line only. */
#ifndef MS_HTML_JOB_H
#define MS_HTML_JOB_H

#include "report/read/read.h"

/** A JSON object for the head: how many processes there are, whose report the page is, the figures, the
 * owners and phases with most, and who stands out; NULL if the report is of no job, or without memory. */
json_t *ms_html_job(const struct ms_report *report);

#endif
