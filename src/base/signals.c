/* signals.c - see signals.h. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/signals.h"

void ms_signals_hold(struct ms_signals *held, bool all)
{
    sigset_t ours;
    sigfillset(&ours);
    if (!all) {
        sigemptyset(&ours);
        sigaddset(&ours, SIGXFSZ);
        sigaddset(&ours, SIGPIPE);
    }
    sigemptyset(&held->pending);
    sigpending(&held->pending);
    pthread_sigmask(SIG_BLOCK, &ours, &held->before);
}

void ms_signals_release(const struct ms_signals *held)
{
    const struct timespec at_once = {0, 0};
    int saved_errno = errno;
    sigset_t raised;
    sigemptyset(&raised);
    if (!sigismember(&held->pending, SIGXFSZ))
        sigaddset(&raised, SIGXFSZ);
    if (!sigismember(&held->pending, SIGPIPE))
        sigaddset(&raised, SIGPIPE);
    while (sigtimedwait(&raised, NULL, &at_once) > 0)
        ;
    pthread_sigmask(SIG_SETMASK, &held->before, NULL);
    errno = saved_errno;
}
