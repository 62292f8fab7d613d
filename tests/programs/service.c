/*
 * A small program that uses memory as a service does that answers requests: weights for the whole run,
 * scratch memory for each request, what it keeps of each session. It forgets the sessions of guests, and
 * drops others in an order that leaves holes. docs/user/questions/ asks about it. One thread and no chance:
 * the same in every run.
 *
 * Run: service [REQUESTS] [tidy]     tidy: what is kept for a session lies in one block
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB ((size_t)1 << 20)

enum { LAYERS = 4, PAGES = 6 };

#define TAKE(block_p, bytes)                                                                                 \
    do {                                                                                                     \
        if (cudaMalloc(block_p, bytes) != cudaSuccess) {                                                     \
            fprintf(stderr, "no memory for %zu MiB\n", (bytes) / MIB);                                       \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

__attribute__((noinline)) static void load_weights(void *weights[LAYERS])
{
    for (int i = 0; i < LAYERS; i++)
        TAKE(&weights[i], 48 * MIB);
}

struct session {
    void *pages[PAGES];
};

__attribute__((noinline)) static void open_session(struct session *session, int tidy)
{
    memset(session, 0, sizeof(*session));
    for (int i = 0; i < (tidy ? 1 : PAGES); i++)
        TAKE(&session->pages[i], tidy ? PAGES * MIB : MIB);
}

__attribute__((noinline)) static void *open_guest(void)
{
    void *pages;

    TAKE(&pages, 3 * MIB / 2);
    return pages;
}

/* Every page but the first, which is kept for when the user comes again. */
__attribute__((noinline)) static void close_session(struct session *session)
{
    for (int i = 1; i < PAGES; i++)
        cudaFree(session->pages[i]);
}

__attribute__((noinline)) static void answer(int number)
{
    void *scratch;

    TAKE(&scratch, (size_t)(8 + number % 5 * 4) * MIB);
    cudaMemset(scratch, 0, MIB);
    cudaFree(scratch);
}

int main(int argc, char **argv)
{
    int requests = argc > 1 ? atoi(argv[1]) : 40, tidy = argc > 2;
    struct session *sessions = calloc((size_t)requests + 1, sizeof(*sessions));
    void *weights[LAYERS];

    load_weights(weights);
    for (int i = 0; i < requests && sessions; i++) {
        open_session(&sessions[i], tidy);
        if (i < requests / 4)
            open_guest();
        answer(i);
        if (i >= 8)
            close_session(&sessions[i - 8]);
    }
    for (int i = 0; i < requests && sessions; i++) {
        if (i >= requests - 8)
            close_session(&sessions[i]);
        cudaFree(sessions[i].pages[0]);
    }
    for (int i = 0; i < LAYERS; i++)
        cudaFree(weights[i]);
    free(sessions);
    return 0;
}
