/*
 * facts_capture.c: question 11: what an event over a whole context does to captures and which streams it
 * covers, and which other calls a capture bears.
 */
#include "facts.h"

#include <dlfcn.h>
#include <pthread.h>

/* A call made while a stream captures; the stream is there for calls that go to it. */
typedef int (*call_fn)(CUstream stream);

static CUcontext context;
static CUevent event;
static void *block;

static const char *state_of(CUstream stream)
{
    CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;

    kit_must(cuStreamIsCapturing(stream, &state));
    return state == CU_STREAM_CAPTURE_STATUS_ACTIVE ? "active"
           : state == CU_STREAM_CAPTURE_STATUS_NONE ? "none"
                                                    : "invalidated";
}

static int end_capture(CUstream stream)
{
    CUresult (*destroy)(CUgraph) = (CUresult(*)(CUgraph))(uintptr_t)dlsym(RTLD_DEFAULT, "cuGraphDestroy");
    CUgraph graph = NULL;
    int status = (int)cuStreamEndCapture(stream, &graph);

    if (graph && destroy)
        destroy(graph);
    cudaGetLastError();
    return status;
}

static void in_capture(enum fact_id id, CUstreamCaptureMode mode, bool exchanged, call_fn call)
{
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUstream stream;

    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUresult status = cuStreamBeginCapture_v2(stream, mode);
    if (status != CUDA_SUCCESS) {
        fact_say(id, "- a capture cannot begin: status %d", (int)status);
    } else {
        if (exchanged)
            kit_must(cuThreadExchangeStreamCaptureMode(&relaxed));
        int answer = call(stream);
        if (exchanged)
            kit_must(cuThreadExchangeStreamCaptureMode(&relaxed));
        const char *state = state_of(stream);
        fact_say(id, "status %d, %s, end %d", answer, state, end_capture(stream));
    }
    cuStreamDestroy_v2(stream);
    cuCtxSynchronize();
}

static int call_record(CUstream stream)
{
    (void)stream;
    return (int)cuCtxRecordEvent(context, event);
}

static int call_malloc(CUstream stream)
{
    void *p = NULL;

    (void)stream;
    return cudaMalloc(&p, KIT_MIB);
}

static int call_free(CUstream stream)
{
    (void)stream;
    return cudaFree(block);
}

static int call_query(CUstream stream)
{
    (void)stream;
    return (int)cuEventQuery(event);
}

static int call_info(CUstream stream)
{
    size_t left, total;

    (void)stream;
    return (int)cuMemGetInfo_v2(&left, &total);
}

static int call_malloc_async(CUstream stream)
{
    void *p = NULL;
    int status = cudaMallocAsync(&p, KIT_MIB, stream);

    return status ? status : (int)cudaFreeAsync(p, stream);
}

struct elsewhere {
    pthread_barrier_t begun, called;
    const char *state;
    int begin, end;
};

static void *capture_elsewhere(void *data)
{
    struct elsewhere *it = data;
    CUstream stream;

    kit_must(cuCtxSetCurrent(context));
    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    it->begin = (int)cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    pthread_barrier_wait(&it->begun);
    pthread_barrier_wait(&it->called);
    if (it->begin == 0) {
        it->state = state_of(stream);
        it->end = end_capture(stream);
    }
    cuStreamDestroy_v2(stream);
    return NULL;
}

static void in_other_threads_capture(void)
{
    struct elsewhere it = {0};
    pthread_t thread;

    pthread_barrier_init(&it.begun, NULL, 2);
    pthread_barrier_init(&it.called, NULL, 2);
    if (pthread_create(&thread, NULL, capture_elsewhere, &it) != 0)
        kit_give_up("no thread could be started");
    pthread_barrier_wait(&it.begun);
    int answer = call_record(NULL);
    pthread_barrier_wait(&it.called);
    pthread_join(thread, NULL);
    if (it.begin != 0)
        fact(cuCtxRecordEvent_in_other_threads_capture, "- a capture cannot begin: status %d", it.begin);
    else
        fact(cuCtxRecordEvent_in_other_threads_capture, "status %d, %s, end %d", answer, it.state, it.end);
}

