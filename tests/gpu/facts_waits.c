/*
 * facts_waits.c: question 5: which calls come back only when work that was pending is over, and what a
 * context that has failed still answers.
 */
#include "facts.h"

#include <pthread.h>
#include <stdlib.h>

struct subject {
    void *p;
    cudaStream_t other; /* a stream that is not held */
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;
    CUmemAllocationProp prop;
    size_t granule;
};

static struct subject subject;

static void get_large(void *data)
{
    (void)data;
    kit_must(cudaMalloc(&subject.p, 8 * KIT_MIB));
}

static void get_small(void *data)
{
    (void)data;
    kit_must(cudaMalloc(&subject.p, 512));
}

static void get_pinned(void *data)
{
    (void)data;
    kit_must(cudaMallocHost(&subject.p, KIT_MIB));
}

static void get_async(void *data)
{
    (void)data;
    kit_must(cudaMallocAsync(&subject.p, KIT_MIB, subject.other));
    kit_must(cudaStreamSynchronize(subject.other));
}

static void get_stream(void *data)
{
    (void)data;
    kit_must(cuStreamCreate((CUstream *)&subject.p, CU_STREAM_NON_BLOCKING));
}

static void get_handle(void *data)
{
    (void)data;
    kit_must(cuMemCreate(&subject.handle, subject.granule, &subject.prop, 0));
}

