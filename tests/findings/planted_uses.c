/* planted_uses.c - programs whose memory lies idle when most is live, for MEMSHIM_USES: not used at all,
 * freed long after its last use, or allocated long before its first; and programs that use it in ways that
 * are hard to see, of which nothing may be said.
 *
 * See planted.h. */
#include "planted.h"

#include <pthread.h>
#include <string.h>

#include "tests/sim/kernels.h"

enum { BLOCK = 64 * MIB };

static const char own_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n\n"
                              ".visible .entry takes_structure(.param .align 8 .b8 what[48])\n{\n\tret;\n}\n"
                              ".visible .entry takes_unknown(.param .u99 what)\n{\n\tret;\n}\n";

static const char fill_stub, structure_stub, unknown_stub;

/* As a compiled program registers its kernels. */
static void load_kernels(void)
{
    static struct wrapper {
        int magic, version;
        const void *data, *file;
    } wrappers[] = {{0x466243b1, 1, kernels_ptx, NULL}, {0x466243b1, 1, own_ptx, NULL}};
    void **handle = __cudaRegisterFatBinary(&wrappers[0]);

    __cudaRegisterFunction(handle, &fill_stub, NULL, "memsim_fill", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(handle);
    handle = __cudaRegisterFatBinary(&wrappers[1]);
    __cudaRegisterFunction(handle, &structure_stub, NULL, "takes_structure", -1, NULL, NULL, NULL, NULL,
                           NULL);
    __cudaRegisterFunction(handle, &unknown_stub, NULL, "takes_unknown", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(handle);
}

static void launch(const void *kernel, void **arguments, cudaStream_t stream)
{
    struct dim3 one = {1, 1, 1};

    MUST(cudaLaunchKernel(kernel, one, one, arguments, 0, stream));
}

static void launch_fill(void *memory, cudaStream_t stream)
{
    unsigned long long words = (uintptr_t)memory, count = 1024;
    unsigned value = 7;

    launch(&fill_stub, (void *[]){&words, &value, &count}, stream);
}

static void *some(size_t bytes)
{
    void *p = NULL;

    MUST(cudaMalloc(&p, bytes));
    return p;
}

/* --- idle -------------------------------------------------------------------------------------------------
 */

SCENE never_used(bool clean)
{
    void *scratch = NULL, *used = some(BLOCK);

    MUST(cudaMalloc(&scratch, BLOCK));
    MUST(cudaMemset(used, 0, BLOCK));
    if (clean)
        MUST(cudaMemset(scratch, 0, BLOCK));
    MUST(cudaFree(scratch));
    MUST(cudaFree(used));
}

/* The neighbours of it are used all the time. */
SCENE never_used_beside_copies(bool clean)
{
    void *blocks[3] = {NULL};

    for (int i = 0; i < 3; i++)
        MUST(cudaMalloc(&blocks[i], BLOCK / 2));
    for (int i = 0; i < many; i++)
        MUST(cudaMemcpy(blocks[0], blocks[clean && i == 7 ? 1 : 2], MIB, cudaMemcpyDeviceToDevice));
    for (int i = 0; i < 3; i++)
        MUST(cudaFree(blocks[i]));
}

SCENE freed_late(bool clean)
{
    void *input = NULL, *output;
    static char host[4096];

    MUST(cudaMalloc(&input, BLOCK));
    MUST(cudaMemcpy(input, host, sizeof host, cudaMemcpyHostToDevice));
    if (clean)
        MUST(cudaFree(input));
    output = some(2 * BLOCK);
    MUST(cudaMemset(output, 0, 2 * BLOCK));
    if (!clean)
        MUST(cudaFree(input));
    MUST(cudaFree(output));
}

/* The twin's kernel needs both. */
SCENE freed_late_by_kernel(bool clean)
{
    void *input = NULL, *output;

    load_kernels();
    MUST(cudaMalloc(&input, BLOCK));
    launch_fill(input, NULL);
    output = some(2 * BLOCK);
    launch_fill(output, NULL);
    if (clean)
        launch_fill(input, NULL);
    MUST(cudaDeviceSynchronize());
    MUST(cudaFree(input));
    MUST(cudaFree(output));
}

/* The twin uses it first. */
SCENE used_after_free(bool clean)
{
    void *block = NULL;

    MUST(cudaMalloc(&block, MIB));
    if (!clean)
        MUST(cudaFree(block));
    MUST(cudaMemset((char *)block + 4096, 1, MIB / 2));
    if (clean)
        MUST(cudaFree(block));
}

SCENE used_after_free_by_copy(bool clean)
{
    static char host[4096];
    void *block = NULL;

    MUST(cudaMallocAsync(&block, MIB, NULL));
    MUST(cudaMemsetAsync(block, 1, MIB, NULL));
    if (!clean)
        MUST(cudaFreeAsync(block, NULL));
    MUST(cudaMemcpyAsync(host, block, sizeof host, cudaMemcpyDeviceToHost, NULL));
    if (clean)
        MUST(cudaFreeAsync(block, NULL));
    MUST(cudaDeviceSynchronize());
}

SCENE used_after_free_by_kernel(bool clean)
{
    void *block = NULL;

    load_kernels();
    MUST(cudaMalloc(&block, BLOCK));
    launch_fill(block, NULL);
    if (!clean)
        MUST(cudaFree(block));
    launch_fill(block, NULL);
    MUST(cudaDeviceSynchronize());
    if (clean)
        MUST(cudaFree(block));
}

SCENE freed_late_in_stream(bool clean)
{
    void *input = NULL, *output = NULL;
    cudaStream_t stream;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaMallocAsync(&input, BLOCK, stream));
    MUST(cudaMemsetAsync(input, 1, BLOCK, stream));
    MUST(cudaMallocAsync(&output, 2 * BLOCK, stream));
    MUST(cudaMemcpyAsync(output, clean ? input : (char *)output + BLOCK, BLOCK, cudaMemcpyDeviceToDevice,
                         stream));
    MUST(cudaFreeAsync(input, stream));
    MUST(cudaFreeAsync(output, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(cudaStreamDestroy(stream));
}

SCENE freed_late_by_rows(bool clean)
{
    void *input = NULL, *output;
    size_t pitch;

    MUST(cudaMallocPitch(&input, &pitch, 64 * KIB, 1024));
    MUST(cudaMemset2D(input, pitch, 0, 64 * KIB, 1024));
    output = some(2 * BLOCK);
    MUST(cudaMemcpy2D(output, 64 * KIB, clean ? input : (char *)output + BLOCK, clean ? pitch : 64 * KIB,
                      64 * KIB, 1024, cudaMemcpyDeviceToDevice));
    MUST(cudaFree(input));
    MUST(cudaFree(output));
}

/* A kernel is launched of which nobody knows what it is given: the finding is inferred. */
SCENE freed_late_unread(bool clean)
{
    unsigned long long none[2] = {0};
    void *input = NULL, *output;

    load_kernels();
    MUST(cudaMalloc(&input, BLOCK));
    launch_fill(input, NULL);
    launch(&unknown_stub, (void *[]){none}, NULL);
    if (clean)
        MUST(cudaFree(input));
    output = some(2 * BLOCK);
    launch_fill(output, NULL);
    if (!clean)
        MUST(cudaFree(input));
    MUST(cudaFree(output));
}

SCENE allocated_early(bool clean)
{
    void *output = NULL, *work;

    if (!clean)
        MUST(cudaMalloc(&output, BLOCK));
    work = some(2 * BLOCK);
    MUST(cudaMemset(work, 0, 2 * BLOCK));
    MUST(cudaFree(work));
    MUST(cudaDeviceSynchronize());
    if (clean)
        MUST(cudaMalloc(&output, BLOCK));
    MUST(cudaMemset(output, 0, BLOCK));
    MUST(cudaFree(output));
}

SCENE allocated_early_by_kernel(bool clean)
{
    void *output = NULL, *work;

    load_kernels();
    MUST(cudaMalloc(&output, BLOCK));
    if (clean)
        launch_fill(output, NULL);
    work = some(2 * BLOCK);
    launch_fill(work, NULL);
    MUST(cudaFree(work));
    launch_fill(output, NULL);
    MUST(cudaFree(output));
}

SCENE pinned_beyond_use(bool clean)
{
    void *staging = NULL, *p = some(2 * BLOCK);

    MUST(cudaMallocHost(&staging, 2 * BLOCK));
    for (int i = 0; i < many; i++)
        MUST(cudaMemcpy(p, staging, MIB, cudaMemcpyHostToDevice));
    if (clean)
        MUST(cudaMemcpy(p, staging, 2 * BLOCK, cudaMemcpyHostToDevice));
    MUST(cudaFreeHost(staging));
    MUST(cudaFree(p));
}

/* --- used by graphs after its free ------------------------------------------------------------------------
 */

SCENE used_after_free_by_graph(bool clean)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *block = NULL;

    MUST(cudaMalloc(&block, MIB));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    MUST(cudaMemsetAsync((char *)block + 512, 1, MIB / 2, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    if (!clean)
        MUST(cudaFree(block));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    if (clean)
        MUST(cudaFree(block));
    MUST(cudaGraphExecDestroy(exec));
}

/* Freed before the graph is made; an argument of a kernel's alone. */
SCENE used_after_free_by_graph_kernel(bool clean)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *block = NULL;

    load_kernels();
    MUST(cudaMalloc(&block, BLOCK));
    launch_fill(block, NULL);
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    launch_fill(block, stream);
    MUST(cudaStreamEndCapture(stream, &graph));
    if (!clean)
        MUST(cudaFree(block));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaStreamSynchronize(stream));
    if (clean)
        MUST(cudaFree(block));
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
}

/* Somebody else has the address by then. The twin's graph is given another before. */
SCENE used_after_free_by_older_graph(bool clean)
{
    struct cudaMemsetParams params = {.elementSize = 4, .width = 1024, .height = 1};
    void *block = NULL, *other = some(MIB), *next;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaGraphNode_t node;

    MUST(cudaMalloc(&block, MIB));
    params.dst = block;
    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &params));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    params.dst = other;
    if (clean)
        MUST(cudaGraphExecMemsetNodeSetParams(exec, node, &params));
    MUST(cudaFree(block));
    MUST(cudaDeviceSynchronize());
    next = some(MIB);
    MUST(cudaGraphLaunch(exec, NULL));
    MUST(cudaDeviceSynchronize());
    MUST(cudaGraphExecDestroy(exec));
    MUST(cudaGraphDestroy(graph));
    MUST(cudaFree(next));
    MUST(cudaFree(other));
}

