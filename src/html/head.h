/* head.h - what the page shows of a report that is neither sites nor segments nor the timeline.
 *
 * Floor 4, command line only. */
#ifndef MS_HTML_HEAD_H
#define MS_HTML_HEAD_H

#include "report/read/read.h"

/** A JSON object of the report's own, with the same keys; stacks of events are lines of text. A number that
 * a browser cannot hold (beyond 2^53) is a string of its digits. NULL without memory. */
json_t *ms_html_head(const char *path, const struct ms_report *report);

/** The line of a report in the page's list: path, rank, and the most of any of its devices. */
json_t *ms_html_headline(const json_t *head, const struct ms_report *report);

#endif
