/* limited [handled]: allocates where no file may grow and standard error is a file. Whatever memshim writes
 * fails, and the signal of that is the program's alone: it has its usual effect, or a handler, which gets the
 * one signal that the program itself has waiting. */
#include <signal.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

static volatile sig_atomic_t handled;

static void count(int number)
{
    (void)number;
    handled++;
}

static int allocate(void)
{
    void *block;

    return cudaMalloc(&block, MIB) || cudaFree(block) || cudaMalloc(&block, MIB);
}

int main(int argc, char **argv)
{
    sigset_t limit, pending;

    (void)argv;
    if (argc == 1) {
        if (allocate())
            return 2;
        say("done");
        return 0;
    }
    signal(SIGXFSZ, count);
    sigemptyset(&limit);
    sigaddset(&limit, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &limit, NULL);
    raise(SIGXFSZ);
    if (allocate() || sigpending(&pending))
        return 3;
    say("waiting %d", sigismember(&pending, SIGXFSZ));
    sigprocmask(SIG_UNBLOCK, &limit, NULL);
    if (allocate())
        return 4;
    say("handled %d", (int)handled);
    return 0;
}
