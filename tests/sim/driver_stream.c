/* The simulated driver: streams really run beside each other and in order; events; host functions; sticky
 * errors. */
#include "driver.h"

static atomic_int trace[64];
static atomic_int trace_length;

static void note(void *data)
{
    atomic_store(&trace[atomic_fetch_add(&trace_length, 1)], (int)(intptr_t)data);
}

static void *number(int n)
{
    return (void *)(intptr_t)n;
}

static void *pinned(size_t bytes)
{
    void *h;

    must(cuMemHostAlloc(&h, bytes, 0));
    return h;
}

static void order(void)
{
    CUstream a, b;
    CUevent event;
    atomic_int go = 0;
    unsigned long long id_a = 0, id_b = 0;

    must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    must(cuStreamGetId(a, &id_a));
    must(cuStreamGetId(b, &id_b));
    ok(id_a != id_b, "streams have different ids");
    answers(cuStreamQuery(a), CUDA_SUCCESS);
    answers(cuEventQuery(event), CUDA_SUCCESS);
    atomic_store(&trace_length, 0);
    must(cuLaunchHostFunc(a, hold, &go));
    must(cuLaunchHostFunc(a, note, number(1)));
    must(cuEventRecord(event, a));
    must(cuStreamWaitEvent(b, event, 0));
    must(cuLaunchHostFunc(b, note, number(2)));
    answers(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    answers(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    answers(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    pause_ms(20);
    is_int(atomic_load(&trace_length), 0, "nothing overtakes");
    atomic_store(&go, 1);
    answers(cuStreamSynchronize(b), CUDA_SUCCESS);
    is_int(atomic_load(&trace_length), 2, "all ran");
    ok(trace[0] == 1 && trace[1] == 2, "in the order of the event");
    answers(cuEventSynchronize(event), CUDA_SUCCESS);
    answers(cuEventQuery(event), CUDA_SUCCESS);
    must(cuEventDestroy_v2(event));
    answers(cuEventDestroy_v2(event), CUDA_ERROR_INVALID_HANDLE);
    must(cuStreamDestroy_v2(a));
    answers(cuStreamQuery(a), CUDA_ERROR_INVALID_HANDLE);
    answers(cuStreamDestroy_v2(a), CUDA_ERROR_INVALID_HANDLE);
    must(cuStreamDestroy_v2(b));
}

static void overlap(void)
{
    CUstream a, b;
    atomic_int first = 0, second = 0;

    must(cuStreamCreate(&a, CU_STREAM_DEFAULT));
    must(cuStreamCreate(&b, CU_STREAM_DEFAULT));
    /* a waits for what b does, and only b: with one after the other this would never end in time */
    must(cuLaunchHostFunc(a, hold, &first));
    must(cuLaunchHostFunc(b, hold, &second));
    answers(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    atomic_store(&second, 1);
    double start = now_ms();
    answers(cuStreamSynchronize(b), CUDA_SUCCESS);
    ok(now_ms() - start < 5000, "one stream ends while the other is held");
    answers(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    atomic_store(&first, 1);
    answers(cuStreamSynchronize(a), CUDA_SUCCESS);
    must(cuStreamDestroy_v2(a));
    must(cuStreamDestroy_v2(b));
}

static void legacy(void)
{
    CUstream blocking, free_stream;
    atomic_int go = 0;
    char *h = pinned(4);
    CUdeviceptr p;

    must(cuMemAlloc_v2(&p, 8));
    must(cuMemsetD8_v2(p, 5, 4));
    must(cuCtxSynchronize());
    must(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    must(cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));
    must(cuLaunchHostFunc(blocking, hold, &go));
    memset(h, 0, 4);
    must(cuMemcpyDtoHAsync_v2(h, p, 4, NULL));
    answers(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
    answers(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
    must(cuMemcpyDtoHAsync_v2(h + 1, p, 1, free_stream));
    answers(cuStreamSynchronize(free_stream), CUDA_SUCCESS);
    ok(h[0] == 0 && h[1] == 5, "the legacy stream waits for blocking streams, others wait for nobody");
    answers(cuStreamQuery_ptsz(NULL), CUDA_SUCCESS);
    atomic_store(&go, 1);
    answers(cuStreamSynchronize(NULL), CUDA_SUCCESS);
    is_int(h[0], 5, "then it ran");
    atomic_store(&go, 0);
    must(cuLaunchHostFunc(CU_STREAM_LEGACY, hold, &go));
    must(cuMemsetD8Async(p + 4, 6, 4, blocking));
    must(cuMemcpyDtoHAsync_v2_ptsz(h, p, 4, NULL));
    answers(cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
    answers(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    atomic_store(&go, 1);
    answers(cuStreamSynchronize(CU_STREAM_PER_THREAD), CUDA_SUCCESS);
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
    must(cuStreamDestroy_v2(blocking));
    must(cuStreamDestroy_v2(free_stream));
    must(cuMemFree_v2(p));
    must(cuMemFreeHost(h));
}

struct per_thread {
    CUcontext ctx;
    unsigned long long id;
};

static void *own_stream(void *data)
{
    struct per_thread *mine = data;

    must(cuCtxSetCurrent(mine->ctx));
    must(cuStreamGetId(CU_STREAM_PER_THREAD, &mine->id));
    must(cuLaunchHostFunc_ptsz(NULL, note, number(9)));
    must(cuStreamSynchronize_ptsz(NULL));
    return NULL;
}

static void per_thread(CUcontext ctx)
{
    struct per_thread one = {ctx, 0}, two = {ctx, 0};
    pthread_t a, b;

    atomic_store(&trace_length, 0);
    pthread_create(&a, NULL, own_stream, &one);
    pthread_create(&b, NULL, own_stream, &two);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    ok(one.id && one.id != two.id, "each thread has a default stream of its own");
    is_int(atomic_load(&trace_length), 2, "and work on it runs");
}

static void free_waits(void)
{
    CUstream stream;
    CUdeviceptr p;
    char *h = pinned(MIB);
    atomic_int go = 0;

    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuMemAlloc_v2(&p, MIB));
    must(cuMemsetD8_v2(p, 3, MIB));
    must(cuCtxSynchronize());
    memset(h, 0, MIB);
    must(cuLaunchHostFunc(stream, hold, &go));
    must(cuMemcpyDtoHAsync_v2(h, p, MIB, stream));
    atomic_store(&go, 1);
    answers(cuMemFree_v2(p), CUDA_SUCCESS);
    is_int(h[MIB - 1], 3, "a free waits for work that came before it");
    must(cuStreamDestroy_v2(stream));
    must(cuMemFreeHost(h));
}

static void inside(void *data)
{
    CUdeviceptr p;
    CUresult *status = data;

    status[0] = cuMemAlloc_v2(&p, 16);
    status[1] = cuStreamSynchronize(NULL);
}

static void from_inside(void)
{
    CUresult status[2] = {CUDA_SUCCESS, CUDA_SUCCESS};

    must(cuLaunchHostFunc(NULL, inside, status));
    must(cuStreamSynchronize(NULL));
    ok(status[0] == CUDA_ERROR_NOT_PERMITTED && status[1] == CUDA_ERROR_NOT_PERMITTED,
       "a host function may not call the driver");
}

static void times(void)
{
    CUevent start, end, silent;
    float ms = -1;

    must(cuEventCreate(&start, 0));
    must(cuEventCreate(&end, 0));
    must(cuEventCreate(&silent, CU_EVENT_DISABLE_TIMING));
    answers(cuEventElapsedTime(&ms, start, end), CUDA_ERROR_INVALID_HANDLE);
    must(cuEventRecord(start, NULL));
    must(cuCtxSynchronize());
    pause_ms(20);
    must(cuEventRecord(end, NULL));
    must(cuEventSynchronize(end));
    answers(cuEventElapsedTime_v2(&ms, start, end), CUDA_SUCCESS);
    ok(ms >= 15 && ms < 10000, "time passes between events");
    must(cuEventRecord(silent, NULL));
    must(cuCtxSynchronize());
    answers(cuEventElapsedTime(&ms, start, silent), CUDA_ERROR_INVALID_HANDLE);
    must(cuEventDestroy_v2(start));
    must(cuEventDestroy_v2(end));
    must(cuEventDestroy_v2(silent));
}

static CUresult told = CUDA_SUCCESS;

static void callback(CUstream stream, CUresult status, void *data)
{
    (void)stream;
    told = status;
    atomic_store((atomic_int *)data, 1);
}

static void destroyed_streams_finish(void)
{
    CUstream stream;
    atomic_int go = 0, ran = 0;

    must(cuStreamCreate(&stream, 0));
    must(cuLaunchHostFunc(stream, hold, &go));
    must(cuStreamAddCallback(stream, callback, &ran, 0));
    answers(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    atomic_store(&go, 1);
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
    is_int(atomic_load(&ran), 1, "a destroyed stream still does its work");
}

static int threads_before;

static void idle_threads_leave(void)
{
    must(cuCtxSynchronize());
    for (int i = 0; i < 100 && thread_count() > threads_before; i++)
        pause_ms(20);
    is_int(thread_count(), threads_before, "threads without work go away");
}

static void *nothing(void *unused)
{
    return unused;
}

/* ThreadSanitizer starts a thread of its own beside the first one. */
static void start_first_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, nothing, NULL) != 0 || pthread_join(thread, NULL) != 0)
        bail("no thread");
}

/* Attributes are kept for each stream, are told again, and go from one to another. */
static void attributes(void)
{
    CUstreamAttrValue value = {0}, told_back;
    CUstream one, other;

    must(cuStreamCreateWithPriority(&one, CU_STREAM_NON_BLOCKING, -2));
    must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    is_int(cuStreamGetAttribute(one, CU_LAUNCH_ATTRIBUTE_PRIORITY, &told_back), CUDA_SUCCESS,
           "a stream's priority");
    is_int(told_back.priority, -2, "as an attribute");
    value.priority = -4;
    is_int(cuStreamSetAttribute(one, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), CUDA_SUCCESS, "set");
    int priority = 0;
    must(cuStreamGetPriority(one, &priority));
    is_int(priority, -4, "is its priority");
    value.priority = -6;
    is_int(cuStreamSetAttribute(one, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value), CUDA_ERROR_INVALID_VALUE,
           "in its range");
    must(cuStreamGetAttribute(one, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &told_back));
    is_int((int)told_back.syncPolicy, CU_SYNC_POLICY_AUTO, "the host waits as it likes");
    value.syncPolicy = CU_SYNC_POLICY_YIELD;
    must(cuStreamSetAttribute(one, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
    value.accessPolicyWindow = (CUaccessPolicyWindow){.num_bytes = 4096, .hitRatio = 0.5f};
    must(cuStreamSetAttribute(one, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
    value.accessPolicyWindow.hitRatio = 2;
    is_int(cuStreamSetAttribute(one, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value),
           CUDA_ERROR_INVALID_VALUE, "no more than all can hit");
    is_int(cuStreamCopyAttributes(other, one), CUDA_SUCCESS, "another stream's");
    must(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &told_back));
    is_int((int)told_back.syncPolicy, CU_SYNC_POLICY_YIELD, "are copied");
    must(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &told_back));
    is_u64(told_back.accessPolicyWindow.num_bytes, 4096, "all of them");
    must(cuStreamGetAttribute(other, CU_LAUNCH_ATTRIBUTE_PRIORITY, &told_back));
    is_int(told_back.priority, 0, "but its priority");
    is_int(cuStreamGetAttribute(NULL, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &told_back), CUDA_SUCCESS,
           "the default stream has them");
    is_int(cuStreamGetAttribute(one, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &told_back), CUDA_ERROR_INVALID_VALUE,
           "what launches have is none of a stream's");
    is_int(cuStreamGetAttribute(one, CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL), CUDA_ERROR_INVALID_VALUE,
           "nowhere");
    must(cuStreamDestroy_v2(one));
    must(cuStreamDestroy_v2(other));
}

static void never(void *data, CUlogLevel level, char *message, size_t length)
{
    (void)data, (void)level, (void)message, (void)length;
    ok(0, "nothing is written to the log");
}

static void logs(void)
{
    CUlogsCallbackHandle handle = NULL;
    CUlogIterator end = 7;
    size_t bytes = 16;
    char text[16] = "x";

    is_int(cuLogsRegisterCallback(never, NULL, &handle), CUDA_SUCCESS, "who wants to hear of errors");
    ok(handle != NULL, "is known by a handle");
    ok(cuMemFree_v2(1) != CUDA_SUCCESS, "an error");
    is_int(cuLogsCurrent(&end, 0) | (int)end, 0, "the log is empty");
    is_int(cuLogsDumpToMemory(NULL, text, &bytes, 0) | (int)bytes | *text, 0, "so is a dump");
    is_int(cuLogsUnregisterCallback(handle), CUDA_SUCCESS, "no more");
    is_int(cuLogsUnregisterCallback(handle), CUDA_ERROR_INVALID_VALUE, "once");
}

int main(void)
{
    plan(0);
    start_first_thread();
    threads_before = thread_count();
    CUcontext ctx = begin();
    is_int(thread_count(), threads_before, "a context alone starts no thread");
    order();
    overlap();
    legacy();
    per_thread(ctx);
    free_waits();
    from_inside();
    times();
    attributes();
    logs();
    destroyed_streams_finish();
    idle_threads_leave();
    is_int(told, CUDA_SUCCESS, "callbacks are told the status");
    return done();
}
