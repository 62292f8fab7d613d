/* chain_user.c - calls through libchain.so and prints what the chain saw; the same natively and under memshim. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpu/abi/cuda_runtime_fn.h"
#include "tests/hooks/chain.h"


int main(void)
{
    const struct chain_seen *(*query)(void) = (const struct chain_seen *(*)(void))dlsym(RTLD_DEFAULT, "chain_seen");
    void *p = NULL;
    int status = cudaMalloc(&p, 4096);

    printf("malloc %d %s\n", status, p ? "pointer" : "none");
    printf("free %d\n", cudaFree(p));
    printf("atol %ld\n", atol("42"));
    if (query) {
        printf("chain %d %d\n", query()->malloc_calls, query()->atol_calls);
        printf("next atol in libc: %d\n", query()->atol_next && query()->atol_next[3] == 'c');
        fprintf(stderr, "next cudaMalloc in %s\n", query()->malloc_next);
    }
    return 0;
}
