/* signals.h - signals that writing can raise, held back from the host.
 *
 * Floor 0. SIGXFSZ at a limit on the size of files, SIGPIPE at a pipe without a reader: both end a program
 * that never wrote there itself. So whatever of ours writes in a host does it between these two. */
#ifndef MS_BASE_SIGNALS_H
#define MS_BASE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

struct ms_signals {
    sigset_t before, pending;
};

/** Blocks them in the calling thread; with `all`, every signal, where no handler may run either. */
void ms_signals_hold(struct ms_signals *held, bool all);
/** Takes away what was raised meanwhile of the two, and nothing that was pending before; then the thread's
 * mask is what it was. errno stays. */
void ms_signals_release(const struct ms_signals *held);

#endif
