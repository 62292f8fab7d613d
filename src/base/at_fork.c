/* at_fork.c - see at_fork.h.
 *
 * Floor 0. */
#include "base/at_fork.h"

/* The ends of the section into which the linker puts the lines of MS_AT_FORK; both addresses are 0 in a
 * program that has none. */
extern const struct ms_at_fork begin[] __asm__("__start_ms_at_fork")
    __attribute__((weak, visibility("hidden")));
extern const struct ms_at_fork end[] __asm__("__stop_ms_at_fork") __attribute__((weak, visibility("hidden")));

void ms_at_fork_run(enum ms_fork_rank rank)
{
    for (const struct ms_at_fork *line = begin; line < end; line++) {
        if (line->rank == rank)
            line->begin_anew();
    }
}
