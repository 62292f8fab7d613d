/*
 * Capture and graphs through the simulated runtime: what is captured is replayed, graphs are put together by
 * hand, memory nodes, and what breaks a capture.
 */
#include <stdatomic.h>
#include <string.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "kernels.h"
#include "tests/tap.h"

static char fill_stub; /* its address is the key that compiled code would use */

static void register_kernel(void)
{
    static struct {
        int magic, version;
        const void *data, *file;
    } wrapper = {0x466243b1, 1, kernels_ptx, NULL};
    void **handle = __cudaRegisterFatBinary(&wrapper);

    __cudaRegisterFunction(handle, &fill_stub, NULL, "memsim_fill", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(handle);
}

static cudaError_t fill(cudaStream_t stream, void *words, unsigned value, unsigned long long count)
{
    struct dim3 one = {1, 1, 1};
    void *arguments[] = {&words, &value, &count};

    return cudaLaunchKernel(&fill_stub, one, one, arguments, 0, stream);
}

static atomic_int calls;

static void count_call(void *argument)
{
    (void)argument;
    atomic_fetch_add(&calls, 1);
}

static void test_capture(void)
{
    enum cudaStreamCaptureStatus status;
    unsigned words[4] = {0};
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *p = NULL, *q = NULL;

    cudaMalloc(&p, 64);
    cudaMemset(p, 0, 64);
    cudaDeviceSynchronize();
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    is_int(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess,
           "cudaStreamBeginCapture");
    is_int(cudaStreamIsCapturing(stream, &status), cudaSuccess, "cudaStreamIsCapturing");
    is_int(status, cudaStreamCaptureStatusActive, "it is captured");
    is_int(fill(stream, p, 3, 2), cudaSuccess, "a kernel");
    is_int(cudaMemsetAsync((char *)p + 8, 1, 4, stream), cudaSuccess, "a fill");
    is_int(cudaMallocAsync(&q, 1 << 20, stream), cudaSuccess, "an allocation");
    is_int(cudaMemcpyAsync(q, p, 16, cudaMemcpyDeviceToDevice, stream), cudaSuccess, "a copy");
    is_int(cudaMemcpyAsync((char *)p + 12, q, 4, cudaMemcpyDeviceToDevice, stream), cudaSuccess, "and back");
    is_int(cudaFreeAsync(q, stream), cudaSuccess, "a free");
    is_int(cudaLaunchHostFunc(stream, count_call, NULL), cudaSuccess, "a host function");
    is_int(cudaStreamEndCapture(stream, &graph), cudaSuccess, "cudaStreamEndCapture");
    is_int(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess, "cudaGraphInstantiate");
    for (int i = 0; i < 3; i++)
        is_int(cudaGraphLaunch(exec, stream), cudaSuccess, "cudaGraphLaunch");
    is_int(cudaStreamSynchronize(stream), cudaSuccess, "it ends");
    cudaMemcpy(words, p, 16, cudaMemcpyDeviceToHost);
    ok(words[0] == 3 && words[1] == 3 && words[2] == 0x01010101 && words[3] == 3,
       "and did what was captured");
    is_int(atomic_load(&calls), 3, "each time");
    is_int(cudaGraphExecDestroy(exec), cudaSuccess, "cudaGraphExecDestroy");
    is_int(cudaGraphDestroy(graph), cudaSuccess, "cudaGraphDestroy");
    is_int(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess, "another capture");
    is_int(cudaMalloc(&q, 64), cudaErrorStreamCaptureUnsupported, "cudaMalloc is forbidden");
    is_int(cudaGetLastError(), cudaErrorStreamCaptureUnsupported, "and is the last error");
    is_int(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated, "the capture is broken");
    (void)cudaGetLastError();
    cudaFree(p);
    cudaStreamDestroy(stream);
}

static void test_nodes(void)
{
    struct cudaKernelNodeParams kernel = {0}, read;
    struct cudaMemsetParams set = {0};
    struct cudaHostNodeParams host = {count_call, NULL};
    struct cudaMemcpy3DParms copied;
    cudaGraphNode_t nodes[5], found[8];
    enum cudaGraphNodeType type;
    unsigned words[4] = {0}, value = 6;
    unsigned long long number = 2, flags = 9;
    cudaGraphExecUpdateResultInfo info;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    size_t count = 8;
    void *p = NULL;
    void *arguments[] = {&p, &value, &number};

    cudaMalloc(&p, 64);
    cudaMemset(p, 0, 64);
    cudaDeviceSynchronize();
    is_int(cudaGraphCreate(&graph, 0), cudaSuccess, "cudaGraphCreate");
    kernel.func = &fill_stub;
    kernel.gridDim = kernel.blockDim = (struct dim3){1, 1, 1};
    kernel.kernelParams = arguments;
    is_int(cudaGraphAddKernelNode(&nodes[0], graph, NULL, 0, &kernel), cudaSuccess, "cudaGraphAddKernelNode");
    is_int(cudaGraphKernelNodeGetParams(nodes[0], &read), cudaSuccess, "cudaGraphKernelNodeGetParams");
    ok(read.func == (void *)&fill_stub && *(unsigned *)read.kernelParams[1] == 6,
       "knows the program's own kernel");
    set.dst = (char *)p + 8;
    set.value = 9;
    set.elementSize = 4;
    set.width = set.height = 1;
    is_int(cudaGraphAddMemsetNode(&nodes[1], graph, nodes, 1, &set), cudaSuccess, "cudaGraphAddMemsetNode");
    is_int(cudaGraphAddMemcpyNode1D(&nodes[2], graph, &nodes[1], 1, words, p, 12, cudaMemcpyDeviceToHost),
           cudaSuccess, "cudaGraphAddMemcpyNode1D");
    is_int(cudaGraphMemcpyNodeGetParams(nodes[2], &copied), cudaSuccess, "cudaGraphMemcpyNodeGetParams");
    ok(copied.dstPtr.ptr == words && copied.extent.width == 12 && copied.kind == cudaMemcpyDeviceToHost,
       "tells what was given");
    is_int(cudaGraphAddHostNode(&nodes[3], graph, &nodes[2], 1, &host), cudaSuccess, "cudaGraphAddHostNode");
    is_int(cudaGraphAddEmptyNode(&nodes[4], graph, &nodes[3], 1), cudaSuccess, "cudaGraphAddEmptyNode");
    is_int(cudaGraphNodeGetType(nodes[1], &type), cudaSuccess, "cudaGraphNodeGetType");
    is_int(type, cudaGraphNodeTypeMemset, "is the type");
    is_int(cudaGraphGetNodes(graph, found, &count), cudaSuccess, "cudaGraphGetNodes");
    is_u64(count, 5, "counts them");
#if MS_CUDART_MAJOR == 12
    is_int(cudaGraphGetEdges(graph, NULL, NULL, &count), cudaSuccess, "cudaGraphGetEdges");
#else
    is_int(cudaGraphGetEdges(graph, NULL, NULL, NULL, &count), cudaSuccess, "cudaGraphGetEdges");
#endif
    is_u64(count, 4, "counts the edges");
    is_int(cudaGraphInstantiateWithFlags(&exec, graph, 0), cudaSuccess, "cudaGraphInstantiateWithFlags");
    is_int(cudaGraphExecGetFlags(exec, &flags), cudaSuccess, "cudaGraphExecGetFlags");
    is_u64(flags, 0, "none");
    atomic_store(&calls, 0);
    is_int(cudaGraphLaunch(exec, NULL), cudaSuccess, "cudaGraphLaunch");
    is_int(cudaDeviceSynchronize(), cudaSuccess, "it ends");
    ok(words[0] == 6 && words[1] == 6 && words[2] == 9 && atomic_load(&calls) == 1,
       "and did what its nodes say");
    set.value = 4;
    is_int(cudaGraphExecMemsetNodeSetParams(exec, nodes[1], &set), cudaSuccess,
           "cudaGraphExecMemsetNodeSetParams");
    is_int(cudaGraphLaunch(exec, cudaStreamPerThread), cudaSuccess, "again");
    is_int(cudaStreamSynchronize(cudaStreamPerThread), cudaSuccess, "on a thread's own stream");
    is_int((int)words[2], 4, "as changed");
    is_int(cudaGraphExecUpdate(exec, graph, &info), cudaSuccess, "cudaGraphExecUpdate");
    is_int(info.result, cudaGraphExecUpdateSuccess, "with its own graph");
    is_int(cudaGraphExecDestroy(exec), cudaSuccess, "cudaGraphExecDestroy");
    is_int(cudaGraphDestroy(graph), cudaSuccess, "cudaGraphDestroy");
    cudaFree(p);
}

static void test_memory(void)
{
    struct cudaMemAllocNodeParams params;
    unsigned long long used = 9;
    cudaGraphNode_t alloc, free_node;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    memset(&params, 0, sizeof(params));
    params.poolProps.allocType = cudaMemAllocationTypePinned;
    params.poolProps.location.type = cudaMemLocationTypeDevice;
    params.bytesize = 2 << 20;
    cudaGraphCreate(&graph, 0);
    is_int(cudaGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params), cudaSuccess,
           "cudaGraphAddMemAllocNode");
    is_int(cudaGraphAddMemFreeNode(&free_node, graph, &alloc, 1, params.dptr), cudaSuccess,
           "cudaGraphAddMemFreeNode");
    is_int(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess, "made ready");
    is_int(cudaGraphLaunch(exec, NULL), cudaSuccess, "launched");
    is_int(cudaDeviceSynchronize(), cudaSuccess, "over");
    is_int(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &used), cudaSuccess,
           "cudaDeviceGetGraphMemAttribute");
    ok(used >= 2 << 20, "it had its memory");
    is_int(cudaDeviceGraphMemTrim(0), cudaSuccess, "cudaDeviceGraphMemTrim");
    is_int(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrReservedMemCurrent, &used), cudaSuccess,
           "asked again");
    is_u64(used, 0, "nothing is kept");
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
}

