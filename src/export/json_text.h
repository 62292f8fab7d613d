/* json_text.h - JSON that is written as it comes, for files too large to be put together first.
 *
 * Floor 4, command line only. */
#ifndef MS_EXPORT_JSON_TEXT_H
#define MS_EXPORT_JSON_TEXT_H

#include <stdio.h>

/** A string with its quotes: control characters are spelled \uXXXX, what is no UTF-8 becomes U+FFFD. */
void ms_json_put(FILE *out, const char *text);
/** "key": and a string, with `before` in front. */
void ms_json_put_member(FILE *out, const char *before, const char *key, const char *text);

#endif
