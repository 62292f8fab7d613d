/* diff.h - two reports beside each other, before and after: what is new, gone, grown and shrunk.
 *
 * Floor 5. diff_pair.c says which call sites are the same place in both, diff.c adds up by site, function,
 * owner or phase, diff_text.c writes it, cmd_diff.c is the verb. */
#ifndef MS_CLI_SCREENS_DIFF_H
#define MS_CLI_SCREENS_DIFF_H

#include <stdio.h>

#include "export/model.h"

enum { MS_DIFF_BEFORE, MS_DIFF_AFTER, MS_DIFF_SIDES };

enum ms_diff_value {
    MS_DIFF_PEAK,
    MS_DIFF_LIVE,
    MS_DIFF_LEAKED,
    MS_DIFF_RESERVED, /* live bytes and what was given beyond them; of a device the most that was held */
    MS_DIFF_CALLS,
    MS_DIFF_VALUES
};
extern const char *const ms_diff_values[MS_DIFF_VALUES];

enum ms_diff_by { MS_DIFF_SITE, MS_DIFF_FUNCTION, MS_DIFF_OWNER, MS_DIFF_PHASE, MS_DIFF_BYS };
extern const char *const ms_diff_bys[MS_DIFF_BYS];

enum ms_diff_state { MS_DIFF_NEW, MS_DIFF_GONE, MS_DIFF_GROWN, MS_DIFF_SHRUNK, MS_DIFF_SAME, MS_DIFF_STATES };
extern const char *const ms_diff_states[MS_DIFF_STATES];

struct ms_diff_side {
    const char *path;
    const struct ms_report *report;
    struct ms_model model;
};

struct ms_diff_row {
    char *name[MS_DIFF_SIDES];         /* NULL: not there */
    const json_t *site[MS_DIFF_SIDES]; /* by site alone */
    json_int_t values[MS_DIFF_SIDES][MS_DIFF_VALUES];
    enum ms_diff_state state; /* of the value that was asked for */
};

struct ms_diff {
    struct ms_diff_side side[MS_DIFF_SIDES];
    enum ms_diff_by by;
    enum ms_diff_value value;
    struct ms_diff_row *rows, *devices; /* what grew most first, then what shrank most, then the others */
    size_t count, room, device_count;
    size_t states[MS_DIFF_STATES]; /* how many rows of each */
};

/** Which site of `after` each site of `before` is, by its place in the model: pairs[i], or SIZE_MAX. By the
 * hash; else by the names, files and lines of the stack; by names and files, where lines moved; by names
 * alone, where files did. Several sites of the same names are told apart by their order and the size of their
 * blocks, and where that does not tell they stay alone. 0, or -1 without memory. */
int ms_diff_pair(const struct ms_model *before, const struct ms_model *after, size_t *pairs);

/** Make it of two reports that have their names and outlive it. `diff` says by, value and the paths. 0, or -1
 * without memory. */
int ms_diff_open(struct ms_diff *diff, const struct ms_report *before, const struct ms_report *after,
                 bool all_frames);
void ms_diff_close(struct ms_diff *diff);

json_int_t ms_diff_change(const struct ms_diff_row *row, enum ms_diff_value value);

/** At most `top` rows. */
void ms_diff_put_text(FILE *out, const struct ms_diff *diff, size_t top);
json_t *ms_diff_json(const struct ms_diff *diff, size_t top);

#endif
