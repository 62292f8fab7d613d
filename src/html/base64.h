/* base64.h - bytes as text that means nothing to a browser.
 *
 * Floor 4, command line only. */
#ifndef MS_HTML_BASE64_H
#define MS_HTML_BASE64_H

#include <stddef.h>
#include <stdio.h>

void ms_base64_put(FILE *out, const unsigned char *bytes, size_t count);

/** As ms_base64_put(), but of bytes that are deflated (zlib's format) and given piece by piece. */
struct ms_base64_deflated;
struct ms_base64_deflated *ms_base64_deflated_open(FILE *out); /* NULL without memory */
void ms_base64_deflated_put(struct ms_base64_deflated *deflated, const void *bytes, size_t count);
void ms_base64_deflated_close(struct ms_base64_deflated *deflated); /* writes what is left */

#endif
