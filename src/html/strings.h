/* strings.h - the texts of a page: each once, and by number; and what a place in code is called.
 *
 * Floor 4, command line only. */
#ifndef MS_HTML_STRINGS_H
#define MS_HTML_STRINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "export/names.h"
#include "report/read/read.h"

struct ms_strings {
    struct ms_names names;
    struct ms_place_name *places; /* frames[] rows that were asked for */
    size_t place_mask;
    bool failed; /* no memory: numbers are wrong since */
};

int ms_strings_open(struct ms_strings *strings, const struct ms_report *report); /* 0, or -1 without memory */
void ms_strings_close(struct ms_strings *strings);

/** Its number; what is longer than 4096 bytes is cut, at a character. */
uint32_t ms_strings_number(struct ms_strings *strings, const char *text);

/** The number of what a site's own line is called, "make_weights at /src/train.c:41" (report/analyse/fold.h).
 */
uint32_t ms_strings_own_line(struct ms_strings *strings, const struct ms_report *report, json_int_t stack);

/** All of them in the order of their numbers; NULL without memory. */
json_t *ms_strings_json(const struct ms_strings *strings);

#endif