static cudaGraphNode_t add_any(cudaGraph_t graph, cudaGraphNode_t after, struct cudaGraphNodeParams *params,
                               const char *what)
{
    cudaGraphNode_t node = NULL;

#if MS_CUDART_MAJOR == 12
    is_int(cudaGraphAddNode(&node, graph, &after, after != NULL, params), cudaSuccess, "%s", what);
#else
    is_int(cudaGraphAddNode(&node, graph, &after, NULL, after != NULL, params), cudaSuccess, "%s", what);
#endif
    return node;
}

/* Each node is added by the one structure; what they do to four words is seen. */
static void test_any_type(void)
{
    struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeMemAlloc};
    struct dim3 one = {1, 1, 1};
    unsigned words[4] = {0}, value = 7;
    unsigned long long count = 2;
    cudaGraphNode_t node, set;
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    void *p = NULL, *graph_memory, *arguments[] = {&p, &value, &count};

    cudaMalloc(&p, 16);
    is_int(cudaGraphCreate(&graph, 0), cudaSuccess, "a graph for nodes of any type");
    params.alloc.poolProps.allocType = cudaMemAllocationTypePinned;
    params.alloc.poolProps.location = (struct cudaMemLocation){.type = cudaMemLocationTypeDevice};
    params.alloc.bytesize = 1 << 20;
    node = add_any(graph, NULL, &params, "an allocation");
    graph_memory = params.alloc.dptr;
    ok(graph_memory != NULL, "says where it is");
    params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeMemset};
    params.memset = (struct cudaMemsetParamsV2){graph_memory, 0, 5, 4, 4, 1};
    set = node = add_any(graph, node, &params, "a fill of it");
    params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeMemcpy};
    params.memcpy.copyParams.srcPtr = (struct cudaPitchedPtr){graph_memory, 16, 16, 1};
    params.memcpy.copyParams.dstPtr = (struct cudaPitchedPtr){p, 16, 16, 1};
    params.memcpy.copyParams.extent = (struct cudaExtent){16, 1, 1};
    params.memcpy.copyParams.kind = cudaMemcpyDeviceToDevice;
    node = add_any(graph, node, &params, "a copy out of it");
    params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeKernel};
    params.kernel = (struct cudaKernelNodeParamsV2){&fill_stub, one, one, 0, arguments, NULL};
    node = add_any(graph, node, &params, "a kernel");
    params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeHost};
    params.host.fn = count_call;
    node = add_any(graph, node, &params, "a host function");
    params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeMemFree};
    params.free.dptr = graph_memory;
    add_any(graph, node, &params, "a free");
    params.reserved2 = 1;
    is_int(cudaGraphNodeSetParams(node, &params), cudaErrorInvalidValue, "words to spare have to be 0");
    params = (struct cudaGraphNodeParams){.type = (enum cudaGraphNodeType)99};
    is_int(cudaGraphNodeSetParams(node, &params), cudaErrorInvalidValue, "there is no such type");
    params = (struct cudaGraphNodeParams){.type = cudaGraphNodeTypeMemset};
    params.memset = (struct cudaMemsetParamsV2){graph_memory, 0, 6, 4, 4, 1};
    is_int(cudaGraphNodeSetParams(set, &params), cudaSuccess, "another value for the fill");
    is_int(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess, "it is made ready");
    atomic_store(&calls, 0);
    is_int(cudaGraphLaunch(exec, NULL), cudaSuccess, "and launched");
    is_int(cudaDeviceSynchronize(), cudaSuccess, "to its end");
    cudaMemcpy(words, p, 16, cudaMemcpyDeviceToHost);
    ok(words[0] == 7 && words[1] == 7 && words[2] == 6 && words[3] == 6,
       "every node did its work: %u %u %u %u", words[0], words[1], words[2], words[3]);
    is_int(atomic_load(&calls), 1, "the host's too");
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaFree(p);
}

