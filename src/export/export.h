/* export.h - the formats that a report can be written in: one row each in formats.def, one writer each.
 *
 * Floor 4, command line only. A writer takes a model (model.h), and of the report what no model has: figures
 * of devices, the timeline, segments, phases. It prints and checks nothing: whoever opened the output looks
 * whether all could be written. */
#ifndef MS_EXPORT_EXPORT_H
#define MS_EXPORT_EXPORT_H

#include <stdio.h>

#include "export/events.h"
#include "export/model.h"

struct ms_export {
    const struct ms_model *model;
    enum ms_value value;            /* which one a format with a single value has, others show first */
    const struct ms_events *events; /* a recorded trace, or NULL */
};

struct ms_export_format {
    const char *name;
    int (*write)(FILE *out, const struct ms_export *job); /* 0, or -1 without memory */
    bool binary;                                          /* nothing for a terminal */
    bool takes_events;                                    /* a recorded trace says something here */
};

/* Ends with a row whose name is NULL. */
extern const struct ms_export_format ms_export_formats[];

const struct ms_export_format *ms_export_format_find(const char *name);

#define MS_FORMAT(name, function, binary, takes_events, text)                                                \
    int function(FILE *out, const struct ms_export *job);
#include "export/formats.def"
#undef MS_FORMAT

#endif