/* --- used all the same ------------------------------------------------------------------------------------
 */

/* After the peak memory is used once more, in this way; `use` may be told of it before. */
static void use_by(void (*prepare)(void *memory), void (*use)(void *memory), bool first_is_needed)
{
    void *memory = some(BLOCK), *other;

    load_kernels();
    if (first_is_needed)
        launch_fill(memory, NULL);
    prepare(memory);
    other = some(2 * BLOCK);
    launch_fill(other, NULL);
    use(memory);
    MUST(cudaDeviceSynchronize());
    MUST(cudaFree(other));
    MUST(cudaFree(memory));
}

static void *table;
static void *kept; /* whatever there is to launch */

/* The kernel is given a table of pointers, which lies in the device's memory. */
static void make_table(void *memory)
{
    void *pointers[1024] = {[17] = memory};

    table = some(sizeof pointers);
    MUST(cudaMemcpy(table, pointers, sizeof pointers, cudaMemcpyHostToDevice));
}

static void use_table(void *memory)
{
    (void)memory;
    launch_fill(table, NULL);
    MUST(cudaFree(table));
}

SCENE used_by_table(bool clean)
{
    (void)clean;
    use_by(make_table, use_table, true);
}

static void capture(void *memory)
{
    cudaStream_t stream;
    cudaGraph_t graph;

    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    launch_fill(memory, stream);
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate((cudaGraphExec_t *)&kept, graph, 0));
    MUST(cudaGraphDestroy(graph));
}

