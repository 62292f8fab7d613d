/* formats.c - the table of formats; see export.h.
 *
 * Floor 4. */
#include <string.h>

#include "export/export.h"

const struct ms_export_format ms_export_formats[] = {
#define MS_FORMAT(name, function, binary, takes_events, text) {name, function, binary, takes_events},
#include "export/formats.def"
#undef MS_FORMAT
    {NULL, NULL, false, false},
};

const struct ms_export_format *ms_export_format_find(const char *name)
{
    const struct ms_export_format *format = ms_export_formats;

    while (format->name && strcmp(format->name, name) != 0)
        format++;
    return format->name ? format : NULL;
}
