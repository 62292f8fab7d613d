/* replay_form.h - what the command and the replayer have in common: the course in a file, and whose calls are
 * counted.
 *
 * Floor 5. Both are of one build. */
#ifndef MS_CLI_TUNE_REPLAY_FORM_H
#define MS_CLI_TUNE_REPLAY_FORM_H

#include "cli/tune/course.h"

/* The file: this, and then the events. */
struct ms_replay_head {
    uint64_t event_count;
    uint32_t block_count, device_count;
    struct ms_course_stream streams[MS_COURSE_STREAMS];
};

/* The functions of the driver's whose calls are told, as costs.def has them. */
enum ms_cost_row {
#define MS_COST(function, what, call, move, gib) MS_COST_##function,
#include "cli/tune/costs.def"
#undef MS_COST
    MS_COST_ROWS
};

/* Calls of one of them: how often, how often it took of the device or gave back, and how much. */
struct ms_replay_calls {
    uint64_t calls, moves, bytes;
};

#endif