static void launch_graph(void *memory)
{
    (void)memory;
    MUST(cudaGraphLaunch(kept, NULL));
    MUST(cudaDeviceSynchronize());
    MUST(cudaGraphExecDestroy(kept));
}

SCENE used_by_capture(bool clean)
{
    (void)clean;
    use_by(capture, launch_graph, false);
}

static void add_node(void *memory)
{
    struct cudaMemsetParams params = {.dst = memory, .elementSize = 4, .width = 16, .height = 1};
    cudaGraph_t graph;
    cudaGraphNode_t node;

    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &params));
    MUST(cudaGraphInstantiate((cudaGraphExec_t *)&kept, graph, 0));
    MUST(cudaGraphDestroy(graph));
}

SCENE used_by_node(bool clean)
{
    (void)clean;
    use_by(add_node, launch_graph, false);
}

static void nothing(void *memory)
{
    (void)memory;
}

/* Arguments lie one behind the other in a buffer. */
static void use_buffer(void *memory)
{
    struct {
        unsigned long long words;
        unsigned value;
        unsigned long long count;
    } buffer = {(uintptr_t)memory, 1, 16};
    size_t bytes = sizeof buffer;
    void *extra[] = {(void *)1, &buffer, (void *)2, &bytes, NULL};
    CUresult (*launch_kernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                              unsigned, CUstream, void **, void **) = NULL;
    enum cudaDriverEntryPointQueryResult found;
    cudaFunction_t function;

    MUST(cudaGetDriverEntryPointByVersion("cuLaunchKernel", (void **)&launch_kernel, 12000, 0, &found));
    MUST(cudaGetFuncBySymbol(&function, &fill_stub));
    MUST(launch_kernel((CUfunction)function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
}

SCENE used_by_buffer(bool clean)
{
    (void)clean;
    use_by(nothing, use_buffer, true);
}

/* The argument is a structure that has the address in its middle. */
static void use_structure(void *memory)
{
    struct {
        unsigned long long before[3];
        void *memory;
        unsigned long long behind[2];
    } what = {.memory = (char *)memory + 4096};

    launch(&structure_stub, (void *[]){&what}, NULL);
}

SCENE used_by_structure(bool clean)
{
    (void)clean;
    use_by(nothing, use_structure, true);
}

static void *fill_from_there(void *memory)
{
    MUST(cudaMemsetAsync(memory, 0, 4096, cudaStreamPerThread));
    MUST(cudaStreamSynchronize(cudaStreamPerThread));
    return NULL;
}

static void use_elsewhere(void *memory)
{
    pthread_t thread;

    MUST(pthread_create(&thread, NULL, fill_from_there, memory));
    MUST(pthread_join(thread, NULL));
}

SCENE used_by_other_thread(bool clean)
{
    (void)clean;
    use_by(nothing, use_elsewhere, true);
}

/* The driver's function by its name, and no lookup. */
static void use_by_name(void *memory)
{
    MUST(cuMemsetD8_v2((CUdeviceptr)(uintptr_t)memory, 0, 4096));
}

SCENE used_by_name(bool clean)
{
    (void)clean;
    use_by(nothing, use_by_name, true);
}

/* Of a pool that other processes may open; whoever has the pointer uses it where nobody sees. */
SCENE used_by_process(bool clean)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .handleTypes = cudaMemHandleTypePosixFileDescriptor,
                                     .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
    struct cudaMemPoolPtrExportData data;
    cudaMemPool_t pool;
    void *memory, *other = some(BLOCK);

    (void)clean;
    MUST(cudaMemPoolCreate(&pool, &props));
    MUST(cudaMallocFromPoolAsync(&memory, BLOCK, pool, NULL));
    MUST(cudaMemPoolExportPointer(&data, memory));
    MUST(cudaMemset(other, 0, BLOCK));
    MUST(cudaDeviceSynchronize());
    MUST(cudaFreeAsync(memory, NULL));
    MUST(cudaDeviceSynchronize());
    MUST(cudaMemPoolDestroy(pool));
    MUST(cudaFree(other));
}
