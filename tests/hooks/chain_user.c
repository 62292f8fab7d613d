/* chain_user.c - calls through libchain.so, once or as often as is said, and prints what the chain saw; the
 * same natively and under memshim. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/hooks/chain.h"

int main(int argc, char **argv)
{
    const struct chain_seen *(*query)(void) =
        (const struct chain_seen *(*)(void))dlsym(RTLD_DEFAULT, "chain_seen");
    void *p = NULL;
    int status = cudaMalloc(&p, 4096), more = argc > 1 ? (int)strtol(argv[1], NULL, 10) - 1 : 0;

    printf("malloc %d %s\n", status, p ? "pointer" : "none");
    printf("free %d\n", cudaFree(p));
    for (int i = 0; i < more && cudaMalloc(&p, 4096) == cudaSuccess; i++)
        cudaFree(p);
    printf("atol %ld\n", atol("42"));
    if (query) {
        printf("chain %d %d\n", query()->malloc_calls, query()->atol_calls);
        printf("next atol in libc: %d\n", query()->atol_next && query()->atol_next[3] == 'c');
        fprintf(stderr, "next cudaMalloc in %s\n", query()->malloc_next);
    }
    return 0;
}
