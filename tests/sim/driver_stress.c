/*
 * The simulated driver under load: threads that allocate, fill, copy, check and free in every way at once, on
 * streams of their own, with jitter. Every byte that is read back must be the one that was written, and
 * nothing may be left.
 */
#include "driver.h"

enum { THREADS = 6, ROUNDS = 60, MOST = 3 << 20 };

static CUcontext shared;
static CUmemoryPool pool;
static atomic_int wrong;

struct worker {
    pthread_t thread;
    unsigned seed;
    CUstream stream;
    unsigned char *host;
};

static unsigned next(struct worker *w, unsigned limit)
{
    w->seed = w->seed * 1664525 + 1013904223;
    return (w->seed >> 8) % limit;
}

/* Fills memory, moves it through a second block and looks at the end of it. */
static void use(struct worker *w, CUdeviceptr p, CUdeviceptr q, size_t bytes)
{
    unsigned char value = (unsigned char)next(w, 256);

    must(cuMemsetD8Async(p, value, bytes, w->stream));
    must(cuMemcpyDtoDAsync_v2(q, p, bytes, w->stream));
    must(cuMemsetD8Async(p, (unsigned char)~value, bytes, w->stream));
    must(cuMemcpyDtoHAsync_v2(w->host, q, bytes, w->stream));
    must(cuStreamSynchronize(w->stream));
    if (w->host[0] != value || w->host[bytes - 1] != value || w->host[bytes / 2] != value)
        atomic_fetch_add(&wrong, 1);
}

static void plain(struct worker *w)
{
    size_t bytes = 1 + next(w, next(w, 2) ? MOST : 8192);
    CUdeviceptr p, q;

    must(cuMemAlloc_v2(&p, bytes));
    must(cuMemAlloc_v2(&q, bytes));
    use(w, p, q, bytes);
    must(cuMemFree_v2(p));
    must(cuMemFree_v2(q));
}

static void ordered(struct worker *w)
{
    size_t bytes = 1 + next(w, MOST);
    CUdeviceptr p, q;

    must(cuMemAllocFromPoolAsync(&p, bytes, pool, w->stream));
    must(cuMemAllocAsync(&q, bytes, w->stream));
    use(w, p, q, bytes);
    must(cuMemFreeAsync(p, w->stream));
    must(cuMemFreeAsync(q, w->stream));
}

static void mapped(struct worker *w)
{
    static const CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    static const CUmemAccessDesc access_all = {{CU_MEM_LOCATION_TYPE_DEVICE, 0},
                                               CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;

    must(cuMemCreate(&handle, 4 * MIB, &prop, 0));
    must(cuMemAddressReserve(&p, 4 * MIB, 0, 0, 0));
    must(cuMemMap(p, 4 * MIB, 0, handle, 0));
    must(cuMemRelease(handle));
    must(cuMemSetAccess(p, 4 * MIB, &access_all, 1));
    use(w, p, p + 2 * MIB, 1 + next(w, 2 * MIB));
    must(cuMemUnmap(p, 4 * MIB));
    must(cuMemAddressFree(p, 4 * MIB));
}

static void *work(void *data)
{
    struct worker *w = data;

    must(cuCtxSetCurrent(shared));
    must(cuStreamCreate(&w->stream, w->seed % 2 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    must(cuMemHostAlloc((void **)&w->host, MOST, 0));
    for (int i = 0; i < ROUNDS; i++) {
        unsigned kind = next(w, 8);
        if (kind < 3)
            plain(w);
        else if (kind < 6)
            ordered(w);
        else
            mapped(w);
    }
    must(cuMemFreeHost(w->host));
    must(cuStreamDestroy_v2(w->stream));
    return NULL;
}

static void *visitor(void *data)
{
    CUdeviceptr p;

    (void)data;
    must(cuCtxSetCurrent(shared));
    must(cuMemAllocAsync_ptsz(&p, 4096, NULL));
    must(cuMemsetD8Async_ptsz(p, 1, 4096, NULL));
    must(cuMemFreeAsync_ptsz(p, NULL));
    return NULL;
}

/* Threads that come, use their own default stream and go, while it may still have work. */
static void short_lived(void)
{
    pthread_t threads[8];

    for (int round = 0; round < 25; round++) {
        for (int i = 0; i < 8; i++)
            pthread_create(&threads[i], NULL, visitor, NULL);
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
    }
}

int main(void)
{
    struct worker workers[THREADS] = {{0}};
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    size_t left, total;

    plan(0);
    setenv("MEMSIM_SEED", "7", 1);
    setenv("MEMSIM_MEMORY", "1G", 1);
    shared = begin();
    must(cuMemPoolCreate(&pool, &props));
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].seed = i + 1;
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    is_int(atomic_load(&wrong), 0, "every byte is the one that was written");
    short_lived();
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
    must(cuMemPoolDestroy(pool));
    must(cuMemGetInfo_v2(&left, &total));
    is_u64(left, total, "nothing is left");
    /* work is under way when the process ends: that must neither hang nor crash */
    CUdeviceptr p;
    must(cuMemAlloc_v2(&p, 64 * MIB));
    for (int i = 0; i < 20; i++)
        must(cuMemsetD8Async(p, 1, 64 * MIB, NULL));
    return done();
}
