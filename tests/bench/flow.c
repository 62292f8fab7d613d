/* flow.c - the calls whose way through the library scripts/bench flows follows: each in a function of its
 * own, behind as many of the same as it takes to have everything at hand.
 *
 * usage: flow hit|queued|pool|ledger. `queued` frees while its stream has work, and asks for memory until it
 * has the block again. `ledger` has blocks of several call sites and is killed. */
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "vendor/abi/cuda_runtime_fn.h"

enum { BYTES = 4096, WARM = 400, CALLS = 20000, MOST = 4000 };

static cudaStream_t stream;
static cudaMemPool_t pool;
static atomic_bool may_go;

static void *take(void)
{
    void *block = NULL;
    cudaMalloc(&block, BYTES);
    return block;
}

static void *take_of_pool(void)
{
    void *block = NULL;
    cudaMallocFromPoolAsync(&block, BYTES, pool, stream);
    return block;
}

static __attribute__((noinline)) void *flow_hit(void)
{
    return take();
}

static __attribute__((noinline)) void *flow_pool(void)
{
    return take_of_pool();
}

static __attribute__((noinline)) int flow_queued_free(void *block)
{
    return cudaFree(block);
}

static __attribute__((noinline)) void *flow_queued_again(void)
{
    return take();
}

static int hit(void)
{
    for (int i = 0; i < WARM + CALLS; i++)
        cudaFree(i < WARM ? take() : flow_hit());
    return 0;
}

static int from_pool(void)
{
    for (int i = 0; i < WARM + CALLS; i++)
        cudaFreeAsync(i < WARM ? take_of_pool() : flow_pool(), stream);
    return 0;
}

static void hold(void *arg)
{
    const struct timespec nap = {0, 1000000};
    (void)arg;
    while (!atomic_load(&may_go))
        nanosleep(&nap, NULL);
}

static int queued(void)
{
    for (int i = 0; i < WARM; i++)
        cudaFree(take());
    void *block = take();
    if (cudaLaunchHostFunc(stream, hold, NULL) != cudaSuccess || flow_queued_free(block) != 0)
        return 1;
    atomic_store(&may_go, true);
    while (cudaStreamQuery(stream) != cudaSuccess)
        ;
    for (int i = 0; i < MOST; i++)
        if (flow_queued_again() == block)
            return 0;
    return 1;
}

static int ledger(void)
{
    for (int i = 0; i < WARM; i++) {
        take();
        cudaFree(take());
    }
    take_of_pool();
    return raise(SIGKILL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } flows[] = {{"hit", hit}, {"queued", queued}, {"pool", from_pool}, {"ledger", ledger}};
    struct cudaMemPoolProps props = {0};

    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    if (argc != 2 || cudaSetDevice(0) != cudaSuccess || cudaMemPoolCreate(&pool, &props) != cudaSuccess ||
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
        return 2;
    for (size_t i = 0; i < sizeof flows / sizeof *flows; i++)
        if (!strcmp(argv[1], flows[i].name))
            return flows[i].run();
    fprintf(stderr, "usage: flow hit|queued|pool|ledger\n");
    return 2;
}
