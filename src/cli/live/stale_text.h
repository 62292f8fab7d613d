/* stale_text.h - ledgers of processes that have ended, as the command tells of them.
 *
 * Floor 5. */
#ifndef MS_CLI_LIVE_STALE_TEXT_H
#define MS_CLI_LIVE_STALE_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include "record/file/stale.h"

struct ms_stale_sum {
    size_t count;
    uint64_t bytes;
};

void ms_stale_add(struct ms_stale_sum *sum, const struct ms_stale *stale);
/** "3 ledgers, 12.0 MiB". */
const char *ms_stale_sum_text(const struct ms_stale_sum *sum, char *text, size_t bytes);
/** One line: where it lies, how much it takes, since when, and what becomes of it. */
void ms_stale_print(FILE *out, const char *directory, const struct ms_stale *stale, const char *fate);
/** Calls `visit` with each directory in which ledgers of this user's may lie: MEMSHIM_DIR, or the usual ones.
 */
void ms_stale_places(void (*visit)(void *arg, const char *directory), void *arg);

#endif
