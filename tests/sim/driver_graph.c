/* The simulated driver: graphs of every kind of node, launched in the order of streams, changed and copied.
 */
#include <stdlib.h>

#include "driver.h"
#include "kernels.h"

static CUfunction hold_kernel, fill_kernel;
static CUstream a, b;

static atomic_int trace[64];
static atomic_int trace_length;

static void note(void *data)
{
    atomic_store(&trace[atomic_fetch_add(&trace_length, 1)], (int)(intptr_t)data);
}

static CUgraphNode host_node(CUgraph graph, const CUgraphNode *after, size_t count, int number)
{
    CUDA_HOST_NODE_PARAMS params = {note, (void *)(intptr_t)number};
    CUgraphNode node;

    must(cuGraphAddHostNode(&node, graph, after, count, &params));
    return node;
}

static CUgraphNode fill_node(CUgraph graph, const CUgraphNode *after, size_t count, CUdeviceptr words,
                             uint32_t value)
{
    uint64_t number = 4;
    void *arguments[] = {&words, &value, &number};
    CUDA_KERNEL_NODE_PARAMS params = {fill_kernel, 1, 1, 1, 1, 1, 1, 0, arguments, NULL, NULL, NULL};
    CUgraphNode node;

    must(cuGraphAddKernelNode_v2(&node, graph, after, count, &params));
    return node;
}

static CUDA_MEMCPY3D copy_of(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    CUDA_MEMCPY3D copy = {0};

    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = from;
    copy.dstDevice = to;
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
    return copy;
}

