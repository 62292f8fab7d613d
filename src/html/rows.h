/* rows.h - what there is much of in a report, as columns: sites and their stacks, leaks, the timeline,
 * segments and their blocks.
 *
 * Floor 4, command line only. docs/user/html.md names the columns. */
#ifndef MS_HTML_ROWS_H
#define MS_HTML_ROWS_H

#include <stdbool.h>

#include "export/model.h"
#include "html/columns.h"
#include "html/strings.h"

/** Puts them there, and the texts that they name into `head`. Returns 0, or -1 without memory. */
int ms_html_rows(struct ms_columns *columns, json_t *head, const struct ms_model *model);

/* A part each: rows_sites.c, rows_time.c, rows_segments.c. 0, or -1 without memory. */
int ms_html_sites(struct ms_columns *columns, struct ms_strings *strings, const struct ms_model *model);
int ms_html_time(struct ms_columns *columns, json_t *head, const struct ms_report *report);
int ms_html_segments(struct ms_columns *columns, struct ms_strings *strings, const struct ms_report *report);

/** A key of rows that becomes a column: text by its number, else an integer, hexadecimal in a string. */
struct ms_html_key {
    const char *name; /* of the column */
    const char *key;
    bool is_text;
};

/** All these keys of all rows, each row looked at once: there may be 400,000. 0, or -1 without memory. */
int ms_html_keys(struct ms_columns *columns, struct ms_strings *strings, json_t *const *rows, size_t count,
                 const struct ms_html_key *keys, size_t key_count);

#define MS_HTML_NONE UINT32_MAX /* no device */

#endif
