/* gzip.h - bytes as a gzip file.
 *
 * Floor 4, command line only: zlib, which libdw needs anyway. */
#ifndef MS_EXPORT_GZIP_H
#define MS_EXPORT_GZIP_H

#include <stddef.h>
#include <stdio.h>

/** Returns 0, or -1 without memory. The same bytes always make the same file: no name and no time is in it.
 */
int ms_gzip_write(FILE *out, const unsigned char *bytes, size_t count);

#endif