void facts_capture(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    context = kit_begin();
    kit_must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    kit_must(cuEventRecord(event, NULL));
    kit_must(cuCtxSynchronize());
    in_capture(FACT_cuEventQuery_in_global_capture, CU_STREAM_CAPTURE_MODE_GLOBAL, false, call_query);
    in_capture(FACT_cuCtxRecordEvent_in_global_capture, CU_STREAM_CAPTURE_MODE_GLOBAL, false, call_record);
    in_capture(FACT_cuCtxRecordEvent_in_thread_local_capture, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, false,
               call_record);
    in_capture(FACT_cuCtxRecordEvent_in_relaxed_capture, CU_STREAM_CAPTURE_MODE_RELAXED, false, call_record);
    in_capture(FACT_cuCtxRecordEvent_in_exchanged_capture, CU_STREAM_CAPTURE_MODE_GLOBAL, true, call_record);
    in_other_threads_capture();
    in_capture(FACT_cudaMalloc_in_global_capture, CU_STREAM_CAPTURE_MODE_GLOBAL, false, call_malloc);
    in_capture(FACT_cudaMalloc_in_relaxed_capture, CU_STREAM_CAPTURE_MODE_RELAXED, false, call_malloc);
    in_capture(FACT_cudaMalloc_in_exchanged_capture, CU_STREAM_CAPTURE_MODE_GLOBAL, true, call_malloc);
    kit_must(cudaMalloc(&block, KIT_MIB));
    in_capture(FACT_cudaFree_in_global_capture, CU_STREAM_CAPTURE_MODE_GLOBAL, false, call_free);
    kit_must(cudaMalloc(&block, KIT_MIB));
    in_capture(FACT_cudaFree_in_exchanged_capture, CU_STREAM_CAPTURE_MODE_GLOBAL, true, call_free);
    in_capture(FACT_cuMemGetInfo_in_global_capture, CU_STREAM_CAPTURE_MODE_GLOBAL, false, call_info);
    in_capture(FACT_cudaMallocAsync_in_capture, CU_STREAM_CAPTURE_MODE_GLOBAL, false, call_malloc_async);
}

/* --- what an event over a context covers ---------------------------------------------------------------- */

/* With a stream held: whether the event is not over until it is released. Leaves the stream released and
 * idle. */
static const char *covers(struct kit_hold *hold)
{
    CUresult recorded = cuCtxRecordEvent(context, event), status = CUDA_ERROR_NOT_READY;

    for (int i = 0; i < 60 && recorded == CUDA_SUCCESS && status == CUDA_ERROR_NOT_READY; i++) {
        status = cuEventQuery(event);
        kit_pause_ms(2);
    }
    kit_release(hold);
    if (recorded != CUDA_SUCCESS)
        return recorded == CUDA_ERROR_NOT_SUPPORTED ? "- cuCtxRecordEvent is not supported"
                                                    : "- cuCtxRecordEvent fails";
    return status == CUDA_SUCCESS ? "no" : "yes";
}

static void covers_stream(enum fact_id id, CUstream stream)
{
    struct kit_hold hold;

    kit_must(kit_hold(&hold, stream));
    fact_say(id, "%s", covers(&hold));
    kit_must(cuStreamSynchronize(stream));
}

struct holder {
    pthread_barrier_t held, released;
    struct kit_hold hold;
};

