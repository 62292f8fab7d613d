/*
 * The simulated driver: threads that allocate from one pool on streams of their own, fill, hand over to each
 * other with events, check and free. Memory that was given to two at once would show another's words.
 */
#include <stdlib.h>

#include "driver.h"
#include "kernels.h"

enum { THREADS = 4, ROUNDS = 150, WORDS = 1024, SLOTS = 8 };

struct parcel {
    CUdeviceptr words;
    uint32_t value;
    CUevent filled;
};

static CUcontext primary;
static CUmemoryPool pool;
static CUfunction hold_kernel, fill_kernel, sum_kernel;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct parcel slots[SLOTS];
static unsigned filled_slots;
static atomic_int wrong;

static CUresult launch(CUfunction kernel, CUstream stream, uint64_t a, uint64_t b, uint64_t c)
{
    void *arguments[] = {&a, &b, &c};

    return cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

/* Takes what another thread has left, or leaves it there; false if there is no room, or nothing. */
static bool leave(const struct parcel *parcel)
{
    pthread_mutex_lock(&lock);
    bool room = filled_slots < SLOTS;
    if (room)
        slots[filled_slots++] = *parcel;
    pthread_mutex_unlock(&lock);
    return room;
}

static bool take(struct parcel *parcel)
{
    pthread_mutex_lock(&lock);
    bool any = filled_slots > 0;
    if (any)
        *parcel = slots[--filled_slots];
    pthread_mutex_unlock(&lock);
    return any;
}

/* Sums the words up on the stream after a while, frees them there, and looks at the sum later. */
static void finish(struct parcel *parcel, CUstream stream, uint64_t *sum)
{
    must(cuStreamWaitEvent(stream, parcel->filled, 0));
    *sum = 0;
    must(launch(hold_kernel, stream, (uintptr_t)sum, 1, 100000));
    must(launch(sum_kernel, stream, parcel->words, WORDS, (uintptr_t)sum));
    must(cuMemFreeAsync(parcel->words, stream));
    must(cuStreamSynchronize(stream));
    if (*sum != (uint64_t)parcel->value * WORDS)
        atomic_fetch_add(&wrong, 1);
    must(cuEventDestroy_v2(parcel->filled));
}

static void *work(void *argument)
{
    uint32_t value = (uint32_t)(uintptr_t)argument * 100000;
    struct parcel parcel;
    CUstream stream;
    uint64_t *sum;

    must(cuCtxSetCurrent(primary));
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuMemHostAlloc((void **)&sum, sizeof *sum, 0));
    for (int i = 0; i < ROUNDS; i++) {
        parcel.value = ++value;
        must(cuEventCreate(&parcel.filled, CU_EVENT_DISABLE_TIMING));
        must(cuMemAllocFromPoolAsync(&parcel.words, WORDS * 4, pool, stream));
        must(launch(fill_kernel, stream, parcel.words, parcel.value, WORDS));
        must(cuEventRecord(parcel.filled, stream));
        if (!leave(&parcel))
            finish(&parcel, stream, sum);
        if (i % 3 == 0 && take(&parcel))
            finish(&parcel, stream, sum);
    }
    must(cuStreamSynchronize(stream));
    must(cuStreamDestroy_v2(stream));
    return NULL;
}

static void round_of(const char *what, int follow, int opportunistic, int internal)
{
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    pthread_t threads[THREADS];
    cuuint64_t used = 1;
    struct parcel parcel;

    must(cuMemPoolCreate(&pool, &props));
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, &follow));
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &opportunistic));
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &internal));
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)(i + 1)))
            bail("no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    must(cuCtxSynchronize());
    while (take(&parcel)) {
        must(cuMemFree_v2(parcel.words));
        must(cuEventDestroy_v2(parcel.filled));
    }
    is_int(atomic_load(&wrong), 0, "%s: nobody saw another's words", what);
    must(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    is_u64(used, 0, "%s: all is free again", what);
    must(cuMemPoolDestroy(pool));
}

int main(void)
{
    CUmodule module;

    plan(0);
    primary = begin();
    must(cuModuleLoadData(&module, kernels_ptx));
    must(cuModuleGetFunction(&hold_kernel, module, "memsim_hold"));
    must(cuModuleGetFunction(&fill_kernel, module, "memsim_fill"));
    must(cuModuleGetFunction(&sum_kernel, module, "memsim_sum"));
    round_of("every policy", 1, 1, 1);
    round_of("by order alone", 1, 0, 0);
    round_of("by chance alone", 0, 1, 0);
    round_of("not at all", 0, 0, 0);
    return done();
}
