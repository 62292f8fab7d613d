/* progress.h - how far a verb is that takes long, as a bar on standard error where that is a terminal.
 *
 * Floor 5. */
#ifndef MS_CLI_PROGRESS_H
#define MS_CLI_PROGRESS_H

#include <stddef.h>

struct ms_progress {
    size_t done, count;
    const char *what; /* is counted: "replays" */
};

/** One more is done; `count` may have grown meanwhile. The bar goes where all are done. */
void ms_progress_step(struct ms_progress *progress);
/** The bar, also where none is done yet. */
void ms_progress_show(const struct ms_progress *progress);

#endif
