/*
 * reuse.c - known numbers of requests, by what answers them, for the report. Nothing here depends on how
 * fast anything is.
 *
 * Arguments: what to play: "again", "across", "borrow", "lend", "turns", or "killed", which is "across" and
 * then SIGKILL.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB ((size_t)1 << 20)

static cudaMemPool_t pool;
static cudaStream_t a, b;

static void must(int status, const char *what)
{
    if (status) {
        printf("%s %d\n", what, status);
        exit(3);
    }
}

static void make_pool(void)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 0}};
    uint64_t keep = UINT64_MAX;

    must((int)cudaMemPoolCreate(&pool, &props), "pool");
    must((int)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep), "threshold");
}

static void *take(size_t bytes, cudaStream_t stream)
{
    void *p = NULL;

    must((int)cudaMallocFromPoolAsync(&p, bytes, pool, stream), "take");
    return p;
}

static void give(void *p, cudaStream_t stream)
{
    must((int)cudaFreeAsync(p, stream), "give");
}

static void sync_all(void)
{
    must((int)cudaDeviceSynchronize(), "sync");
}

/* One is new, nine are what the stream has freed. */
static void again(void)
{
    for (int i = 0; i < 10; i++)
        give(take(3 * MIB, a), a);
}

/* Two of the stream's blocks are freed on the other one, and come home. */
static void across(void)
{
    void *p = take(2 * MIB, a), *q = take(2 * MIB, a);

    give(p, b);
    give(q, b);
    sync_all();
    give(take(2 * MIB, a), a);
}

/* Much lies idle with the one stream when the other asks. */
static void borrow(void)
{
    give(take(64 * MIB, a), a);
    sync_all();
    give(take(32 * MIB, b), b);
}

/* Much lies idle beside a block that is in use; what was freed where it is another's is used again there at
 * once. */
static void lend(void)
{
    give(take(26 * MIB, a), a);
    void *stays = take(2 * MIB, a);

    sync_all();
    for (int i = 0; i < 3; i++)
        give(take(8 * MIB, b), b);
    give(stays, a);
}

/* Five pools one after another, with the same requests in each. */
static void turns(void)
{
    for (int i = 0; i < 5; i++) {
        if (i)
            make_pool();
        again();
        across();
        sync_all();
        must((int)cudaMemPoolDestroy(pool), "destroy");
    }
}

/* The ledger hears of the figures at a wait of the program's, and not at each. */
static void killed(void)
{
    across();
    for (int i = 0; i < 3; i++) {
        usleep(20000);
        sync_all();
    }
    raise(SIGKILL);
}

static const struct {
    const char *name;
    void (*play)(void);
} scenes[] = {{"again", again}, {"across", across}, {"borrow", borrow},
              {"lend", lend},   {"turns", turns},   {"killed", killed}};

int main(int argc, char **argv)
{
    must((int)cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking), "stream");
    must((int)cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking), "stream");
    make_pool();
    for (size_t i = 0; argc > 1 && i < sizeof scenes / sizeof *scenes; i++) {
        if (!strcmp(argv[1], scenes[i].name))
            scenes[i].play();
    }
    sync_all();
    return 0;
}
