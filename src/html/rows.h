/* rows.h - what there is much of in a report, as columns: sites and their stacks, leaks, the timeline,
 * segments and their blocks.
 *
 * Floor 4, command line only. docs/html.md names the columns. */
#ifndef MS_HTML_ROWS_H
#define MS_HTML_ROWS_H

#include "export/model.h"
#include "html/columns.h"
#include "html/strings.h"

/** Puts them there, and the texts that they name into `head`. Returns 0, or -1 without memory. */
int ms_html_rows(struct ms_columns *columns, json_t *head, const struct ms_model *model);

/* A part each: rows_sites.c, rows_time.c, rows_segments.c. 0, or -1 without memory. */
int ms_html_sites(struct ms_columns *columns, struct ms_strings *strings, const struct ms_model *model);
int ms_html_time(struct ms_columns *columns, json_t *head, const struct ms_report *report);
int ms_html_segments(struct ms_columns *columns, struct ms_strings *strings, const struct ms_report *report);

/** A column that is a key of each row of an array. */
int ms_html_key(struct ms_columns *columns, const char *name, const json_t *rows, const char *key);

#define MS_HTML_NONE UINT32_MAX /* no device */

#endif
