/* progress.c - see progress.h.
 *
 * Floor 5. */
#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 40 };

void ms_progress_show(const struct ms_progress *progress)
{
    char bar[WIDTH + 1];

    if (isatty(STDERR_FILENO) != 1 || !progress->count)
        return;
    memset(bar, '.', WIDTH);
    memset(bar, '#', WIDTH * progress->done / progress->count);
    bar[WIDTH] = '\0';
    if (progress->done < progress->count)
        fprintf(stderr, "\r[%s] %zu of %zu %s", bar, progress->done, progress->count, progress->what);
    else
        fprintf(stderr, "\r%*s\r", WIDTH + 39, "");
}

void ms_progress_step(struct ms_progress *progress)
{
    progress->done++;
    ms_progress_show(progress);
}
