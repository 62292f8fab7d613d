/*
 * conform_capture.c: streams that are captured: what may be called meanwhile, how captures end, and memory
 * that belongs to graphs.
 */
#include "conform.h"

#include <pthread.h>

#include "vendor/abi/cuda_graph.h"
#include "vendor/abi/cuda_graph_fn.h"

static CUstream stream, other;
static CUevent event;
static CUcontext context;

static CUgraph end_quietly(CUstream captured, int *status_p)
{
    CUgraph graph = NULL;

    *status_p = (int)cuStreamEndCapture(captured, &graph);
    return graph;
}

static void drop(CUgraph graph)
{
    if (graph)
        kit_must(cuGraphDestroy(graph));
}

static const char *state(void)
{
    static const char *const names[] = {"none", "active", "invalidated"};
    CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;

    kit_must(cuStreamIsCapturing(stream, &now));
    return (unsigned)now < KIT_COUNT(names) ? names[now] : "another";
}

/* One call in a capture of its own: its status, what is left of the capture, and how that ends. */
#define in_capture(name, mode, call)                                                                         \
    do {                                                                                                     \
        int call_end;                                                                                        \
        kit_must(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_##mode));                            \
        int call_status = (int)(call);                                                                       \
        const char *call_state = state();                                                                    \
        drop(end_quietly(stream, &call_end));                                                                \
        say(name, "%d, %s, end %d", call_status, call_state, call_end);                                      \
    } while (0)

static void calls(void)
{
    CUdeviceptr d = 0, block = conform_get(KIT_MIB);
    size_t left, total;
    CUstream fresh;
    unsigned char byte;

    in_capture("alloc_global", GLOBAL, cuMemAlloc_v2(&d, KIT_MIB));
    in_capture("alloc_thread_local", THREAD_LOCAL, cuMemAlloc_v2(&d, KIT_MIB));
    in_capture("alloc_relaxed", RELAXED, cuMemAlloc_v2(&d, KIT_MIB));
    kit_must(cuMemFree_v2(d));
    in_capture("free_global", GLOBAL, cuMemFree_v2(block));
    in_capture("free_null_global", GLOBAL, cuMemFree_v2(0));
    block = conform_get(KIT_MIB);
    in_capture("free_relaxed", RELAXED, cuMemFree_v2(block));
    block = conform_get(KIT_MIB);
    in_capture("info_global", GLOBAL, cuMemGetInfo_v2(&left, &total));
    in_capture("range_global", GLOBAL, cuMemGetAddressRange_v2(&d, &left, block));
    in_capture("query_self", GLOBAL, cuStreamQuery(stream));
    in_capture("query_other", GLOBAL, cuStreamQuery(other));
    in_capture("synchronize_self", GLOBAL, cuStreamSynchronize(stream));
    in_capture("synchronize_other", GLOBAL, cuStreamSynchronize(other));
    in_capture("synchronize_other_relaxed", RELAXED, cuStreamSynchronize(other));
    in_capture("synchronize_context", GLOBAL, cuCtxSynchronize());
    in_capture("synchronize_context_relaxed", RELAXED, cuCtxSynchronize());
    in_capture("query_event_outside", GLOBAL, cuEventQuery(event));
    in_capture("query_event_outside_relaxed", RELAXED, cuEventQuery(event));
    in_capture("record_elsewhere", GLOBAL, cuEventRecord(event, other));
    in_capture("create_stream", GLOBAL, cuStreamCreate(&fresh, CU_STREAM_NON_BLOCKING));
    in_capture("copy_to_host", GLOBAL, cuMemcpyDtoH_v2(&byte, block, 1));
    in_capture("set_by_legacy", GLOBAL, cuMemsetD8_v2(block, 1, 16));
    in_capture("set_captured", GLOBAL, cuMemsetD8Async(block, 1, 16, stream));
    in_capture("begin_again", GLOBAL, cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    in_capture("context_event", GLOBAL, cuCtxRecordEvent(context, event));
    kit_must(cuMemFree_v2(block));
}

static void by_exchange(void)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUdeviceptr d = 0;

    kit_must(cuThreadExchangeStreamCaptureMode(&mode));
    say("exchanged_from", "%d", (int)mode);
    in_capture("alloc_exchanged", GLOBAL, cuMemAlloc_v2(&d, KIT_MIB));
    in_capture("free_exchanged", GLOBAL, cuMemFree_v2(d));
    in_capture("query_event_exchanged", GLOBAL, cuEventQuery(event));
    kit_must(cuThreadExchangeStreamCaptureMode(&mode));
    say("exchanged_back", "%d", (int)mode);
}

static void *alloc_elsewhere(void *data)
{
    CUdeviceptr d = 0;

    (void)data;
    kit_must(cuCtxSetCurrent(context));
    int status = (int)cuMemAlloc_v2(&d, KIT_MIB);
    if (status == 0)
        cuMemFree_v2(d);
    return (void *)(intptr_t)status;
}

static int by_other_thread(void *(*body)(void *))
{
    pthread_t thread;
    void *status = NULL;

    if (pthread_create(&thread, NULL, body, NULL) != 0)
        kit_give_up("no thread could be started");
    pthread_join(thread, &status);
    return (int)(intptr_t)status;
}

static void *end_elsewhere(void *data)
{
    CUgraph graph = NULL;

    (void)data;
    kit_must(cuCtxSetCurrent(context));
    return (void *)(intptr_t)cuStreamEndCapture(stream, &graph);
}

static void ends(void)
{
    CUgraph graph;
    int status;

    in_capture("alloc_by_other_thread_global", GLOBAL, by_other_thread(alloc_elsewhere));
    in_capture("alloc_by_other_thread_local", THREAD_LOCAL, by_other_thread(alloc_elsewhere));
    in_capture("end_by_other_thread", THREAD_LOCAL, by_other_thread(end_elsewhere));
    say_status("end_without_begin", cuStreamEndCapture(stream, &graph));
    say_status("begin_legacy", cuStreamBeginCapture_v2(CU_STREAM_LEGACY, CU_STREAM_CAPTURE_MODE_GLOBAL));
    /* Another stream joins by an event: not joined back, the end fails; it cannot be ended there. */
    kit_must(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    kit_must(cuEventRecord(event, stream));
    say_status("join", cuStreamWaitEvent(other, event, 0));
    kit_must(kit_fill(0, 0, 0, other));
    graph = end_quietly(other, &status);
    say("end_at_joined", "%d", status);
    graph = end_quietly(stream, &status);
    say("end_unjoined", "%d", status);
    drop(graph);
    kit_must(cuEventRecord(event, other));
    kit_must(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    kit_must(cuEventRecord(event, stream));
    kit_must(cuStreamWaitEvent(other, event, 0));
    kit_must(kit_fill(0, 0, 0, other));
    kit_must(cuEventRecord(event, other));
    kit_must(cuStreamWaitEvent(stream, event, 0));
    graph = end_quietly(stream, &status);
    say("end_joined", "%d", status);
    drop(graph);
    say_status("query_event_of_ended_capture", cuEventQuery(event));
    kit_must(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    kit_must(cuEventRecord(event, stream));
    say_status("query_captured_event", cuEventQuery(event));
    graph = end_quietly(stream, &status);
    say("end_after_that", "%d", status);
    drop(graph);
    kit_must(cuEventRecord(event, other));
    kit_must(cuCtxSynchronize());
}

static void running(void)
{
    CUdeviceptr d = conform_get(4096);
    CUgraphExec exec;
    CUgraph graph;
    int status;
    size_t nodes = 0;

    kit_must(cuMemsetD8_v2(d, 1, 4096));
    kit_must(cuCtxSynchronize());
    kit_must(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    kit_must(cuMemsetD8Async(d, 2, 4096, stream));
    kit_must(kit_fill(d, 0x03030303, 4, stream));
    graph = end_quietly(stream, &status);
    say("ends", "%d", status);
    kit_must(cuGraphGetNodes(graph, NULL, &nodes));
    say("nodes", "%zu", nodes);
    say("captured_did_not_run", "%d", conform_byte(d));
    say_status("instantiate", cuGraphInstantiateWithFlags(&exec, graph, 0));
    say_status("launch", cuGraphLaunch(exec, stream));
    kit_must(cuStreamSynchronize(stream));
    say("launched_ran", "%d %d", conform_byte(d), conform_byte(d + 4095));
    kit_must(cuMemsetD8_v2(d, 1, 4096));
    kit_must(cuCtxSynchronize());
    drop(graph);
    say_status("launch_again", cuGraphLaunch(exec, stream));
    kit_must(cuStreamSynchronize(stream));
    say("launched_ran_again", "%d %d", conform_byte(d), conform_byte(d + 4095));
    kit_must(cuGraphExecDestroy(exec));
    kit_must(cuMemFree_v2(d));
}

void conform_capture(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    context = kit_begin();
    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    kit_must(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    kit_must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    kit_must(cuEventRecord(event, other));
    kit_must(cuCtxSynchronize());
    running();
    ends();
    by_exchange();
    calls();
}

/* --- memory that belongs to graphs ---------------------------------------------------------------------- */

static cuuint64_t graph_memory(CUgraphMem_attribute which)
{
    cuuint64_t value = 0;

    kit_must(cuDeviceGetGraphMemAttribute(0, which, &value));
    return value;
}

static CUgraph capture_memory(CUdeviceptr *d_p, bool free_it)
{
    CUgraph graph;
    int status;

    kit_must(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    say_status(free_it ? "alloc_captured" : "alloc_captured_to_stay", cuMemAllocAsync(d_p, KIT_MIB, stream));
    kit_must(kit_fill(*d_p, 5, 16, stream));
    if (free_it)
        say_status("free_captured", cuMemFreeAsync(*d_p, stream));
    graph = end_quietly(stream, &status);
    say(free_it ? "ends" : "ends_to_stay", "%d", status);
    return graph;
}

/* What the device says of its graphs' memory, and of an address of theirs. */
static void figures(const char *name, CUdeviceptr d)
{
    CUdeviceptr base;
    size_t bytes;
    int known = (int)cuMemGetAddressRange_v2(&base, &bytes, d);

    say(name, "used %llu, reserved %llu, range %d",
        (unsigned long long)graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT),
        (unsigned long long)graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), known);
}

/* Memory that a graph takes and leaves behind. */
static void that_stays(void)
{
    CUgraphExec exec;
    CUdeviceptr d = 0;
    CUgraph graph = capture_memory(&d, false);

    say_status("instantiate_to_stay", cuGraphInstantiateWithFlags(&exec, graph, 0));
    say_status("launch_to_stay", cuGraphLaunch(exec, stream));
    kit_must(cuStreamSynchronize(stream));
    say("content", "%d", conform_byte(d));
    figures("figures_live", d);
    say_status("launch_twice_without_free", cuGraphLaunch(exec, stream));
    say_status("free_by_stream", cuMemFreeAsync(d, stream));
    kit_must(cuStreamSynchronize(stream));
    figures("figures_freed", d);
    say_status("launch_after_free", cuGraphLaunch(exec, stream));
    kit_must(cuStreamSynchronize(stream));
    say_status("free_by_free", cuMemFree_v2(d));
    kit_must(cuGraphExecDestroy(exec));
    figures("figures_without_exec", d);
    say_status("instantiate_auto",
               cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    say_status("launch_auto", cuGraphLaunch(exec, stream));
    say_status("launch_auto_again", cuGraphLaunch(exec, stream));
    kit_must(cuStreamSynchronize(stream));
    kit_must(cuGraphExecDestroy(exec));
    figures("figures_live_without_exec", d);
    kit_must(cuMemFreeAsync(d, stream));
    kit_must(cuStreamSynchronize(stream));
    figures("figures_freed_without_exec", d);
    drop(graph);
    figures("figures_without_graph", d);
    say_status("trim_last", cuDeviceGraphMemTrim(0));
    figures("figures_trimmed", d);
}

void conform_graph(int argc, char **argv)
{
    CUgraphExec exec, second;
    CUdeviceptr d = 0;
    CUgraph graph;

    (void)argc;
    (void)argv;
    context = kit_begin();
    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    graph = capture_memory(&d, true);
    say_status("instantiate", cuGraphInstantiateWithFlags(&exec, graph, 0));
    say_status("instantiate_twice", cuGraphInstantiateWithFlags(&second, graph, 0));
    say_status("launch", cuGraphLaunch(exec, stream));
    say_status("launch_again", cuGraphLaunch(exec, stream));
    say_status("synchronize", cuStreamSynchronize(stream));
    say("used_after", "%llu", (unsigned long long)graph_memory(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT));
    say_yes("reserved_after", graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT) >= KIT_MIB);
    say_status("free_graph_memory", cuMemFree_v2(d));
    kit_must(cuGraphExecDestroy(exec));
    drop(graph);
    say_status("trim", cuDeviceGraphMemTrim(0));
    say("reserved_trimmed", "%llu", (unsigned long long)graph_memory(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT));
    that_stays();
}
