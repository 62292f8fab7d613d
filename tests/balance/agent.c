/* agent.c - a process that takes and gives memory as it is told, a line at a time, and answers each line: for
 * balance.py, which has several of them on one device, and ends some of them badly.
 *
 * device N, alloc N, managed N, pinned N, async N, pool N, graph N, export I, import HEX, free I, sync, quit:
 * what is taken gets a number, from 0 on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "vendor/abi/cuda_runtime_graph_fn.h"

enum { BLOCKS = 64 };
enum kind { NONE, PLAIN, HOST, ORDERED, IMPORTED };

static struct {
    void *at;
    enum kind kind;
} blocks[BLOCKS];
static int count;

static int must(cudaError_t status, const char *what)
{
    if (status != cudaSuccess)
        printf("%s: %d\n", what, (int)status);
    return status == cudaSuccess;
}

static int take(void *at, enum kind kind)
{
    blocks[count].at = at;
    blocks[count].kind = kind;
    return printf("%d\n", count++);
}

static int from_own_pool(size_t bytes, void **at_p)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
    static cudaMemPool_t pool;

    return (pool || must(cudaMemPoolCreate(&pool, &props), "cudaMemPoolCreate")) &&
           must(cudaMallocFromPoolAsync(at_p, bytes, pool, NULL), "cudaMallocFromPoolAsync");
}

/* Memory that is a graph's own: allocated and freed by nodes of it, and kept for graphs afterwards. */
static int launch_graph(size_t bytes)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *at;

    return must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags") &&
           must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture") &&
           must(cudaMallocAsync(&at, bytes, stream), "cudaMallocAsync") &&
           must(cudaFreeAsync(at, stream), "cudaFreeAsync") &&
           must(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture") &&
           must(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate") &&
           must(cudaGraphLaunch(exec, stream), "cudaGraphLaunch") &&
           must(cudaStreamSynchronize(stream), "cudaStreamSynchronize") && puts("done");
}

static int export_block(int i)
{
    cudaIpcMemHandle_t handle;

    if (!must(cudaIpcGetMemHandle(&handle, blocks[i].at), "cudaIpcGetMemHandle"))
        return 0;
    for (size_t k = 0; k < sizeof handle; k++)
        printf("%02x", ((const unsigned char *)&handle)[k]);
    return puts("");
}

static int import_block(const char *text)
{
    cudaIpcMemHandle_t handle;
    unsigned byte;
    void *at;

    for (size_t k = 0; k < sizeof handle && sscanf(text + 2 * k, "%2x", &byte) == 1; k++)
        ((unsigned char *)&handle)[k] = (unsigned char)byte;
    return must(cudaIpcOpenMemHandle(&at, handle, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle") &&
           take(at, IMPORTED);
}

static int give(int i)
{
    enum kind kind = blocks[i].kind;
    void *at = blocks[i].at;

    blocks[i].kind = NONE;
    return must(kind == PLAIN     ? cudaFree(at)
                : kind == HOST    ? cudaFreeHost(at)
                : kind == ORDERED ? cudaFreeAsync(at, NULL)
                                  : cudaIpcCloseMemHandle(at),
                "free") &&
           puts("done");
}

static int do_it(const char *word, const char *argument)
{
    size_t number = strtoull(argument, NULL, 0);
    void *at = NULL;

    if (!strcmp(word, "alloc"))
        return must(cudaMalloc(&at, number), "cudaMalloc") && take(at, PLAIN);
    if (!strcmp(word, "managed"))
        return must(cudaMallocManaged(&at, number, cudaMemAttachGlobal), "cudaMallocManaged") &&
               take(at, PLAIN);
    if (!strcmp(word, "pinned"))
        return must(cudaMallocHost(&at, number), "cudaMallocHost") && take(at, HOST);
    if (!strcmp(word, "async"))
        return must(cudaMallocAsync(&at, number, NULL), "cudaMallocAsync") && take(at, ORDERED);
    if (!strcmp(word, "pool"))
        return from_own_pool(number, &at) && take(at, ORDERED);
    if (!strcmp(word, "graph"))
        return launch_graph(number);
    if (!strcmp(word, "export"))
        return export_block((int)number);
    if (!strcmp(word, "import"))
        return import_block(argument);
    if (!strcmp(word, "free"))
        return give((int)number);
    if (!strcmp(word, "device"))
        return must(cudaSetDevice((int)number), "cudaSetDevice") && puts("done");
    return !strcmp(word, "sync") && must(cudaDeviceSynchronize(), "cudaDeviceSynchronize") && puts("done");
}

int main(void)
{
    static char line[4096], word[32], argument[4000];

    while (count < BLOCKS && fgets(line, sizeof line, stdin)) {
        *argument = 0;
        if (sscanf(line, "%31s %3999s", word, argument) < 1 || !strcmp(word, "quit"))
            break;
        if (!do_it(word, argument))
            puts("failed");
        fflush(stdout);
    }
    return 0;
}
