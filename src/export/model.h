/* model.h - a report as pictures and other tools want it: stacks with weights, root first, each frame with
 * one name.
 *
 * Floor 4, above src/report, command line only. Every writer of src/export, and every verb that draws stacks,
 * takes from here what it needs of the sites: none goes through the JSON for them again. Names hold no
 * control characters and are UTF-8, whatever the report says. */
#ifndef MS_EXPORT_MODEL_H
#define MS_EXPORT_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "report/read/read.h"

/** The weight of a stack. */
enum ms_value {
    MS_VALUE_PEAK,     /* held when the device's live bytes were at their most */
    MS_VALUE_LIVE,     /* live at the end of the record */
    MS_VALUE_LEAKED,   /* rows of leaks[] that are leaks: neither suppressed nor a cache */
    MS_VALUE_TOTAL,    /* ever allocated, in bytes */
    MS_VALUE_COUNT,    /* ever allocated, in allocations */
    MS_VALUE_ROUNDING, /* given beyond what was asked for, of live blocks */
    MS_VALUES
};

struct ms_value_name {
    const char *name;  /* as --value spells it */
    const char *title; /* for people */
    const char *unit;  /* "bytes" or "allocations" */
};
extern const struct ms_value_name ms_value_names[MS_VALUES];

/** A frame of any stack: a row of frames[], or one of ours (the device, a folded library, the function that
 * was called). */
struct ms_model_frame {
    const char *name;     /* never empty */
    uint32_t name_id;     /* equal names have one */
    const char *file;     /* "" if not known */
    json_int_t line;      /* 0 if not known */
    const json_t *module; /* its row; NULL of Python and of ours */
    uint64_t rel_pc;      /* in the module's file */
};

struct ms_model_site {
    const json_t *json;
    const struct ms_site_row *row; /* report/read/sites.h */
    size_t first, depth;           /* its frames, root first: model->path[first .. first + depth) */
    size_t device;                 /* row of devices[], SIZE_MAX for none */
    json_int_t values[MS_VALUES];  /* none is negative */
    const char *place;             /* the name of its root frame: "cuda 0", "pinned" */
    const char *api;
};

struct ms_model {
    const struct ms_report *report;
    struct ms_model_frame *frames;
    uint32_t *path; /* numbers of frames */
    struct ms_model_site *sites;
    size_t frame_count, site_count, path_count, name_count;
    struct ms_model_parts *parts; /* how it was made */
};

/** Make the model of a report, which must outlive it and have its names (cli/load.h). A frame that
 * report/analyse/fold.h folds away is left out, and a run of somebody's becomes one frame, "[PyTorch]" say;
 * with `all_frames` none is. Returns 0, or -1 without memory. */
int ms_model_open(struct ms_model *model, const struct ms_report *report, bool all_frames);
void ms_model_close(struct ms_model *model);

/** The value with this name; MS_VALUES if none has it. */
enum ms_value ms_value_find(const char *name);

/** The sum over all sites. */
json_int_t ms_model_sum(const struct ms_model *model, enum ms_value value);

#endif