static void get_mapped(void *data)
{
    CUmemAccessDesc access = {.location = subject.prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    get_handle(data);
    kit_must(cuMemMap(subject.address, subject.granule, 0, subject.handle, 0));
    kit_must(cuMemSetAccess(subject.address, subject.granule, &access, 1));
}

static void call_free(void *data)
{
    (void)data;
    kit_must(cudaFree(subject.p));
}

static void call_driver_free(void *data)
{
    (void)data;
    kit_must(cuMemFree_v2((uintptr_t)subject.p));
}

static void call_free_null(void *data)
{
    (void)data;
    kit_must(cudaFree(NULL));
}

static void call_free_host(void *data)
{
    (void)data;
    kit_must(cudaFreeHost(subject.p));
}

static void call_free_async(void *data)
{
    (void)data;
    kit_must(cudaFreeAsync(subject.p, subject.other));
}

static void call_malloc(void *data)
{
    get_small(data);
}

static void call_malloc_large(void *data)
{
    (void)data;
    kit_must(cudaMalloc(&subject.p, 64 * KIT_MIB));
}

static void call_malloc_async(void *data)
{
    (void)data;
    kit_must(cudaMallocAsync(&subject.p, KIT_MIB, subject.other));
}

static void call_malloc_host(void *data)
{
    get_pinned(data);
}

static void call_create(void *data)
{
    get_handle(data);
}

static void call_map(void *data)
{
    CUmemAccessDesc access = {.location = subject.prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

    (void)data;
    kit_must(cuMemMap(subject.address, subject.granule, 0, subject.handle, 0));
    kit_must(cuMemSetAccess(subject.address, subject.granule, &access, 1));
}

static void call_unmap(void *data)
{
    (void)data;
    kit_must(cuMemUnmap(subject.address, subject.granule));
}

static void call_release(void *data)
{
    (void)data;
    kit_must(cuMemRelease(subject.handle));
}

static void unmap_and_release(void *data)
{
    call_unmap(data);
    call_release(data);
}

static void call_destroy_stream(void *data)
{
    (void)data;
    kit_must(cuStreamDestroy_v2(subject.p));
}

static void call_export(void *data)
{
    CUipcMemHandle handle;

    (void)data;
    cuIpcGetMemHandle(&handle, (uintptr_t)subject.p); /* whether it may be exported is question 10 */
}

/* --- cudaFree, by what is held -------------------------------------------------------------------------- */

static const struct kit_question question_free = {get_large, call_free, NULL, NULL};

struct elsewhere {
    pthread_barrier_t held, over;
    struct kit_hold hold;
};

/* Holds this thread's own per-thread stream, then waits for it: the stream of a thread that lives. */
static void *hold_in_thread(void *data)
{
    struct elsewhere *it = data;
    CUcontext ctx;

    kit_must(cuDevicePrimaryCtxRetain(&ctx, 0));
    kit_must(cuCtxSetCurrent(ctx));
    kit_must(kit_hold(&it->hold, CU_STREAM_PER_THREAD));
    pthread_barrier_wait(&it->held);
    pthread_barrier_wait(&it->over);
    kit_must(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    return NULL;
}

static void *release_later(void *data)
{
    struct elsewhere *it = data;

    kit_pause_ms(400);
    kit_release(&it->hold);
    return NULL;
}

static void waits_for_other_thread(void)
{
    struct elsewhere it;
    pthread_t holder, releaser;

    pthread_barrier_init(&it.held, NULL, 2);
    pthread_barrier_init(&it.over, NULL, 2);
    get_large(NULL);
    if (pthread_create(&holder, NULL, hold_in_thread, &it) != 0)
        kit_give_up("no thread could be started");
    pthread_barrier_wait(&it.held);
    if (pthread_create(&releaser, NULL, release_later, &it) != 0)
        kit_give_up("no thread could be started");
    call_free(NULL);
    bool released = atomic_load(&it.hold.released);
    pthread_join(releaser, NULL);
    pthread_barrier_wait(&it.over);
    pthread_join(holder, NULL);
    fact(cudaFree_waits_other_threads_stream, "%s", released ? "yes" : "no");
}

struct foreign {
    CUcontext ctx, own;
    CUstream stream;
    struct kit_hold hold;
};

/* The stream that is held belongs to another context; what is freed does not. */
static const char *waits_for_foreign(struct foreign *it)
{
    pthread_t releaser;
    struct elsewhere later;

    kit_must(cuCtxSetCurrent(it->own));
    get_large(NULL);
    kit_must(cuCtxSetCurrent(it->ctx));
    kit_must(cuStreamCreate(&it->stream, CU_STREAM_NON_BLOCKING));
    /* A kernel belongs to one context, so here the stream waits for a value. */
    enum kit_hold_kind kind = kit_hold_kind();
    kit_hold_use(KIT_HOLD_VALUE);
    CUresult status = kit_hold(&later.hold, it->stream);
    kit_hold_use(kind);
    kit_must(cuCtxSetCurrent(it->own));
    if (status != CUDA_SUCCESS) {
        call_free(NULL);
        return "- streams cannot wait for values here";
    }
    if (pthread_create(&releaser, NULL, release_later, &later) != 0)
        kit_give_up("no thread could be started");
    call_free(NULL);
    bool released = atomic_load(&later.hold.released);
    pthread_join(releaser, NULL);
    kit_must(cuCtxSetCurrent(it->ctx));
    kit_must(cuStreamSynchronize(it->stream));
    kit_must(cuStreamDestroy_v2(it->stream));
    kit_must(cuCtxSetCurrent(it->own));
    return released ? "yes" : "no";
}

static void foreign_contexts(CUcontext own)
{
    struct foreign it = {.own = own};

    if (cuCtxCreate_v2(&it.ctx, 0, 0) == CUDA_SUCCESS) {
        fact(cudaFree_waits_other_context, "%s", waits_for_foreign(&it));
        kit_must(cuCtxDestroy_v2(it.ctx));
        kit_must(cuCtxSetCurrent(own));
    } else {
        fact(cudaFree_waits_other_context, "- a second context cannot be made");
    }
    if (kit_devices() < 2) {
        fact(cudaFree_waits_other_device, "- it takes two devices");
        return;
    }
    kit_must(cuDevicePrimaryCtxRetain(&it.ctx, 1));
    fact(cudaFree_waits_other_device, "%s", waits_for_foreign(&it));
    kit_must(cuDevicePrimaryCtxRelease_v2(1));
}

/* --- other calls ---------------------------------------------------------------------------------------- */

static void other_calls(CUstream held)
{
    static const struct {
        enum fact_id id;
        struct kit_question question;
    } calls[] = {
        {FACT_cuMemFree_waits_nonblocking_stream, {get_large, call_driver_free, NULL, NULL}},
        {FACT_cudaFree_of_small_block_waits, {get_small, call_free, NULL, NULL}},
        {FACT_cudaFree_null_waits, {NULL, call_free_null, NULL, NULL}},
        {FACT_cudaFreeHost_waits, {get_pinned, call_free_host, NULL, NULL}},
        {FACT_cudaFreeAsync_waits, {get_async, call_free_async, NULL, NULL}},
        {FACT_cudaMalloc_waits, {NULL, call_malloc, call_free, NULL}},
        {FACT_cudaMalloc_large_waits, {NULL, call_malloc_large, call_free, NULL}},
        {FACT_cudaMallocAsync_waits, {NULL, call_malloc_async, call_free_async, NULL}},
        {FACT_cudaMallocHost_waits, {NULL, call_malloc_host, call_free_host, NULL}},
        {FACT_cuMemCreate_waits, {NULL, call_create, call_release, NULL}},
        {FACT_cuMemMap_waits, {get_handle, call_map, unmap_and_release, NULL}},
        {FACT_cuMemUnmap_waits, {get_mapped, call_unmap, call_release, NULL}},
        {FACT_cuMemRelease_waits, {get_handle, call_release, NULL, NULL}},
        {FACT_cuStreamDestroy_waits, {get_stream, call_destroy_stream, NULL, NULL}},
        {FACT_cuIpcGetMemHandle_waits, {get_large, call_export, call_free, NULL}},
    };

    subject.prop = (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                         .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    kit_must(
        cuMemGetAllocationGranularity(&subject.granule, &subject.prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    kit_must(cuMemAddressReserve(&subject.address, subject.granule, 0, 0, 0));
    kit_must(cudaStreamCreateWithFlags(&subject.other, cudaStreamNonBlocking));
    for (size_t i = 0; i < KIT_COUNT(calls); i++)
        fact_say(calls[i].id, "%s", kit_waits(held, &calls[i].question));
}

void facts_waits(int argc, char **argv)
{
    CUcontext own = kit_begin();
    CUstream blocking, nonblocking;

    (void)argc;
    (void)argv;
    kit_must(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    kit_must(cuStreamCreate(&nonblocking, CU_STREAM_NON_BLOCKING));
    if (kit_hold_kind() == KIT_HOLD_NONE)
        kit_give_up("neither kernels nor waits for values hold a stream here");
    fact(cudaFree_waits_legacy_stream, "%s", kit_waits(CU_STREAM_LEGACY, &question_free));
    fact(cudaFree_waits_blocking_stream, "%s", kit_waits(blocking, &question_free));
    fact(cudaFree_waits_nonblocking_stream, "%s", kit_waits(nonblocking, &question_free));
    fact(cudaFree_waits_per_thread_stream, "%s", kit_waits(CU_STREAM_PER_THREAD, &question_free));
    waits_for_other_thread();
    foreign_contexts(own);
    other_calls(nonblocking);
}

/* --- a context that has failed -------------------------------------------------------------------------- */

/* A kernel that writes where nothing is: 700 on hardware. */
static CUresult break_context(void)
{
    CUresult status = kit_fill(16, 1, 1, NULL);

    return status != CUDA_SUCCESS ? status : cuCtxSynchronize();
}

void facts_sticky(int argc, char **argv)
{
    CUdeviceptr d = 0, fresh = 1;
    CUevent event;
    size_t left, total;
    void *p = (void *)1;

    (void)argc;
    (void)argv;
    kit_begin();
    kit_must(cuMemAlloc_v2(&d, KIT_MIB));
    kit_must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    kit_must(cuEventRecord(event, NULL));
    kit_must(cuCtxSynchronize());
    if (break_context() == CUDA_SUCCESS)
        kit_give_up("a kernel that writes nowhere was no error");
    CUresult status = cuMemAlloc_v2(&fresh, KIT_MIB);
    fact(cuMemAlloc_after_sticky_error, "%s", fact_status((int)status, (void *)(uintptr_t)fresh));
    fact(cuMemFree_after_sticky_error, "status %d", (int)cuMemFree_v2(d));
    status = (CUresult)cudaMalloc(&p, KIT_MIB);
    fact(cudaMalloc_after_sticky_error, "%s", fact_status((int)status, p));
    fact(cuMemGetInfo_after_sticky_error, "status %d", (int)cuMemGetInfo_v2(&left, &total));
    fact(cuEventQuery_after_sticky_error, "status %d", (int)cuEventQuery(event));
}

void facts_reset(int argc, char **argv)
{
    void *p = NULL;

    (void)argc;
    (void)argv;
    /* Through the runtime alone: a context that the program retains as well would survive the reset. */
    kit_must(cudaFree(NULL));
    kit_begin();
    kit_must(cuDevicePrimaryCtxRelease_v2(0));
    if (break_context() == CUDA_SUCCESS)
        kit_give_up("a kernel that writes nowhere was no error");
    int reset = cudaDeviceReset();
    int after = cudaMalloc(&p, KIT_MIB);
    fact(cudaDeviceReset_mends_sticky_error, "%s, reset %d, cudaMalloc %d", after == 0 ? "yes" : "no", reset,
         after);
}
