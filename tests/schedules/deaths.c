/* deaths.c - a task that dies by a signal has shown a mistake like any other: its schedule fails there, is
 * shrunk and printed, and the next one begins.
 *
 * The handler has a stack of its own, for a task may have left its own behind, and does not return: what the
 * task was doing goes with the schedule. In the child of a fork, and where no task runs, a signal kills. */
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

#include "engine.h"

enum { OWN_STACK_BYTES = 64 << 10 };

static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

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

static void die(int signal, siginfo_t *info, void *context)
{
    if (engine_current() >= 0)
        engine_fail("task %d dies by %s at %p, for %p", engine_current(), strsignal(signal), where(context),
                    signal == SIGABRT ? NULL : info->si_addr);
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(signal, &plain, NULL);
    raise(signal);
}

static __attribute__((constructor)) void begin(void)
{
    static char own_stack[OWN_STACK_BYTES];
    stack_t stack = {.ss_sp = own_stack, .ss_size = sizeof own_stack};
    struct sigaction action = {.sa_sigaction = die, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        sigaction(deadly[i], &action, NULL);
}