static void every_kind(void)
{
    CUcontext ctx;
    CUdeviceptr p;
    CUgraph graph, child;
    CUgraphExec exec;
    CUgraphNode nodes[8], copied;
    CUgraphNodeType type;
    CUevent event;
    CUstreamBatchMemOpParams write = {0};
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {0};
    uint32_t words[16];

    must(cuCtxGetCurrent(&ctx));
    must(cuMemAlloc_v2(&p, 64));
    must(cuMemsetD8_v2(p, 0, 64));
    must(cuCtxSynchronize());
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    answers(cuGraphCreate(&graph, 1), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    must(cuGraphCreate(&child, 0));
    nodes[0] = fill_node(graph, NULL, 0, p, 5);
    CUDA_MEMCPY3D copy = copy_of(p + 16, p, 16);
    answers(cuGraphAddMemcpyNode(&nodes[1], graph, nodes, 1, &copy, ctx), CUDA_SUCCESS);
    CUDA_MEMSET_NODE_PARAMS set = {p + 32, 0, 9, 4, 4, 1};
    answers(cuGraphAddMemsetNode(&nodes[2], graph, &nodes[1], 1, &set, ctx), CUDA_SUCCESS);
    write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.writeValue.address = p + 48;
    write.writeValue.value = 3;
    batch.ctx = ctx;
    batch.count = 1;
    batch.paramArray = &write;
    answers(cuGraphAddBatchMemOpNode(&nodes[3], graph, &nodes[2], 1, &batch), CUDA_SUCCESS);
    nodes[4] = host_node(graph, &nodes[3], 1, 1);
    host_node(child, NULL, 0, 2);
    CUgraphNode first = host_node(child, NULL, 0, 3);
    host_node(child, &first, 1, 4);
    answers(cuGraphAddChildGraphNode(&nodes[5], graph, &nodes[4], 1, child), CUDA_SUCCESS);
    must(cuGraphDestroy(child)); /* the node has a copy */
    answers(cuGraphAddEventRecordNode(&nodes[6], graph, &nodes[5], 1, event), CUDA_SUCCESS);
    nodes[7] = host_node(graph, &nodes[6], 1, 5);
    CUgraphNode twice[] = {nodes[7], nodes[7]};
    answers(cuGraphAddEmptyNode(&copied, graph, twice, 2), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphNodeGetType(nodes[5], &type), CUDA_SUCCESS);
    is_int(type, CU_GRAPH_NODE_TYPE_GRAPH, "a node knows its type");
    answers(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    must(cuGraphDestroy(graph)); /* it is not needed any more */
    atomic_store(&trace_length, 0);
    answers(cuGraphUpload(exec, a), CUDA_SUCCESS);
    answers(cuGraphLaunch(exec, a), CUDA_SUCCESS);
    answers(cuEventSynchronize(event), CUDA_SUCCESS);
    answers(cuStreamSynchronize(a), CUDA_SUCCESS);
    must(cuMemcpyDtoH_v2(words, p, 64));
    ok(words[0] == 5 && words[3] == 5 && words[4] == 5 && words[7] == 5, "a kernel and a copy");
    ok(words[8] == 9 && words[11] == 9 && words[12] == 3, "a fill and a write");
    is_int(atomic_load(&trace_length), 5, "all host functions");
    ok(trace[0] == 1 && trace[4] == 5, "what a child does lies between");
    must(cuGraphExecDestroy(exec));
    must(cuEventDestroy_v2(event));
    must(cuMemFree_v2(p));
}

static void stream_order(void)
{
    CUdeviceptr p;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode left, both[2];
    atomic_int go = 0;

    must(cuMemAlloc_v2(&p, 64));
    must(cuGraphCreate(&graph, 0));
    left = host_node(graph, NULL, 0, 1);
    both[0] = host_node(graph, &left, 1, 2);
    both[1] = host_node(graph, &left, 1, 3);
    host_node(graph, both, 2, 4);
    must(cuGraphInstantiateWithFlags(&exec, graph, 0));
    atomic_store(&trace_length, 0);
    must(cuLaunchHostFunc(a, hold, &go));
    answers(cuGraphLaunch(exec, a), CUDA_SUCCESS);
    must(cuLaunchHostFunc(a, note, (void *)5));
    answers(cuGraphLaunch(exec, b), CUDA_SUCCESS);
    pause_ms(20);
    is_int(atomic_load(&trace_length), 0, "a graph waits for its stream, and for its own earlier launch");
    answers(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    atomic_store(&go, 1);
    answers(cuStreamSynchronize(b), CUDA_SUCCESS);
    answers(cuStreamSynchronize(a), CUDA_SUCCESS);
    is_int(atomic_load(&trace_length), 9, "everything ran");
    int at[6] = {0}, sum = 0;
    for (int i = 0; i < 9; i++)
        at[trace[i]] = at[trace[i]] ? at[trace[i]] : i + 1;
    for (int i = 1; i < 6; i++)
        sum += at[i] > 0;
    ok(sum == 5 && at[1] == 1 && at[4] > at[2] && at[4] > at[3] && at[5] > at[4],
       "in the order of graph and stream");
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
    must(cuMemFree_v2(p));
}

/* One branch waits for a word that another writes: they run beside each other. */
static void branches(void)
{
    CUdeviceptr p;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode node;
    CUcontext ctx;
    uint32_t value = 1;
    uint64_t limit = 0;

    must(cuCtxGetCurrent(&ctx));
    must(cuMemAlloc_v2(&p, 64));
    must(cuMemsetD8_v2(p, 0, 64));
    must(cuCtxSynchronize());
    must(cuGraphCreate(&graph, 0));
    void *arguments[] = {&p, &value, &limit};
    CUDA_KERNEL_NODE_PARAMS_v1 params = {hold_kernel, 1, 1, 1, 1, 1, 1, 0, arguments, NULL};
    answers(cuGraphAddKernelNode(&node, graph, NULL, 0, &params), CUDA_SUCCESS);
    CUstreamBatchMemOpParams write = {0};
    write.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    write.writeValue.address = p;
    write.writeValue.value = 1;
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch = {ctx, 1, &write, 0};
    must(cuGraphAddBatchMemOpNode(&node, graph, NULL, 0, &batch));
    must(cuGraphInstantiateWithFlags(&exec, graph, 0));
    must(cuGraphLaunch(exec, a));
    answers(cuStreamSynchronize(a), CUDA_SUCCESS);
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
    must(cuMemFree_v2(p));
}

static void edges_and_copies(void)
{
    CUgraph graph, clone;
    CUgraphNode one, two, three, found, list[4];
    size_t count = 4;

    must(cuGraphCreate(&graph, 0));
    one = host_node(graph, NULL, 0, 1);
    two = host_node(graph, NULL, 0, 2);
    three = host_node(graph, &two, 1, 3);
    answers(cuGraphAddDependencies(graph, &one, &two, 1), CUDA_SUCCESS);
    answers(cuGraphAddDependencies(graph, &one, &two, 1), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphAddDependencies(graph, &three, &one, 1), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphNodeGetDependencies(three, list, &count), CUDA_SUCCESS);
    ok(count == 1 && list[0] == two, "what a node waits for");
    count = 4;
    answers(cuGraphNodeGetDependentNodes(one, list, &count), CUDA_SUCCESS);
    ok(count == 1 && list[0] == two, "what waits for a node");
    answers(cuGraphClone(&clone, graph), CUDA_SUCCESS);
    answers(cuGraphNodeFindInClone(&found, two, clone), CUDA_SUCCESS);
    ok(found != two, "a clone has nodes of its own");
    answers(cuGraphRemoveDependencies(graph, &one, &two, 1), CUDA_SUCCESS);
    answers(cuGraphRemoveDependencies(graph, &one, &two, 1), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphDestroyNode(two), CUDA_SUCCESS);
    must(cuGraphGetRootNodes(graph, NULL, &count));
    is_u64(count, 2, "two roots are left");
    must(cuGraphGetNodes(clone, NULL, &count));
    is_u64(count, 3, "the clone is as it was");
    answers(cuGraphNodeGetType(two, &(CUgraphNodeType){0}), CUDA_ERROR_INVALID_VALUE);
    must(cuGraphDestroy(graph));
    must(cuGraphDestroy(clone));
}

static void changes(void)
{
    CUcontext ctx;
    CUdeviceptr p;
    CUgraph graph, other;
    CUgraphExec exec;
    CUgraphNode set_node, fill;
    CUDA_MEMSET_NODE_PARAMS set, read;
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUgraphExecUpdateResultInfo info;
    unsigned enabled = 9;
    uint32_t words[8];

    must(cuCtxGetCurrent(&ctx));
    must(cuMemAlloc_v2(&p, 64));
    must(cuMemsetD8_v2(p, 0, 64));
    must(cuCtxSynchronize());
    must(cuGraphCreate(&graph, 0));
    fill = fill_node(graph, NULL, 0, p, 1);
    set = (CUDA_MEMSET_NODE_PARAMS){p + 16, 0, 2, 4, 4, 1};
    must(cuGraphAddMemsetNode(&set_node, graph, &fill, 1, &set, ctx));
    answers(cuGraphKernelNodeGetParams_v2(fill, &kernel), CUDA_SUCCESS);
    ok(kernel.func == fill_kernel && *(uint32_t *)kernel.kernelParams[1] == 1,
       "a node tells its kernel and arguments");
    must(cuGraphInstantiateWithFlags(&exec, graph, 0));
    set.value = 3;
    answers(cuGraphExecMemsetNodeSetParams(exec, set_node, &set, ctx), CUDA_SUCCESS);
    answers(cuGraphMemsetNodeGetParams(set_node, &read), CUDA_SUCCESS);
    is_int((int)read.value, 2, "the graph itself is as it was");
    answers(cuGraphNodeSetEnabled(exec, fill, 0), CUDA_SUCCESS);
    answers(cuGraphNodeGetEnabled(exec, fill, &enabled), CUDA_SUCCESS);
    is_int((int)enabled, 0, "a node can be left out");
    must(cuGraphLaunch(exec, a));
    must(cuStreamSynchronize(a));
    must(cuMemcpyDtoH_v2(words, p, 32));
    ok(words[0] == 0 && words[4] == 3, "as changed");
    must(cuGraphNodeSetEnabled(exec, fill, 1));

    must(cuGraphCreate(&other, 0));
    CUgraphNode again = fill_node(other, NULL, 0, p, 6);
    set.value = 7;
    must(cuGraphAddMemsetNode(&set_node, other, &again, 1, &set, ctx));
    answers(cuGraphExecUpdate_v2(exec, other, &info), CUDA_SUCCESS);
    is_int(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS, "a graph of the same shape fits");
    must(cuGraphLaunch(exec, a));
    must(cuStreamSynchronize(a));
    must(cuMemcpyDtoH_v2(words, p, 32));
    ok(words[0] == 6 && words[4] == 7, "and replaces it");
    host_node(other, &again, 1, 1);
    answers(cuGraphExecUpdate_v2(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    is_int(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, "another shape does not");

    CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_HOST};
    any.host.fn = note;
    CUgraphNode node;
    answers(cuGraphAddNode_v2(&node, graph, &fill, NULL, 1, &any), CUDA_SUCCESS);
    any.host.userData = (void *)9;
    answers(cuGraphExecNodeSetParams(exec, node, &any), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphNodeSetParams(node, &any), CUDA_SUCCESS);
    CUDA_HOST_NODE_PARAMS host;
    answers(cuGraphHostNodeGetParams(node, &host), CUDA_SUCCESS);
    ok(host.userData == (void *)9, "the function for any type does what those of one do");
    any.type = CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL;
    answers(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &any), CUDA_ERROR_NOT_SUPPORTED);
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
    must(cuGraphDestroy(other));
    must(cuMemFree_v2(p));
}

/* A graph that is launched into a captured stream is a child of what is captured. */
static void captured_launch(void)
{
    CUgraph graph, outer;
    CUgraphExec exec, outer_exec;
    CUgraphNode node;
    CUgraphNodeType type;
    size_t count = 1;

    must(cuGraphCreate(&graph, 0));
    host_node(graph, NULL, 0, 1);
    must(cuGraphInstantiateWithFlags(&exec, graph, 0));
    must(cuGraphDestroy(graph));
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    answers(cuGraphLaunch(exec, a), CUDA_SUCCESS);
    must(cuStreamEndCapture(a, &outer));
    must(cuGraphExecDestroy(exec));
    must(cuGraphGetNodes(outer, &node, &count));
    must(cuGraphNodeGetType(node, &type));
    ok(count == 1 && type == CU_GRAPH_NODE_TYPE_GRAPH, "a launch that is captured is a child graph");
    atomic_store(&trace_length, 0);
    must(cuGraphInstantiateWithFlags(&outer_exec, outer, 0));
    must(cuGraphLaunch(outer_exec, a));
    must(cuStreamSynchronize(a));
    is_int(atomic_load(&trace_length), 1, "and runs with it");
    must(cuGraphExecDestroy(outer_exec));
    must(cuGraphDestroy(outer));
}

static atomic_int destroyed;

static void destroy(void *data)
{
    (void)data;
    atomic_fetch_add(&destroyed, 1);
}

static void user_objects(void)
{
    CUuserObject user;
    CUgraph graph, clone;

    must(cuGraphCreate(&graph, 0));
    answers(cuUserObjectCreate(&user, NULL, destroy, 1, 0), CUDA_ERROR_INVALID_VALUE);
    answers(cuUserObjectCreate(&user, NULL, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC), CUDA_SUCCESS);
    answers(cuGraphRetainUserObject(graph, user, 1, CU_GRAPH_USER_OBJECT_MOVE), CUDA_SUCCESS);
    must(cuGraphClone(&clone, graph));
    must(cuGraphDestroy(graph));
    pause_ms(5);
    is_int(atomic_load(&destroyed), 0, "the clone keeps it");
    must(cuGraphDestroy(clone));
    for (int i = 0; i < 5000 && !atomic_load(&destroyed); i++)
        pause_ms(1);
    is_int(atomic_load(&destroyed), 1, "with the last graph it goes");
    answers(cuUserObjectRetain(user, 1), CUDA_ERROR_INVALID_VALUE);
}

static CUgraphNode condition_node(CUgraph graph, CUgraphConditionalHandle handle,
                                  CUgraphConditionalNodeType type, unsigned size, CUgraph **bodies_p)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    CUgraphNode node = NULL;

    params.conditional.handle = handle;
    params.conditional.type = type;
    params.conditional.size = size;
    answers(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params), CUDA_SUCCESS);
    *bodies_p = params.conditional.phGraph_out;
    return node;
}

/* What may not be said of a conditional node. */
static void refused_conditions(CUgraph graph, CUgraphConditionalHandle handle)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
    CUgraphConditionalHandle other;
    CUgraphNode node;

    params.conditional.handle = handle;
    params.conditional.size = 3;
    answers(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
    params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    params.conditional.size = 2;
    answers(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
    params.conditional.type = CU_GRAPH_COND_TYPE_SWITCH;
    params.conditional.size = 0;
    answers(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
    params.conditional.size = 1;
    params.conditional.handle = handle + 1000;
    answers(cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphConditionalHandleCreate(&other, graph, NULL, 0, 2), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphConditionalHandleCreate(&other, NULL, NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphConditionalHandleCreate(NULL, graph, NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
}

/* A value of each node's own chooses what of its bodies runs: each writes a word. */
static void conditions(void)
{
    static const struct {
        CUgraphConditionalNodeType type;
        unsigned size, value, flags;
        int body; /* which runs; -1: none */
    } cases[] = {{CU_GRAPH_COND_TYPE_IF, 1, 1, 1, 0},     {CU_GRAPH_COND_TYPE_IF, 1, 0, 1, -1},
                 {CU_GRAPH_COND_TYPE_IF, 2, 0, 1, 1},     {CU_GRAPH_COND_TYPE_IF, 2, 7, 0, 1},
                 {CU_GRAPH_COND_TYPE_SWITCH, 3, 2, 1, 2}, {CU_GRAPH_COND_TYPE_SWITCH, 3, 3, 1, -1},
                 {CU_GRAPH_COND_TYPE_WHILE, 1, 1, 1, 0},  {CU_GRAPH_COND_TYPE_WHILE, 1, 0, 1, -1}};
    enum { CASES = sizeof cases / sizeof cases[0], BODY_WORDS = 4, WORDS = 3 * BODY_WORDS * CASES };
    uint32_t words[WORDS], want[WORDS] = {0};
    CUgraphConditionalHandle handle;
    CUgraph graph, clone, *bodies, *first = NULL;
    CUgraphExec exec, again;
    CUgraphNode last;
    CUdeviceptr p;

    must(cuMemAlloc_v2(&p, sizeof words));
    must(cuMemsetD8_v2(p, 0, sizeof words));
    must(cuCtxSynchronize());
    must(cuGraphCreate(&graph, 0));
    for (unsigned i = 0; i < CASES; i++) {
        answers(cuGraphConditionalHandleCreate(&handle, graph, NULL, cases[i].value, cases[i].flags),
                CUDA_SUCCESS);
        last = condition_node(graph, handle, cases[i].type, cases[i].size, &bodies);
        for (unsigned body = 0; body < cases[i].size; body++)
            fill_node(bodies[body], NULL, 0, p + 4 * BODY_WORDS * (3 * i + body), 5 + body);
        for (unsigned k = 0; cases[i].body >= 0 && k < BODY_WORDS; k++)
            want[BODY_WORDS * (3 * i + (unsigned)cases[i].body) + k] = 5 + (unsigned)cases[i].body;
        first = first ? first : bodies;
    }
    answers(cuStreamBeginCaptureToGraph(a, first[0], NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_SUCCESS);
    must(cuMemsetD32Async(p + 4 * BODY_WORDS, 9, 1, a)); /* where this node has no second body */
    answers(cuStreamEndCapture(a, &clone), CUDA_SUCCESS);
    is_ptr(clone, first[0], "a stream captures into a body");
    want[BODY_WORDS] = 9;
    refused_conditions(graph, handle);
    answers(cuGraphDestroy(bodies[0]), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
    answers(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    answers(cuGraphInstantiateWithFlags(&again, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
    answers(cuGraphLaunch(exec, a), CUDA_SUCCESS);
    answers(cuStreamSynchronize(a), CUDA_SUCCESS);
    must(cuMemcpyDtoH_v2(words, p, sizeof words));
    for (unsigned i = 0; i < WORDS; i++)
        if (words[i] != want[i])
            diag("word %u is %u and should be %u", i, words[i], want[i]);
    ok(!memcmp(words, want, sizeof words), "the values choose the bodies");
    must(cuGraphExecDestroy(exec));
    host_node(bodies[0], NULL, 0, 1);
    answers(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
    answers(cuGraphDestroyNode(last), CUDA_SUCCESS);
    answers(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    must(cuGraphExecDestroy(exec));
    must(cuGraphConditionalHandleCreate(&handle, graph, NULL, 0, 0));
    answers(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_INVALID_VALUE);
    must(cuGraphDestroy(graph));
    must(cuMemFree_v2(p));
}

int main(void)
{
    CUmodule module;

    plan(0);
    begin();
    must(cuModuleLoadData(&module, kernels_ptx));
    must(cuModuleGetFunction(&hold_kernel, module, "memsim_hold"));
    must(cuModuleGetFunction(&fill_kernel, module, "memsim_fill"));
    must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    every_kind();
    stream_order();
    branches();
    edges_and_copies();
    changes();
    captured_launch();
    user_objects();
    conditions();
    return done();
}
