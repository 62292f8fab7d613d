/* The simulated driver: each thread's own default stream, beside those of others and the legacy one. */
#include "driver.h"

static CUcontext primary;

struct worker {
    pthread_t thread;
    unsigned long long id, id_ptsz;
    atomic_int go, started, ending;
};

/* Holds its own stream, and lives until it is told to end. */
static void *work(void *argument)
{
    struct worker *self = argument;

    must(cuCtxSetCurrent(primary));
    must(cuStreamGetId(CU_STREAM_PER_THREAD, &self->id));
    must(cuStreamGetId_ptsz(NULL, &self->id_ptsz));
    must(cuLaunchHostFunc_ptsz(NULL, hold, &self->go));
    atomic_store(&self->started, 1);
    while (!atomic_load(&self->ending))
        pause_ms(1);
    return NULL;
}

static void start(struct worker *worker)
{
    atomic_init(&worker->go, 0);
    atomic_init(&worker->started, 0);
    atomic_init(&worker->ending, 0);
    if (pthread_create(&worker->thread, NULL, work, worker))
        bail("no thread");
    while (!atomic_load(&worker->started))
        pause_ms(1);
}

static void end(struct worker *worker)
{
    atomic_store(&worker->ending, 1);
    if (pthread_join(worker->thread, NULL))
        bail("no thread");
}

static void streams(void)
{
    struct worker worker;
    unsigned long long id = 0, legacy = 0, null = 0;
    CUdeviceptr p;
    CUevent event;
    CUstream free_stream;

    must(cuMemAlloc_v2(&p, 64));
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    must(cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));
    start(&worker);
    must(cuStreamGetId(CU_STREAM_PER_THREAD, &id));
    must(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
    must(cuStreamGetId(NULL, &null));
    ok(worker.id == worker.id_ptsz, "without a handle the per-thread functions mean the thread's own stream");
    ok(id != worker.id && id != legacy && worker.id != legacy && null == legacy,
       "each thread has a stream of its own");
    answers(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
    answers(cuMemsetD8Async(p, 1, 1, CU_STREAM_PER_THREAD), CUDA_SUCCESS);
    answers(cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
    answers(cuMemsetD8Async(p, 1, 1, free_stream), CUDA_SUCCESS);
    answers(cuStreamSynchronize_ptsz(free_stream), CUDA_SUCCESS);
    answers(cuMemsetD8Async(p, 1, 1, NULL), CUDA_SUCCESS);
    pause_ms(10);
    answers(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    answers(cuMemsetD8Async_ptsz(p, 1, 1, NULL), CUDA_SUCCESS);
    pause_ms(10);
    is_int(cuStreamQuery_ptsz(NULL), CUDA_ERROR_NOT_READY,
           "what comes behind the legacy stream waits with it");
    answers(cuCtxRecordEvent(primary, event), CUDA_SUCCESS);
    answers(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    atomic_store(&worker.go, 1);
    answers(cuEventSynchronize(event), CUDA_SUCCESS);
    answers(cuStreamQuery(NULL), CUDA_SUCCESS);
    end(&worker);
    must(cuEventDestroy_v2(event));
    must(cuStreamDestroy_v2(free_stream));
    answers(cuStreamDestroy_v2(CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_HANDLE);
    must(cuMemFree_v2(p));
}

static void *release_later(void *argument)
{
    pause_ms(20);
    atomic_store((atomic_int *)argument, 1);
    return NULL;
}

/* The thread ends while its stream has work: that is done all the same, and waited for. */
static void threads_that_end(void)
{
    struct worker worker;
    CUdeviceptr p;
    pthread_t thread;

    must(cuMemAlloc_v2(&p, 64));
    start(&worker);
    end(&worker);
    answers(cuMemsetD8Async_ptsz(p, 1, 1, NULL), CUDA_SUCCESS);
    answers(cuStreamSynchronize_ptsz(NULL), CUDA_SUCCESS);
    if (pthread_create(&thread, NULL, release_later, &worker.go))
        bail("no thread");
    answers(cuMemFree_v2(p), CUDA_SUCCESS);
    is_int(atomic_load(&worker.go), 1, "cuMemFree waits for the stream of a thread that has ended");
    must(cuCtxSynchronize());
    pthread_join(thread, NULL);
}

static void events_between(void)
{
    struct worker worker;
    CUstream other;
    CUevent event;

    must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    start(&worker);
    must(cuEventRecord_ptsz(event, NULL));
    answers(cuEventQuery(event), CUDA_SUCCESS);
    must(cuEventRecord(event, NULL));
    answers(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    must(cuStreamWaitEvent_ptsz(other, event, 0));
    answers(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
    atomic_store(&worker.go, 1);
    answers(cuStreamSynchronize(other), CUDA_SUCCESS);
    end(&worker);
    must(cuStreamDestroy_v2(other));
    must(cuEventDestroy_v2(event));
}

int main(void)
{
    plan(0);
    primary = begin();
    streams();
    threads_that_end();
    events_between();
    return done();
}
