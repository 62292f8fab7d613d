/* base64.h - bytes as text that means nothing to a browser.
 *
 * Floor 4, command line only. */
#ifndef MS_HTML_BASE64_H
#define MS_HTML_BASE64_H

#include <stddef.h>
#include <stdio.h>

void ms_base64_put(FILE *out, const unsigned char *bytes, size_t count);
/** The same of the bytes deflated (zlib's format). Returns 0, or -1 without memory. */
int ms_base64_put_deflated(FILE *out, const unsigned char *bytes, size_t count);

#endif
