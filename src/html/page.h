/* page.h - reports as one page for a browser (docs/user/html.md).
 *
 * Floor 4 above src/export, command line only. No name of a report is written into the page as it is: all of
 * a report is one block of base64, which the page's script unpacks and shows as text. */
#ifndef MS_HTML_PAGE_H
#define MS_HTML_PAGE_H

#include <stdio.h>

#include "export/model.h"

/** The parts of the page before the reports, and behind them: `index` is the page's list of reports. 0, or -1
 * without memory. */
void ms_html_page_begin(FILE *out);
int ms_html_page_end(FILE *out, const json_t *index);

/** One report; `path` is what the page calls it, and its headline figures go to the end of `index`. Returns
 * 0, or -1 without memory. */
int ms_html_page_put(FILE *out, const char *path, const struct ms_model *model, json_t *index);

/* The sources of the page, as one (local.mk makes them of the files here). */
extern const unsigned char ms_html_page_script[], ms_html_page_style[], ms_html_page_body[];
extern const size_t ms_html_page_script_bytes, ms_html_page_style_bytes, ms_html_page_body_bytes;

#endif
