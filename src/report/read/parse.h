/* parse.h - the text of a report made into values.
 *
 * Floor 4, command line only: yajl takes the text apart, jansson keeps the values. */
#ifndef MS_REPORT_READ_PARSE_H
#define MS_REPORT_READ_PARSE_H

#include <jansson.h>
#include <stddef.h>

/** The place where a text is no JSON, and why. Without a line the text itself could not be read. */
struct ms_parse_fault {
    size_t line, column; /* from 1, in bytes: how far it was read */
    char text[160];
};

/** The values of a text that a descriptor gives to its end; NULL with `fault` filled in. What jansson takes
 * with JSON_REJECT_DUPLICATES is taken, but for bytes of 0; equal numbers and equal short texts being one
 * value: none of them may be changed in its place. */
json_t *ms_parse_fd(int fd, struct ms_parse_fault *fault);
json_t *ms_parse_text(const char *text, size_t bytes, struct ms_parse_fault *fault);

#endif
