/* loaded [LIBRARY]: allocates in eight threads and frees. With a library, that is opened first, when threads
 * run. */
#include <pthread.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

enum { THREADS = 8, ROUNDS = 100 };

static pthread_barrier_t begin;

static void *work(void *arg)
{
    void *block;

    (void)arg;
    pthread_barrier_wait(&begin);
    for (int i = 0; i < ROUNDS; i++)
        if (cudaMalloc(&block, 1000) || cudaFree(block))
            return &begin;
    return cudaMalloc(&block, 1000) ? &begin : NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int failed = 0;
    void *result;

    pthread_barrier_init(&begin, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL))
            return 2;
    if (argc > 1 && !dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL))
        say("cannot open: %s", dlerror());
    pthread_barrier_wait(&begin);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &result);
        failed += result != NULL;
    }
    say("failed %d", failed);
    return failed ? 3 : 0;
}
