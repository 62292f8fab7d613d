/* deaths.c - a task that dies by a signal has shown a mistake like any other: its schedule fails there, is
 * shrunk and printed, and the next one begins.
 *
 * The handler has a stack of its own (freeze.c), for a task may have left its own behind, and does not
 * return: what the task was doing goes with the schedule. In the child of a fork, and where no task runs, a
 * signal kills. */
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "deaths.h"
#include "engine.h"

static void *where(const ucontext_t *context)
{
#if defined(__x86_64__)
    return (void *)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (void *)context->uc_mcontext.pc;
#else
    (void)context;
    return NULL;
#endif
}

void death_by(int signal, siginfo_t *info, void *context)
{
    if (engine_current() >= 0)
        engine_fail("task %d dies by %s at %p, for %p", engine_current(), strsignal(signal), where(context),
                    signal == SIGABRT ? NULL : info->si_addr);
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(signal, &plain, NULL); /* it comes again */
    if (signal == SIGABRT)
        raise(signal);
}

/* SIGSEGV is freeze.c's, which hands on what it does not know. */
static __attribute__((constructor)) void begin(void)
{
    static const int deadly[] = {SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction action = {.sa_sigaction = death_by, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        sigaction(deadly[i], &action, NULL);
}