static void *hold_per_thread(void *data)
{
    struct holder *it = data;

    kit_must(cuCtxSetCurrent(context));
    kit_must(kit_hold(&it->hold, CU_STREAM_PER_THREAD));
    pthread_barrier_wait(&it->held);
    pthread_barrier_wait(&it->released);
    kit_must(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    return NULL;
}

static void covers_other_thread(void)
{
    struct holder it;
    pthread_t thread;

    pthread_barrier_init(&it.held, NULL, 2);
    pthread_barrier_init(&it.released, NULL, 2);
    if (pthread_create(&thread, NULL, hold_per_thread, &it) != 0)
        kit_give_up("no thread could be started");
    pthread_barrier_wait(&it.held);
    fact(cuCtxRecordEvent_covers_other_thread, "%s", covers(&it.hold));
    pthread_barrier_wait(&it.released);
    pthread_join(thread, NULL);
}

/* A stream of another context waits for a value: a kernel would have to belong to that context. */
static void covers_foreign(enum fact_id id, CUstream stream)
{
    struct kit_hold hold;
    enum kit_hold_kind kind = kit_hold_kind();

    kit_hold_use(KIT_HOLD_VALUE);
    CUresult status = kit_hold(&hold, stream);
    kit_hold_use(kind);
    if (status != CUDA_SUCCESS) {
        fact_say(id, "- the stream cannot wait for a value: status %d", (int)status);
        return;
    }
    fact_say(id, "%s", covers(&hold));
    cuStreamSynchronize(stream);
}

/* A green context with all of the device's multiprocessors. Its types are young, so they are looked up and
 * left opaque. */
static int green_stream(CUstream *stream_p)
{
    typedef int (*resource_fn)(CUdevice, void *, int);
    typedef int (*describe_fn)(void **, void *, unsigned);
    typedef int (*create_fn)(void **, void *, CUdevice, unsigned);
    typedef int (*stream_fn)(CUstream *, void *, unsigned, int);
    resource_fn resource = (resource_fn)(uintptr_t)dlsym(RTLD_DEFAULT, "cuDeviceGetDevResource");
    describe_fn describe = (describe_fn)(uintptr_t)dlsym(RTLD_DEFAULT, "cuDevResourceGenerateDesc");
    create_fn create = (create_fn)(uintptr_t)dlsym(RTLD_DEFAULT, "cuGreenCtxCreate");
    stream_fn stream = (stream_fn)(uintptr_t)dlsym(RTLD_DEFAULT, "cuGreenCtxStreamCreate");
    uint64_t all[128] = {0};
    void *words = NULL, *green = NULL;
    int status;

    if (!resource || !describe || !create || !stream)
        return CUDA_ERROR_NOT_SUPPORTED;
    status = resource(0, all, 1 /* multiprocessors */);
    if (status == 0)
        status = describe(&words, all, 1);
    if (status == 0)
        status = create(&green, words, 0, 1 /* the flag that must be given */);
    return status ? status : stream(stream_p, green, CU_STREAM_NON_BLOCKING, 0);
}

void facts_covers(int argc, char **argv)
{
    CUstream nonblocking, green = NULL, foreign;
    CUcontext other;

    (void)argc;
    (void)argv;
    context = kit_begin();
    kit_must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    kit_must(cuStreamCreate(&nonblocking, CU_STREAM_NON_BLOCKING));
    if (kit_hold_kind() == KIT_HOLD_NONE)
        kit_give_up("neither kernels nor waits for values hold a stream here");
    covers_stream(FACT_cuCtxRecordEvent_covers_legacy, CU_STREAM_LEGACY);
    covers_stream(FACT_cuCtxRecordEvent_covers_nonblocking, nonblocking);
    covers_stream(FACT_cuCtxRecordEvent_covers_per_thread, CU_STREAM_PER_THREAD);
    covers_other_thread();
    int status = green_stream(&green);
    if (status == 0)
        covers_foreign(FACT_cuCtxRecordEvent_covers_green, green);
    else
        fact(cuCtxRecordEvent_covers_green, "- no green context can be made: status %d", status);
    if (cuCtxCreate_v2(&other, 0, 0) != CUDA_SUCCESS) {
        fact(cuCtxRecordEvent_covers_other_context, "- a second context cannot be made");
        return;
    }
    kit_must(cuStreamCreate(&foreign, CU_STREAM_NON_BLOCKING));
    kit_must(cuCtxSetCurrent(context));
    covers_foreign(FACT_cuCtxRecordEvent_covers_other_context, foreign);
}
