/* graph_owed WAY: an allocation is captured without its free and launched; graph and executable graph are
 * ended and what the device keeps for graphs is trimmed, so that the memory is the program's to free. 0: it
 * is freed, 1: in the order of a stream, 2: by an address inside first, 3: never, 4: twice, 5: by a node of a
 * second graph, 6: in a stream's order, and launched again without another free, 7: never launched, 8: never,
 * with 150 more of 1 MiB in the same graph. Prints each status. */
#include <stdlib.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

static cudaStream_t stream;
static char *block;

__attribute__((noinline)) static cudaGraph_t capture(int more)
{
    cudaGraph_t graph = NULL;
    void *other;

    say("begin %d", (int)cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    say("alloc %d", (int)cudaMallocAsync((void **)&block, 64 * MIB, stream));
    say("fill %d", (int)cudaMemsetAsync(block, 7, 64 * MIB, stream));
    for (int i = 0; i < more; i++)
        if (cudaMallocAsync(&other, MIB, stream))
            say("one of more was refused");
    say("end %d", (int)cudaStreamEndCapture(stream, &graph));
    return graph;
}

static void free_by_graph(void)
{
    cudaGraphExec_t exec = NULL;
    cudaGraph_t graph = NULL;

    cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
    say("captured free %d", (int)cudaFreeAsync(block, stream));
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiateWithFlags(&exec, graph, 0);
    say("launched free %d", (int)cudaGraphLaunch(exec, stream));
    cudaStreamSynchronize(stream);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
}

static void free_it(int way)
{
    if (way == 2)
        say("inside %d", (int)cudaFree(block + 512));
    if (way == 0 || way == 2 || way == 4)
        say("free %d", (int)cudaFree(block));
    if (way == 4)
        say("again %d", (int)cudaFree(block));
    if (way == 1)
        say("in order %d", (int)cudaFreeAsync(block, stream));
    if (way == 5)
        free_by_graph();
}

int main(int argc, char **argv)
{
    int way = argc > 1 ? atoi(argv[1]) : 0;
    cudaGraphExec_t exec = NULL;
    cudaGraph_t graph;

    cudaStreamCreate(&stream);
    graph = capture(way == 8 ? 150 : 0);
    say("make %d", (int)cudaGraphInstantiateWithFlags(&exec, graph, 0));
    if (way != 7)
        say("launch %d", (int)cudaGraphLaunch(exec, stream));
    say("wait %d", (int)cudaStreamSynchronize(stream));
    if (way == 6) {
        say("in order %d", (int)cudaFreeAsync(block, stream));
        say("launch %d", (int)cudaGraphLaunch(exec, stream));
        say("wait %d", (int)cudaDeviceSynchronize());
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaDeviceSynchronize();
    cudaDeviceGraphMemTrim(0);
    free_it(way);
    say("done %d", (int)cudaDeviceSynchronize());
    say("trim %d", (int)cudaDeviceGraphMemTrim(0));
    return 0;
}
