/* wanting HOW: weights of 300 MiB are loaded once and held to the end; a cache grows by 100 MiB a step until
 * there is no more. HOW says how it ends then: by exit, as if nothing were ("refused"), or
 * killed. With HOW "few" it ends after six steps. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

static void *held[4096];

__attribute__((noinline)) static void load_weights(void)
{
    if (cudaMalloc(&held[0], 300 * MIB))
        exit(3);
}

__attribute__((noinline)) static int grow_cache(int step)
{
    return cudaMalloc(&held[step], 100 * MIB) == cudaSuccess;
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "exit";
    int step = 1, last = strcmp(how, "few") ? 4000 : 6;

    load_weights();
    while (step <= last && grow_cache(step))
        step++;
    say("steps %d", step);
    if (!strcmp(how, "kill"))
        raise(SIGKILL);
    return strcmp(how, "few") && strcmp(how, "refused") ? 1 : 0;
}
