/* The simulated driver: capturing streams, in every mode, what it forbids, and what breaks it. */
#include <stdlib.h>

#include "driver.h"
#include "kernels.h"

static CUcontext primary;
static CUfunction fill_kernel;
static CUstream a, b;

static CUresult fill(CUstream stream, CUdeviceptr words, uint32_t value, uint64_t count)
{
    void *arguments[] = {&words, &value, &count};

    return cuLaunchKernel(fill_kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL);
}

static CUstreamCaptureStatus state(CUstream stream)
{
    CUstreamCaptureStatus status = (CUstreamCaptureStatus)99;

    must(cuStreamIsCapturing(stream, &status));
    return status;
}

static size_t nodes_of(CUgraph graph)
{
    size_t count = 0;

    must(cuGraphGetNodes(graph, NULL, &count));
    return count;
}

/* Ends a capture that was broken. */
static void ends_broken(CUstream stream, const char *why)
{
    CUgraph graph = (CUgraph)1;
    CUdeviceptr p;

    is_int(state(stream), CU_STREAM_CAPTURE_STATUS_INVALIDATED, "%s: the capture is broken", why);
    is_int(cuMemsetD8Async(1, 0, 1, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
           "%s: its stream cannot be used", why);
    is_int(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "%s: ending it says so",
           why);
    is_ptr(graph, NULL, "%s: there is no graph", why);
    is_int(state(stream), CU_STREAM_CAPTURE_STATUS_NONE, "%s: then it is over", why);
    must(cuMemAlloc_v2(&p, 4));
    must(cuMemFree_v2(p));
}

static void replays(void)
{
    CUdeviceptr p;
    CUgraph graph, found;
    CUgraphExec exec;
    CUstreamCaptureStatus status;
    cuuint64_t id = 0, other = 0;
    const CUgraphNode *front;
    size_t count = 0;
    uint32_t words[4] = {0};

    must(cuMemAlloc_v2(&p, 64));
    must(cuMemsetD32_v2(p, 0, 16));
    must(cuCtxSynchronize());
    answers(cuStreamBeginCapture_v2(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    answers(cuStreamBeginCapture_v2(a, (CUstreamCaptureMode)3), CUDA_ERROR_INVALID_VALUE);
    answers(cuStreamEndCapture(a, &graph), CUDA_ERROR_ILLEGAL_STATE);
    answers(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_SUCCESS);
    answers(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
    is_int(state(a), CU_STREAM_CAPTURE_STATUS_ACTIVE, "the stream is captured");
    is_int(state(b), CU_STREAM_CAPTURE_STATUS_NONE, "another is not");
    answers(fill(a, p, 7, 2), CUDA_SUCCESS);
    answers(cuMemsetD32Async(p + 8, 8, 1, a), CUDA_SUCCESS);
    answers(cuMemcpyDtoDAsync_v2(p + 12, p, 4, a), CUDA_SUCCESS);
    answers(cuStreamGetCaptureInfo_v3(a, &status, &id, &found, &front, NULL, &count), CUDA_SUCCESS);
    is_u64(count, 1, "the next work would wait for one node");
    is_u64(nodes_of(found), 3, "there are three so far");
    answers(cuStreamGetCaptureInfo(a, &status, &other), CUDA_SUCCESS);
    ok(id && id == other, "a capture has an id");
    answers(fill(b, p + 32, 1, 1), CUDA_SUCCESS);
    answers(cuStreamEndCapture(b, &graph), CUDA_ERROR_ILLEGAL_STATE);
    answers(cuStreamEndCapture(a, &graph), CUDA_SUCCESS);
    ok(graph == found, "the graph is the one that was shown");
    must(cuMemcpyDtoH_v2(words, p, 16));
    ok(!words[0] && !words[2] && !words[3], "nothing has run");
    answers(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    answers(cuGraphLaunch(exec, b), CUDA_SUCCESS);
    answers(cuStreamSynchronize(b), CUDA_SUCCESS);
    must(cuMemcpyDtoH_v2(words, p, 16));
    ok(words[0] == 7 && words[1] == 7 && words[2] == 8 && words[3] == 7, "now it has, in order");
    answers(cuGraphExecDestroy(exec), CUDA_SUCCESS);
    answers(cuGraphDestroy(graph), CUDA_SUCCESS);
    answers(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphLaunch(exec, b), CUDA_ERROR_INVALID_VALUE);
    must(cuMemFree_v2(p));
}

static void fork_and_join(void)
{
    CUevent forked, joined;
    CUdeviceptr p;
    CUgraph graph;
    CUgraphNode from[8], to[8];
    size_t edges = 8, roots = 0;

    must(cuMemAlloc_v2(&p, 64));
    must(cuEventCreate(&forked, CU_EVENT_DISABLE_TIMING));
    must(cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING));
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    must(fill(a, p, 1, 1));
    must(cuEventRecord(forked, a));
    answers(cuEventQuery(forked), CUDA_ERROR_CAPTURED_EVENT);
    ends_broken(a, "asking for an event in a capture");

    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    must(fill(a, p, 1, 1));
    must(cuEventRecord(forked, a));
    answers(cuStreamWaitEvent(b, forked, 0), CUDA_SUCCESS);
    is_int(state(b), CU_STREAM_CAPTURE_STATUS_ACTIVE, "a stream that waits for it is captured, too");
    must(fill(b, p + 4, 1, 1));
    must(fill(a, p + 8, 1, 1));
    must(cuEventRecord(joined, b));
    answers(cuStreamWaitEvent(a, joined, 0), CUDA_SUCCESS);
    must(fill(a, p + 12, 1, 1));
    answers(cuStreamEndCapture(a, &graph), CUDA_SUCCESS);
    is_int(state(b), CU_STREAM_CAPTURE_STATUS_NONE, "it is let go of with the other");
    is_u64(nodes_of(graph), 4, "four nodes");
    must(cuGraphGetRootNodes(graph, NULL, &roots));
    is_u64(roots, 1, "one root");
    must(cuGraphGetEdges(graph, from, to, &edges));
    is_u64(edges, 4, "four edges: a diamond");
    answers(cuEventQuery(joined), CUDA_ERROR_INVALID_VALUE);
    answers(cuStreamWaitEvent(a, joined, 0), CUDA_ERROR_CAPTURED_EVENT);
    must(cuGraphDestroy(graph));

    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    must(fill(a, p, 1, 1));
    must(cuEventRecord(forked, a));
    must(cuStreamWaitEvent(b, forked, 0));
    must(fill(b, p, 1, 1));
    answers(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    is_ptr(graph, NULL, "what was forked must come back");
    is_int(state(b), CU_STREAM_CAPTURE_STATUS_NONE, "it is over all the same");

    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    must(fill(a, p, 1, 1));
    must(cuEventRecord(forked, a));
    must(cuStreamWaitEvent(b, forked, 0)); /* and nothing more: nothing has to come back */
    answers(cuStreamEndCapture(a, &graph), CUDA_SUCCESS);
    must(cuGraphDestroy(graph));

    must(cuEventRecord(joined, b));
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    answers(cuStreamWaitEvent(a, joined, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    ends_broken(a, "an event from outside");

    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    must(cuStreamBeginCapture_v2(b, CU_STREAM_CAPTURE_MODE_RELAXED));
    must(fill(a, p, 1, 1));
    must(cuEventRecord(forked, a));
    answers(cuStreamWaitEvent(b, forked, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
    ends_broken(a, "merging captures");
    ends_broken(b, "merging captures, the other");
    must(cuEventDestroy_v2(forked));
    must(cuEventDestroy_v2(joined));
    must(cuMemFree_v2(p));
}

static void callback(CUstream stream, CUresult status, void *data)
{
    (void)stream;
    (void)status;
    (void)data;
}

static void what_breaks_it(void)
{
    CUdeviceptr p, q;
    CUevent event;
    CUgraph graph;
    CUstream blocking;
    CUstreamCaptureStatus status;
    void *h;

    must(cuMemAlloc_v2(&p, 64));
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    must(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));

    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    answers(cuMemAlloc_v2(&q, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends_broken(a, "cuMemAlloc");
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    answers(cuMemFree_v2(p), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends_broken(a, "cuMemFree");
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    answers(cuMemHostAlloc(&h, 64, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends_broken(a, "cuMemHostAlloc");
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    answers(cuEventQuery(event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends_broken(a, "cuEventQuery");
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    answers(cuMemcpyHtoD_v2(p, &p, 8), CUDA_SUCCESS);
    is_int(state(a), CU_STREAM_CAPTURE_STATUS_ACTIVE, "a copy that waits breaks nothing");
    must(cuStreamEndCapture(a, &graph));
    must(cuGraphDestroy(graph));
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    answers(cuStreamSynchronize(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends_broken(a, "cuStreamSynchronize");
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    answers(cuStreamQuery(a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends_broken(a, "cuStreamQuery");
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    answers(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends_broken(a, "cuCtxSynchronize");
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    answers(cuStreamAddCallback(a, callback, NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends_broken(a, "a callback");
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    answers(cuCtxRecordEvent(primary, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends_broken(a, "cuCtxRecordEvent");
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    answers(cuCtxWaitEvent(primary, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    ends_broken(a, "cuCtxWaitEvent");

    must(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    answers(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    is_int(state(blocking), CU_STREAM_CAPTURE_STATUS_ACTIVE, "asking for the legacy stream breaks nothing");
    answers(cuMemsetD8Async(p, 1, 1, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    ends_broken(blocking, "the legacy stream");
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    answers(cuMemsetD8Async(p, 1, 1, NULL), CUDA_SUCCESS);
    is_int(state(a), CU_STREAM_CAPTURE_STATUS_ACTIVE, "it does not mind a non-blocking one");
    must(cuMemAlloc_v2(&q, 64));
    must(cuMemFree_v2(q));
    answers(cuStreamEndCapture(a, &graph), CUDA_SUCCESS);
    is_u64(nodes_of(graph), 0, "relaxed, memory can be had, and is in no node");
    must(cuGraphDestroy(graph));

    /* a stream that goes away while it is captured */
    must(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_GLOBAL));
    must(cuStreamDestroy_v2(blocking));
    answers(cuMemAlloc_v2(&q, 64), CUDA_SUCCESS);
    must(cuMemFree_v2(q));
    must(cuMemFree_v2(p));
    must(cuEventDestroy_v2(event));
}

/* A forked stream may go before the capture ends: what was put into it counts, joined or not. */
static void forked_stream_goes(void)
{
    CUdeviceptr p;
    CUevent forked, joined;
    CUstream c;
    CUgraph graph = NULL;
    unsigned byte = 0;
    CUgraphExec exec;

    must(cuMemAlloc_v2(&p, 64));
    must(cuEventCreate(&forked, 0));
    must(cuEventCreate(&joined, 0));
    for (int early = 0; early < 2; early++) {
        must(cuMemsetD8_v2(p, 0, 64));
        must(cuCtxSynchronize()); /* the other streams do not wait for that fill */
        must(cuStreamCreate(&c, CU_STREAM_NON_BLOCKING));
        must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
        must(fill(a, p, 1, 1));
        must(cuEventRecord(forked, a));
        must(cuStreamWaitEvent(c, forked, 0));
        must(fill(c, p + 4, 5, 1));
        must(cuEventRecord(joined, c));
        if (early)
            answers(cuStreamDestroy_v2(c), CUDA_SUCCESS);
        answers(cuStreamWaitEvent(a, joined, 0), CUDA_SUCCESS);
        if (!early)
            answers(cuStreamDestroy_v2(c), CUDA_SUCCESS);
        is_int(state(a), CU_STREAM_CAPTURE_STATUS_ACTIVE, "destroying a forked stream breaks nothing");
        must(fill(a, p + 8, 1, 1));
        answers(cuStreamEndCapture(a, &graph), CUDA_SUCCESS);
        is_u64(nodes_of(graph), 3, "its nodes are in the graph");
        must(cuGraphInstantiateWithFlags(&exec, graph, 0));
        must(cuGraphLaunch(exec, a));
        must(cuStreamSynchronize(a));
        must(cuMemcpyDtoH_v2(&byte, p + 4, 4));
        is_int((int)byte, 5, "and run");
        must(cuGraphExecDestroy(exec));
        must(cuGraphDestroy(graph));
    }
    must(cuStreamCreate(&c, CU_STREAM_NON_BLOCKING));
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    must(fill(a, p, 1, 1));
    must(cuEventRecord(forked, a));
    must(cuStreamWaitEvent(c, forked, 0));
    must(fill(c, p, 1, 1));
    must(cuStreamDestroy_v2(c));
    answers(cuStreamEndCapture(a, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    is_ptr(graph, NULL, "what never came back is missed");
    must(cuEventDestroy_v2(forked));
    must(cuEventDestroy_v2(joined));
    must(cuMemFree_v2(p));
}

/* --- other threads -------------------------------------------------------------------------------------- */

struct visit {
    CUstreamCaptureMode mode;
    CUresult allocated, ended;
};

static void *visit(void *argument)
{
    struct visit *self = argument;
    CUstreamCaptureMode mode = self->mode;
    CUdeviceptr p = 0;
    CUgraph graph;

    must(cuCtxSetCurrent(primary));
    must(cuThreadExchangeStreamCaptureMode(&mode));
    self->allocated = cuMemAlloc_v2(&p, 64);
    if (p)
        cuMemFree_v2(p);
    self->ended = cuStreamEndCapture(a, &graph);
    return NULL;
}

static struct visit from_another(CUstreamCaptureMode mode)
{
    struct visit self = {.mode = mode};
    pthread_t thread;

    if (pthread_create(&thread, NULL, visit, &self) || pthread_join(thread, NULL))
        bail("no thread");
    return self;
}

static void threads(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    struct visit visited;
    CUdeviceptr p;
    CUgraph graph;

    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    visited = from_another(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    is_int(visited.allocated, CUDA_SUCCESS, "a thread may allocate if it looks at its own captures alone");
    is_int(visited.ended, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "it cannot end another's");
    is_int(state(a), CU_STREAM_CAPTURE_STATUS_NONE, "and the capture is over by the attempt");
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    visited = from_another(CU_STREAM_CAPTURE_MODE_GLOBAL);
    is_int(visited.allocated, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
           "a global capture forbids it to all threads");
    is_int(visited.ended, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "nor can they end what they broke");

    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    visited = from_another(CU_STREAM_CAPTURE_MODE_GLOBAL);
    is_int(visited.allocated, CUDA_SUCCESS, "a thread-local capture forbids nothing to others");
    answers(cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
    is_int(mode, CU_STREAM_CAPTURE_MODE_GLOBAL, "the mode before is given back");
    answers(cuMemAlloc_v2(&p, 64), CUDA_SUCCESS);
    must(cuMemFree_v2(p));
    must(cuThreadExchangeStreamCaptureMode(&mode));
    answers(cuStreamEndCapture(a, &graph), CUDA_ERROR_ILLEGAL_STATE);

    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    visited = from_another(CU_STREAM_CAPTURE_MODE_GLOBAL);
    is_int(visited.allocated, CUDA_SUCCESS, "a relaxed one forbids nothing");
    is_int(visited.ended, CUDA_SUCCESS, "and any thread may end it");
    mode = (CUstreamCaptureMode)3;
    answers(cuThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_INVALID_VALUE);
}

static void per_thread(void)
{
    CUdeviceptr p;
    CUgraph graph;

    must(cuMemAlloc_v2(&p, 64));
    answers(cuStreamBeginCapture_v2_ptsz(NULL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), CUDA_SUCCESS);
    is_int(state(CU_STREAM_PER_THREAD), CU_STREAM_CAPTURE_STATUS_ACTIVE,
           "a thread's own stream can be captured");
    answers(cuMemsetD8Async_ptsz(p, 1, 1, NULL), CUDA_SUCCESS);
    answers(cuStreamEndCapture(CU_STREAM_PER_THREAD, &graph), CUDA_SUCCESS);
    is_u64(nodes_of(graph), 1, "with its work");
    must(cuGraphDestroy(graph));
    must(cuMemFree_v2(p));
}

static void dependencies(void)
{
    CUdeviceptr p;
    CUgraph graph, again;
    CUgraphNode root, all[4], from[4], to[4];
    const CUgraphNode *front;
    CUstreamCaptureStatus status;
    size_t count = 4, edges = 4;

    must(cuMemAlloc_v2(&p, 64));
    must(cuGraphCreate(&graph, 0));
    must(cuGraphAddEmptyNode(&root, graph, NULL, 0));
    answers(cuStreamUpdateCaptureDependencies(a, &root, 1, 0), CUDA_ERROR_ILLEGAL_STATE);
    answers(cuStreamBeginCaptureToGraph(a, graph, &root, NULL, 1, CU_STREAM_CAPTURE_MODE_RELAXED),
            CUDA_SUCCESS);
    must(fill(a, p, 1, 1));
    answers(cuStreamUpdateCaptureDependencies(a, &root, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES), CUDA_SUCCESS);
    must(fill(a, p + 4, 1, 1));
    must(cuGraphGetNodes(graph, all, &count));
    is_u64(count, 3, "the given graph grows");
    answers(cuStreamUpdateCaptureDependencies(a, &all[1], 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES),
            CUDA_SUCCESS);
    must(cuStreamGetCaptureInfo_v2(a, &status, NULL, NULL, &front, &count));
    is_u64(count, 2, "the next work waits for both");
    answers(cuStreamUpdateCaptureDependencies(a, &all[1], 1, 2), CUDA_ERROR_INVALID_VALUE);
    answers(cuStreamEndCapture(a, &again), CUDA_SUCCESS);
    ok(again == graph, "the graph is the program's own");
    must(cuGraphGetEdges(graph, from, to, &edges));
    ok(edges == 2 && from[0] == root && from[1] == root, "both wait for the root alone");
    must(cuGraphDestroy(graph));
    must(cuMemFree_v2(p));
}

int main(void)
{
    CUmodule module;

    plan(0);
    primary = begin();
    must(cuModuleLoadData(&module, kernels_ptx));
    must(cuModuleGetFunction(&fill_kernel, module, "memsim_fill"));
    must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    replays();
    fork_and_join();
    forked_stream_goes();
    what_breaks_it();
    threads();
    per_thread();
    dependencies();
    return done();
}
