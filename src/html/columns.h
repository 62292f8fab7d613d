/* columns.h - a report as the page carries it: a head of JSON and columns of numbers.
 *
 * Floor 4, command line only. docs/user/html.md describes the bytes. A column lies by planes, the lowest
 * byte of every number first: equal bytes beside each other are what deflate likes. */
#ifndef MS_HTML_COLUMNS_H
#define MS_HTML_COLUMNS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "export/wire.h"
#include "html/base64.h"

struct ms_columns {
    struct ms_wire bytes; /* of all columns */
    json_t *directory;    /* [name, bytes of a number, how many], in their order */
};

int ms_columns_open(struct ms_columns *columns); /* 0, or -1 without memory */
void ms_columns_close(struct ms_columns *columns);

/** Numbers of 1, 4 or 8 bytes; those of 8 have a sign. */
void ms_columns_put(struct ms_columns *columns, const char *name, const void *numbers, size_t bytes,
                    size_t count);

/** The whole as the page has it: `head` gets the directory as "columns". Returns 0, or -1 without memory,
 * also if a column was lost. */
int ms_columns_write(struct ms_columns *columns, json_t *head, struct ms_base64_deflated *out);

#endif
