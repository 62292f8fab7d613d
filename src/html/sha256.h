/* sha256.h - SHA-256, by which the page's own script and style are known to the browser (page.c).
 *
 * Floor 4, pure. Reference: FIPS 180-4. */
#ifndef MS_HTML_SHA256_H
#define MS_HTML_SHA256_H

#include <stddef.h>

enum { MS_SHA256_BYTES = 32 };

void ms_sha256(const void *bytes, size_t count, unsigned char digest[MS_SHA256_BYTES]);

#endif