/* A word for each body: what the handle's default chooses is written. */
static void test_conditions(void)
{
    static const unsigned wanted[4] = {0, 1, 0, 3};
    struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeConditional};
    struct cudaMemsetParams fill_params = {.elementSize = 4, .width = 1, .height = 1};
    cudaGraphConditionalHandle handle;
    unsigned words[4] = {9, 9, 9, 9};
    cudaGraphNode_t node;
    cudaGraphExec_t exec;
    cudaGraph_t graph;
    unsigned *p;

    cudaMalloc((void **)&p, 16);
    cudaMemset(p, 0, 16);
    is_int(cudaGraphCreate(&graph, 0), cudaSuccess, "a graph with conditions");
    for (unsigned i = 0; i < 2; i++) {
        is_int(cudaGraphConditionalHandleCreate(&handle, graph, i, cudaGraphCondAssignDefault), cudaSuccess,
               "a handle whose default is %u", i);
        params.conditional = (struct cudaConditionalNodeParams){handle, cudaGraphCondTypeIf, 2, NULL};
        add_any(graph, NULL, &params, "a node with two bodies");
        for (unsigned body = 0; body < 2; body++) {
            fill_params.dst = p + 2 * i + (i ? !body : body);
            fill_params.value = 2 * i + (i ? !body : body);
            is_int(cudaGraphAddMemsetNode(&node, params.conditional.phGraph_out[body], NULL, 0, &fill_params),
                   cudaSuccess, "a fill in a body");
        }
    }
    is_int(cudaGraphConditionalHandleCreate(NULL, graph, 0, 0), cudaErrorInvalidValue,
           "no place for a handle");
    is_int(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess, "it is made ready");
    is_int(cudaGraphLaunch(exec, NULL), cudaSuccess, "and launched");
    is_int(cudaDeviceSynchronize(), cudaSuccess, "to its end");
    cudaMemcpy(words, p, 16, cudaMemcpyDeviceToHost);
    ok(memcmp(words, wanted, sizeof(words)) == 0, "the values choose the bodies: %u %u %u %u", words[0],
       words[1], words[2], words[3]);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaFree(p);
}

int main(void)
{
    plan(0);
    register_kernel();
    test_capture();
    test_nodes();
    test_memory();
    test_any_type();
    test_conditions();
    return done();
}
