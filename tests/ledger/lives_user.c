/* lives_user.c - threads that allocate, copy and free, for MEMSHIM_USES: what of it lies idle is known.
 *
 * usage: lives_user end|kill|fork|exec|full. THREADS threads each take a block that is never used and one
 * that is, and meet; then each takes ROUNDS small blocks, all of which it uses in several ways, and frees
 * them. `kill`: without end. `fork`: a child does the same once more. `exec`: the program becomes itself with
 * `end`. `full`: besides as many blocks as the record has room for, and some more. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime_fn.h"

enum { THREADS = 8, ROUNDS = 200, LARGE = 16 << 20, SMALL = 4096, LIVES_MAX = 1 << 21 };

static void must(int status, const char *what)
{
    if (status) {
        fprintf(stderr, "%s: %d\n", what, status);
        _exit(3);
    }
}
#define MUST(call) must((int)(call), #call)

static pthread_barrier_t all_are_here;
static bool is_endless;
static void *used[THREADS], *unused[THREADS];

__attribute__((noinline)) static void *take_unused(void)
{
    void *p = NULL;

    MUST(cudaMalloc(&p, LARGE));
    __asm__ volatile("");
    return p;
}

__attribute__((noinline)) static void *take_used(size_t bytes)
{
    void *p = NULL;

    MUST(cudaMalloc(&p, bytes));
    MUST(cudaMemset(p, 1, bytes));
    return p;
}

/* Others copy from this thread's block meanwhile. */
static void turn(unsigned number, unsigned i)
{
    char *p = take_used(SMALL);

    MUST(cudaMemcpy(p, used[(number + i) % THREADS], SMALL, cudaMemcpyDeviceToDevice));
    MUST(cudaMemcpy((char *)used[number] + SMALL, p + SMALL / 2, SMALL / 2, cudaMemcpyDeviceToDevice));
    MUST(cudaFree(p));
}

static void *work(void *arg)
{
    unsigned number = (unsigned)(uintptr_t)arg;

    unused[number] = take_unused();
    used[number] = take_used(LARGE);
    if (pthread_barrier_wait(&all_are_here) == PTHREAD_BARRIER_SERIAL_THREAD && is_endless) {
        puts("all are here");
        fflush(stdout);
    }
    for (unsigned i = 0; is_endless || i < ROUNDS; i++)
        turn(number, i);
    return NULL;
}

static void free_all(void)
{
    for (unsigned i = 0; i < THREADS; i++) {
        MUST(cudaFree(unused[i]));
        MUST(cudaFree(used[i]));
    }
}

static void run_threads(void)
{
    pthread_t threads[THREADS];

    pthread_barrier_init(&all_are_here, NULL, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, work, (void *)i));
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < THREADS; i++) /* behind the peak, whichever thread was the last to make one */
        MUST(cudaMemset(used[i], 2, SMALL));
}

/* What a process began with CUDA is of no use in its child: so before that. */
static void play_in_child(void)
{
    int status = 0;
    pid_t child = fork();

    MUST(child < 0 || (child > 0 && (waitpid(child, &status, 0) != child || status != 0)));
}

int main(int argc, char **argv)
{
    const char *how = argc == 2 ? argv[1] : "";

    is_endless = strcmp(how, "kill") == 0;
    if (strcmp(how, "fork") == 0)
        play_in_child();
    run_threads();
    if (strcmp(how, "exec") == 0)
        execl(argv[0], argv[0], "end", (char *)NULL);
    for (int i = 0; strcmp(how, "full") == 0 && i < LIVES_MAX; i++) {
        void *p = NULL;
        MUST(cudaMalloc(&p, SMALL));
        MUST(cudaFree(p));
    }
    free_all();
    return 0;
}
